//! Operations on sessions other than prompts: control messages, followers, forks and inspections.

use std::sync::Arc;

use adjutant_agent::{Answered, Lane, LogId, LogInfo, Pause, Post, Seq};
use adjutant_llm::{Entry, Model, UserMessage};
use adjutant_tool::{Answer, ToolSpec};
use adjutant_toolkit::Lasting;
use futures_util::{StreamExt, future::BoxFuture};
use serde_json::{Value, json};

use super::{
    Control, EventStream, ForkRequest, Lead, LocalPrompter, Look, ResumeRequest, SessionInfo,
    forking,
    glance::is_driven,
    local::check_prompt,
    look, session, told,
    work::{RunStream, Wish},
};
use crate::error::{Error, ErrorKind};

impl LocalPrompter {
    /// Converts lasting approvals. If a rule requires the approval, a new rule for exactly this call is added. A call
    /// that no rule can describe is approved once.
    pub(super) async fn ruled(
        &self,
        lead: &Lead,
        mut answers: Vec<Answered>,
    ) -> Result<Vec<Answered>, Error> {
        let is_lasting = |it: &Answered| {
            matches!(
                it.answer,
                Answer::Approve {
                    for_run: true,
                    args: None
                }
            )
        };
        if self.asked().rules.is_empty() || !answers.iter().any(is_lasting) {
            return Ok(answers);
        }
        let pauses = lead.pauses().await?;
        for given in answers.iter_mut().filter(|it| is_lasting(it)) {
            let fits = |pause: &&Arc<Pause>| {
                pause.id == given.pause && pause.differs(given.shown).is_none()
            };
            let Some(pause) = pauses.iter().find(fits) else {
                continue;
            };
            let (rules, call) = (self.asked().rules.get(&pause.agent), pause.call.as_ref());
            let is_by_rule = pause.key.is_none() && pause.ask.data.get("why").is_some();
            if let (Some(rules), Some(call), true) = (rules, call, is_by_rule) {
                let args = serde_json::from_str(&call.args).unwrap_or_default();
                let spec = ToolSpec::new(call.name.clone(), "", json!({}));
                let added = rules.agree(&spec, &args, (&pause.ask, Lasting::Call));
                let added =
                    added.map_err(|error| Error::new(ErrorKind::Full, error.to_string()))?;
                // Stored before the call runs.
                self.asked()
                    .kept_rules
                    .as_ref()
                    .map_or(Ok(()), |kept| kept.keep(&pause.agent, &added))?;
                given.answer = Answer::approve();
            }
        }
        Ok(answers)
    }

    /// Boxed, like all methods that run an agent.
    pub(super) fn hear(
        &self,
        session: Arc<str>,
        control: Control,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let (log, table) = (session::check(&session)?, &self.asked().table);
            let control = match control {
                Control::Prompt { text, messages } => {
                    let place = table.place()?;
                    check_prompt(&text)?;
                    let said = UserMessage {
                        ids: messages,
                        ..UserMessage::from(&*text)
                    };
                    let run = self.begin_on(said, &session, None).await?;
                    run.detach(place);
                    return Ok(());
                }
                Control::Answer { answers } => {
                    let place = table.place()?;
                    let run = self
                        .going_on(ResumeRequest::new(answers).session(session))
                        .await?;
                    run.detach(place);
                    return Ok(());
                }
                control => control,
            };
            let journal = self.asked().sessions.journal();
            journal.info(&log).await.map_err(told::journal_error)?;
            let post = match control {
                Control::Steer { text } => message(Lane::Steering, &*text)?,
                Control::FollowUp { text } | Control::Prompt { text, .. } => {
                    message(Lane::FollowUp, &*text)?
                }
                Control::Answer { .. } => return Err(idle(&session)),
                Control::Stop {} if table.wish(&session, Wish::Stop) => return Ok(()),
                Control::Stop {} => return self.end_waiting(&session, &log).await,
                Control::StopCall { call } if table.is_at_work(&session) => {
                    let run = self
                        .asked()
                        .sessions
                        .transcript(&log, Seq(u64::MAX))
                        .await
                        .map_err(told::journal_error)?;
                    if run.calls().call(call).is_none() {
                        let message =
                            format!("no call {call} is at work in the session {session:?}");
                        return Err(Error::new(ErrorKind::Missing, message));
                    }
                    let is_heard = table.wish(&session, Wish::StopCall(call));
                    return if is_heard {
                        Ok(())
                    } else {
                        Err(idle(&session))
                    };
                }
                Control::StopCall { .. } => return Err(idle(&session)),
            };
            journal
                .post(&log, post)
                .await
                .map(drop)
                .map_err(told::journal_error)
        })
    }

    /// Ends the waiting run of a session.
    async fn end_waiting(&self, session: &Arc<str>, log: &LogId) -> Result<(), Error> {
        let waits = self
            .asked()
            .table
            .open()
            .get(session)
            .is_some_and(|run| run.waits());
        if !waits {
            return Err(idle(session));
        }
        let (mut slot, lead) = self.sit(session)?;
        let posted = self
            .asked()
            .sessions
            .journal()
            .post(log, Post::Cancel)
            .await;
        posted
            .map_err(told::journal_error)
            .inspect_err(|error| slot.end(Err(error.clone())))?;
        let run = lead
            .resume(Vec::new(), None)
            .await
            .inspect_err(|error| slot.end(Err(error.clone())))?;
        RunStream::begin(run, slot, None)
            .await?
            .finish()
            .await
            .map(drop)
    }

    pub(super) async fn attached(
        &self,
        session: &str,
        after: Option<u64>,
    ) -> Result<EventStream, Error> {
        let (log, asked) = (session::check(session)?, self.asked());
        let info = asked
            .sessions
            .journal()
            .info(&log)
            .await
            .map_err(told::journal_error)?;
        let after = self::after(&info, after)?;
        if after == info.head && !asked.table.is_at_work(session) && !is_driven(&info) {
            return Ok(Box::pin(futures_util::stream::empty()));
        }
        let lead = asked
            .table
            .lead(&session.into(), |name| (asked.lead)(name))?;
        let agent = lead.active().await?;
        let events: EventStream = match agent {
            Some(agent) if asked.table.is_at_work(session) => Box::pin(
                agent
                    .log()
                    .attach(after)
                    .map(|event| event.map_err(told::agent_error)),
            ),
            Some(agent) => Box::pin(
                agent
                    .log()
                    .events_after(after)
                    .map(|event| event.map_err(told::agent_error)),
            ),
            None => Box::pin(futures_util::stream::empty()),
        };
        asked.table.forget();
        Ok(events)
    }

    pub(super) async fn forked(
        &self,
        session: &str,
        request: &ForkRequest,
    ) -> Result<SessionInfo, Error> {
        let asked = self.asked();
        // An unknown model is an error of the request.
        let unknown = |error: Error| Error::new(ErrorKind::Invalid, error.message()).behind(error);
        let model = request
            .model
            .as_deref()
            .map(|name| (asked.models)(name).map_err(unknown))
            .transpose()?;
        request
            .prompt
            .as_deref()
            .map(|text| message(Lane::Steering, text))
            .transpose()?;
        let made = forking::fork(&asked.sessions, session, request).await?;
        let waits = asked
            .sessions
            .open_run(&made)
            .await
            .map_err(told::journal_error)?;
        if waits.is_some_and(|open| !open.pauses.is_empty()) {
            asked.table.open().wait(&made.log.0, made.updated_ms);
        }
        if request.goes_on()
            && let Err(error) = self.gone_on(&made.log, request, model).await
        {
            // The fork could not be changed as requested, so it is deleted; if that fails, it stays as a plain fork.
            let _ = self.deleted(&made.log.0).await;
            return Err(error);
        }
        // Only its records show if its run has ended.
        asked
            .glances
            .at(&asked.sessions, made, &mut u64::MAX.clone())
            .await
    }

    /// Continues the run of a fork, or starts one, without a waiting client.
    fn gone_on<'a>(
        &'a self,
        log: &'a LogId,
        request: &'a ForkRequest,
        model: Option<Arc<dyn Model>>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let place = self.asked().table.place()?;
            let (mut slot, lead) = self.sit(&log.0)?;
            let run = async {
                match (lead.is_open().await?, &request.prompt) {
                    (true, prompt) => {
                        if let Some(text) = prompt {
                            let said = message(Lane::Steering, &**text)?;
                            self.asked()
                                .sessions
                                .journal()
                                .post(log, said)
                                .await
                                .map_err(told::journal_error)?;
                        }
                        lead.resume(Vec::new(), model).await
                    }
                    (false, Some(text)) => lead.prompt(&**text, model),
                    (false, None) => {
                        let message = "no run is open there, so that none could go on; hint: give a prompt too";
                        Err(Error::new(ErrorKind::Invalid, message))
                    }
                }
            };
            let run = run
                .await
                .inspect_err(|error| slot.end(Err(error.clone())))?;
            RunStream::begin(run, slot, None).await?.detach(place);
            Ok(())
        })
    }

    /// Adds the parts of an inspection that only the agent knows: the differences of current requests, and its tools.
    pub(super) fn looked<'a>(
        &'a self,
        name: &'a Arc<str>,
        look: &'a Look,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        Box::pin(async move {
            let asked = self.asked();
            let mut told = look::look(
                &asked.sessions,
                &asked.glances,
                asked.due.as_ref(),
                name,
                look,
            )
            .await?;
            if let (Look::Run | Look::Heard { .. }, Some(told)) = (look, told.as_object_mut())
                && !asked.table.is_at_work(name)
            {
                // There are no workers: messages in the inbox wait for the next run, and an interrupted run for an
                // approval.
                told.remove("due");
            }
            if !matches!(look, Look::Explain | Look::Request { .. }) {
                return Ok(told);
            }
            let lead = asked.table.lead(name, |name| (asked.lead)(name))?;
            let Some(agent) = lead.active().await? else {
                return Ok(told);
            };
            let now = agent.log().config().await.map_err(told::agent_error)?;
            if let Look::Explain = look {
                let run = asked
                    .sessions
                    .transcript(&session::check(name)?, Seq(u64::MAX))
                    .await;
                let run = run.map_err(told::journal_error)?;
                let differs = run
                    .config()
                    .map(|recorded| recorded.differences(&now))
                    .unwrap_or_default();
                told.as_object_mut()
                    .into_iter()
                    .for_each(|told| drop(told.insert("differs".into(), json!(differs))));
            } else {
                let request = agent.log().preview("-").await.map_err(told::agent_error)?;
                look::declare(&mut told, &request, &now);
            }
            asked.table.forget();
            Ok(told)
        })
    }

    pub(super) async fn deleted(&self, session: &str) -> Result<(), Error> {
        let (log, asked, name) = (session::check(session)?, self.asked(), Arc::from(session));
        asked
            .sessions
            .journal()
            .info(&log)
            .await
            .map_err(told::journal_error)?;
        let mut slot = asked.table.sit(Some(&name))?;
        slot.let_go();
        (asked.forget)(session);
        let deleted = asked
            .sessions
            .delete(&log)
            .await
            .map_err(told::journal_error);
        deleted.inspect_err(|error| slot.end(Err(error.clone())))?;
        asked.table.open().set(&name, None);
        Ok(())
    }
}

/// Returns the record after which events are emitted: the given one, which must exist, or the latest one.
pub(super) fn after(info: &LogInfo, after: Option<u64>) -> Result<Seq, Error> {
    let after = after.map_or(info.head, Seq);
    if after > info.head {
        let message = format!(
            "the session {:?} has no record {after}: the newest is {}",
            info.log.0, info.head
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(after)
}

pub(super) fn message(lane: Lane, said: impl Into<UserMessage>) -> Result<Post, Error> {
    let said = said.into();
    if said.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, "the message is empty"));
    }
    Ok(Post::Message {
        lane,
        content: Entry::User(said),
    })
}

pub(super) fn idle(session: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("no run of the session {session:?} is at work"),
    )
}
