//! Interprets names of log files: rotation families, compression, and the service that a file belongs to.
//!
//! Invariant: names alone never decide that two files have the same content; they decide how much of it must agree.

use std::path::Path;

/// Files of the same family count as the same content only if this many bytes agree, because many logs begin alike.
const SAME_NAME_MATCH_BYTES: u64 = 1 << 10;
/// A run of at least this many digits is a date.
const MIN_DATE_DIGITS: usize = 6;
/// The suffixes that rotation and compression add to a name.
const ROTATION_SUFFIXES: [&str; 6] = [".gz", ".zst", ".old", ".bak", ".orig", "~"];

/// The compression of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

/// Returns the compression of a file by its name; `None` for a plain file, which may grow.
pub(super) fn packing(path: &Path) -> Option<Compression> {
    match path.extension()?.to_str()? {
        "gz" => Some(Compression::Gzip),
        "zst" => Some(Compression::Zstd),
        _ => None,
    }
}

/// Returns the number of bytes that must agree before a file counts as a copy of a content; `None` if it never does.
/// `text` and `first_name` are the last path and the first name of the content.
pub(super) fn must_agree(file: &Path, text: &Path, first_name: &str) -> Option<u64> {
    if file.parent() != text.parent() {
        return None;
    }
    let (name, last_name) = (name_of(file), name_of(text));
    if family(&name) != family(&last_name) {
        return None;
    }
    let is_added_to = |other: &str| name.len() > other.len() && name.starts_with(other);
    // `app.log.1` is made from `app.log`; a new `app.log` is not.
    Some(if is_added_to(first_name) || is_added_to(&last_name) { 1 } else { SAME_NAME_MATCH_BYTES })
}

/// Returns the service that a file name suggests: `orders` for `/var/log/orders.log.1`.
pub(super) fn service(path: &Path) -> Option<String> {
    let family = family(&name_of(path));
    let stem = family.split('.').find(|part| !part.is_empty())?;
    Some(stem.to_owned())
}

/// Returns the name without the parts that rotation adds to it.
pub(super) fn family(name: &str) -> String {
    let undated = without_date(name);
    let mut rest = undated.as_str();
    while let Some(shorter) = without_added(rest).filter(|shorter| !shorter.is_empty()) {
        rest = shorter;
    }
    rest.to_owned()
}

fn without_added(name: &str) -> Option<&str> {
    let word = ROTATION_SUFFIXES.into_iter().find_map(|added| name.strip_suffix(added));
    word.or_else(|| {
        let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        (stem.len() < name.len()).then(|| stem.strip_suffix(['.', '-', '_'])).flatten()
    })
}

/// Removes a date and the separator before it: `app-2026-01-31.log` becomes `app.log`.
fn without_date(name: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_digit() || "-_:.T".contains(letter);
    for (start, _) in name.match_indices(|letter: char| letter.is_ascii_digit()) {
        let run = &name[start..];
        let run = &run[..run.find(|letter| !is_part(letter)).unwrap_or(run.len())];
        let run = run.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        if run.bytes().filter(u8::is_ascii_digit).count() >= MIN_DATE_DIGITS {
            let before = name[..start].trim_end_matches(['.', '-', '_']);
            return format!("{before}{}", &name[start + run.len()..]);
        }
    }
    name.to_owned()
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_keeps_the_family() {
        for name in [
            "app.log",
            "app.log.1",
            "app.log.12.gz",
            "app.log-20260131",
            "app.log-20260131.zst",
            "app-2026-01-31.log",
            "app.2026-01-31T10.log.gz",
            "app.log.old",
            "app.log~",
        ] {
            assert_eq!(family(name), "app.log", "{name}");
        }
        for name in ["app-1.log", "app-errors.log", "app.log.err", "1", "api.log"] {
            assert_ne!(family(name), "app.log", "{name}");
        }
    }

    #[test]
    fn names_say_how_much_must_agree() {
        let check = |file: &str, text: &str, expected| {
            assert_eq!(
                must_agree(Path::new(file), Path::new(text), &name_of(Path::new(text))),
                expected,
                "{file}"
            );
        };
        check("/l/app.log.1", "/l/app.log", Some(1));
        check("/l/app.log.1.gz", "/l/app.log.1", Some(1));
        check("/l/app.log", "/l/app.log", Some(1024));
        check("/l/app-20260131.log", "/l/app.log", Some(1024));
        check("/l/app.log.err", "/l/app.log", None);
        check("/m/app.log.1", "/l/app.log", None);
        assert_eq!(must_agree(Path::new("/l/app.log.2.gz"), Path::new("/l/app.log.1"), "app.log"), Some(1));
    }

    #[test]
    fn a_file_is_the_log_of_a_service() {
        let service = |path| service(Path::new(path));
        assert_eq!(service("/var/log/orders.log.1").as_deref(), Some("orders"));
        assert_eq!(service("/var/log/orders-20260131.ndjson.gz").as_deref(), Some("orders"));
        assert_eq!(service("/").as_deref(), None);
    }
}
