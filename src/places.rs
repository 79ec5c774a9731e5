//! Where things are when the command line does not say.

use anyhow::Context;
use std::path::{Path, PathBuf};

/// Where everything is kept when nothing is said.
const DATA_DIR: &str = "faultline-data";

/// The data directory: as given, or else as the environment says, as for `serve`. For commands that can do without one;
/// the others let their arguments look at the environment.
pub(crate) fn data_dir(given: Option<&Path>) -> PathBuf {
    let named =
        || std::env::var_os("FAULTLINE_DATA_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    given.map(Path::to_owned).or_else(named).unwrap_or_else(|| DATA_DIR.into())
}

/// Where programs of this user remember things.
pub(crate) fn state_folder() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    let state = state.context(
        "there is no place to remember what was done: set HOME or XDG_STATE_HOME to a folder of yours",
    )?;
    Ok(state.join("faultline"))
}
