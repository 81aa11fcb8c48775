//! Files and folders that only their owner can enter, whatever the umask: sessions, recordings and logs hold what was said.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
};

/// Files that these options make can be read and written by their owner alone; those that are there stay as they are.
pub fn file(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Makes a folder, and those above it that are missing, which their owner alone can enter.
///
/// # Errors
/// If it cannot be made; that it is there is no error.
pub fn folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
