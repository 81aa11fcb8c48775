//! Description of a new log: names its agent.

use std::sync::Arc;

use adjutant_core::{Journal, JournalError, JournalErrorKind, LogId, SessionMeta};

/// Records the agent of a new log, unless it is recorded already or the journal stores no descriptions.
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
