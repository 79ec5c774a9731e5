//! Messages about files that cannot be read: what is wrong, where, and what to do.

use std::io::{Error, ErrorKind};

/// Returns the message for a file that cannot be opened.
pub(crate) fn open_error(name: &str, error: &Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!("cannot open '{name}': there is no such file; check the path"),
        ErrorKind::PermissionDenied => {
            format!("cannot open '{name}': you may not read it; check its permissions")
        }
        _ => read_error(name, error),
    }
}

/// Returns the message for a file that cannot be read, or not to its end. Damage in compressed files also ends here.
pub(crate) fn read_error(name: &str, error: &Error) -> String {
    match error.kind() {
        ErrorKind::IsADirectory => format!("cannot read '{name}': it is a directory; name the files in it"),
        ErrorKind::UnexpectedEof => {
            format!("cannot read '{name}' to its end: it is cut short; what came before the cut was used")
        }
        _ => format!("cannot read '{name}': {error}; what came before, if anything, was used"),
    }
}
