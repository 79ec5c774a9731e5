//! The files that the arguments name: paths, patterns that the shell did not expand, and stdin.
//!
//! Invariants: an argument that is the name of an existing file is never treated as a pattern; no file is read twice
//! because it was named twice; a pattern that matches no file is an error.

use crate::cli::input::Input;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The inputs that the arguments name, in order, and the errors of arguments that name none.
#[derive(Debug, Default)]
pub(super) struct InputFiles {
    pub(super) inputs: Vec<Input>,
    pub(super) errors: Vec<String>,
    /// The canonical paths of the inputs.
    seen: HashSet<PathBuf>,
}

impl InputFiles {
    pub(super) fn from_arguments(arguments: &[PathBuf]) -> Self {
        let mut input_files = Self::default();
        for argument in arguments {
            match pattern(argument) {
                Some(pattern) => input_files.expand(pattern),
                None => input_files.push(argument),
            }
        }
        input_files
    }

    fn push(&mut self, path: &Path) {
        let is_stdin = path.as_os_str() == "-";
        let own = if is_stdin { path.to_owned() } else { path.canonicalize().unwrap_or(path.to_owned()) };
        if self.seen.insert(own) {
            self.inputs.push(if is_stdin { Input::stdin() } else { Input::file(path.to_owned()) });
        }
    }

    /// Adds the files that a pattern matches, in order of their names, without folders.
    fn expand(&mut self, pattern: &str) {
        let paths = match glob::glob(pattern) {
            Ok(paths) => paths,
            Err(error) => {
                let error = format!(
                    "'{pattern}' is no file, and no pattern either: {error}; quote what is meant as it is: '[[]'"
                );
                return self.errors.push(error);
            }
        };
        let files: Vec<PathBuf> = paths.flatten().filter(|path| !path.is_dir()).collect();
        if files.is_empty() {
            let error =
                format!("'{pattern}' matches no file; check the pattern, and the folder that it starts from");
            return self.errors.push(error);
        }
        files.iter().for_each(|file| self.push(file));
    }
}

/// Returns the argument as a pattern, if it is one and no file has that name.
fn pattern(argument: &Path) -> Option<&str> {
    let text = argument.to_str()?;
    (text.contains(['*', '?', '[']) && argument.symlink_metadata().is_err()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(arguments: &[&str]) -> (Vec<String>, Vec<String>) {
        let arguments: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
        let input_files = InputFiles::from_arguments(&arguments);
        let last = |name: &String| name.rsplit('/').next().unwrap().to_owned();
        (input_files.inputs.iter().map(|input| last(&input.name)).collect(), input_files.errors)
    }

    #[test]
    fn files_come_before_patterns_and_nothing_comes_twice() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.log", "b.log", "c.txt", "[ab].log"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("d.log")).unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let check = |arguments: &[&str], expected: &[&str]| {
            let paths: Vec<String> = arguments.iter().map(|name| path(name)).collect();
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let (found, errors) = names(&paths);
            assert_eq!(found, expected);
            assert!(errors.is_empty(), "{errors:?}");
        };
        check(&["[ab].log"], &["[ab].log"]);
        check(&["?.log"], &["a.log", "b.log"]);
        check(&["b.log", "*.log", "./b.log"], &["b.log", "[ab].log", "a.log"]);
        check(&["missing.log"], &["missing.log"]);
        assert_eq!(names(&["-", "-"]).0, ["stdin"]);
    }

    #[test]
    fn a_pattern_that_names_nothing_is_a_mistake() {
        let folder = tempfile::tempdir().unwrap();
        for (pattern, words) in [("*.log", "matches no file"), ("a[.log", "no pattern either")] {
            let pattern = folder.path().join(pattern).display().to_string();
            let (found, errors) = names(&[&pattern]);
            assert!(found.is_empty());
            assert!(errors[0].contains(words) && errors[0].contains(&pattern), "{errors:?}");
        }
    }
}
