//! Handoffs: agents that pass one conversation to each other. The current agent keeps it for the following prompts.

mod active;
mod filter;
mod run;
mod target;
mod transfer;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant_agent::{Agent, Answered, LogId, Prompt};
use adjutant_llm::Transcript;

use crate::{Error, ErrorKind};

pub use run::{HandoffChainResult, HandoffChainRun};
pub use target::HandoffTarget;

use run::Begin;

/// The default number of handoffs after one prompt.
const MAX_HANDOFFS: usize = 8;
/// The largest number of agents of a handoff chain.
const MAX_TARGETS: usize = 64;

/// Agents that pass one conversation to each other, with tools of their own for it: `transfer_to_<name>`.
///
/// The complete history stays, in one session; prompt, tools, hooks and limits come from the current agent. The
/// current agent also answers the next prompt, in any program: handoffs are part of the history. After a number of
/// handoffs without an answer further ones are refused, and the current agent must answer. Cheap to clone.
///
/// # Example
/// ```
/// use adjutant_agent::Agent;
/// use adjutant_llm::{Script, ScriptedModel};
/// use adjutant_orchestration::{HandoffChain, HandoffTarget};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let desk = ScriptedModel::new([Script::new().call("transfer_to_billing", json!({"reason": "a refund"}))]);
/// let billing = ScriptedModel::new([Script::new().text("It is paid back."), Script::new().text("Still I.")]);
/// let chain = HandoffChain::new([
///     HandoffTarget::new("desk", "Everything else.", Agent::new(desk).instructions("Find out who can help.")),
///     HandoffTarget::new("billing", "Bills and refunds.", Agent::new(billing)),
/// ])?;
/// assert_eq!(chain.run("I want my money back.").await?.text(), "It is paid back.");
/// assert_eq!(&*chain.run("Who are you?").await?.last.agent.name, "billing");
/// # Ok::<(), adjutant_orchestration::Error>(())
/// # }).expect("both prompts are answered");
/// ```
#[derive(Clone)]
pub struct HandoffChain {
    targets: Arc<[HandoffTarget]>,
    max_handoffs: usize,
    seen: Arc<Mutex<Option<HandoffPosition>>>,
}

/// The current agent, and the part of the history that was examined.
#[derive(Debug, Clone, Copy, Default)]
struct HandoffPosition {
    at: usize,
    entries: usize,
}

impl HandoffChain {
    /// A handoff chain of these agents; the first one begins, and all of them continue its session.
    ///
    /// # Errors
    /// `Invalid` if there are none, or more than 64, if a name cannot be part of a tool's name or appears twice, or
    /// if an agent can hand over to a missing one.
    pub fn new(targets: impl IntoIterator<Item = HandoffTarget>) -> Result<Self, Error> {
        let mut targets: Vec<HandoffTarget> = targets.into_iter().collect();
        check(&targets)?;
        let Some(first) = targets.first().map(|target| target.agent.clone()) else {
            return Err(Error::new(
                ErrorKind::Invalid,
                "a handoff chain needs an agent that begins",
            ));
        };
        for target in &mut targets {
            let name = &target.name;
            let named = target.agent.clone().identify(|who| {
                (who.name, who.path, who.config_name) =
                    (Arc::clone(name), Arc::clone(name), Arc::clone(name));
            });
            target.agent = named.in_session_of(&first);
        }
        Ok(Self {
            targets: targets.into(),
            max_handoffs: MAX_HANDOFFS,
            seen: Arc::default(),
        })
    }

    /// Sets the maximum number of handoffs after one prompt; 8 by default, 0 for none.
    #[must_use]
    pub fn max_handoffs(self, handoffs: usize) -> Self {
        Self {
            max_handoffs: handoffs,
            ..self
        }
    }

    /// Changes each of its agents: their limits or parent names, never their session.
    #[must_use]
    pub fn each(&self, change: impl Fn(Agent) -> Agent) -> Self {
        let mut targets = self.targets.to_vec();
        for target in &mut targets {
            target.agent = change(target.agent.clone());
        }
        Self {
            targets: targets.into(),
            ..self.clone()
        }
    }

    /// The same agents in the session of that log.
    #[must_use]
    pub fn session(&self, log: LogId) -> Self {
        let mut targets = self.targets.to_vec();
        if let Some(first) = targets.first().map(|target| target.agent.session(log)) {
            for target in &mut targets {
                target.agent = target.agent.in_session_of(&first);
            }
        }
        Self {
            targets: targets.into(),
            seen: Arc::default(),
            ..self.clone()
        }
    }

    /// Prompts the current agent, and follows the conversation until an agent answers: collects
    /// [`stream`](HandoffChain::stream).
    ///
    /// Cancel: the active run is cancelled; its turn is closed in the background.
    ///
    /// # Errors
    /// `Agent`, with the agent's error as its source.
    pub async fn run(&self, prompt: impl Into<Prompt>) -> Result<HandoffChainResult, Error> {
        self.stream(prompt).finish().await
    }

    /// Prompts the current agent; the events of all following agents are in one stream.
    ///
    /// Each agent has its own run, from `run_started` to `run_finished`; between two of them is the application event
    /// `handoff`, with `from`, `to` and `reason`.
    pub fn stream(&self, prompt: impl Into<Prompt>) -> HandoffChainRun {
        HandoffChainRun::new(self.clone(), Begin::Prompt(prompt.into()))
    }

    /// Continues a run that waits for answers or was interrupted by a crash, with its agent.
    ///
    /// If the crash came between two of them, the second one begins.
    ///
    /// # Errors
    /// Like [`run`](HandoffChain::run).
    pub async fn resume(&self, answers: Vec<Answered>) -> Result<HandoffChainResult, Error> {
        self.resume_stream(answers).finish().await
    }

    /// Continues a run, as a stream of events.
    pub fn resume_stream(&self, answers: Vec<Answered>) -> HandoffChainRun {
        HandoffChainRun::new(self.clone(), Begin::Resume(answers))
    }

    /// The name of the agent that has the conversation.
    ///
    /// # Errors
    /// `Agent` if the session cannot be read.
    pub async fn active(&self) -> Result<Arc<str>, Error> {
        let at = self.find_active().await?;
        Ok(Arc::clone(&self.target(at).name))
    }

    /// The agent of a name, in the session of the handoff chain.
    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.targets
            .iter()
            .find(|target| &*target.name == name)
            .map(|target| &target.agent)
    }

    /// The complete conversation, as of the newest ended run.
    pub fn transcript(&self) -> Transcript {
        self.target(0).agent.log().transcript()
    }

    /// The log of the session.
    pub fn session_id(&self) -> &LogId {
        self.target(0).agent.session_id()
    }

    /// The index of the current agent.
    async fn find_active(&self) -> Result<usize, Error> {
        let first = &self.target(0).agent;
        let known = *self.lock_seen();
        if known.is_none() {
            first.log().open().await.map_err(convert_error)?;
        }
        let (history, known) = (first.log().transcript(), known.unwrap_or_default());
        // Only the history counts: a run that handed over may have been stopped or dropped before another one began.
        let at = active::target(&history, known.entries, &self.targets).unwrap_or(known.at);
        *self.lock_seen() = Some(HandoffPosition {
            at,
            entries: history.len(),
        });
        Ok(at)
    }

    fn has_open_run(&self) -> bool {
        self.target(0).agent.log().has_open_run()
    }

    fn lock_seen(&self) -> MutexGuard<'_, Option<HandoffPosition>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A target, by a place that was found in the list.
    fn target(&self, at: usize) -> &HandoffTarget {
        self.targets
            .get(at)
            .expect("places are found in the list, and the list is never empty")
    }
}

fn check(targets: &[HandoffTarget]) -> Result<(), Error> {
    if targets.len() > MAX_TARGETS {
        return Err(invalid(format!(
            "a handoff chain has {MAX_TARGETS} agents at most, and not {}",
            targets.len()
        )));
    }
    let mut names = BTreeSet::new();
    for target in targets {
        target.check()?;
        if !names.insert(target.name.to_lowercase()) {
            return Err(invalid(format!(
                "two agents of a handoff chain have the name {:?}",
                target.name
            )));
        }
    }
    for target in targets {
        let unknown = target
            .to
            .iter()
            .flatten()
            .find(|to| !targets.iter().any(|it| it.name == **to));
        if let Some(unknown) = unknown {
            return Err(invalid(format!(
                "{:?} hands over to {unknown:?}, which is not in the handoff chain",
                target.name
            )));
        }
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

fn convert_error(error: adjutant_agent::Error) -> Error {
    Error::from_agent(error)
}

impl fmt::Debug for HandoffChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.targets.iter().map(|target| &*target.name).collect();
        f.debug_struct("HandoffChain")
            .field("targets", &names)
            .field("max_handoffs", &self.max_handoffs)
            .finish()
    }
}
