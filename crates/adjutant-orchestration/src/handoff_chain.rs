//! Handoffs: agents that pass one conversation to each other. Who has it keeps it, also for the prompts that follow.

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

/// How often a conversation may be handed over after one prompt, unless the handoff chain says otherwise.
const MAX_HANDOFFS: usize = 8;
/// How many agents a handoff chain may have.
const MAX_TARGETS: usize = 64;

/// Agents that pass one conversation to each other, with tools of their own for it: `transfer_to_<name>`.
///
/// The whole history stays, in one session; prompt, tools, hooks and limits are those of the agent that has it. Who has
/// it answers the next prompt too, also in another program: what was handed over stands in the history. After a number
/// of handoffs without an answer a further one is refused, and whoever has the conversation must answer. Cheap to clone.
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

/// Who has the conversation, as far as it was looked at.
#[derive(Debug, Clone, Copy, Default)]
struct HandoffPosition {
    at: usize,
    entries: usize,
}

impl HandoffChain {
    /// A handoff chain of these agents; the first one begins, and all of them continue its session.
    ///
    /// # Errors
    /// `Invalid` if there is none, or more than 64, if a name cannot be part of a tool's name or appears twice, or if an
    /// agent may hand over to one that is not there.
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

    /// Sets how often the conversation may be handed over after one prompt; 8 without it, 0 for never.
    #[must_use]
    pub fn max_handoffs(self, handoffs: usize) -> Self {
        Self {
            max_handoffs: handoffs,
            ..self
        }
    }

    /// Changes each of its agents: their limits or what they are called above their names, never their session.
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

    /// Prompts whoever has the conversation, and follows it until one answers: a collect over
    /// [`stream`](HandoffChain::stream).
    ///
    /// Cancel: the run at work is cancelled; its turn is closed in the background.
    ///
    /// # Errors
    /// `Agent`, with the agent's error as its source.
    pub async fn run(&self, prompt: impl Into<Prompt>) -> Result<HandoffChainResult, Error> {
        self.stream(prompt).finish().await
    }

    /// Prompts whoever has the conversation; the events of all who get it follow each other.
    ///
    /// Each has a run of its own, from `run_started` to `run_finished`; between two of them stands the event of the
    /// application `handoff`, with `from`, `to` and `reason`.
    pub fn stream(&self, prompt: impl Into<Prompt>) -> HandoffChainRun {
        HandoffChainRun::new(self.clone(), Begin::Prompt(prompt.into()))
    }

    /// Goes on with a run that waits for answers or that a crash has cut off, with whoever had the conversation.
    ///
    /// If the crash came between two of them, the second one begins.
    ///
    /// # Errors
    /// Like [`run`](HandoffChain::run).
    pub async fn resume(&self, answers: Vec<Answered>) -> Result<HandoffChainResult, Error> {
        self.resume_stream(answers).finish().await
    }

    /// Goes on with a run, as a stream of events.
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

    /// Everything that was said, as of the newest run that ended.
    pub fn transcript(&self) -> Transcript {
        self.target(0).agent.log().transcript()
    }

    /// The log of the session.
    pub fn session_id(&self) -> &LogId {
        self.target(0).agent.session_id()
    }

    /// Who has the conversation, by place.
    async fn find_active(&self) -> Result<usize, Error> {
        let first = &self.target(0).agent;
        let known = *self.seen();
        if known.is_none() {
            first.log().open().await.map_err(told)?;
        }
        let (history, known) = (first.log().transcript(), known.unwrap_or_default());
        // Only the history counts: a run that handed over may have been stopped or dropped before another one began.
        let at = active::target(&history, known.entries, &self.targets).unwrap_or(known.at);
        *self.seen() = Some(HandoffPosition {
            at,
            entries: history.len(),
        });
        Ok(at)
    }

    fn has_open_run(&self) -> bool {
        self.target(0).agent.log().has_open_run()
    }

    fn seen(&self) -> MutexGuard<'_, Option<HandoffPosition>> {
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

fn told(error: adjutant_agent::Error) -> Error {
    Error::of_agent(error)
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
