//! Implements the object store of `deltalake` on a table's folder.
//!
//! Invariant: **when a put returns, the object is durable**: its bytes are synced before it gets its name, and its name
//! is synced before the put returns. So after a crash, an object is complete or does not exist. Neither `deltalake`
//! itself nor its own store for local disks syncs anything.

use crate::disk::Disk;
use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use object_store::path::Path as Location;
use object_store::{
    Attributes, CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result, UploadPart,
};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name prefix of objects that are being written. Listings skip such names.
pub(super) const UNFINISHED: &str = ".unfinished-";

/// A folder as an object store. Clones refer to the same folder.
#[derive(Debug, Clone)]
pub(super) struct FolderStore {
    disk: Arc<dyn Disk>,
    root: PathBuf,
}

impl FolderStore {
    pub(super) fn new(disk: Arc<dyn Disk>, root: &Path) -> Self {
        Self { disk, root: root.to_owned() }
    }

    fn path(&self, location: &Location) -> PathBuf {
        self.root.join(location.as_ref())
    }

    /// Writes a complete object.
    fn write(&self, location: &Location, parts: &[Bytes], mode: &PutMode) -> io::Result<()> {
        let path = self.path(location);
        let folder = path.parent().unwrap_or(&self.root);
        self.disk.create_dir_all(folder)?;
        let unfinished = folder.join(format!("{UNFINISHED}{:016x}", getrandom::u64()?));
        let written = self.write_bytes(&unfinished, parts).and_then(|()| match mode {
            PutMode::Create => self.disk.link(&unfinished, &path),
            _ => self.disk.rename(&unfinished, &path),
        });
        if written.is_err() || matches!(mode, PutMode::Create) {
            // A leftover name does no harm, and is removed at the next start.
            drop(self.disk.remove(&unfinished));
        }
        written?;
        self.disk.sync_dir(folder)
    }

    fn write_bytes(&self, path: &Path, parts: &[Bytes]) -> io::Result<()> {
        let length: usize = parts.iter().map(Bytes::len).sum();
        let mut file = self.disk.create(path, length as u64)?;
        file.append(&mut parts.iter().map(|part| IoSlice::new(part)).collect::<Vec<_>>())?;
        file.sync()
    }

    fn read(&self, location: &Location, options: &GetOptions) -> Result<GetResult> {
        let path = self.path(location);
        let wrong = |error| failed(location, error);
        let (name, folder) = (path.file_name().and_then(|name| name.to_str()), path.parent());
        let listed = self.disk.list(folder.unwrap_or(&self.root)).map_err(wrong)?;
        let listed = listed.into_iter().find(|file| Some(&*file.name) == name);
        let meta = listed.map(|file| meta(location.clone(), file.bytes, file.modified));
        let meta = meta.ok_or_else(|| wrong(ErrorKind::NotFound.into()))?;
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range.as_range(meta.size).map_err(|error| wrong(io::Error::other(error)))?,
            None => 0..meta.size,
        };
        let mut bytes = vec![0; if options.head { 0 } else { (range.end - range.start) as usize }];
        if !bytes.is_empty() {
            let file = self.disk.open(&path).map_err(wrong)?;
            file.read_at(range.start, &mut bytes).map_err(wrong)?;
        }
        let stream = stream::once(async move { Ok(Bytes::from(bytes)) }).boxed();
        let payload = GetResultPayload::Stream(stream);
        Ok(GetResult { payload, meta, range, attributes: Attributes::default() })
    }

    /// Returns all objects below a folder, in the order of their names.
    fn walk(&self, prefix: Option<&Location>) -> Result<Vec<ObjectMeta>> {
        let mut found = Vec::new();
        let mut folders = vec![prefix.cloned().unwrap_or_default()];
        while let Some(folder) = folders.pop() {
            let (files, below) = self.look(&folder)?;
            found.extend(files);
            folders.extend(below);
        }
        found.sort_unstable_by(|one, other| one.location.cmp(&other.location));
        Ok(found)
    }

    /// Returns the objects and the folders directly in a folder.
    fn look(&self, folder: &Location) -> Result<(Vec<ObjectMeta>, Vec<Location>)> {
        let path = self.path(folder);
        let is_ours = |name: &str| !name.starts_with(UNFINISHED);
        let at = |name: String| folder.clone().join(name);
        let listed = match self.disk.list(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Default::default());
            }
            other => other.map_err(|error| failed(folder, error))?,
        };
        let files = listed.into_iter().filter(|file| is_ours(&file.name));
        let files = files.map(|file| meta(at(file.name), file.bytes, file.modified)).collect();
        let folders = self.disk.folders(&path).map_err(|error| failed(folder, error))?;
        Ok((files, folders.into_iter().map(at).collect()))
    }
}

fn meta(location: Location, size: u64, modified: i64) -> ObjectMeta {
    let last_modified = DateTime::<Utc>::from_timestamp_micros(modified).unwrap_or_default();
    ObjectMeta { location, last_modified, size, e_tag: None, version: None }
}

fn failed(location: &Location, error: io::Error) -> Error {
    let path = location.to_string();
    match error.kind() {
        ErrorKind::NotFound => Error::NotFound { path, source: error.into() },
        ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: error.into() },
        ErrorKind::PermissionDenied => Error::PermissionDenied { path, source: error.into() },
        _ => Error::Generic { store: "folder", source: error.into() },
    }
}

impl fmt::Display for FolderStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root.display())
    }
}

#[async_trait]
impl ObjectStore for FolderStore {
    async fn put_opts(&self, at: &Location, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if matches!(options.mode, PutMode::Update(_)) {
            return Err(unsupported("an update of an object"));
        }
        let parts: Vec<Bytes> = payload.into_iter().collect();
        self.write(at, &parts, &options.mode).map_err(|error| failed(at, error))?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(
        &self,
        location: &Location,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Gathered { store: self.clone(), location: location.clone(), parts: Vec::new() }))
    }

    async fn get_opts(&self, location: &Location, options: GetOptions) -> Result<GetResult> {
        self.read(location, &options)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Location>>,
    ) -> BoxStream<'static, Result<Location>> {
        let store = self.clone();
        locations
            .map(move |location| {
                let location = location?;
                store.disk.remove(&store.path(&location)).map_err(|error| failed(&location, error))?;
                Ok(location)
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.walk(prefix) {
            Ok(found) => stream::iter(found.into_iter().map(Ok)).boxed(),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> Result<ListResult> {
        let (objects, folders) = self.look(&prefix.cloned().unwrap_or_default())?;
        let common_prefixes: BTreeSet<Location> = folders.into_iter().collect();
        Ok(ListResult { common_prefixes: common_prefixes.into_iter().collect(), objects })
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> Result<()> {
        let bytes = self.get(from).await?.bytes().await?;
        let mode = match options.mode {
            CopyMode::Overwrite => PutMode::Overwrite,
            CopyMode::Create => PutMode::Create,
        };
        self.put_opts(to, bytes.into(), mode.into()).await.map(drop)
    }
}

fn unsupported(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.to_owned(), implementer: "folder".to_owned() }
}

/// A multipart upload. The parts are kept until the last has arrived; only checkpoints are uploaded this way, and they
/// have a few megabytes.
#[derive(Debug)]
struct Gathered {
    store: FolderStore,
    location: Location,
    parts: Vec<PutPayload>,
}

#[async_trait]
impl MultipartUpload for Gathered {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts.push(data);
        async { Ok(()) }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let whole: PutPayload = std::mem::take(&mut self.parts).into_iter().flatten().collect();
        self.store.put(&self.location, whole).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.parts.clear();
        Ok(())
    }
}
