//! A rule: a decision, and the calls that it matches.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{line::Simple, programs::is_safe_behind};
use crate::{Error, ErrorKind};
use adjutant_llm::hidden::is_hidden;

/// The maximum number of bytes of a rule.
const MAX_RULE: usize = 4 * 1024;

/// The decision on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call runs.
    Allow,
    /// The call waits for approval.
    Ask,
    /// The call is denied.
    Deny,
}

/// A rule of [`Rules`](super::Rules): a decision, and the calls that it matches.
///
/// Format: `allow shell(git log *)`. [`FromStr`] parses the output of `Display`.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The decision.
    pub decision: Decision,
    /// The text in the brackets, or the name of a tool.
    text: Arc<str>,
    pub(super) subject: Subject,
    /// The source of the rule: a file with a line, the application, or the user.
    pub from: Arc<str>,
}

/// The calls that a rule matches.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    /// Commands that begin with these words.
    Shell(Words),
    /// Changes of these files, of any kind or of one kind.
    Edit(Paths, Option<Change>),
    /// Reads of these files.
    Read(Paths),
    /// Fetches from these hosts.
    Fetch(Arc<str>),
    /// Calls of this tool.
    Tool(Arc<str>),
    /// Just this call of this tool.
    Call(Arc<str>, Arc<Value>),
}

/// A kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// A file tool writes it.
    Write,
    /// A file tool deletes it.
    Delete,
    /// A file tool moves it.
    Move,
    /// A command writes to it.
    Command,
}

/// The words of a command.
#[derive(Debug, Clone)]
pub(super) struct Words {
    words: Vec<String>,
    /// True if any further words may follow.
    open: bool,
}

/// The files that a rule matches.
#[derive(Debug, Clone)]
pub(super) enum Paths {
    All,
    /// Just this file, relative to the root.
    One(PathBuf),
    /// Files that match a line of `.gitignore`.
    Globs(Arc<Gitignore>),
}

impl Rule {
    /// Returns the rule that allows just this call with its canonical arguments; `None` if no rule can describe it.
    pub(super) fn for_call(tool: &str, args: &Value) -> Option<Self> {
        // Hidden characters are escaped, because the user reads the rule before approving it.
        let mut shown = String::new();
        for c in args.to_string().chars() {
            if is_hidden(c) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    shown += &format!("\\u{unit:04x}");
                }
            } else {
                shown.push(c);
            }
        }
        format!("allow call({tool} {shown})").parse().ok()
    }

    /// Sets the source of the rule.
    pub(super) fn said(self, from: impl Into<Arc<str>>) -> Self {
        Self {
            from: from.into(),
            ..self
        }
    }

    /// Returns the rule that allows a command that begins with these variables and words; `None` if no rule can
    /// describe it.
    pub(super) fn for_prefix(variables: &[String], words: &[String]) -> Option<Self> {
        let all = variables.iter().chain(words);
        let quoted: Option<Vec<String>> = all.map(|word| quote(word)).collect();
        // Parsed from the displayed and stored text, so that both have the same meaning.
        format!("allow shell({} *)", quoted?.join(" ")).parse().ok()
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = |why: &str| {
            let shown: String = text.chars().take(200).collect();
            let hint = "hint: a rule is as `allow shell(git log *)`, `ask edit(src/**)` or `deny fetch(*.example.org)`";
            Error::new(
                ErrorKind::Rule,
                format!("not a rule: {shown:?}: {why}; {hint}"),
            )
        };
        if text.len() > MAX_RULE {
            return Err(invalid("it is too long"));
        }
        let Some((decision, rest)) = text.trim().split_once(char::is_whitespace) else {
            return Err(invalid("it says not what about"));
        };
        let decision = match decision {
            "allow" => Decision::Allow,
            "ask" => Decision::Ask,
            "deny" => Decision::Deny,
            _ => return Err(invalid("it begins with none of allow, ask, deny")),
        };
        let rest = rest.trim();
        let (head, inside) = match rest.split_once('(') {
            None => (rest, None),
            Some((head, inside)) => match inside.strip_suffix(')') {
                Some(inside) => (head, Some(inside.trim())),
                None => return Err(invalid("its bracket is not closed")),
            },
        };
        if head.is_empty() || head.contains(char::is_whitespace) {
            return Err(invalid("it names no tool"));
        }
        if inside == Some("") {
            return Err(invalid("nothing stands in its brackets"));
        }
        let (is_bracketed, inside) = (inside.is_some(), inside.unwrap_or("*"));
        let subject = match head {
            "shell" => Subject::Shell(
                Words::read(inside).ok_or_else(|| invalid("a quote in it is not closed"))?,
            ),
            "edit" => Subject::Edit(Paths::read(inside).map_err(|why| invalid(&why))?, None),
            "write" | "delete" if is_bracketed => {
                let change = if head == "write" {
                    Change::Write
                } else {
                    Change::Delete
                };
                let one = inside
                    .strip_prefix('/')
                    .filter(|path| !path.is_empty() && !path.contains(['*', '?', '[', '\\', '!']));
                let paths = match one {
                    Some(path) => Paths::One(path.into()),
                    None => Paths::read(inside).map_err(|why| invalid(&why))?,
                };
                Subject::Edit(paths, Some(change))
            }
            "call" if is_bracketed => {
                let call = inside.split_once(' ');
                let args = call.and_then(|(tool, args)| {
                    let args: Value = serde_json::from_str(args).ok()?;
                    (args.is_object() && decision == Decision::Allow).then_some((tool, args))
                });
                let (tool, args) = args.ok_or_else(|| {
                    invalid("a call is allowed as `call(TOOL {ARGUMENTS})`, with an object of JSON")
                })?;
                Subject::Call(tool.into(), Arc::new(args))
            }
            "read" => Subject::Read(Paths::read(inside).map_err(|why| invalid(&why))?),
            "fetch" => Subject::Fetch(inside.to_ascii_lowercase().into()),
            tool if inside == "*" => Subject::Tool(tool.into()),
            _ => {
                return Err(invalid(
                    "only shell, edit, write, delete, read, fetch and call have something in brackets",
                ));
            }
        };
        Ok(Self {
            decision,
            text: rest.into(),
            subject,
            from: "the application".into(),
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.decision, self.text)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

impl Words {
    /// Parses words with their quotes removed; a quoted `*` stands for itself.
    fn read(text: &str) -> Option<Self> {
        let (mut words, mut chars) = (Vec::new(), text.chars().peekable());
        while chars.peek().is_some() {
            if chars.next_if(|it| it.is_whitespace()).is_some() {
                continue;
            }
            let mut word = String::new();
            while let Some(next) = chars.next_if(|it| !it.is_whitespace()) {
                match next {
                    '\'' => loop {
                        match chars.next()? {
                            '\'' => break,
                            '*' => word.push('\0'),
                            other => word.push(other),
                        }
                    },
                    other => word.push(other),
                }
            }
            words.push(word);
        }
        let open = words.last().is_some_and(|last| last == "*");
        if open {
            words.pop();
        }
        Some(Self { words, open })
    }

    /// True if no word is a pattern.
    pub(super) fn is_exact(&self) -> bool {
        !self.open && self.words.iter().all(|word| !word.contains('*'))
    }

    /// The number of words before the first pattern.
    pub(super) fn count_fixed(&self) -> usize {
        self.words
            .iter()
            .take_while(|word| !word.contains('*'))
            .count()
    }

    /// True if these words match a command.
    pub(super) fn fits(&self, words: &[String]) -> bool {
        words
            .split_first()
            .is_some_and(|(program, rest)| self.fits_parts(program, rest))
    }

    /// True if it allows a command: it also contains the variables, and no pattern matches a dangerous word.
    pub(super) fn allows(&self, command: &Simple) -> bool {
        let variables = command.assigns.len();
        let all: Vec<String> = command
            .assigns
            .iter()
            .chain(&command.words)
            .cloned()
            .collect();
        let fixed = self.count_fixed();
        self.fits(&all)
            && fixed >= variables
            && command.globs.iter().all(|at| at + variables < fixed)
            && (self.is_exact() || is_safe_behind(command, fixed - variables))
    }

    /// Like [`Words::fits`], for a program in any directory.
    pub(super) fn fits_program(&self, command: &Simple) -> bool {
        let Some((_, rest)) = command.words.split_first() else {
            return false;
        };
        // Options and their values before the first argument do not hide the program.
        let options = rest.iter().take_while(|word| word.starts_with('-')).count();
        let tails = (1..=2 * options)
            .filter_map(|skipped| rest.get(skipped..))
            .filter(|tail| !tail.is_empty());
        let program = command.program();
        self.fits(&command.words)
            || [rest]
                .into_iter()
                .chain(tails)
                .any(|rest| self.fits_parts(program, rest))
    }

    fn fits_parts(&self, program: &str, rest: &[String]) -> bool {
        let count = rest.len() + 1;
        let is_long = if self.open {
            count >= self.words.len()
        } else {
            count == self.words.len()
        };
        let words = [program].into_iter().chain(rest.iter().map(String::as_str));
        is_long
            && self
                .words
                .iter()
                .zip(words)
                .all(|(pattern, word)| fits(pattern, word))
    }
}

impl Paths {
    fn read(text: &str) -> Result<Self, String> {
        if text == "*" || text == "**" {
            return Ok(Self::All);
        }
        let mut builder = GitignoreBuilder::new("");
        builder
            .add_line(None, text.strip_prefix("./").unwrap_or(text))
            .map_err(|error| error.to_string())?;
        let matcher = builder.build().map_err(|error| error.to_string())?;
        if matcher.is_empty() || text.starts_with('!') {
            return Err("it is no glob of files".to_owned());
        }
        Ok(Self::Globs(Arc::new(matcher)))
    }

    /// True if it matches all files.
    pub(super) fn are_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// True if it matches a file, by its path relative to the root.
    pub(super) fn fits(&self, path: &Path) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == path,
            Self::Globs(matcher) => {
                path.components().next().is_some()
                    && matcher.matched_path_or_any_parents(path, false).is_ignore()
            }
        }
    }
}

/// True if a host matches a pattern: the host itself, `*.example.org` for all names below it, `*` for all hosts.
pub(crate) fn fits_host(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some("") => true,
        Some(below) => host.ends_with(below),
        None => pattern == host,
    }
}

/// True if a word matches a pattern: a `*` matches any text, a NUL matches a literal `*`.
fn fits(pattern: &str, word: &str) -> bool {
    let literal = |part: &str| part.replace('\0', "*");
    let Some((first, rest)) = pattern.split_once('*') else {
        return literal(pattern) == word;
    };
    let Some(mut left) = word.strip_prefix(&literal(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = literal(parts.pop().unwrap_or_default());
    for part in parts {
        let part = literal(part);
        let Some(at) = left.find(&part) else {
            return false;
        };
        left = &left[at + part.len()..];
    }
    left.ends_with(&last)
}

/// Quotes a word for the text of a rule; `None` if that is not possible.
fn quote(word: &str) -> Option<String> {
    if word.contains(|it: char| it == '\'' || it.is_control()) {
        return None;
    }
    let is_plain =
        !word.is_empty() && !word.contains(|it: char| it.is_whitespace() || "*()".contains(it));
    Some(if is_plain {
        word.to_owned()
    } else {
        format!("'{word}'")
    })
}
