//! The user's trust in the permissions of a manifest: listed in full, confirmed once for each content, refused without
//! a terminal.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, IsTerminal, Write},
    sync::{Mutex, PoisonError},
};

use adjutant::{
    providers::Chooser,
    runtime::{Error, Manifest, TrustStore, Wants},
};

use crate::{
    chooser, exit::Exit, plain, problem::Problem, screen::tell, trouble::runtime_problem,
    waits::MAX_ON_TERMINAL,
};

/// The ways in which the configuration of a directory becomes trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trusting {
    /// By the command line.
    Given,
    /// By an earlier confirmation, or by one on the terminal.
    Asked,
    /// By an earlier confirmation.
    Before,
}

/// The contents whose trust this process has requested already.
static ASKED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// True if the user trusts this content. Trust is requested once for each content, and stored.
pub(crate) fn is_trusted(wants: &Wants, trusting: Trusting) -> Result<bool, Problem> {
    let store = TrustStore::for_user();
    if trusting == Trusting::Given
        || store
            .holds(wants.digest())
            .map_err(|error| runtime_problem(&error))?
    {
        return Ok(true);
    }
    let text = listed(wants);
    if trusting == Trusting::Before || !is_on_terminal() || text.len() > MAX_ON_TERMINAL {
        return Ok(false);
    }
    let is_new = ASKED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(wants.digest().to_owned());
    if !is_new {
        return Ok(false);
    }
    tell(&text);
    let is_trusted = answered("trust it? [y/N] ")?;
    if is_trusted {
        store
            .trust(wants)
            .map_err(|error| runtime_problem(&error))?;
    }
    Ok(is_trusted)
}

/// The store of trusted contents, and the consent from the command line.
pub(crate) struct Consent<'a> {
    pub(crate) store: &'a TrustStore,
    /// The permissions that the command line trusts.
    ///
    /// An empty text trusts everything; others are digests of trusted contents.
    pub(crate) given: &'a [String],
    /// The command and its option for trust, for hints.
    pub(crate) command: String,
    pub(crate) option: &'static str,
}

impl Consent<'_> {
    /// Asks for trust in all requested permissions, unless they are trusted already or none are requested; a positive
    /// answer is stored.
    ///
    /// # Errors
    /// `Usage` if the user does not trust them, or if they are too long for a terminal.
    pub(crate) fn ask(&self, wants: &Wants) -> Result<(), Problem> {
        if self.holds(wants)? {
            return Ok(());
        }
        let is_given = self
            .given
            .iter()
            .any(|it| it.is_empty() || it == wants.digest());
        let (command, option, name) = (&self.command, self.option, who(wants));
        let text = listed(wants);
        if !is_given && is_on_terminal() && text.len() > MAX_ON_TERMINAL {
            let text = format!(
                "what {name} wants is not asked for where it scrolls away: {}",
                wants.summary()
            );
            let hint = format!(
                "`2> FILE` writes it whole, and nothing is done; `{command} {option}={}` trusts that",
                wants.digest()
            );
            return Err(Problem::new(Exit::Usage, text).hint(hint));
        }
        tell(&text);
        if !is_given && !answered("trust it? [y/N] ")? {
            let text = format!("nobody trusts what {name} wants, so nothing was done");
            return Err(Problem::new(Exit::Usage, text)
                .hint(format!("read the list; `{command} {option}` trusts it")));
        }
        self.keep(wants)
    }

    /// The same for a refusal of the runtime; other errors become problems.
    pub(crate) fn ask_for(&self, error: &Error) -> Result<(), Problem> {
        match error.wants() {
            Some(wants) => self.ask(wants),
            None => Err(runtime_problem(error)),
        }
    }

    /// True if no permissions are requested, or all of them are trusted.
    pub(crate) fn holds(&self, wants: &Wants) -> Result<bool, Problem> {
        Ok(wants.is_empty()
            || self
                .store
                .holds(wants.digest())
                .map_err(|error| runtime_problem(&error))?)
    }

    /// Stores the trust in them.
    pub(crate) fn keep(&self, wants: &Wants) -> Result<(), Problem> {
        if wants.is_empty() {
            return Ok(());
        }
        self.store
            .trust(wants)
            .map_err(|error| runtime_problem(&error))
    }
}

/// Lists all requested permissions, one per line; the totals by kind come last, where they do not scroll away.
pub(crate) fn listed(wants: &Wants) -> String {
    let all: String = wants.iter().map(|want| format!("  {want}\n")).collect();
    let (name, summary, digest) = (who(wants), wants.summary(), wants.digest());
    format!("{name} wants:\n{all}in all: {summary}; sha256:{digest}")
}

/// Returns the origin of the request: an agent, or the path of a file of servers.
fn who(wants: &Wants) -> String {
    let name = plain::whole(wants.name());
    let kind = if name.contains(['/', '.']) {
        "file"
    } else {
        "agent"
    };
    format!("the {kind} {name}")
}

/// True if there is a user at a terminal.
pub(crate) fn is_on_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Reads an answer from the terminal; without one, it is empty.
pub(crate) fn ask(question: &str) -> Result<String, Problem> {
    if !is_on_terminal() {
        return Ok(String::new());
    }
    let (mut answer, mut stderr) = (String::new(), io::stderr());
    let asked = write!(stderr, "{question}").and_then(|()| stderr.flush());
    let read = asked.and_then(|()| io::stdin().lock().read_line(&mut answer));
    read.map_err(|error| Problem::new(Exit::Failed, "the answer cannot be read").cause(&error))?;
    Ok(answer.trim().to_owned())
}

/// Asks on the terminal; without one, the answer is no.
pub(crate) fn answered(question: &str) -> Result<bool, Problem> {
    let answer = ask(question)?.to_ascii_lowercase();
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

/// Prints warnings about keys that the environment sends to other hosts than their vendors'.
pub(crate) fn warn(manifest: &Manifest) {
    let chooser = Chooser::new(|name| std::env::var(name).ok());
    let is_own = |name: &str| {
        let provider = name.split_once('/').map(|(provider, _)| provider);
        manifest
            .providers
            .iter()
            .any(|it| it.get("name").and_then(|it| it.as_str()) == provider)
    };
    let names = manifest
        .agents
        .iter()
        .filter_map(|agent| agent.model.as_ref())
        .flat_map(|model| model.names());
    chooser::detours(&chooser, names.filter(|name| !is_own(name)))
        .iter()
        .for_each(|line| tell(line));
}
