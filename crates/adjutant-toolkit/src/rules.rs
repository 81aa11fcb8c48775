//! Rules that decide which calls run without approval, which need an approval, and which are denied.
//!
//! `rules/line.rs` parses command lines, `rules/about.rs` determines the files, hosts and commands of a call.

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

/// The maximum number of rules.
const MAX_RULES: usize = 1_000;
/// The kind of the note about rules that were added.
const ADDED: &str = "rules.added";
/// The maximum number of characters of a call in an approval request.
const MAX_SHOWN: usize = 2_000;

/// The decision on calls that no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessMode {
    /// Read-only calls run; all others are denied, even if a rule allows them.
    Plan,
    /// Read-only calls run; all others need an approval.
    #[default]
    Ask,
    /// Changes of files inside the root also run; commands and addresses need an approval.
    Edits,
    /// All calls run: for agents in a sandbox.
    All,
}

/// Decides which calls run, need an approval, or are denied, by tool *and* arguments. Clones share the rules.
///
/// A rule is `allow`, `ask` or `deny` and a pattern: `shell(git log *)`, `edit(src/**)`, `read(secrets/*)`,
/// `fetch(*.example.org)`, or the name of a tool. `write(src/a.rs)` and `delete(src/a.rs)` match file tools that do
/// just that, and `allow call(TOOL {ARGUMENTS})` matches one call. Deny takes precedence over ask, and ask over allow,
/// in any order. If no rule matches, the [`AccessMode`] decides. A command line is parsed as a shell parses it.
/// **Every** simple command and every file that it writes to must be allowed. A line with unsupported syntax needs an
/// approval. A denied command is found in lists, pipes and substitutions, after `sudo`, `xargs`, `bash -c` and similar
/// commands, and in any directory.
///
/// Rules only sort plain calls; they are not a security boundary: an allowed program may do anything. The sandbox is
/// the boundary.
#[derive(Clone)]
pub struct Rules {
    root: Arc<PathBuf>,
    state: Arc<RwLock<State>>,
}

#[derive(Debug, Default)]
struct State {
    mode: AccessMode,
    rules: Vec<Rule>,
    /// Added rules that are not recorded in a log yet.
    unnoted: Vec<Rule>,
    /// True if commands run in a sandbox.
    has_sandbox: bool,
}

/// The extent of an approval that lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// Just this call: the rules in `always` of the request's data.
    Call,
    /// Calls with the same beginning: the rule in `prefix` of the request's data.
    Prefix,
}

/// The decision on a call, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ruling {
    /// The decision.
    pub decision: Decision,
    /// The reason: the rule or the mode, and the matching part of the call.
    pub why: Arc<str>,
}

impl Rules {
    /// Creates an empty set of rules with mode [`AccessMode::Ask`], for tools that work in this directory.
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

    /// Declares that commands run in a sandbox, for all clones. Then harmless commands need no approval, and rules for
    /// the first words of a command can be offered.
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

    /// Adds the rules of a text, one per line; `#` starts a comment line. `from` names the text.
    ///
    /// # Errors
    /// `Rule` with the line number if a line is invalid, or if there would be more than 1,000 rules; no rule is added
    /// then.
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
    /// `Rule` if there would be more than 1,000 rules; no rule is added then.
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

    /// Allows just this call from now on. Returns the added rules, as displayed in the approval request of the call;
    /// none if no rule can describe exactly this call. The next call notes them in its log as `rules.added`.
    ///
    /// For a file tool, a rule contains the kind of the change and the path. For every other tool it contains all
    /// arguments: for a command the line or the words and the directory, with symbolic links resolved.
    ///
    /// # Errors
    /// `Rule` if there would be more than 1,000 rules.
    pub fn always(&self, spec: &ToolSpec, args: &Value) -> Result<Vec<Rule>, Error> {
        let rules = About::new(spec, args, &self.root).exact();
        self.learn(rules.unwrap_or_default(), "a person, in this session")
    }

    /// Returns the rule that allows calls with the same beginning: a command by its first words, a page by its host,
    /// another tool by its name. `None` if an argument may be a program or code, and without a sandbox.
    pub fn prefix(&self, spec: &ToolSpec, args: &Value) -> Option<Rule> {
        let about = About::new(spec, args, &self.root);
        self.read().has_sandbox.then(|| about.prefix()).flatten()
    }

    /// Adds the rules that the approval request of a call displayed and that the user approved. Adds nothing if the
    /// request displayed other rules or none.
    ///
    /// # Errors
    /// `Rule` if there would be more than 1,000 rules.
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

    /// Adds rules that the user approved, unless they exist already. The next call records them in its log.
    ///
    /// # Errors
    /// `Rule` if there would be more than 1,000 rules.
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

    /// Adds the rules that a note of an earlier run of the session contains; returns whether it was such a note.
    ///
    /// Use it only for notes of your own log: a log from another author could allow any call.
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

    /// True if a tool name with this prefix might be mistaken for a built-in tool, such as `read_` and `run_`.
    pub fn knows_prefix(prefix: &str) -> bool {
        about::names().any(|name| name.starts_with(prefix))
    }

    /// Applies these rules to the calls of a toolbox.
    pub fn over<T: Toolbox>(&self, toolbox: T) -> impl Toolbox + use<T> {
        toolbox.guard(Arc::new(self.clone()))
    }

    /// Decides on a call.
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
        // No rule and no mode allows a command to change files that other programs read automatically: the user
        // approves each such call.
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
            // The effects of the other classes are known here.
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
            // Recorded only now: if the call is dropped before, the next call records the rule.
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
                // An approval request of another guard does not display the targets of links.
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

/// A part of a call that a rule can match.
enum Part<'a> {
    Command(&'a Simple),
    Edit(&'a Edit),
    /// A file, relative to the root; `None` if it is outside.
    Read(Option<&'a PathBuf>),
    /// A host; `None` if it is not written plainly.
    Host(Option<&'a str>),
    Tool(&'a str),
}

/// True if a rule matches a file. A file outside the root is never allowed, and deny rules for all files match it. A
/// file that other programs read automatically is allowed only by a rule with its exact path.
fn fits_path(decision: Decision, paths: &Paths, path: Option<&PathBuf>) -> bool {
    let is_all = paths.are_all();
    match path {
        Some(path) if decision == Decision::Allow && is_all => !is_obeyed(path),
        Some(path) => paths.fits(path),
        None => decision != Decision::Allow && is_all,
    }
}

/// True if a command only reads, so that it can run with a read-only root.
#[cfg(all(feature = "shell", unix))]
pub(crate) fn is_harmless(
    command: Option<&str>,
    argv: Option<&[String]>,
    cwd: &Path,
    root: &Path,
) -> bool {
    let line = match (command, argv) {
        (Some(command), None) => Line::read(command),
        (None, Some(argv)) => Line::from_argv(argv.to_vec()),
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

    /// Returns the rule with this decision that matches a part.
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
            // It can be any host.
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

    /// True if a rule or the mode allows a part.
    fn allows(&self, part: &Part<'_>, class: Class) -> bool {
        let by_mode = match (self.mode, part) {
            // It may run a denied command.
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
