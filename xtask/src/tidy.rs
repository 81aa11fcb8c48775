//! `tidy`: project rules that neither the compiler nor clippy checks. Each check returns its findings, one message a
//! line; all of them are printed.

mod build_code;
mod documents;
mod driver;
mod edges;
mod floors;
mod library;
mod manifests;
mod surface;
mod unread;
mod weight;
mod words;

use std::{fs, io};

pub(crate) use manifests::lacks;

use crate::scan::{self, Scanned};
use crate::{Failure, cargo, metadata};

/// The folders that hold Rust sources.
const FOLDERS: &[&str] = &["crates", "examples", "fuzz", "tests", "xtask"];

/// The checks of each file.
const EACH: &[fn(&Source) -> Vec<String>] = &[
    words::file_name,
    words::header,
    words::attributes,
    edges::inline_tests,
];

/// One Rust file.
#[derive(Debug)]
struct Source {
    /// Relative to the root, with `/`.
    path: String,
    raw: String,
    scanned: Scanned,
}

impl Source {
    fn new(path: &str, raw: String) -> Self {
        let scanned = scan::scan(&raw);
        Self {
            path: path.to_owned(),
            raw,
            scanned,
        }
    }

    /// A message about the line that holds the byte at `at`.
    fn message(&self, at: usize, what: &str) -> String {
        let line = self
            .raw
            .bytes()
            .take(at)
            .filter(|byte| *byte == b'\n')
            .count()
            + 1;
        format!("{}:{line}: {what}", self.path)
    }

    /// A message if the item at `at` has more lines than the limit.
    fn longer(&self, at: usize, what: &str, lines: usize, limit: usize) -> Option<String> {
        (lines > limit)
            .then(|| self.message(at, &format!("{what} has {lines} lines (limit {limit})")))
    }
}

pub(crate) fn run() -> Result<(), Failure> {
    let mut sources = Vec::new();
    for folder in FOLDERS
        .iter()
        .filter(|folder| cargo::root().join(folder).is_dir())
    {
        read(folder, &mut sources).map_err(|error| Failure::Step(format!("{folder}: {error}")))?;
    }
    let packages = metadata::read()?;
    let each = sources
        .iter()
        .flat_map(|source| EACH.iter().flat_map(move |check| check(source)));
    let mut messages: Vec<String> = each.collect();
    messages.extend(sources.iter().filter_map(library::root));
    messages.extend(words::expectations(&sources));
    messages.extend(driver::by_name(&sources));
    messages.extend(floors::circles(&sources));
    messages.extend(documents::marks());
    messages.extend(surface::counts(&sources));
    messages.extend(unread::find_unread(&packages, &sources));
    messages.extend(edges::table(&packages));
    messages.extend(edges::publish_cycles(&packages));
    messages.extend(lacks(&packages));
    messages.extend(weight::facade()?);
    messages.extend(build_code::check_list()?);
    messages.iter().for_each(|message| eprintln!("{message}"));
    match messages.len() {
        0 => Ok(()),
        found => Err(Failure::Step(format!("tidy found: {found}"))),
    }
}

fn read(folder: &str, sources: &mut Vec<Source>) -> io::Result<()> {
    let entries = fs::read_dir(cargo::root().join(folder))?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if name.ends_with(".rs") {
            sources.push(Source::new(&path, fs::read_to_string(entry.path())?));
        } else if entry.file_type()?.is_dir() && !name.starts_with("target") {
            read(&path, sources)?;
        }
    }
    Ok(())
}
