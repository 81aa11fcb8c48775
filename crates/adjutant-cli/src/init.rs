//! `adjutant init`: writes a first manifest.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use adjutant::runtime::manifest;

use crate::{
    args::Init,
    exit::Exit,
    problem::Problem,
    screen::{tell, write},
};

/// Writes a manifest.
///
/// # Errors
/// `Usage` if a manifest exists already, or it cannot be written.
pub(crate) fn init(args: &Init) -> Result<Exit, Problem> {
    let here = args.folder == Path::new(".");
    let file = if here {
        PathBuf::from(manifest::FILE_NAME)
    } else {
        args.folder.join(manifest::FILE_NAME)
    };
    let name = file.display();
    let cannot = |error: io::Error| {
        Problem::new(Exit::Usage, format!("cannot write the manifest: {name}")).cause(&error)
    };
    fs::create_dir_all(&args.folder).map_err(cannot)?;
    let made = if args.force {
        replace(&file)
    } else {
        create(&file)
    };
    made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Problem::new(Exit::Usage, format!("there is a manifest already: {name}"))
                .hint("--force replaces it")
        }
        _ => cannot(error),
    })?;
    write(&format!("{name}\n"))?;
    tell("next: `adjutant up` runs it, `adjutant manifest check` checks it");
    Ok(Exit::Finished)
}

/// Creates a new file; a dangling link counts as existing.
fn create(file: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(file)?;
    file.write_all(manifest::EXAMPLE.as_bytes())
}

/// Writes a temporary file and renames it, so that the old file exists until the new one is complete.
fn replace(file: &Path) -> io::Result<()> {
    let beside = file.with_extension("yaml.new");
    fs::write(&beside, manifest::EXAMPLE)?;
    fs::rename(&beside, file).inspect_err(|_| {
        // A remaining temporary file does no harm.
        let _ = fs::remove_file(&beside);
    })
}
