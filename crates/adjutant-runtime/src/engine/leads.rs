//! The agents of each session: one handle for an active session, and a bounded number of idle ones.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_agent::{Agent, LogId, MAX_ID_BYTES};

use crate::{
    error::{Error, ErrorKind},
    prompt::Lead,
};

/// The maximum number of open sessions. The least recently used idle sessions are closed, and read again when they are
/// needed.
const MAX_KEPT: usize = 64;
/// The maximum number of characters of a session's name in the name of an agent that uses a board.
const MAX_SHORT: usize = 24;

/// The agents of each session.
pub(super) struct Leads {
    /// The agents without a session.
    pattern: Lead,
    /// The agent that receives prompts.
    first: Arc<str>,
    /// True if agents of different sessions need different names, because a board identifies its workers by name.
    is_named: bool,
    kept: Mutex<LeadCache>,
}

#[derive(Default)]
struct LeadCache {
    /// With the time of the last use.
    leads: BTreeMap<Arc<str>, (Lead, u64)>,
    now: u64,
}

impl Leads {
    pub(super) fn new(pattern: Lead, first: Arc<str>, is_named: bool) -> Self {
        Self {
            pattern,
            first,
            is_named,
            kept: Mutex::default(),
        }
    }

    /// Returns the agents of a session.
    ///
    /// # Errors
    /// `Invalid` if the name is invalid.
    pub(super) fn lead(&self, session: &str, usual: &str) -> Result<Lead, Error> {
        if session.is_empty() || session.len() > MAX_ID_BYTES || session.contains(char::is_control)
        {
            let message = format!(
                "a session has a name of 1 to {MAX_ID_BYTES} bytes without control characters: {session:?}"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.now += 1;
        let now = kept.now;
        if let Some((lead, used)) = kept.leads.get_mut(session) {
            *used = now;
            return Ok(lead.clone());
        }
        kept.make_room(&self.first);
        let name = (self.is_named && session != usual).then(|| short(session));
        let lead = self.pattern.session(LogId(session.into()), name);
        kept.leads.insert(session.into(), (lead.clone(), now));
        Ok(lead)
    }

    /// Drops the agents of a session, and releases its log when there are no other handles.
    pub(super) fn forget(&self, session: &str) {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .leads
            .remove(session);
    }
}

impl LeadCache {
    /// Closes an idle session, if there are too many.
    fn make_room(&mut self, first: &str) {
        if self.leads.len() < MAX_KEPT {
            return;
        }
        let resting = self
            .leads
            .iter()
            .filter(|(_, (lead, _))| !lead.is_at_work(first));
        let oldest = resting
            .min_by_key(|(_, (_, used))| *used)
            .map(|(name, _)| Arc::clone(name));
        if let Some(name) = oldest {
            self.leads.remove(&name);
        }
    }
}

impl Lead {
    /// Returns the same agents in a session; a single agent can get its name.
    fn session(&self, log: LogId, name: Option<String>) -> Self {
        match (self, name) {
            (Lead::Agent(agent), Some(short)) => {
                let name = format!("{}-{short}", agent.identity().name);
                Lead::Agent(agent.session(log).identify(|who| who.name = name.into()))
            }
            (Lead::Agent(agent), None) => Lead::Agent(agent.session(log)),
            (Lead::HandoffChain(chain), _) => Lead::HandoffChain(chain.session(log)),
        }
    }

    /// True if the session is active; `first` is the agent that receives prompts.
    fn is_at_work(&self, first: &str) -> bool {
        let is_busy = |agent: &Agent| agent.is_running() || !agent.queue().is_empty();
        match self {
            Lead::Agent(agent) => is_busy(agent),
            // All agents of a chain share one session.
            Lead::HandoffChain(chain) => chain.agent(first).is_some_and(is_busy),
        }
    }
}

/// Returns a short word that identifies a session.
fn short(session: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    session.chars().filter(is_plain).take(MAX_SHORT).collect()
}

impl fmt::Debug for Leads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leads")
            .field("pattern", &self.pattern)
            .finish_non_exhaustive()
    }
}
