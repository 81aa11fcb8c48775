//! What a call is about: the commands, files and hosts of it.

use std::path::{Component, Path, PathBuf};

use adjutant_tool::{Replay, ToolSpec};
use serde_json::Value;

use super::{
    Part,
    line::{Line, Simple},
    pattern::{Decision, Rule},
    programs,
};

/// The tools that change files, and the arguments that name them.
const EDITS: [(&str, &[&str]); 5] = [
    ("write_file", &["path"]),
    ("edit_file", &["path"]),
    ("apply_patch", &[]),
    ("delete_file", &["path"]),
    ("move_file", &["from", "to"]),
];
/// The tools that run commands; those of an editor's terminal ask by themselves too.
const RUNS: [&str; 2] = ["run_command", "run_in_terminal"];
/// The tools that look at files by an argument `path`.
const LOOKS: [&str; 3] = ["list_files", "read_file", "search_text"];
/// The tools that do nothing which needs anyone's word.
const HARMLESS: [&str; 4] = ["ask_user", "update_plan", "command_output", "stop_command"];
/// The lines of a patch that name files.
const PATCH: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Every tool that is known by its name.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let edits = EDITS.iter().map(|(name, _)| *name);
    edits
        .chain(LOOKS)
        .chain(HARMLESS)
        .chain(RUNS)
        .chain(["fetch", "task_complete"])
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Looks,
    Harmless,
    Edits,
    Runs,
    Fetches,
    Other,
}

/// What a call is about.
pub(super) struct About<'a> {
    tool: &'a str,
    args: &'a Value,
    pub(super) class: Class,
    commands: Vec<Simple>,
    /// Commands that others may run.
    hidden: Vec<Simple>,
    edits: Vec<Option<PathBuf>>,
    reads: Vec<Option<PathBuf>>,
    hosts: Vec<Option<String>>,
    /// Why its command line cannot be read plainly.
    pub(super) unclear: Option<&'static str>,
}

impl<'a> About<'a> {
    pub(super) fn new(spec: &'a ToolSpec, args: &'a Value, root: &Path) -> Self {
        let tool = spec.name().as_str();
        let (commands, edits, reads, hosts) = Default::default();
        let mut about = Self {
            tool,
            args,
            class: Class::Other,
            commands,
            hidden: Vec::new(),
            edits,
            reads,
            hosts,
            unclear: None,
        };
        let path = |name: &str| args[name].as_str();
        if RUNS.contains(&tool) {
            about.class = Class::Runs;
            about.command(root);
        } else if tool == "fetch" {
            about.class = Class::Fetches;
            about.hosts.push(args["url"].as_str().and_then(host_of));
        } else if let Some((_, names)) = EDITS.iter().find(|(name, _)| *name == tool) {
            about.class = Class::Edits;
            for name in *names {
                about
                    .edits
                    .extend(places(root, Path::new(""), path(name).unwrap_or_default()));
            }
            if tool == "move_file" {
                // What it held is shown where it comes to.
                about.reads.extend(places(
                    root,
                    Path::new(""),
                    path("from").unwrap_or_default(),
                ));
            }
            let patch = args["patch"].as_str().unwrap_or_default();
            let named = patch
                .lines()
                .filter_map(|line| PATCH.iter().find_map(|start| line.strip_prefix(start)));
            about
                .edits
                .extend(named.flat_map(|path| places(root, Path::new(""), path.trim())));
        } else if LOOKS.contains(&tool) {
            about.class = Class::Looks;
            about.reads.extend(places(
                root,
                Path::new(""),
                path("path").unwrap_or_default(),
            ));
        } else if HARMLESS.contains(&tool) {
            about.class = Class::Harmless;
        } else if spec.replay == Replay::Pure {
            about.class = Class::Looks;
        }
        about
    }

    fn command(&mut self, root: &Path) {
        let argv = self.args["argv"].as_array();
        let line = match (self.args["command"].as_str(), argv) {
            (Some(text), None) => Line::read(text),
            (None, Some(argv)) => Line::of(
                argv.iter()
                    .map(|it| it.as_str().unwrap_or_default().to_owned())
                    .collect(),
            ),
            _ => Line {
                unclear: Some("it is no command"),
                ..Line::default()
            },
        };
        let folder = Path::new(self.args["cwd"].as_str().unwrap_or_default());
        let moves = line
            .commands
            .iter()
            .any(|it| matches!(it.program(), "cd" | "pushd" | "popd"));
        let (mut bare, mut crowded) = (false, false);
        for command in &line.commands {
            let place = |path: &String| match moves && Path::new(path).is_relative() {
                true => vec![None],
                false => places(root, folder, path),
            };
            // What keeps rules and hooks is changed by nobody's leave but a person's.
            let open = |place: Option<PathBuf>| place.filter(|path| !is_kept(path));
            self.edits
                .extend(command.writes.iter().flat_map(place).map(open));
            self.reads.extend(command.reads.iter().flat_map(place));
            bare |= command.words.is_empty() && !command.writes.is_empty();
            if programs::runs_others(command) {
                let inner = command.inner();
                crowded |= inner.len() >= super::line::MAX_INNER;
                self.hidden.extend(inner);
            }
        }
        (self.commands, self.unclear) = (line.commands, line.unclear);
        if bare {
            self.unclear
                .get_or_insert("it writes to a file and runs nothing");
        }
        if crowded {
            self.unclear
                .get_or_insert("it holds too many commands to be looked at");
        }
        if self.commands.is_empty() {
            self.unclear.get_or_insert("it holds no command");
        }
    }

    /// The parts that must all be allowed.
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        let commands = self
            .commands
            .iter()
            .filter(|command| !command.words.is_empty())
            .map(Part::Command);
        let edits = self.edits.iter().map(|path| Part::Edit(path.as_ref()));
        let reads = self.reads.iter().map(|path| Part::Read(path.as_ref()));
        let hosts = self.hosts.iter().map(|host| Part::Host(host.as_deref()));
        let tool = (!matches!(self.class, Class::Runs | Class::Edits | Class::Fetches))
            .then_some(Part::Tool(self.tool));
        commands
            .chain(edits)
            .chain(reads)
            .chain(hosts)
            .chain(tool)
            .collect()
    }

    /// The parts that no rule may deny.
    pub(super) fn denials(&self) -> impl Iterator<Item = Part<'_>> {
        self.parts()
            .into_iter()
            .chain(self.hidden.iter().map(Part::Command))
    }

    /// The rules that allow just this; none if there are no such rules.
    pub(super) fn exact(&self) -> Option<Vec<Rule>> {
        let allow = |text: String| text.parse::<Rule>().ok();
        let name = |path: &Option<PathBuf>| {
            let path = path.as_ref()?.to_str()?;
            let is_plain = !path.is_empty()
                && !path.contains(|it: char| it.is_control() || "*?[]{}\\!#() ".contains(it));
            is_plain.then(|| path.to_owned())
        };
        if self.unclear.is_some() {
            return None;
        }
        let mut rules = Vec::new();
        for command in self
            .commands
            .iter()
            .filter(|command| !command.words.is_empty())
        {
            rules.push(Rule::of_words(Decision::Allow, &command.words)?);
        }
        for path in &self.edits {
            rules.push(allow(format!("allow edit(/{})", name(path)?))?);
        }
        for host in &self.hosts {
            rules.push(allow(format!("allow fetch({})", host.as_ref()?))?);
        }
        if rules.is_empty() {
            rules.push(allow(format!("allow {}", self.tool))?);
        }
        Some(rules)
    }

    /// The call in words for whoever is asked.
    pub(super) fn shown(&self, most: usize) -> String {
        let text = |name: &str| self.args[name].as_str().unwrap_or_default().to_owned();
        let shown = match self.class {
            Class::Runs => match self.args["command"].as_str() {
                Some(command) => format!("run: {command}"),
                None => format!("run: {}", self.args["argv"]),
            },
            Class::Fetches => format!("fetch: {}", text("url")),
            _ => format!("{} {}", self.tool, self.args),
        };
        cut(&shown, most)
    }
}

/// A text of so many characters at most.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{} … ({} more bytes)", &text[..at], text.len() - at),
        None => text.to_owned(),
    }
}

/// The path from the root, without `.` and `..`; `None` if it is not in it.
fn inside(root: &Path, folder: &Path, path: &str) -> Option<PathBuf> {
    let path = folder.join(path);
    let path = if path.is_absolute() {
        path.strip_prefix(root).ok()?.to_owned()
    } else {
        path
    };
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir if clean.pop() => {}
            _ => return None,
        }
    }
    Some(clean)
}

/// A place as it is named, and where links lead from there, if that is another one.
fn places(root: &Path, folder: &Path, path: &str) -> Vec<Option<PathBuf>> {
    let named = inside(root, folder, path);
    let Some(place) = &named else {
        return vec![named];
    };
    let real = |path: &Path| path.canonicalize().ok();
    let at = root.join(place);
    // What is not there yet comes to where its folder leads.
    let found = real(&at).or_else(|| Some(real(at.parent()?)?.join(at.file_name()?)));
    let Some(found) = found.filter(|found| *found != at) else {
        return vec![named];
    };
    let other = found.strip_prefix(root).ok().map(Path::to_owned);
    vec![named, other]
}

/// True if rules or what a repository runs are kept there.
fn is_kept(path: &Path) -> bool {
    path.components().any(|part| {
        [".git", ".adjutant"]
            .iter()
            .any(|kept| part.as_os_str().eq_ignore_ascii_case(kept))
    })
}

/// The host of an address, if it is told plainly.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, port)| {
            if port.bytes().all(|it| it.is_ascii_digit()) {
                host
            } else {
                authority
            }
        });
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_plain = !host.is_empty()
        && host
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'.');
    // A number has many forms, and a rule knows the plain one.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|it: char| it.is_ascii_digit());
    (is_web && is_plain && (!is_number || host.parse::<std::net::Ipv4Addr>().is_ok()))
        .then_some(host)
}
