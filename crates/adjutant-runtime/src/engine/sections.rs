//! Texts in every request in addition to the instructions: context files, and descriptions of data files.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use adjutant_agent::sections::{SectionKind, Sections, section_text};

use crate::{
    Error, ErrorKind,
    manifest::{ContextSpec, DataSpec, Instructions, NamedContext},
};

/// The maximum number of bytes of a file in the context.
const MAX_FILE: u64 = 1 << 20;
/// The maximum total size of the files for one agent, in bytes.
const MAX_CONTEXT: usize = 4 << 20;

/// Returns the text of instructions.
///
/// # Errors
/// `Config` if their file cannot be read.
pub(super) fn instructions(instructions: &Instructions) -> Result<Arc<str>, Error> {
    match instructions {
        Instructions::Text(text) => Ok(Arc::clone(text)),
        Instructions::File { file } => Ok(read(file)?.trim().into()),
    }
}

/// Returns the sections of context files and data files.
///
/// # Errors
/// `Config` if a file cannot be read, or if their total size is too large.
pub(super) fn told(context: &[ContextSpec], data: &[DataSpec]) -> Result<Sections, Error> {
    let (mut sections, mut bytes) = (Sections::default(), 0);
    for one in context {
        let Some(text) = document(one)? else { continue };
        bytes += text.len() + 2;
        sections = sections.section(section_text(SectionKind::ProjectContext, text));
    }
    if bytes > MAX_CONTEXT {
        let message =
            format!("the context files have {bytes} bytes together, and not {MAX_CONTEXT} at most");
        return Err(Error::new(ErrorKind::Config, message));
    }
    if bytes > SectionKind::ProjectContext.max_bytes() {
        sections = sections.max_bytes(SectionKind::ProjectContext, bytes);
    }
    let lines: Vec<String> = data.iter().filter_map(line).collect();
    if !lines.is_empty() {
        let kind =
            SectionKind::custom("data_files", &SectionKind::ProjectContext).map_err(|error| {
                Error::new(ErrorKind::Config, "the data files cannot be listed").with_source(error)
            })?;
        let text = format!(
            "These files were laid into your working folder:\n{}",
            lines.join("\n")
        );
        sections = sections.section(section_text(kind, text));
    }
    Ok(sections)
}

/// Returns a context file under its heading; `None` if it is optional and missing.
fn document(spec: &ContextSpec) -> Result<Option<String>, Error> {
    let (file, name, optional) = match spec {
        ContextSpec::File(file) => (file, None, false),
        ContextSpec::Named(NamedContext {
            file,
            name,
            optional,
        }) => (file, name.as_deref(), *optional),
    };
    if optional && matches!(file.try_exists(), Ok(false)) {
        return Ok(None);
    }
    let text = read(file)?;
    let own = || {
        file.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let name = name.map_or_else(own, str::to_owned);
    Ok(Some(format!("## {name}\n\n{}", text.trim())))
}

/// Returns a line about a data file that has a description.
fn line(data: &DataSpec) -> Option<String> {
    let description = data.description.as_deref()?;
    let place = data
        .to
        .as_deref()
        .or_else(|| data.file.file_name().map(Path::new))?;
    Some(format!("- `{}`: {description}", place.display()))
}

/// Reads a regular file, so that a pipe cannot block.
fn read(path: &Path) -> Result<String, Error> {
    let wrong = |why: String| {
        Error::new(
            ErrorKind::Config,
            format!("a file that agents are told {why}: {}", path.display()),
        )
    };
    let cannot = |error: io::Error| wrong("cannot be read".to_owned()).with_source(error);
    if !std::fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(wrong("is no file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(cannot)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(wrong(format!("has more than {MAX_FILE} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| wrong("is no UTF-8".to_owned()).with_source(error))
}
