//! The program of a tool: its path, that it is executable, and that it matches its recorded digest.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use adjutant_tool::ToolError;
use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind};

/// The number of bytes per read for the digest.
const CHUNK: usize = 256 << 10;

/// A program.
#[derive(Debug)]
pub(super) struct Binary {
    path: PathBuf,
    pin: Option<Pin>,
}

/// The required content of the program.
#[derive(Debug)]
struct Pin {
    sha256: String,
    /// The stamp of the file when it was last read: it is read again only if the stamp differs.
    seen: Mutex<FileStamp>,
}

/// The properties of a file that are known without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of the last changes of content and metadata.
    changed: [i64; 4],
}

impl Binary {
    /// Finds it by its path, or by its bare name in `PATH`.
    ///
    /// # Errors
    /// `Config` if it is missing, is not executable, or does not match its recorded digest.
    pub(super) fn find(binary: &Path, sha256: Option<&str>) -> Result<Self, Error> {
        let path = if is_bare(binary) {
            in_path(binary)?
        } else {
            binary.to_owned()
        };
        let about = look(&path).map_err(wrong)?;
        let pin = sha256.map(|sha256| {
            let pin = Pin {
                sha256: sha256.to_ascii_lowercase(),
                seen: Mutex::new(FileStamp::from_metadata(&about)),
            };
            pin.verify(&path).map(|()| pin)
        });
        Ok(Self {
            pin: pin.transpose().map_err(wrong)?,
            path,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that it exists and is unchanged. May read it, and blocks for that.
    ///
    /// # Errors
    /// `Failed`, for the model.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        let about = look(&self.path).map_err(ToolError::failed)?;
        let Some(pin) = &self.pin else { return Ok(()) };
        let now = FileStamp::from_metadata(&about);
        let is_seen = *pin.seen.lock().unwrap_or_else(PoisonError::into_inner) == now;
        if !is_seen {
            pin.verify(&self.path).map_err(ToolError::failed)?;
            *pin.seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
        Ok(())
    }
}

impl Pin {
    fn verify(&self, path: &Path) -> Result<(), String> {
        let is = digest(path)
            .map_err(|error| format!("the program cannot be read: {}: {error}", path.display()))?;
        if is == self.sha256 {
            return Ok(());
        }
        let (pinned, shown) = (&self.sha256, path.display());
        Err(format!(
            "the program is not the one that was pinned: {shown} has sha256 {is}, and not {pinned}"
        ))
    }
}

impl FileStamp {
    fn from_metadata(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            inode: about.ino(),
            size: about.size(),
            changed: [
                about.mtime(),
                about.mtime_nsec(),
                about.ctime(),
                about.ctime_nsec(),
            ],
        }
    }
}

/// Checks for a regular, executable file.
fn look(path: &Path) -> Result<Metadata, String> {
    let shown = path.display();
    let about = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("the program is not there: {shown}"),
        _ => format!("the program cannot be looked at: {shown}: {error}"),
    })?;
    match (about.is_file(), about.mode() & 0o111) {
        (false, _) => Err(format!("the program is no file: {shown}")),
        (true, 0) => Err(format!(
            "the program may not be executed: {shown}; hint: chmod +x"
        )),
        (true, _) => Ok(about),
    }
}

fn is_bare(path: &Path) -> bool {
    path.components().count() == 1 && !path.as_os_str().as_encoded_bytes().contains(&b'/')
}

fn in_path(name: &Path) -> Result<PathBuf, Error> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&folders)
        .filter(|it| it.is_absolute())
        .map(|folder| folder.join(name));
    found.find(|path| look(path).is_ok()).ok_or_else(|| {
        wrong(format!(
            "no folder of PATH has a program of this name: {}",
            name.display()
        ))
    })
}

/// Returns the SHA-256 of a file in hexadecimal digits.
fn digest(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut chunk) = (File::open(path)?, Sha256::new(), vec![0; CHUNK]);
    loop {
        let read = file.read(&mut chunk)?;
        match chunk.get(..read) {
            Some(bytes) if !bytes.is_empty() => hash.update(bytes),
            _ => break,
        }
    }
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Config, message)
}
