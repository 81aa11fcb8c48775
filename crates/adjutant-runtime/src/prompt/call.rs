//! A call of another agent: it runs once even if it is requested several times, with or without a waiting caller.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use adjutant_agent::{JournalErrorKind, LogId, Run, RunResult, Seq};
use adjutant_llm::{Entry, Origin};
use adjutant_tool::Identity;
use tokio::sync::watch;

use super::{
    LocalPrompter, MAX_PEER_DEPTH, PeerCall, PromptReply, PromptRequest, local::left_behind,
    session, told, work::RunStream,
};
use crate::error::{Error, ErrorKind};

/// The maximum number of active calls.
const MAX_CALLS: usize = 192;

/// The active calls and their results, by session.
#[derive(Default)]
pub(crate) struct Calls(Mutex<BTreeMap<Arc<str>, Ended>>);

type Ended = watch::Receiver<Option<Result<PromptReply, Error>>>;

impl LocalPrompter {
    /// Runs a call, or waits for the active or finished one of this session.
    ///
    /// Cancel: the call continues.
    pub(super) async fn answer(
        &self,
        request: PromptRequest,
        call: PeerCall,
    ) -> Result<PromptReply, Error> {
        let Some(session) = request.session.clone() else {
            return Err(Error::new(
                ErrorKind::Invalid,
                "a call of another agent needs a session of its own",
            ));
        };
        session::check(&session)?;
        self.admit(&call.path)?;
        let mut ended = self.live(&session, request, &call)?;
        let ended = ended
            .wait_for(Option::is_some)
            .await
            .map(|ended| ended.clone());
        ended.ok().flatten().unwrap_or_else(|| Err(told::stopped()))
    }

    /// Refuses a call whose path already contains this agent, or is too long.
    fn admit(&self, path: &[Arc<str>]) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::new(ErrorKind::Invalid, why));
        let own = &self.asked().name;
        let is_path = |name: &Arc<str>| {
            !name.is_empty() && name.chars().all(|c| !c.is_control() && !"/>".contains(c))
        };
        if path.is_empty() || !path.iter().all(is_path) {
            return refuse(
                "a call names the agents that led to it, the one that asks last".to_owned(),
            );
        }
        if path.contains(own) {
            return refuse(format!(
                "the agent {own} is on the path of the call already: {} > {own}",
                path.join(" > ")
            ));
        }
        if path.len() > MAX_PEER_DEPTH {
            return refuse(format!(
                "{} agents have called one another, and {MAX_PEER_DEPTH} may",
                path.len()
            ));
        }
        Ok(())
    }

    /// Returns the active call of a session; starts one if the session has no active call.
    fn live(
        &self,
        session: &Arc<str>,
        request: PromptRequest,
        call: &PeerCall,
    ) -> Result<Ended, Error> {
        let mut calls = self
            .asked()
            .calls
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = calls.get(session) {
            return Ok(ended.clone());
        }
        if calls.len() >= MAX_CALLS {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("{MAX_CALLS} calls of other agents are at work"),
            ));
        }
        let (sender, ended) = watch::channel(None);
        calls.insert(Arc::clone(session), ended.clone());
        let (prompter, session, call) = (self.clone(), Arc::clone(session), call.clone());
        tokio::spawn(async move {
            let done = CallPlace { prompter, session };
            let ended = done.prompter.perform(&done.session, &request, &call).await;
            // Later requests read the log.
            drop(done);
            sender.send_replace(Some(ended));
        });
        Ok(ended)
    }

    async fn perform(
        &self,
        session: &Arc<str>,
        request: &PromptRequest,
        call: &PeerCall,
    ) -> Result<PromptReply, Error> {
        let (log, mut runs) = (LogId::from(&**session), self.runs());
        let (known, slot, lead) = loop {
            runs.mark_unchanged();
            let known = self.read(&log).await?;
            if known.as_ref().is_some_and(|run| !is_call(run)) {
                let message =
                    format!("the session {session:?} was not begun by a call of another agent");
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            if let Some(reply) = known.as_ref().and_then(|run| self.reply(session, run)) {
                return Ok(reply);
            }
            match self.sit(session) {
                // Another process continues it: the client that answered its pause, or this program after a crash.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    // Cannot fail, because the prompter holds the sender.
                    let _changed = runs.changed().await;
                }
                Ok(_) if self.is_left(session) => return Err(left_behind(session)),
                sat => {
                    let (slot, lead) = sat?;
                    break (known, slot, lead);
                }
            }
        };
        let time = request.timeout_ms.map(Duration::from_millis);
        let run = match known {
            None if call.again && !self.asked().lasts => {
                let message =
                    format!("the call {session} is not known any more: nothing is kept here");
                return Err(Error::new(ErrorKind::Missing, message));
            }
            None => lead.called(&request.prompt, call, time)?,
            Some(_) => match lead.resume(Vec::new(), None).await {
                // The other process had finished before its session was acquired here.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    return self.ended(&log, session).await?.ok_or(error);
                }
                resumed => resumed?,
            },
        };
        RunStream::begin(run, slot, None).await?.finish().await?;
        let lost = || Error::new(ErrorKind::Agent, "the run ended without a result");
        self.ended(&log, session).await?.ok_or_else(lost)
    }

    /// Returns the result of a call so far.
    async fn ended(&self, log: &LogId, session: &Arc<str>) -> Result<Option<PromptReply>, Error> {
        Ok(self
            .read(log)
            .await?
            .and_then(|run| self.reply(session, &run)))
    }

    /// Reads the run from the log of a call, if it has started.
    async fn read(&self, log: &LogId) -> Result<Option<Run>, Error> {
        match self.asked().sessions.transcript(log, Seq(u64::MAX)).await {
            Ok(run) => Ok(Some(run).filter(|run| run.run().0 > 0)),
            Err(error) if error.kind == JournalErrorKind::Missing => Ok(None),
            Err(error) => Err(told::journal_error(error)),
        }
    }

    /// Returns the result of a run, or its pauses; `None` if it must continue. The conversation is not included.
    fn reply(&self, session: &Arc<str>, run: &Run) -> Option<PromptReply> {
        let name = &self.asked().name;
        let who = Identity::root("".into(), "", Arc::clone(name));
        let result = run.result(&Arc::new(who))?;
        let result = RunResult {
            entries: Vec::new(),
            calls: Vec::new(),
            ..result
        };
        let used = Some(run.request().tally());
        Some(PromptReply {
            used,
            ..PromptReply::new(Arc::clone(session), Arc::new(result))
        })
    }
}

/// True if a conversation started with a call of another agent.
fn is_call(run: &Run) -> bool {
    let first = run.history().iter().next().map(|stored| &stored.entry);
    matches!(first, Some(Entry::User(message)) if matches!(message.origin, Origin::Peer { .. }))
}

/// An active call; removed on drop.
struct CallPlace {
    prompter: LocalPrompter,
    session: Arc<str>,
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        let mut calls = self
            .prompter
            .asked()
            .calls
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.session);
    }
}
