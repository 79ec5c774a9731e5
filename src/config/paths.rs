//! Default paths: the data directory, and the folder for the user's state.

use anyhow::Context;
use std::path::{Path, PathBuf};

/// The data directory if neither a flag nor the environment names one.
const DEFAULT_DATA_DIR: &str = "faultline-data";

/// Returns the data directory: the given one, else that of the environment, else the default. This is for commands
/// whose `--data-dir` is optional because they can use a server instead; other commands read the variable through clap.
pub(crate) fn data_dir(given: Option<&Path>) -> PathBuf {
    let from_environment =
        || std::env::var_os("FAULTLINE_DATA_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    given.map(Path::to_owned).or_else(from_environment).unwrap_or_else(|| DEFAULT_DATA_DIR.into())
}

/// Returns the folder in which this program keeps state for the user.
pub(crate) fn state_dir() -> anyhow::Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    let state = state.context(
        "there is no folder for state: neither XDG_STATE_HOME nor HOME is an absolute path; set one of them",
    )?;
    Ok(state.join("faultline"))
}
