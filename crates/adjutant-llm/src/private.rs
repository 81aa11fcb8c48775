//! Files and directories that only their owner can access, whatever the umask: sessions, recordings and logs contain
//! conversations.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
};

/// Files created with these options are accessible only to their owner; existing files keep their mode.
pub fn file(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Makes a folder, and those above it that are missing, which their owner alone can enter.
///
/// # Errors
/// The folder cannot be created; an existing one is not an error.
pub fn folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
