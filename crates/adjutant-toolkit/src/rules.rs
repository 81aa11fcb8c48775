//! Rules: which calls run by themselves, which wait for someone's word, and which never run.
//!
//! What a command line holds is read in `rules/line.rs`, what a call is about in `rules/about.rs`.

mod about;
mod harmless;
mod line;
mod pattern;
mod programs;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use adjutant_tool::{
    Ask, CallAdmission, CallContext, Guard, ToolError, ToolErrorKind, ToolSpec, Toolbox,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Error, ErrorKind, obeyed::is_obeyed};
use about::{About, Class, Edit};
#[cfg(all(feature = "shell", unix))]
pub(crate) use harmless::GIT_VARIABLES;
use line::{Line, Simple};
pub(crate) use pattern::fits_host;
pub use pattern::{Decision, Rule};
use pattern::{Paths, Subject};

/// The largest number of rules.
const MAX_RULES: usize = 1_000;
/// The kind of the note that tells of rules which were added.
const ADDED: &str = "rules.added";
/// The longest part of a call that a question shows, in characters.
const MAX_SHOWN: usize = 2_000;

/// How much runs by itself, where no rule says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessMode {
    /// What only looks; everything else is denied, whatever is allowed.
    Plan,
    /// What only looks; everything else asks.
    #[default]
    Ask,
    /// Changes of files inside the root too; commands and addresses ask.
    Edits,
    /// Everything: for agents in a sandbox.
    All,
}

/// Which calls run, which ask, and which are denied, by tool *and* arguments; clones share what is added.
///
/// A rule is `allow`, `ask` or `deny` with what it is about: `shell(git log *)`, `edit(src/**)`, `read(secrets/*)`,
/// `fetch(*.example.org)`, or the name of a tool. `write(src/a.rs)` and `delete(src/a.rs)` are about file tools that do just that,
/// and `allow call(TOOL {ARGUMENTS})` about one call. Deny goes before ask, ask before allow, whatever their order; where no
/// rule fits, the [`AccessMode`] decides. A command line is read as a shell reads it, and **every** simple command of it must
/// be allowed, and every file that it writes to; a line that cannot be read plainly asks. A denied command is found in
/// lists, pipes, substitutions, behind `sudo`, `xargs`, `bash -c` and the like, and in any folder.
///
/// Rules are a wish about plain calls, not a wall: an allowed program may do anything. The wall is the sandbox.
#[derive(Clone)]
pub struct Rules {
    root: Arc<PathBuf>,
    state: Arc<RwLock<State>>,
}

#[derive(Debug, Default)]
struct State {
    mode: AccessMode,
    rules: Vec<Rule>,
    /// Rules that were added and are in no log yet.
    unnoted: Vec<Rule>,
    /// True if commands run in a sandbox.
    has_sandbox: bool,
}

/// The extent of an approval that lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// Just this call: the rules in `always` of the question's data.
    Call,
    /// Calls that begin like this one: the rule in `prefix` of the request's data.
    Prefix,
}

/// The decision about a call, with why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ruling {
    /// The decision.
    pub decision: Decision,
    /// Why: the rule or the mode, and the part of the call that it is about.
    pub why: Arc<str>,
}

impl Rules {
    /// No rules, in mode [`AccessMode::Ask`], for calls of tools that work in this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: Arc::new(root.into()),
            state: Arc::default(),
        }
    }

    /// Sets the mode, for all clones.
    #[must_use]
    pub fn mode(self, mode: AccessMode) -> Self {
        self.set_mode(mode);
        self
    }

    /// Says that commands run in a sandbox, for all clones: there the harmless ones need no approval, and rules for the first
    /// words of a command can be offered.
    #[must_use]
    pub fn in_sandbox(self, has_sandbox: bool) -> Self {
        self.write().has_sandbox = has_sandbox;
        self
    }

    /// Sets the mode, from the next call on.
    pub fn set_mode(&self, mode: AccessMode) {
        self.write().mode = mode;
    }

    /// Returns the mode.
    pub fn current_mode(&self) -> AccessMode {
        self.read().mode
    }

    /// Adds the rules of a text, one on a line; `#` begins a comment line. `from` names the text.
    ///
    /// # Errors
    /// `Rule` if a line is no rule, with its number, or if there would be more than 1,000; none is added then.
    pub fn with(self, text: &str, from: &str) -> Result<Self, Error> {
        let mut rules = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let rule = line.parse::<Rule>();
            let rule = rule.map_err(|error| {
                Error::new(ErrorKind::Rule, format!("{from}:{number}: {error}"))
            })?;
            rules.push(rule.said(format!("{from}:{number}")));
        }
        self.add(rules)?;
        Ok(self)
    }

    /// Adds rules, from the next call on.
    ///
    /// # Errors
    /// `Rule` if there would be more than 1,000; none is added then.
    pub fn add(&self, rules: impl IntoIterator<Item = Rule>) -> Result<(), Error> {
        let mut state = self.write();
        let rules: Vec<Rule> = rules.into_iter().collect();
        if state.rules.len() + rules.len() > MAX_RULES {
            return Err(Error::new(
                ErrorKind::Rule,
                format!("there may be {MAX_RULES} rules at most"),
            ));
        }
        state.rules.extend(rules);
        Ok(())
    }

    /// Returns all rules, in the order in which they were added.
    pub fn rules(&self) -> Vec<Rule> {
        self.read().rules.clone()
    }

    /// Allows just this call from now on. Returns the added rules, as displayed in the approval
    /// request of the call; none if no rule can describe exactly this call. The next call notes them in its log as `rules.added`.
    ///
    /// For a file tool a rule names the kind of the change and the path. For every other tool it holds all arguments: of a
    /// command the line or the words and the directory, with symbolic links resolved.
    ///
    /// # Errors
    /// `Rule` if there would be more than 1,000.
    pub fn always(&self, spec: &ToolSpec, args: &Value) -> Result<Vec<Rule>, Error> {
        let rules = About::new(spec, args, &self.root).exact();
        self.learn(rules.unwrap_or_default(), "a person, in this session")
    }

    /// The rule that allows what begins like this call: a command by its first words, a page by its host, another tool by its
    /// name. `None` if an argument may be a program or code, and without a sandbox.
    pub fn prefix(&self, spec: &ToolSpec, args: &Value) -> Option<Rule> {
        let about = About::new(spec, args, &self.root);
        self.read().has_sandbox.then(|| about.prefix()).flatten()
    }

    /// Adds the rules that the question of a call showed, and that a person agreed to; none if it showed others or none.
    ///
    /// # Errors
    /// `Rule` if there would be more than 1,000.
    pub fn agree(
        &self,
        spec: &ToolSpec,
        args: &Value,
        (ask, lasting): (&Ask, Lasting),
    ) -> Result<Vec<Rule>, Error> {
        let (rules, shown) = match lasting {
            Lasting::Call => {
                let about = About::new(spec, args, &self.root);
                (
                    about.exact().unwrap_or_default(),
                    ask.data["always"].clone(),
                )
            }
            Lasting::Prefix => {
                let rule = self.prefix(spec, args);
                (rule.into_iter().collect(), json!([ask.data["prefix"]]))
            }
        };
        let texts: Vec<String> = rules.iter().map(Rule::to_string).collect();
        match shown == json!(texts) {
            true => self.learn(rules, "a person, in this session"),
            false => Ok(Vec::new()),
        }
    }

    /// Adds rules that a person agreed to, unless they exist already. The next call records them in its log.
    ///
    /// # Errors
    /// `Rule` if there would be more than 1,000.
    pub fn learn(&self, rules: Vec<Rule>, from: &str) -> Result<Vec<Rule>, Error> {
        let known: Vec<String> = self.read().rules.iter().map(Rule::to_string).collect();
        let rules = rules.into_iter().map(|rule| rule.said(from));
        let rules: Vec<Rule> = rules
            .filter(|rule| !known.contains(&rule.to_string()))
            .collect();
        self.add(rules.iter().cloned())?;
        self.write().unnoted.extend(rules.iter().cloned());
        Ok(rules)
    }

    /// Adds the rules that a note of an earlier run of the session tells of; says whether it was such a note.
    ///
    /// Only for the notes of a log of one's own: one that came from somebody else would allow what it likes.
    pub fn restore(&self, kind: &str, data: &Value) -> bool {
        if kind != ADDED {
            return false;
        }
        let texts = data["rules"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let rules = texts.filter_map(|text| text.parse::<Rule>().ok());
        let rules = rules.map(|rule| rule.said("a person, earlier in this session"));
        self.add(rules.collect::<Vec<_>>()).is_ok()
    }

    /// True if a tool whose name begins so might be taken for one that rules know by its name, as `read_` and `run_`.
    pub fn knows_prefix(prefix: &str) -> bool {
        about::names().any(|name| name.starts_with(prefix))
    }

    /// Puts these rules before the calls of a toolbox.
    pub fn over<T: Toolbox>(&self, toolbox: T) -> impl Toolbox + use<T> {
        toolbox.guard(Arc::new(self.clone()))
    }

    /// Decides about a call.
    pub fn decide(&self, spec: &ToolSpec, args: &Value) -> Ruling {
        let (state, about) = (self.read(), About::new(spec, args, &self.root));
        let tool = spec.name().as_str();
        let named = |decision| {
            state.find(
                decision,
                |subject| matches!(subject, Subject::Tool(name) if **name == *tool),
            )
        };
        if let Some(rule) = named(Decision::Deny) {
            return Ruling::by(rule, tool);
        }
        let denied = about.denials().find_map(|part| state.denies(&part));
        if let Some(ruling) = denied {
            return ruling;
        }
        if state.mode == AccessMode::Plan && !matches!(about.class, Class::Looks | Class::Harmless)
        {
            let why = "nothing but looking is allowed in mode `plan`".into();
            return Ruling {
                decision: Decision::Deny,
                why,
            };
        }
        let asks = about.denials().find_map(|part| {
            Some(Ruling::by(
                state.fitting(Decision::Ask, &part)?,
                &part.to_string(),
            ))
        });
        if let Some(ruling) = asks {
            return ruling;
        }
        if let Some(rule) = named(Decision::Ask) {
            return Ruling::by(rule, tool);
        }
        // No rule and no mode allows a command to change what other programs obey: a person does, each time.
        if about.class == Class::Runs && args["writes"].as_array().is_some_and(|it| !it.is_empty())
        {
            return Ruling {
                decision: Decision::Ask,
                why: format!("other programs obey the files {}", args["writes"]).into(),
            };
        }
        let allowed = |why: &str| Ruling {
            decision: Decision::Allow,
            why: why.into(),
        };
        let canonical = about.canonical();
        let is_exact = |subject: &Subject| matches!(subject, Subject::Call(name, args) if **name == *tool && **args == canonical);
        if state.find(Decision::Allow, is_exact).is_some() {
            return allowed("a person allowed just this call");
        }
        let is_careful = state.mode != AccessMode::All || state.has_denials();
        if let Some(why) = about.unclear.filter(|_| is_careful) {
            let why = format!("the command line is not plain: {why}").into();
            return Ruling {
                decision: Decision::Ask,
                why,
            };
        }
        if about.may_edit_below && state.guards_files() {
            let why = "it may change a file of a directory that it names, and rules are about some"
                .into();
            return Ruling {
                decision: Decision::Ask,
                why,
            };
        }
        if about.is_harmless && state.has_sandbox {
            return allowed("it only reads, in the sandbox");
        }
        let is_named = named(Decision::Allow).is_some() && !matches!(about.class, Class::Runs);
        let parts = about.parts();
        let open = parts
            .iter()
            .find(|part| !is_named && !state.allows(part, about.class));
        match open {
            Some(part) => {
                let why = format!("no rule allows {part}, and mode `{}` asks", state.mode).into();
                Ruling {
                    decision: Decision::Ask,
                    why,
                }
            }
            None => allowed("it is allowed"),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Guard for Rules {
    fn approval(&self, spec: &ToolSpec, args: &Value) -> Option<Ask> {
        let ruling = self.decide(spec, args);
        let about = About::new(spec, args, &self.root);
        let is_asked = ruling.decision == Decision::Ask && about.is_malformed().is_none();
        is_asked.then(|| {
            let mut why = ruling.why.to_string();
            // What the others do is known here.
            if about.class == Class::Other {
                why.extend(spec.remarks().map(|remarks| format!("; {remarks}")));
            }
            let ask = Ask::approval(format!("{}; {why}", about.shown(MAX_SHOWN)));
            let mut data = json!({ "why": why, "mode": self.current_mode() });
            let texts = |rules: Vec<Rule>| rules.iter().map(Rule::to_string).collect::<Vec<_>>();
            if let Some(rules) = about.exact() {
                data["always"] = json!(texts(rules));
            }
            if let Some(rule) = self.prefix(spec, args) {
                data["prefix"] = json!(rule.to_string());
            }
            let targets = about.targets();
            if !targets.is_empty() {
                data["leads_to"] = json!(targets);
            }
            Ask { data, ..ask }
        })
    }

    async fn enter(
        &self,
        spec: &ToolSpec,
        args: &Value,
        cx: &CallContext,
    ) -> Result<(), ToolError> {
        loop {
            let Some(rule) = self.read().unnoted.first().map(Rule::to_string) else {
                break;
            };
            cx.note(ADDED, json!({ "rules": [rule] })).await?;
            // Only now: a call that is given up in between leaves it to the next one.
            self.write().unnoted.retain(|it| it.to_string() != rule);
        }
        let about = About::new(spec, args, &self.root);
        if let Some(why) = about.is_malformed() {
            return Err(ToolError::new(ToolErrorKind::InvalidArguments, why));
        }
        let ruling = self.decide(spec, args);
        if ruling.decision == Decision::Ask
            && let Some(admission) = cx.get::<CallAdmission>()
        {
            let is_same = admission.asked.as_ref().is_some_and(|ask| {
                // An approval request of another guard displays no targets.
                let (shown, now) = (&ask.data["leads_to"], about.targets());
                ask.data["why"].is_null()
                    || *shown == json!(now)
                    || (shown.is_null() && now.is_empty())
            });
            if !is_same {
                let message = format!(
                    "this call is not the admitted one: {}; repeat the call",
                    ruling.why
                );
                return Err(ToolError::new(ToolErrorKind::Denied, message));
            }
        }
        if ruling.decision == Decision::Deny {
            let message = format!(
                "this call is denied: {}; hint: do without it, or ask the user",
                ruling.why
            );
            return Err(ToolError::new(ToolErrorKind::Denied, message));
        }
        Ok(())
    }
}

/// A part of a call that a rule may be about.
enum Part<'a> {
    Command(&'a Simple),
    Edit(&'a Edit),
    /// A file from the root; `None` if it is not in it.
    Read(Option<&'a PathBuf>),
    /// A host; `None` if it is not told plainly.
    Host(Option<&'a str>),
    Tool(&'a str),
}

/// True if a rule is about a file. A file outside the root is never allowed, and rules for all files deny it. A file that other
/// programs obey is allowed only by a rule with its name.
fn fits_path(decision: Decision, paths: &Paths, path: Option<&PathBuf>) -> bool {
    let is_all = paths.are_all();
    match path {
        Some(path) if decision == Decision::Allow && is_all => !is_obeyed(path),
        Some(path) => paths.fits(path),
        None => decision != Decision::Allow && is_all,
    }
}

/// True if a command only reads, so that it runs with its root read-only.
#[cfg(all(feature = "shell", unix))]
pub(crate) fn is_harmless(
    command: Option<&str>,
    argv: Option<&[String]>,
    cwd: &Path,
    root: &Path,
) -> bool {
    let line = match (command, argv) {
        (Some(command), None) => Line::read(command),
        (None, Some(argv)) => Line::of(argv.to_vec()),
        _ => return false,
    };
    harmless::is_harmless(&line, cwd, root)
}

impl State {
    fn find(&self, decision: Decision, fits: impl Fn(&Subject) -> bool) -> Option<&Rule> {
        self.rules
            .iter()
            .find(|rule| rule.decision == decision && fits(&rule.subject))
    }

    /// The rule of this decision that is about a part.
    fn fitting(&self, decision: Decision, part: &Part<'_>) -> Option<&Rule> {
        self.find(decision, |subject| match (subject, part) {
            (Subject::Shell(words), Part::Command(command)) => match decision {
                Decision::Allow => words.allows(command),
                Decision::Ask | Decision::Deny => words.fits_program(command),
            },
            (Subject::Edit(paths, change), Part::Edit(edit)) => {
                change.is_none_or(|change| change == edit.change)
                    && fits_path(decision, paths, edit.path.as_ref())
            }
            (Subject::Read(paths), Part::Read(path)) => fits_path(decision, paths, *path),
            (Subject::Fetch(pattern), Part::Host(Some(host))) => fits_host(pattern, host),
            // It may be any host.
            (Subject::Fetch(_), Part::Host(None)) => decision != Decision::Allow,
            (Subject::Tool(name), Part::Tool(tool)) => **name == **tool,
            _ => false,
        })
    }

    /// True if rules restrict changes of files.
    fn guards_files(&self) -> bool {
        let is_about = |rule: &Rule| {
            rule.decision != Decision::Allow && matches!(rule.subject, Subject::Edit(..))
        };
        self.rules.iter().any(is_about)
    }

    /// True if rules restrict the effects of a command.
    fn has_denials(&self) -> bool {
        let is_about = |rule: &Rule| {
            rule.decision != Decision::Allow
                && matches!(
                    rule.subject,
                    Subject::Shell(_) | Subject::Edit(..) | Subject::Read(_)
                )
        };
        self.rules.iter().any(is_about)
    }

    fn denies(&self, part: &Part<'_>) -> Option<Ruling> {
        self.fitting(Decision::Deny, part)
            .map(|rule| Ruling::by(rule, &part.to_string()))
    }

    /// True if a part runs by itself: by a rule, or by the mode.
    fn allows(&self, part: &Part<'_>, class: Class) -> bool {
        let by_mode = match (self.mode, part) {
            // It may run what is denied.
            (AccessMode::All, Part::Command(command)) if self.has_denials() => {
                !programs::runs_others(command)
                    && (command.globs.is_empty() || programs::find_row(command.program()).is_none())
            }
            (AccessMode::All, _) => true,
            (_, Part::Read(path)) => path.is_some() || class != Class::Runs,
            (AccessMode::Edits, Part::Edit(edit)) => {
                edit.path.as_ref().is_some_and(|path| !is_obeyed(path))
            }
            (_, Part::Tool(_)) => matches!(class, Class::Looks | Class::Harmless),
            _ => false,
        };
        by_mode || self.fitting(Decision::Allow, part).is_some()
    }
}

impl Ruling {
    fn by(rule: &Rule, what: &str) -> Self {
        Self {
            decision: rule.decision,
            why: format!("{what}: rule `{rule}` of {}", rule.from).into(),
        }
    }
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(
                f,
                "the command `{}`",
                about::cut(&command.words.join(" "), 200)
            ),
            Self::Edit(Edit {
                path: Some(path), ..
            }) if is_obeyed(path) => write!(
                f,
                "a change of `{}`, which other programs obey",
                path.display()
            ),
            Self::Edit(Edit {
                path: Some(path), ..
            }) => write!(f, "a change of `{}`", path.display()),
            Self::Read(Some(path)) => write!(f, "a look at `{}`", path.display()),
            Self::Edit(Edit { path: None, .. }) | Self::Read(None) => {
                f.write_str("a file outside the folder, or one that rules or hooks are kept in")
            }
            Self::Host(host) => write!(f, "the host `{}`", host.unwrap_or("(not plainly told)")),
            Self::Tool(name) => write!(f, "the tool `{name}`"),
        }
    }
}

impl fmt::Display for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
        })
    }
}

impl std::str::FromStr for AccessMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let all = [Self::Plan, Self::Ask, Self::Edits, Self::All];
        let found = all.into_iter().find(|mode| mode.to_string() == text);
        let unknown =
            || format!("there is no mode {text:?}; hint: there are plan, ask, edits and all");
        found.ok_or_else(|| Error::new(ErrorKind::Rule, unknown()))
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.read();
        f.debug_struct("Rules")
            .field("mode", &state.mode)
            .field("rules", &state.rules.len())
            .finish_non_exhaustive()
    }
}
