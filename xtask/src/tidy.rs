//! `tidy`: the rules of the project that neither the compiler nor clippy knows. Each check returns what it found,
//! one message a line; all of them are printed.

mod attributes;
mod documents;
mod driver;
mod edges;
mod names;
mod sizes;
mod weight;

use std::path::Path;
use std::{fs, io};

use crate::scan::{self, Scanned};
use crate::{Failure, cargo, metadata};

/// The folders that hold Rust sources.
const FOLDERS: &[&str] = &["crates", "examples", "fuzz", "tests", "xtask"];

/// One Rust file.
#[derive(Debug)]
struct Source {
    /// Relative to the root, with `/`.
    path: String,
    raw: String,
    scanned: Scanned,
}

impl Source {
    fn new(path: String, raw: String) -> Self {
        Self {
            scanned: scan::scan(&raw),
            path,
            raw,
        }
    }

    /// A message about the line that holds the byte at `at`.
    fn message(&self, at: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, scan::line_of(&self.raw, at))
    }
}

pub(crate) fn run() -> Result<(), Failure> {
    let sources = read_sources().map_err(|error| Failure::Step(format!("tidy: {error}")))?;
    let packages = metadata::read()?;
    let messages: Vec<String> = [
        names::file_names(&sources),
        names::headers(&sources),
        sizes::files(&sources),
        sizes::functions(&sources),
        sizes::test_modules(&sources),
        sizes::libraries(&sources),
        sizes::xtask(&sources),
        documents::lengths(cargo::root()),
        edges::table(&packages),
        edges::published(&packages),
        edges::inline_tests(&sources),
        driver::by_name(&sources),
        attributes::forbidden(&sources),
        attributes::expectations(&sources),
        weight::facade()?,
    ]
    .concat();
    for message in &messages {
        eprintln!("{message}");
    }
    match messages.len() {
        0 => Ok(()),
        found => Err(Failure::Step(format!("tidy found {found}"))),
    }
}

fn read_sources() -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for folder in FOLDERS
        .iter()
        .filter(|folder| cargo::root().join(folder).is_dir())
    {
        read_folder(folder, &mut sources)?;
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}

fn read_folder(folder: &str, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(cargo::root().join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if entry.file_type()?.is_dir() {
            if !name.starts_with('.') && !name.starts_with("target") {
                read_folder(&path, sources)?;
            }
        } else if Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "rs")
        {
            sources.push(Source::new(path, fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}
