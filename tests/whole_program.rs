//! Whole-program tests: the real binary, on files and pipes, as a user runs it.

#[cfg(test)]
mod whole_program {
    mod classify;
    mod codes;
    mod completions;
    mod help;
    mod hostile;
    mod pipes;
    mod registry_file;
    mod support;
}
