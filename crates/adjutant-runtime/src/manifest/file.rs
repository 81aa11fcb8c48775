//! Reads a manifest and its parents from `extends`, and merges each once, starting with the oldest.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    merge,
    node::{Mark, Node, Source},
    problem::{Problem, Problems, quoted},
    vars::{self, Lookup},
    yaml,
};

/// The maximum size of a manifest in bytes.
pub(super) const MAX_BYTES: u64 = 1 << 20;
/// The maximum number of parents.
const MAX_PARENTS: usize = 10;

/// A manifest merged with its parents.
pub(super) struct ManifestTree {
    pub(super) root: Node,
    /// The files with links resolved: the manifest first.
    pub(super) sources: Vec<PathBuf>,
}

/// Reads a manifest; a given text replaces the file's.
pub(super) fn load(
    path: &Path,
    text: Option<&str>,
    lookup: Lookup<'_>,
    problems: &mut Problems,
) -> Option<ManifestTree> {
    let mut reading = ManifestReader {
        lookup,
        problems,
        sources: Vec::new(),
    };
    let root = reading.file(path, text, None)?;
    Some(ManifestTree {
        root,
        sources: reading.sources,
    })
}

struct ManifestReader<'a> {
    lookup: Lookup<'a>,
    problems: &'a mut Problems,
    sources: Vec<PathBuf>,
}

impl ManifestReader<'_> {
    /// Reads a file with its parents; `by` is the position that names it.
    fn file(&mut self, path: &Path, text: Option<&str>, by: Option<&Mark>) -> Option<Node> {
        let shown: Arc<str> = path.display().to_string().into();
        let wrong = |message: String| match by {
            Some(mark) => Problem::new(mark, format!("{}: {message}", quoted(&shown))),
            None => Problem::in_file(Arc::clone(&shown), message),
        };
        let (real, folder) = match place(path, text) {
            Ok(it) => it,
            Err(message) => return self.fail(wrong(message)),
        };
        if self.sources.contains(&real) {
            return self.fail(wrong(
                "a manifest cannot extend itself, not by way of others either".to_owned(),
            ));
        }
        if self.sources.len() > MAX_PARENTS {
            let message = format!("more than {MAX_PARENTS} manifests extend one another");
            return self.fail(wrong(message));
        }
        let read = match text {
            Some(text) if text.len() as u64 > MAX_BYTES => {
                Err(format!("it has more than {MAX_BYTES} bytes"))
            }
            Some(text) => Ok(text.to_owned()),
            None => self::text(&real, MAX_BYTES),
        };
        self.sources.push(real);
        let text = match read {
            Ok(text) => text,
            Err(message) => return self.fail(wrong(message)),
        };
        let source = Arc::new(Source {
            shown: Arc::clone(&shown),
            folder,
        });
        let mut node = match yaml::read(&text, &source, yaml::MANIFEST) {
            Ok(node) => node,
            Err(problem) => return self.fail(problem),
        };
        vars::expand(&mut node, self.lookup, self.problems);
        self.extended(node, path)
    }

    /// Merges the parent of a manifest into it.
    fn extended(&mut self, mut node: Node, path: &Path) -> Option<Node> {
        let Some((_, extends)) = node
            .as_map_mut()?
            .take("extends")
            .filter(|(_, node)| !node.is_null())
        else {
            return Some(node);
        };
        let Some(parent) = extends
            .as_text()
            .filter(|text| !text.trim().is_empty() && !text.contains('\0'))
        else {
            return self.fail(Problem::new(
                &extends.mark,
                "expected the file of another manifest",
            ));
        };
        let parent = path.parent().unwrap_or(Path::new("")).join(parent);
        let parent = self.file(&parent, None, Some(&extends.mark))?;
        Some(merge::over(parent, node))
    }

    fn fail<T>(&mut self, problem: Problem) -> Option<T> {
        self.problems.push(problem);
        None
    }
}

/// Returns a file with links resolved, and its directory.
fn place(path: &Path, text: Option<&str>) -> Result<(PathBuf, PathBuf), String> {
    let told = |error: io::Error| reason(&error);
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let (real, folder) = match text {
        // The file need not exist yet.
        Some(_) => {
            let folder = folder.canonicalize().map_err(told)?;
            (folder.join(path.file_name().unwrap_or_default()), folder)
        }
        None => {
            let real = path.canonicalize().map_err(told)?;
            let folder = real.parent().unwrap_or(Path::new("/")).to_owned();
            (real, folder)
        }
    };
    if real.to_str().is_none() {
        return Err("its path is no UTF-8".to_owned());
    }
    Ok((real, folder))
}

/// Reads a regular file, so that a pipe or a device cannot block.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn text(path: &Path, most: u64) -> Result<String, String> {
    let about = fs::metadata(path).map_err(|error| reason(&error))?;
    if !about.is_file() {
        return Err("it is no file".to_owned());
    }
    if about.len() > most {
        return Err(format!("it has more than {most} bytes"));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| reason(&error))?;
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| reason(&error))?;
    if bytes.len() as u64 > most {
        return Err(format!("it has more than {most} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned())
}

/// Returns the reason why a file cannot be used, without platform-dependent details.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        io::ErrorKind::NotADirectory => "it stands in what is no folder".to_owned(),
        _ => format!("it cannot be read: {error}"),
    }
}
