//! The registry that a command works with: the built-in one, or the built-in one extended by an operator's file.

use anyhow::Context;
use classifier::Registry;
use classifier::registry::RegistryFile;
use std::path::Path;

/// Loads the registry. A file with a mistake is rejected as a whole, and the error names the line of the mistake.
pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Registry> {
    from_file(read_file(file)?.as_ref())
}

/// Reads an operator's file, if there is one, without parsing it.
pub(crate) fn read_file(file: Option<&Path>) -> anyhow::Result<Option<RegistryFile>> {
    let Some(file) = file else { return Ok(None) };
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| {
        format!("cannot read the registry file '{name}'; check the path given to --registry")
    })?;
    Ok(Some(RegistryFile { name, text }))
}

/// Builds the registry, extended by an operator's file if there is one.
pub(crate) fn from_file(file: Option<&RegistryFile>) -> anyhow::Result<Registry> {
    let Some(RegistryFile { name, text }) = file else {
        return Registry::builtin().context("the built-in registry is broken; please report this");
    };
    Registry::with_operator_file(name, text).context(
        "the registry file has a mistake, and nothing in it is used; correct this line and try again",
    )
}
