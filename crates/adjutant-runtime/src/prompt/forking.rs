//! Forks of sessions: unchanged, or with a replaced result of a call.

use std::sync::Arc;

use adjutant_agent::{Flush, LogId, LogInfo, Owner, Record, Seq, Sessions, Stamped, Work};
use adjutant_llm::{CallResult, Content};
use futures_util::StreamExt;

use super::{EditedResult, ForkRequest, session, told};
use crate::{Error, ErrorKind};

/// Creates a session with the records of another one, without running it.
pub(super) async fn fork(
    sessions: &Sessions,
    from: &str,
    request: &ForkRequest,
) -> Result<LogInfo, Error> {
    let (from, to) = (session::check(from)?, session::check(&request.to)?);
    let head = sessions
        .journal()
        .info(&from)
        .await
        .map_err(told::journal_error)?
        .head;
    let mut at = request.at.map(Seq);
    if let Some(at) = at.filter(|at| *at > head) {
        let message = format!(
            "the session {:?} has no record {at}: the newest is {head}",
            from.0
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let edited = match &request.result {
        None => None,
        Some(edited) => {
            let returned = edit(sessions, &from, at, edited).await?;
            at = Some(Seq(returned.seq.0 - 1));
            Some(returned)
        }
    };
    let made = sessions
        .fork(&from, at, &to)
        .await
        .map_err(told::journal_error)?;
    let Some(edited) = edited else {
        return Ok(made);
    };
    let journal = sessions.journal();
    let appended = async {
        let mut log = journal.own(&to, &Owner::default()).await?;
        log.mark(Work::Open);
        log.append(&[Arc::new(edited)], Flush::Now).await?;
        drop(log);
        journal.info(&to).await
    };
    match appended.await {
        Ok(made) => Ok(made),
        Err(error) => {
            // Without the result it is not the requested fork. If it cannot be deleted, it stays as a plain fork.
            let _ = sessions.delete(&to).await;
            Err(told::journal_error(error))
        }
    }
}

/// Returns the latest record of a call's result up to a position, with another text; the status of the result is kept.
async fn edit(
    sessions: &Sessions,
    from: &LogId,
    at: Option<Seq>,
    edited: &EditedResult,
) -> Result<Stamped, Error> {
    let mut found = None;
    let mut records = sessions.journal().read(from, Seq(0));
    while let Some(stamped) = records.next().await {
        let stamped = stamped.map_err(told::journal_error)?;
        if at.is_some_and(|at| stamped.seq > at) {
            break;
        }
        if matches!(&stamped.record, Record::Returned { call, .. } if *call == edited.call) {
            found = Some(stamped);
        }
    }
    let missing = || {
        let message = format!(
            "the call {} has no result in the session {:?}",
            edited.call, from.0
        );
        Error::new(ErrorKind::Invalid, message)
    };
    let stamped = found.ok_or_else(missing)?;
    let Record::Returned { call, result, .. } = &stamped.record else {
        return Err(missing());
    };
    let result = CallResult {
        content: vec![Content::text(&*edited.text)],
        ..CallResult::clone(result)
    };
    let record = Record::Returned {
        call: *call,
        result: Arc::new(result),
        shown: None,
    };
    Ok(Stamped::new(
        stamped.seq,
        stamped.at_ms,
        stamped.thread.clone(),
        record,
    ))
}
