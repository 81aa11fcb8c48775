//! Description of a new log: it says which agent works in it.

use std::sync::Arc;

use adjutant_core::{Journal, JournalError, JournalErrorKind, LogId, SessionMeta};

/// Says which agent works in a new log, unless that was said before or the journal keeps no such thing.
///
/// # Errors
/// If the storage failed.
pub(super) async fn agent(
    journal: &dyn Journal,
    log: &LogId,
    name: &Arc<str>,
) -> Result<(), JournalError> {
    let described = match journal.info(log).await {
        Ok(info) if info.about.agent.is_some() => return Ok(()),
        Ok(info) => {
            journal
                .describe(
                    log,
                    SessionMeta {
                        agent: Some(Arc::clone(name)),
                        ..info.about
                    },
                )
                .await
        }
        Err(error) => Err(error),
    };
    match described {
        Err(error) if error.kind != JournalErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    }
}
