//! Which registry a command works with: the one that ships, or that with an operator's file on top.

use anyhow::Context;
use std::path::Path;
use taxonomy::Registry;

/// Loads the registry. A file with a mistake is refused as a whole, and the error says on which line it is.
pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Registry> {
    let Some(file) = file else {
        return Registry::builtin().context("the registry that ships is broken; please report this");
    };
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| {
        format!("cannot read the registry file '{name}'; check the path given to --registry")
    })?;
    Registry::with_operator_file(&name, &text)
        .context("the registry file is refused, and nothing of it is used; correct this line and try again")
}
