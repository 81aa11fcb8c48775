//! The steps of a call, in the log of its run.

use adjutant_tool::{CallContext, Noted, ToolError, ToolErrorKind};
use serde::{Serialize, de::DeserializeOwned};

/// The rule for a step that was started before a crash: it may be repeated or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It may have had an effect.
    Never,
    /// It has no effect, or is processed only once.
    Harmless,
}

/// Runs a step: returns its recorded result, or runs it now. Nothing is recorded for a call without steps, neither
/// for another class than `Resumable` nor outside of runs.
///
/// # Errors
/// `OutcomeUnknown` if it was started before a crash and may not be repeated, and the errors of the work.
pub(crate) async fn step<T: Serialize + DeserializeOwned>(
    cx: &CallContext,
    key: &str,
    again: Again,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    let unfit = |error| {
        ToolError::new(
            ToolErrorKind::Diverged,
            format!("the noted value of step {key:?} does not fit"),
        )
        .with_source(error)
    };
    match cx.backend.begin(key).await {
        Err(error) if error.kind == ToolErrorKind::NotResumable => return work.await,
        Err(error) => return Err(error),
        Ok(Noted::Done(value)) => return serde_json::from_value(value).map_err(unfit),
        Ok(Noted::Unknown) if again == Again::Never => {
            let message = "the server was asked before a crash, and nobody saw its answer; whether that took effect is not known";
            return Err(ToolError::new(ToolErrorKind::OutcomeUnknown, message));
        }
        Ok(_) => {}
    }
    let done = work.await?;
    cx.backend
        .finish(key, serde_json::to_value(&done).map_err(unfit)?)
        .await?;
    Ok(done)
}
