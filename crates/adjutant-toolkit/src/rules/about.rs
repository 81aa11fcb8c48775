//! The commands, files and hosts of a call.

use std::path::{Component, Path, PathBuf};

use adjutant_llm::hidden::is_hidden;
use adjutant_tool::{Replay, ToolSpec};
use serde_json::Value;

use super::{
    Part, harmless,
    line::{Line, Simple},
    pattern::{Change, Rule},
    programs,
};

/// The tools that change files, the kind of change, and the arguments that contain the paths.
const EDITS: [(&str, Change, &[&str]); 5] = [
    ("write_file", Change::Write, &["path"]),
    ("edit_file", Change::Write, &["path"]),
    ("apply_patch", Change::Write, &[]),
    ("delete_file", Change::Delete, &["path"]),
    ("move_file", Change::Move, &["from", "to"]),
];
/// The tools that run commands; the tool for an editor's terminal requests its own approvals.
const RUNS: [&str; 2] = ["run_command", "run_in_terminal"];
/// The tools that read files by an argument `path`.
const LOOKS: [&str; 3] = ["list_files", "read_file", "search_text"];
/// The tools without effects that need an approval.
const HARMLESS: [&str; 4] = ["ask_user", "update_plan", "command_output", "stop_command"];
/// The lines of a patch that name files.
const PATCH: [(&str, Change); 4] = [
    ("*** Add File: ", Change::Write),
    ("*** Update File: ", Change::Write),
    ("*** Delete File: ", Change::Delete),
    ("*** Move to: ", Change::Move),
];
/// The maximum number of directories that a command line may be in.
const MAX_FOLDERS: usize = 16;

/// Returns the names of all known tools.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let edits = EDITS.iter().map(|(name, ..)| *name);
    edits
        .chain(LOOKS)
        .chain(HARMLESS)
        .chain(RUNS)
        .chain(["fetch", "task_complete"])
}

/// The effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Looks,
    Harmless,
    Edits,
    Runs,
    Fetches,
    Other,
}

/// A change of a file.
pub(super) struct Edit {
    pub(super) change: Change,
    /// The file, relative to the root; `None` if it is outside.
    pub(super) path: Option<PathBuf>,
}

/// The commands, files and hosts of a call.
pub(super) struct About<'a> {
    tool: &'a str,
    args: &'a Value,
    root: &'a Path,
    pub(super) class: Class,
    commands: Vec<Simple>,
    /// Commands that other commands may run.
    hidden: Vec<Simple>,
    edits: Vec<Edit>,
    reads: Vec<Option<PathBuf>>,
    /// Files that its commands may change, and files that they may read, as far as their arguments show.
    may_edit: Vec<Edit>,
    may_read: Vec<Option<PathBuf>>,
    /// True if a command may change any file of a directory that it names.
    pub(super) may_edit_below: bool,
    hosts: Vec<Option<String>>,
    /// The reason why its command line cannot be parsed.
    pub(super) unclear: Option<&'static str>,
    /// True if it only reads, according to the table of harmless commands.
    pub(super) is_harmless: bool,
}

impl<'a> About<'a> {
    pub(super) fn new(spec: &'a ToolSpec, args: &'a Value, root: &'a Path) -> Self {
        let tool = spec.name().as_str();
        let mut about = Self {
            tool,
            args,
            root,
            class: Class::Other,
            commands: Vec::new(),
            hidden: Vec::new(),
            edits: Vec::new(),
            reads: Vec::new(),
            may_edit: Vec::new(),
            may_read: Vec::new(),
            may_edit_below: false,
            hosts: Vec::new(),
            unclear: None,
            is_harmless: false,
        };
        let path =
            |name: &str| places(root, Path::new(""), args[name].as_str().unwrap_or_default());
        if RUNS.contains(&tool) {
            about.class = Class::Runs;
            about.command();
        } else if tool == "fetch" {
            about.class = Class::Fetches;
            about.hosts.push(args["url"].as_str().and_then(host_of));
        } else if let Some((_, change, names)) = EDITS.iter().find(|(name, ..)| *name == tool) {
            about.class = Class::Edits;
            for name in *names {
                about.edit(*change, path(name));
            }
            if tool == "move_file" {
                // The content becomes readable at the destination.
                about.reads.extend(path("from"));
            }
            for line in args["patch"].as_str().unwrap_or_default().lines() {
                let named = PATCH
                    .iter()
                    .find_map(|(start, change)| Some((line.strip_prefix(start)?, *change)));
                if let Some((path, change)) = named {
                    about.edit(change, places(root, Path::new(""), path.trim()));
                }
            }
        } else if LOOKS.contains(&tool) {
            about.class = Class::Looks;
            about.reads.extend(path("path"));
        } else if HARMLESS.contains(&tool) {
            about.class = Class::Harmless;
        } else if spec.replay == Replay::Pure {
            about.class = Class::Looks;
        }
        about
    }

    fn edit(&mut self, change: Change, places: Vec<Option<PathBuf>>) {
        self.edits
            .extend(places.into_iter().map(|path| Edit { change, path }));
    }

    fn command(&mut self) {
        let root = self.root;
        let argv = self.args["argv"].as_array();
        let line = match (self.args["command"].as_str(), argv) {
            (Some(text), None) => Line::read(text),
            (None, Some(argv)) => Line::from_argv(
                argv.iter()
                    .map(|it| it.as_str().unwrap_or_default().to_owned())
                    .collect(),
            ),
            _ => Line {
                unclear: Some("it is no command"),
                ..Line::default()
            },
        };
        self.unclear = line.unclear;
        let cwd = self.args["cwd"].as_str().unwrap_or_default();
        let mut folders = Folders::new(PathBuf::from(cwd));
        if line.unclear.is_some() {
            // A function or a loop may run its commands in any order.
            line.commands.iter().for_each(|it| folders.enter(it));
        }
        self.is_harmless = argv.is_none() && harmless::is_harmless(&line, Path::new(cwd), root);
        for command in &line.commands {
            folders.enter(command);
            let place = |path: &str| folders.places(root, path);
            // Only the user may change files with rules, hooks or their settings.
            let open = |path: Option<PathBuf>| Edit {
                change: Change::Command,
                path: path.filter(|path| !is_kept(path)),
            };
            self.edits
                .extend(command.writes.iter().flat_map(|path| place(path)).map(open));
            self.reads
                .extend(command.reads.iter().flat_map(|path| place(path)));
            if folders.are_unknown && !(command.writes.is_empty() && command.reads.is_empty()) {
                self.unclear
                    .get_or_insert("the directory of a redirection is not known");
            }
            if command.words.is_empty() && !command.writes.is_empty() {
                self.unclear
                    .get_or_insert("it writes to a file and runs nothing");
            }
            if folders.are_elsewhere(root) && programs::names_relative_code(command) {
                self.unclear
                    .get_or_insert("its program is in another directory than the root");
            }
            let writes = programs::writes(command);
            for word in command
                .words
                .iter()
                .skip(1)
                .flat_map(|word| split_paths(word))
            {
                let places = place(word);
                if writes {
                    self.may_edit_below |= word.contains(['*', '?', '['])
                        || places.iter().flatten().any(|path| root.join(path).is_dir());
                    let edits = places.iter().cloned().map(open);
                    self.may_edit.extend(edits);
                }
                self.may_read.extend(places);
            }
            if programs::runs_others(command) {
                let inner = command.inner();
                if inner.len() >= super::line::MAX_INNER {
                    self.unclear
                        .get_or_insert("it holds too many commands to be looked at");
                }
                self.hidden.extend(inner);
            }
        }
        self.commands = line.commands;
        if self.commands.is_empty() {
            self.unclear.get_or_insert("it holds no command");
        }
    }

    /// Returns the reason if the tool refuses the call in any case.
    pub(super) fn is_malformed(&self) -> Option<&'static str> {
        let has = |name: &str| !self.args[name].is_null();
        (self.tool == RUNS[0] && has("command") == has("argv"))
            .then_some("give either command or argv")
    }

    /// Returns the targets of the paths of the call, if they contain links.
    pub(super) fn targets(&self) -> Vec<String> {
        let cwd = self.args["cwd"].as_str().map(|cwd| self.root.join(cwd));
        let paths = ["path", "from", "to"].map(|name| self.args[name].as_str());
        let paths = paths.into_iter().flatten().map(|path| self.root.join(path));
        paths
            .chain(cwd)
            .filter_map(|path| {
                let real = real(&path)?;
                (!same(&real, &path)).then(|| real.to_string_lossy().into_owned())
            })
            .collect()
    }

    /// Returns the arguments that identify the same call: the program, its arguments, its directory and its shell
    /// settings, but not its timeout.
    pub(super) fn canonical(&self) -> Value {
        let mut args = self.args.clone();
        let Some(map) = args.as_object_mut() else {
            return args;
        };
        match self.class {
            Class::Runs => {
                map.remove("timeout_secs");
                map.retain(|_, value| !value.is_null() && *value != Value::Bool(false));
                if let Some(cwd) = map.get("cwd").and_then(Value::as_str) {
                    let place = real(&self.root.join(cwd));
                    let place = place
                        .and_then(|place| Some(place.strip_prefix(self.root).ok()?.to_owned()));
                    match place {
                        Some(place) if place.as_os_str().is_empty() => drop(map.remove("cwd")),
                        Some(place) => {
                            map.insert("cwd".to_owned(), place.to_string_lossy().into());
                        }
                        None => {}
                    }
                }
            }
            Class::Fetches => drop(map.remove("start")),
            _ => {}
        }
        args
    }

    /// Returns the parts that must all be allowed.
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        let commands = self
            .commands
            .iter()
            .filter(|command| !command.words.is_empty())
            .map(Part::Command);
        let edits = self.edits.iter().map(Part::Edit);
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

    /// Returns the parts that rules may deny or require approval for, including files that a command may use.
    pub(super) fn denials(&self) -> impl Iterator<Item = Part<'_>> {
        let may_edit = self.may_edit.iter().map(Part::Edit);
        let may_read = self.may_read.iter().flatten();
        self.parts()
            .into_iter()
            .chain(self.hidden.iter().map(Part::Command))
            .chain(may_edit)
            .chain(may_read.map(|path| Part::Read(Some(path))))
    }

    /// Returns the rules that allow just this call; `None` if no rule can describe it.
    pub(super) fn exact(&self) -> Option<Vec<Rule>> {
        let is_file =
            self.class == Class::Edits && self.edits.iter().all(|edit| edit.change != Change::Move);
        if !is_file {
            let is_patch = self.class == Class::Edits && self.tool != "move_file";
            let writes = self.args["writes"].as_array();
            let is_once = is_patch || writes.is_some_and(|writes| !writes.is_empty());
            return (!is_once)
                .then(|| Rule::for_call(self.tool, &self.canonical()))?
                .map(|rule| vec![rule]);
        }
        let rule = |edit: &Edit| {
            let path = edit.path.as_ref()?.to_str()?;
            let is_plain = !path.is_empty()
                && !path.contains(|it: char| is_hidden(it) || "*?[]{}\\!#() ".contains(it));
            let kind = if edit.change == Change::Delete {
                "delete"
            } else {
                "write"
            };
            is_plain
                .then(|| format!("allow {kind}(/{path})").parse().ok())
                .flatten()
        };
        let rules: Option<Vec<Rule>> = self.edits.iter().map(rule).collect();
        rules.filter(|rules| !rules.is_empty())
    }

    /// Returns the rule that allows commands with the same first words, or all calls of this tool; `None` if an
    /// argument may be a program or code.
    pub(super) fn prefix(&self) -> Option<Rule> {
        match (self.class, self.commands.as_slice()) {
            (Class::Runs, [command]) if self.unclear.is_none() && self.args["cwd"].is_null() => {
                if !command.writes.is_empty() || !command.reads.is_empty() {
                    return None;
                }
                let fixed = programs::prefix_of(command, self.root)?;
                Rule::for_prefix(&command.assigns, command.words.get(..fixed)?)
            }
            (Class::Fetches, _) => {
                let host = self.hosts.first()?.as_ref()?;
                format!("allow fetch({host})").parse().ok()
            }
            (Class::Other, _) => format!("allow {}", self.tool).parse().ok(),
            _ => None,
        }
    }

    /// Formats the call for an approval request.
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

/// Truncates a text to this number of characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{} … ({} more bytes)", &text[..at], text.len() - at),
        None => text.to_owned(),
    }
}

/// Returns the path relative to the root, without `.` and `..`; `None` if it is outside.
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

/// Returns a path as written, and its target if it contains links.
pub(super) fn places(root: &Path, folder: &Path, path: &str) -> Vec<Option<PathBuf>> {
    let named = inside(root, folder, path);
    let Some(place) = &named else {
        return vec![named];
    };
    let at = root.join(place);
    let Some(found) = real(&at).filter(|found| *found != at) else {
        return vec![named];
    };
    let other = found.strip_prefix(root).ok().map(Path::to_owned);
    vec![named, other]
}

/// Resolves a path; a file that does not exist yet is resolved by its nearest existing parent directory.
fn real(path: &Path) -> Option<PathBuf> {
    let mut missing = PathBuf::new();
    for above in path.ancestors() {
        if let Ok(found) = above.canonicalize() {
            return Some(if missing.as_os_str().is_empty() {
                found
            } else {
                found.join(missing)
            });
        }
        if above.is_symlink() {
            return None;
        }
        let name = Path::new(above.file_name()?);
        missing = match missing.as_os_str().is_empty() {
            true => name.to_owned(),
            false => name.join(&missing),
        };
    }
    None
}

/// True if both paths have the same target.
fn same(one: &Path, other: &Path) -> bool {
    let plain = |path: &Path| path.components().collect::<PathBuf>();
    plain(one) == plain(other)
}

/// Returns the paths that a word may contain: the word itself, and the text after `=`, `@` or an option with a joined
/// value.
pub(super) fn split_paths(word: &str) -> impl Iterator<Item = &str> {
    let behind = word.split_once('=').map(|(_, value)| value);
    let joined = word
        .strip_prefix('-')
        .filter(|word| !word.starts_with('-'))
        .and_then(|word| word.get(1..));
    let named = word.split_once('@').map(|(_, path)| path);
    let whole = (!word.starts_with('-')).then_some(word);
    [whole, behind, joined, named]
        .into_iter()
        .flatten()
        .filter(|path| !path.is_empty())
}

/// The directories that the commands of a line may run in.
struct Folders {
    known: Vec<PathBuf>,
    /// True if there may be other directories.
    are_unknown: bool,
}

impl Folders {
    fn new(first: PathBuf) -> Self {
        Self {
            known: vec![first],
            are_unknown: false,
        }
    }

    /// Adds the directories that a command may change to. The current ones stay, because the command may fail.
    fn enter(&mut self, command: &Simple) {
        let words = match command.program() {
            "builtin" | "command" => command.words.get(1..).unwrap_or_default(),
            _ => &command.words[..],
        };
        match words.first().map(String::as_str) {
            Some("cd" | "pushd") => {}
            Some("eval" | "source" | "." | "trap" | "alias") => {
                self.are_unknown = true;
                return;
            }
            _ => return,
        }
        let mut operands = words[1..]
            .iter()
            .filter(|word| !matches!(word.as_str(), "-P" | "-L" | "-e" | "-@" | "--" | "-n"));
        let (folder, more) = (operands.next(), operands.next());
        let is_plain = |folder: &&String| {
            !folder.starts_with(['-', '+', '~']) && !folder.contains(['*', '?', '[', '$'])
        };
        let Some(folder) = folder.filter(is_plain).filter(|_| more.is_none()) else {
            self.are_unknown = true;
            return;
        };
        for at in 0..self.known.len() {
            let next = self.known[at].join(folder);
            if !self.known.contains(&next) {
                self.known.push(next);
            }
        }
        if self.known.len() > MAX_FOLDERS {
            self.known.truncate(MAX_FOLDERS);
            self.are_unknown = true;
        }
    }

    /// True if one of them is another directory than the root.
    fn are_elsewhere(&self, root: &Path) -> bool {
        let all = self.known.iter();
        let is_root = |place: &Option<PathBuf>| {
            place
                .as_ref()
                .is_some_and(|path| path.as_os_str().is_empty())
        };
        self.are_unknown
            || !all
                .flat_map(|folder| places(root, folder, "."))
                .all(|place| is_root(&place))
    }

    fn places(&self, root: &Path, path: &str) -> Vec<Option<PathBuf>> {
        if Path::new(path).is_absolute() {
            return places(root, Path::new(""), path);
        }
        let all = self.known.iter();
        let mut all: Vec<_> = all.flat_map(|folder| places(root, folder, path)).collect();
        if self.are_unknown {
            all.push(None);
        }
        all
    }
}

/// True if a path contains rules, or files that a repository runs.
fn is_kept(path: &Path) -> bool {
    path.components().any(|part| {
        [".git", ".adjutant"]
            .iter()
            .any(|kept| part.as_os_str().eq_ignore_ascii_case(kept))
    })
}

/// Returns the host of an address, if it is written plainly.
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
    // An IP address has many notations, and a rule contains the plain one.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|it: char| it.is_ascii_digit());
    (is_web && is_plain && (!is_number || host.parse::<std::net::Ipv4Addr>().is_ok()))
        .then_some(host)
}
