//! Agents described in files: Markdown with front matter, one agent a file; the text below it is its instructions.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;

use crate::{Error, ErrorKind, Profile};

/// The most bytes that a file may have.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The most files that a folder may have.
const MAX_FILES: usize = 256;

/// An agent as a file describes it.
///
/// Shape: front matter in YAML between two lines `---`, then the instructions.
/// ```text
/// ---
/// description: Finds out what a folder holds.
/// toolboxes: [files]
/// delegation: { depth: 1 }
/// ---
/// Answer from the files alone.
/// ```
/// The fields, all optional except `description`: `name` (by default the file's), `description`, `model` (by default
/// the model of the delegating agent), `toolboxes`, `skills`, `behavior`, `middleware`, `compaction`, `max_turns`,
/// `delegation` with `depth` and `handoffs`, `expertise`, `estimated_cost`, `max_concurrency`, `prefix`. With serde,
/// they are parsed without these checks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Fields")]
#[non_exhaustive]
pub struct Definition {
    /// Its name: letters, digits, `_` and `-`, 64 at most.
    pub name: Arc<str>,
    /// Its purpose.
    pub description: Arc<str>,
    /// The model's name; `None` for the model of the delegating agent.
    pub model: Option<Arc<str>>,
    /// The names of its toolboxes.
    pub toolboxes: Vec<Arc<str>>,
    /// The names of its skills.
    pub skills: Vec<Arc<str>>,
    /// True if its prompt includes the habits of careful work.
    pub behavior: bool,
    /// The names of what surrounds its runs, outermost first.
    pub middleware: Vec<Arc<str>>,
    /// True if old turns are summarised before the window is full, false if never; without it, once it is full.
    pub compaction: Option<bool>,
    /// The largest number of requests for a task.
    pub max_turns: Option<u32>,
    /// The number of levels of agents below it.
    pub depth: u16,
    /// The largest number of handoffs of a task to peers.
    pub handoffs: usize,
    /// Its expertise, for the choice by other agents.
    pub expertise: Vec<Arc<str>>,
    /// The cost of a task, in words.
    pub estimated_cost: Option<Arc<str>>,
    /// The largest number of concurrent instances.
    pub max_concurrency: Option<usize>,
    /// A short mark before its lines.
    pub prefix: Option<Arc<str>>,
    /// Its instructions.
    pub instructions: Arc<str>,
}

/// The fields of the front matter.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fields {
    name: Option<Arc<str>>,
    description: Option<Arc<str>>,
    model: Option<Arc<str>>,
    toolboxes: Vec<Arc<str>>,
    skills: Vec<Arc<str>>,
    behavior: bool,
    middleware: Vec<Arc<str>>,
    compaction: Option<bool>,
    max_turns: Option<u32>,
    delegation: DefinitionRules,
    expertise: Vec<Arc<str>>,
    estimated_cost: Option<Arc<str>>,
    max_concurrency: Option<usize>,
    prefix: Option<Arc<str>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DefinitionRules {
    depth: u16,
    handoffs: usize,
}

impl Definition {
    /// Reads an agent from the text of a file; the path names it in errors and provides the name if the text has
    /// none.
    ///
    /// # Errors
    /// `Invalid`, with file, line and column, if it cannot be read, a field is unknown or a value cannot be.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let (front, instructions) =
            Self::split(text).map_err(|why| invalid(format!("{shown}:1:1: {}", why.message())))?;
        let mut fields =
            read(&front).map_err(|(at, why)| invalid(format!("{shown}{at}: {why}")))?;
        let wrong = |field: &str, why: String| {
            Err(invalid(format!("{shown}{}: {why}", place(&front, field))))
        };
        let stem = || {
            path.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into()
        };
        let name = fields.name.get_or_insert_with(stem);
        if !is_name(name) {
            return wrong(
                "name",
                format!("a name has 1 to 64 letters, digits, `_` and `-`: {name:?}"),
            );
        }
        if fields
            .description
            .as_ref()
            .is_none_or(|text| text.trim().is_empty())
        {
            return wrong(
                "description",
                "`description` is missing: others choose the agent by it".to_owned(),
            );
        }
        if fields.max_turns == Some(0) || fields.max_concurrency == Some(0) {
            let field = if fields.max_turns == Some(0) {
                "max_turns"
            } else {
                "max_concurrency"
            };
            return wrong(
                field,
                "`max_turns` and `max_concurrency` are at least 1".to_owned(),
            );
        }
        Ok(Self {
            instructions: instructions.into(),
            ..Self::from(fields)
        })
    }

    /// The front matter of a file, and the text below it. The front matter keeps its lines where they stand in the file.
    ///
    /// # Errors
    /// `Invalid` if it is missing.
    pub fn split(text: &str) -> Result<(String, &str), Error> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.split_inclusive('\n');
        let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
            let message =
                "it does not begin with front matter: a line `---`, the fields, a line `---`";
            return Err(invalid(message.to_owned()));
        };
        let (mut front, mut read) = (String::from("\n"), first.len());
        for line in lines {
            read += line.len();
            if line.trim_end() == "---" {
                return Ok((front, text.get(read..).unwrap_or_default().trim()));
            }
            front.push_str(line);
        }
        Err(invalid(
            "its front matter does not end: a line `---` is missing".to_owned(),
        ))
    }

    /// Its profile for a registry.
    pub fn profile(&self) -> Profile {
        let mut profile = Profile::new(Arc::clone(&self.name), Arc::clone(&self.description));
        profile.skills.clone_from(&self.expertise);
        profile.estimated_cost = self.estimated_cost.clone().unwrap_or_default();
        profile.max_concurrency = self
            .max_concurrency
            .map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        profile
            .max_depth(self.depth)
            .max_handoffs(u32::try_from(self.handoffs).unwrap_or(u32::MAX))
    }

    /// Reads the agents of a folder: its files `*.md`, in the order of their names. Unreadable files are returned as
    /// errors.
    ///
    /// # Errors
    /// `Missing` if there is no such folder, `Invalid` if it has more than 256 of them.
    pub fn folder(folder: &Path) -> Result<(Vec<Self>, Vec<Error>), Error> {
        let entries = fs::read_dir(folder).map_err(|error| {
            Error::new(
                ErrorKind::Missing,
                format!("the agents cannot be listed: {}", folder.display()),
            )
            .with_source(error)
        })?;
        let is_agent = |path: &PathBuf| path.extension().is_some_and(|it| it == "md");
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(is_agent)
            .collect();
        paths.sort_unstable();
        if paths.len() > MAX_FILES {
            let message = format!(
                "a folder has {MAX_FILES} agents at most, and not {}: {}",
                paths.len(),
                folder.display()
            );
            return Err(invalid(message));
        }
        let (mut read, mut problems): (Vec<Self>, Vec<Error>) = (Vec::new(), Vec::new());
        for path in paths {
            match file(&path).and_then(|text| Self::parse(&text, &path)) {
                Ok(one)
                    if read
                        .iter()
                        .any(|known| known.name.eq_ignore_ascii_case(&one.name)) =>
                {
                    problems.push(invalid(format!(
                        "{}: there is another agent {:?}",
                        path.display(),
                        one.name
                    )));
                }
                Ok(one) => read.push(one),
                Err(error) => problems.push(error),
            }
        }
        Ok((read, problems))
    }
}

impl From<Fields> for Definition {
    fn from(fields: Fields) -> Self {
        Self {
            name: fields.name.unwrap_or_default(),
            description: fields.description.unwrap_or_default(),
            model: fields.model,
            toolboxes: fields.toolboxes,
            skills: fields.skills,
            behavior: fields.behavior,
            middleware: fields.middleware,
            compaction: fields.compaction,
            max_turns: fields.max_turns,
            depth: fields.delegation.depth,
            handoffs: fields.delegation.handoffs,
            expertise: fields.expertise,
            estimated_cost: fields.estimated_cost,
            max_concurrency: fields.max_concurrency,
            prefix: fields.prefix,
            instructions: Arc::default(),
        }
    }
}

/// The text of a file; only of a regular one, so that nothing waits for a pipe.
fn file(path: &Path) -> Result<String, Error> {
    let cannot = |error| {
        Error::new(
            ErrorKind::Invalid,
            format!("{} cannot be read", path.display()),
        )
        .with_source(error)
    };
    let about = fs::metadata(path).map_err(cannot)?;
    if !about.is_file() {
        return Err(invalid(format!("{} is no file", path.display())));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(cannot)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(invalid(format!(
            "{} has more than {MAX_FILE_BYTES} bytes",
            path.display()
        )));
    }
    String::from_utf8(bytes)
        .map_err(|error| invalid(format!("{} is no UTF-8: {error}", path.display())))
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_part)
}

/// The position of a field in a file, as `:line:column`; the start of the front matter if it does not contain the
/// field.
fn place(front: &str, field: &str) -> String {
    let is_it = |line: &str| {
        line.strip_prefix(field)
            .is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    let line = front.lines().position(is_it).map_or(1, |at| at + 1);
    format!(":{line}:1")
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// Reads fields, within the parser's budgets for depth, aliases and size.
///
/// # Errors
/// The position as `:line:column`, empty if it is unknown, and the error.
fn read(front: &str) -> Result<Fields, (String, String)> {
    if front.trim().is_empty() {
        return Ok(Fields::default());
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: 8, max_events: 2_000, max_aliases: 0, max_anchors: 0 },
    };
    serde_saphyr::from_str_with_options(front, options).map_err(|error| {
        let place = error
            .location()
            .map(|at| format!(":{}:{}", at.line(), at.column()));
        let why = error.without_snippet().to_string();
        (
            place.unwrap_or_default(),
            why.lines().next().unwrap_or_default().to_owned(),
        )
    })
}
