//! Which registry a command works with: the one that ships, or that with an operator's file on top.

use anyhow::Context;
use std::path::Path;
use taxonomy::Registry;
use taxonomy::registry::RegistryFile;

/// Loads the registry. A file with a mistake is refused as a whole, and the error says on which line it is.
pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Registry> {
    of_file(read(file)?.as_ref())
}

/// An operator's file, if there is one, as it stands on the disk.
pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Option<RegistryFile>> {
    let Some(file) = file else { return Ok(None) };
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| {
        format!("cannot read the registry file '{name}'; check the path given to --registry")
    })?;
    Ok(Some(RegistryFile { name, text }))
}

/// The registry with an operator's file on top.
pub(crate) fn of_file(file: Option<&RegistryFile>) -> anyhow::Result<Registry> {
    let Some(RegistryFile { name, text }) = file else {
        return Registry::builtin().context("the registry that ships is broken; please report this");
    };
    Registry::with_operator_file(name, text)
        .context("the registry file is refused, and nothing of it is used; correct this line and try again")
}
