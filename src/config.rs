//! Configuration: every setting is declared, parsed, validated and documented here.
//!
//! The flags of `serve` are the one list of settings, with their names, meanings, defaults and parsers. A key of
//! `faultline.toml` is the name of a flag, and its first word may be a table: `web` in `[listen]` is `--listen-web`.
//! Flags win over environment variables, those over the file, and the file over the built-in defaults.
//!
//! The flag groups that several commands share are [`storage`], [`query_limits`], [`limits`] and [`ConfigFileArg`].
//! Flags of a single command are declared in that command's module.
//!
//! Invariant: a file with a mistake is not used at all, and every mistake in it is reported with its line.

#[cfg(feature = "server")]
mod entries;
#[cfg(feature = "server")]
mod file;
#[cfg(feature = "server")]
pub(crate) mod limits;
#[cfg(feature = "server")]
mod loader;
#[cfg(feature = "server")]
pub(crate) mod paths;
#[cfg(feature = "server")]
pub(crate) mod query_limits;
#[cfg(feature = "server")]
mod reference;
pub(crate) mod registry;
#[cfg(feature = "server")]
pub(crate) mod storage;

#[cfg(feature = "server")]
pub(crate) use file::{ConfigFile, setting_key};
#[cfg(feature = "server")]
pub(crate) use loader::{ConfigFileArg, LoadedConfig, load};
#[cfg(feature = "server")]
pub(crate) use reference::{ReferenceFormat, render_reference};
