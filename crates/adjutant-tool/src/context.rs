//! The context of a tool: the call that it serves. Owned, so that a body may be spawned.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::Arc,
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Answer, Ask, CallBackend, Cancel, Detached, Identity, Noted, Progress, ToolError, ToolErrorKind,
};

/// The largest number of bytes in the kind of a note.
const MAX_NOTE_KIND: usize = 64;
/// The largest number of bytes of a note's data as JSON.
const MAX_NOTE: usize = 64 * 1024;

/// The context of a tool: the call that it serves; cheap to clone.
#[derive(Clone)]
pub struct CallContext {
    /// The agent that calls, and the call if it is one of a run.
    pub who: Arc<Identity>,
    /// The cancellation token; a tool that waits should wait for this too.
    pub cancel: Cancel,
    /// The connection to the run.
    pub backend: Arc<dyn CallBackend>,
    /// Most contexts have none.
    handles: Option<Arc<Handles>>,
}

/// Few, so that looking at each is faster than a table; of one type, the newest counts.
type Handles = Vec<(TypeId, Arc<dyn Any + Send + Sync>)>;

impl CallContext {
    /// The context of a call outside any run, for tests and for calling a tool by hand.
    pub fn detached() -> Self {
        let who = Identity::root("detached".into(), "detached", "detached");
        Self::new(Arc::new(who), Cancel::new(), Arc::new(Detached))
    }

    /// Creates the context of a call, without handles; only executors of tools need it.
    pub fn new(who: Arc<Identity>, cancel: Cancel, backend: Arc<dyn CallBackend>) -> Self {
        Self {
            who,
            cancel,
            backend,
            handles: None,
        }
    }

    /// Adds a handle for [`CallContext::get`]; the newest one of a type counts.
    #[must_use]
    pub fn put<T: ?Sized + Send + Sync + 'static>(mut self, handle: Arc<T>) -> Self {
        Arc::make_mut(self.handles.get_or_insert_default())
            .push((TypeId::of::<T>(), Arc::new(handle)));
        self
    }

    /// Shows what the call has done so far.
    pub fn progress(&self, progress: Progress) {
        self.backend.emit(progress);
    }

    /// A handle that the driver of the call has added.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let of = TypeId::of::<T>();
        match self
            .handles
            .iter()
            .flat_map(|it| it.iter().rev())
            .find(|(known, _)| *known == of)
        {
            Some((_, handle)) => handle.downcast_ref::<Arc<T>>().cloned(),
            None => Some(*self.backend.handle(of)?.downcast::<Arc<T>>().ok()?),
        }
    }

    /// Runs `work` at most once for each key, over all entries into this call.
    ///
    /// Only for tools of class `Resumable`. A failure is not recorded: the step then counts as started, not as
    /// finished.
    ///
    /// # Errors
    /// `OutcomeUnknown` if the step was started before a crash and not finished, `Diverged` if the recorded value has
    /// another type, `NotResumable` outside of a resumable call, and the errors of `work`.
    pub async fn once<T, F>(
        &self,
        key: &str,
        work: impl FnOnce() -> F + Send,
    ) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned + Send,
        F: Future<Output = Result<T, ToolError>> + Send,
    {
        match self.backend.begin(key).await? {
            Noted::Done(value) => {
                return serde_json::from_value(value).map_err(|error| divergence_error(key, error));
            }
            Noted::Unknown => {
                let message = format!(
                    "step {key:?} was begun before a crash; whether it took effect is not known"
                );
                return Err(ToolError::new(ToolErrorKind::OutcomeUnknown, message));
            }
            Noted::Fresh => {}
        }
        let outcome = work().await?;
        let value = serde_json::to_value(&outcome).map_err(|error| divergence_error(key, error))?;
        self.backend.finish(key, value).await?;
        Ok(outcome)
    }

    /// Keeps a fact in the log of the run, as an event `app` that observers see; it is durable when this returns. Outside a
    /// run nothing is kept.
    ///
    /// A call that is entered again records it again. Shape: the kind names the author and the fact, as in
    /// `rules.added`.
    ///
    /// Cancel: it is kept or not.
    ///
    /// # Errors
    /// `InvalidArguments` if the kind is empty or longer than 64 bytes, or the data than 64 KiB of JSON; `Cancelled` if
    /// the call has ended.
    pub async fn note(&self, kind: &str, data: Value) -> Result<(), ToolError> {
        let size = data.to_string().len();
        if kind.is_empty() || kind.len() > MAX_NOTE_KIND || size > MAX_NOTE {
            let kind: String = kind.chars().take(MAX_NOTE_KIND).collect();
            let message = format!(
                "a note of kind {kind:?} with {size} bytes cannot be kept: hint: a kind has 1 to {MAX_NOTE_KIND} bytes, \
                 the data {MAX_NOTE} at most"
            );
            return Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
        }
        self.backend.note(kind, data).await
    }

    /// Sends a question to the world outside the run, once for each key over all entries into this call.
    ///
    /// Without an immediate answer, the run may drop the body here and enter it again when the answer arrives; only a
    /// tool of class `Resumable` waits beyond the drive.
    ///
    /// # Errors
    /// `Unattended` if no one can answer, `Diverged` if the key belonged to another question before, and any error of
    /// the run.
    pub async fn pause(&self, key: &str, ask: Ask) -> Result<Answer, ToolError> {
        self.backend.pause(key, ask).await
    }

    /// Sends a question for any value; [`CallContext::pause`] accepts a question with a schema.
    ///
    /// # Errors
    /// `Denied` if no value is given, `TimedOut` if no answer arrives in time, and the errors of
    /// [`CallContext::pause`].
    pub async fn ask(
        &self,
        key: &str,
        prompt: impl Into<Arc<str>> + Send,
    ) -> Result<Value, ToolError> {
        match self.pause(key, Ask::question(prompt)).await? {
            Answer::Give { value } => Ok(value),
            Answer::Decline { message } => {
                Err(denial_error(message.as_deref(), "no answer was given"))
            }
            Answer::Expired => Err(ToolError::new(
                ToolErrorKind::TimedOut,
                "nobody answered in time",
            )),
            other => Err(mismatch_error(key, &other)),
        }
    }

    /// Requests an approval.
    ///
    /// # Errors
    /// `Denied` if it is denied, or if no answer arrives in time, and the errors of [`CallContext::pause`].
    pub async fn confirm(
        &self,
        key: &str,
        prompt: impl Into<Arc<str>> + Send,
    ) -> Result<(), ToolError> {
        match self.pause(key, Ask::approval(prompt)).await? {
            Answer::Approve { args: None, .. } => Ok(()),
            Answer::Deny { reason } => Err(denial_error(
                Some(&reason),
                "it was denied, without a reason",
            )),
            Answer::Approve { .. } => Err(denial_error(
                None,
                "it was approved with other arguments, which cannot be taken here",
            )),
            Answer::Expired => Err(denial_error(None, "nobody approved it in time")),
            other => Err(mismatch_error(key, &other)),
        }
    }
}

impl CallContext {
    /// The same context with another door.
    pub(crate) fn through(&self, backend: Arc<dyn CallBackend>) -> Self {
        Self {
            backend,
            ..self.clone()
        }
    }
}

fn divergence_error(key: &str, error: serde_json::Error) -> ToolError {
    ToolError::new(
        ToolErrorKind::Diverged,
        format!("the noted value of step {key:?} does not fit"),
    )
    .with_source(error)
}

/// Returns a denial with the person's text, or else with this text.
fn denial_error(words: Option<&str>, otherwise: &str) -> ToolError {
    let message = words
        .filter(|words| !words.trim().is_empty())
        .unwrap_or(otherwise);
    ToolError::new(ToolErrorKind::Denied, message)
}

fn mismatch_error(key: &str, answer: &Answer) -> ToolError {
    let message = format!(
        "{} does not answer what was asked for {key:?}",
        answer.noun()
    );
    ToolError::new(ToolErrorKind::Diverged, message)
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("who", &self.who)
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}
