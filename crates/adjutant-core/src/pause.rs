//! The things that a run waits for and only the outside can give: an approval, an answer, a result, more room.

use std::{fmt, sync::Arc};

use adjutant_llm::{Call, CallId, ThreadId};
use adjutant_tool::{Answer, Ask, Identity};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::digest::Digest;

/// The permanent id of a pause in its session.
///
/// Text form: the thread, then the call and the step that it is about, joined by slashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PauseId(pub Arc<str>);

/// Something that a run waits for, recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pause {
    /// Its name.
    pub id: PauseId,
    /// The question.
    pub ask: Ask,
    /// The call that it is about, with the arguments that it would run with; none for a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// The step of the call's body that asks; `None` if the call has not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    /// The thread that waits.
    pub thread: ThreadId,
    /// The name of the agent that asks; empty if it is unknown.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub agent: Arc<str>,
    /// The names of the agents from the first one down to the asking one, joined by slashes.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub path: Arc<str>,
    /// The reasons why answers were refused that came before: hooks, or the tool's schema, did not take their arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Arc<str>>,
    /// The time after which an answer is no longer needed, in milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// An answer with its pause: [`Pause::with_answer`] creates one that is valid only for the displayed pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The pause.
    pub pause: PauseId,
    /// The answer.
    pub answer: Answer,
    /// The digest of the displayed pause: an answer to a different one is refused. Not checked if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Digest>,
}

impl Pause {
    /// Returns the pause that a call waits for: before it begins, or in a step of its body.
    pub fn for_call(who: &Identity, call: Call, key: Option<&str>, ask: Ask, now_ms: u64) -> Self {
        let thread = &who.thread;
        let id = match key {
            Some(key) => format!("{thread}/{}/{key}", call.id),
            None => format!("{thread}/{}", call.id),
        };
        let deadline_ms = ask.within_ms.map(|within| now_ms.saturating_add(within));
        let key = key.map(Arc::from);
        let (thread, agent, path) = (thread.clone(), Arc::clone(&who.name), Arc::clone(&who.path));
        let id = PauseId(id.into());
        Self {
            id,
            ask,
            call: Some(call),
            key,
            thread,
            agent,
            path,
            refused: Vec::new(),
            deadline_ms,
        }
    }

    /// Creates the pause of a question about a run as a whole, under this name.
    pub fn for_run(id: PauseId, thread: ThreadId, ask: Ask) -> Self {
        let (agent, path) = (Arc::default(), Arc::default());
        Self {
            id,
            ask,
            call: None,
            key: None,
            thread,
            agent,
            path,
            refused: Vec::new(),
            deadline_ms: None,
        }
    }

    /// Approves the pause unchanged.
    pub fn approve(&self) -> Answered {
        self.with_answer(Answer::approve())
    }

    /// Denies the pause; the model receives the reason.
    pub fn deny(&self, reason: impl Into<Arc<str>>) -> Answered {
        self.with_answer(Answer::deny(reason))
    }

    /// Answers with a value.
    pub fn answer(&self, value: impl Into<Value>) -> Answered {
        self.with_answer(Answer::give(value))
    }

    /// This answer to this pause, and to no other one of the same name: [`approve`](Pause::approve) and others are short
    /// for it.
    pub fn with_answer(&self, answer: Answer) -> Answered {
        Answered {
            pause: self.id.clone(),
            answer,
            shown: Some(self.digest()),
        }
    }

    /// The digest of the complete display: the question, the call, and its exact arguments.
    ///
    /// The same pause has the same digest in every process. Events contain it as `digest` next to the pause.
    pub fn digest(&self) -> Digest {
        let Ask {
            kind,
            prompt,
            schema,
            data,
            ..
        } = &self.ask;
        let kind = serde_json::to_string(kind).unwrap_or_default();
        let call = self.call.as_ref();
        let (name, args) = call.map_or(("", ""), |call| (call.name.as_str(), &call.args));
        let key = self.key.as_deref().unwrap_or_default();
        let (schema, data) = (schema.to_string(), data.to_string());
        let parts = [&*self.id.0, &kind, prompt, &schema, &data, name, args, key];
        let parts = parts
            .into_iter()
            .chain(self.refused.iter().map(|reason| &**reason));
        // Each link has one length, so nothing can move from one part to the next.
        parts.fold(Digest::GENESIS, |digest, part| {
            digest.then(Digest::compute(part.as_bytes()).0.as_slice())
        })
    }

    /// Returns the reason why an answer to a pause with this digest does not answer this one, if so.
    pub fn differs(&self, shown: Option<Digest>) -> Option<String> {
        let is_other = shown.is_some_and(|shown| shown != self.digest());
        is_other.then(|| {
            format!(
                "what waits under {} is not what was shown; look at it again",
                self.id
            )
        })
    }

    /// True if an answer is no longer needed.
    pub fn is_late(&self, now_ms: u64) -> bool {
        self.deadline_ms.is_some_and(|deadline| deadline <= now_ms)
    }

    /// The id of the call that it is about.
    pub fn call_id(&self) -> Option<CallId> {
        self.call.as_ref().map(|call| call.id)
    }
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

/// A pause in an event: with the digest that an answer refers to.
#[derive(Serialize)]
struct EventPause<'a> {
    #[serde(flatten)]
    pause: &'a Pause,
    digest: Digest,
}

impl<'a> EventPause<'a> {
    fn new(pause: &'a Arc<Pause>) -> Self {
        Self {
            pause,
            digest: pause.digest(),
        }
    }
}

/// Writes a pause with its digest.
pub(crate) fn tell<S: Serializer>(pause: &Arc<Pause>, out: S) -> Result<S::Ok, S::Error> {
    EventPause::new(pause).serialize(out)
}

/// Writes pauses with their digests.
pub(crate) fn tell_all<S: Serializer>(pauses: &[Arc<Pause>], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(pauses.iter().map(EventPause::new))
}

impl fmt::Display for PauseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
