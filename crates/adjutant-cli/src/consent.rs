//! Whether the user trusts what a manifest wants: listed in full, asked once for each content, refused where nobody can answer.

use std::io::{self, BufRead, IsTerminal, Write};

use adjutant::{
    providers::Chooser,
    runtime::{Error, Manifest, TrustStore, Wants},
};

use crate::{chooser, exit::Exit, plain, problem::Problem, screen::tell, trouble::of_runtime, waits::MAX_ON_TERMINAL};

/// Where it is kept what the user trusts, and whether the command line said yes already.
pub(crate) struct Consent<'a> {
    pub(crate) store: &'a TrustStore,
    pub(crate) is_given: bool,
    /// The command that gives it, for hints.
    pub(crate) command: String,
}

impl Consent<'_> {
    /// Asks whether all that is wanted is trusted, unless it is already or nothing is wanted; yes is kept.
    ///
    /// # Errors
    /// `Usage` if it is not.
    pub(crate) fn ask(&self, wants: &Wants) -> Result<(), Problem> {
        if self.holds(wants)? {
            return Ok(());
        }
        list(wants);
        let bytes: usize = wants.iter().map(|want| want.to_string().len()).sum();
        if !self.is_given && is_on_terminal() && bytes > MAX_ON_TERMINAL {
            let text = format!("the list has {bytes} bytes and may have scrolled away, so nothing was done");
            let hint = format!("read it in a file (`2> FILE`); `{}` trusts it", self.command);
            return Err(Problem::new(Exit::Usage, text).hint(hint));
        }
        if !self.is_given && !answered(&format!("trust it, {} lines in all? [y/N] ", wants.iter().count()))? {
            let text = format!("nobody trusts what the agent {} wants, so nothing was done", wants.name());
            return Err(Problem::new(Exit::Usage, text).hint(format!("read the list; `{}` trusts it", self.command)));
        }
        self.keep(wants)
    }

    /// The same for a refusal of the runtime; other errors are problems.
    pub(crate) fn ask_for(&self, error: &Error) -> Result<(), Problem> {
        match error.wants() {
            Some(wants) => self.ask(wants),
            None => Err(of_runtime(error)),
        }
    }

    /// Whether it wants nothing, or all of it is trusted.
    pub(crate) fn holds(&self, wants: &Wants) -> Result<bool, Problem> {
        Ok(wants.is_empty() || self.store.holds(wants.digest()).map_err(|error| of_runtime(&error))?)
    }

    /// Keeps that it is trusted.
    pub(crate) fn keep(&self, wants: &Wants) -> Result<(), Problem> {
        if wants.is_empty() {
            return Ok(());
        }
        self.store.trust(wants).map_err(|error| of_runtime(&error))
    }
}

/// Tells all that is wanted, one thing a line.
pub(crate) fn list(wants: &Wants) {
    tell(&format!("the agent {} wants:", plain::whole(wants.name())));
    wants.iter().for_each(|want| tell(&format!("  {want}")));
}

/// Whether somebody at a terminal can be asked.
pub(crate) fn is_on_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on the terminal; without one, the answer is no.
pub(crate) fn answered(question: &str) -> Result<bool, Problem> {
    if !is_on_terminal() {
        return Ok(false);
    }
    let (mut answer, mut stderr) = (String::new(), io::stderr());
    let asked = write!(stderr, "{question}").and_then(|()| stderr.flush());
    let read = asked.and_then(|()| io::stdin().lock().read_line(&mut answer));
    read.map_err(|error| Problem::new(Exit::Failed, "the answer cannot be read").cause(&error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Warns of keys that the environment sends to other hosts than their vendors'.
pub(crate) fn warn(manifest: &Manifest) {
    let chooser = Chooser::new(|name| std::env::var(name).ok());
    let is_own = |name: &str| {
        let provider = name.split_once('/').map(|(provider, _)| provider);
        manifest.providers.iter().any(|it| it.get("name").and_then(|it| it.as_str()) == provider)
    };
    let names = manifest.agents.iter().filter_map(|agent| agent.model.as_ref()).flat_map(|model| model.names());
    chooser::detours(&chooser, names.filter(|name| !is_own(name))).iter().for_each(|line| tell(line));
}
