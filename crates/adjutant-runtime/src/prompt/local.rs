//! The prompt API in this process, for an agent or an engine: validates requests, acquires the session, and runs.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use adjutant_agent::{
    Agent, Answered, DueWork, Journal, LogId, Pause, PauseId, Post, Prompt, Seq, Sessions,
};
use adjutant_llm::{Model, Options, ThreadId};
use adjutant_tool::{Answer, Ask};
use adjutant_toolkit::Rules;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use super::{
    Control, EventStream, ForkRequest, Glances, Lead, Look, MAX_PROMPT_BYTES, MessagePage,
    MessagesRequest, ObjectRequest, PausePage, PausesRequest, PromptReply, PromptRequest, Prompter,
    ResumeRequest, SessionInfo, SessionPage, SessionTable, SessionsRequest, UndoRequest, Undone,
    WaitingPause,
    call::Calls,
    history, object, resuming, session, told,
    work::{Observer, RunStream, SessionSlot},
};
use crate::{
    error::{Error, ErrorKind},
    kept_rules::KeptRules,
    manifest::OnRestart,
    workspace::Workspace,
};

/// The default session of an agent without a manifest.
const DEFAULT_SESSION: &str = "main";
/// The maximum number of automatic resumes of a run after crashes of its program.
const MAX_RESUMED: u32 = 3;

/// The prompt API for agents in this process. Cheap to clone; clones share the sessions.
///
/// A session has at most one active run, and a second prompt is refused immediately. Runs of different sessions are
/// independent.
#[derive(Clone)]
pub struct LocalPrompter(Arc<Asked>);

/// The receivers of requests: the lead of each session, and the model for objects.
pub(crate) struct Asked {
    /// Returns the lead of a session, which is created if it does not exist. The name has been checked.
    pub(crate) lead: Box<LeadOf>,
    /// Drops other handles of the lead of a session.
    pub(crate) forget: Box<dyn Fn(&str) + Send + Sync>,
    pub(crate) model: Arc<dyn Model>,
    /// Finds the model with a name, for a fork that continues with another one.
    pub(crate) models: Box<ModelOf>,
    /// The request options for objects.
    pub(crate) options: Options,
    pub(crate) sessions: Sessions,
    /// Set if the store has a work queue.
    pub(crate) due: Option<Arc<dyn DueWork>>,
    /// The cached summaries of sessions.
    pub(crate) glances: Glances,
    /// The session of prompts that name none.
    pub(crate) default_session: Arc<str>,
    /// The rules of the agents that have some.
    pub(crate) rules: BTreeMap<Arc<str>, Rules>,
    /// The storage of permanent rules, if the agent is stored.
    pub(crate) kept_rules: Option<KeptRules>,
    /// The name by which other agents call it.
    pub(crate) name: Arc<str>,
    /// True if its data outlives the program.
    pub(crate) lasts: bool,
    /// The active calls of other agents.
    pub(crate) calls: Calls,
    /// The active sessions.
    pub(crate) table: Arc<SessionTable>,
}

type LeadOf = dyn Fn(&str) -> Result<Lead, Error> + Send + Sync;
type ModelOf = dyn Fn(&str) -> Result<Arc<dyn Model>, Error> + Send + Sync;

impl LocalPrompter {
    /// Creates a prompter for one agent: each session is a log of this journal, and objects are requested from this
    /// model.
    pub fn new(agent: Agent, model: Arc<dyn Model>, journal: Arc<dyn Journal>) -> Self {
        let agent = agent
            .model(Arc::clone(&model))
            .journal(Arc::clone(&journal));
        let (name, known, table) = (
            Arc::clone(&agent.identity().name),
            Arc::clone(&model),
            SessionTable::new(),
        );
        Self::over(Asked {
            lead: Box::new(move |session| Ok(Lead::Agent(agent.session(LogId::from(session))))),
            forget: Box::new(|_| {}),
            models: Box::new(move |name| match known.info().id.as_str() == name {
                true => Ok(Arc::clone(&known)),
                false => Err(Error::new(
                    ErrorKind::Model,
                    format!("the agent knows no model {name:?}"),
                )),
            }),
            model,
            options: Options::default(),
            sessions: Sessions::new(journal),
            due: None,
            glances: Glances::with_table(&table),
            default_session: DEFAULT_SESSION.into(),
            rules: BTreeMap::new(),
            kept_rules: None,
            name,
            lasts: false,
            calls: Calls::default(),
            table,
        })
    }

    pub(crate) fn over(asked: Asked) -> Self {
        Self(Arc::new(asked))
    }

    pub(crate) fn asked(&self) -> &Asked {
        &self.0
    }

    /// Returns the number of active runs, as a watch.
    pub(crate) fn runs(&self) -> watch::Receiver<usize> {
        self.0.table.runs()
    }

    /// Sets the observer of starting and ending runs.
    pub(crate) fn observe(&self, observer: Observer) {
        self.0.table.observe(observer);
    }

    /// From now on, records the open runs next to an agent, and continues the interrupted ones according to its
    /// manifest. It must be called before any request.
    ///
    /// # Errors
    /// `Storage` if the record cannot be read.
    pub(crate) fn go_on(&self, workspace: &Workspace, on_restart: OnRestart) -> Result<(), Error> {
        let left = self.0.table.open().keep(workspace)?;
        for (session, resumed) in left {
            // A run that repeatedly crashes its program is not resumed forever.
            let cancels = match on_restart {
                OnRestart::Resume if resumed < MAX_RESUMED => false,
                OnRestart::Resume | OnRestart::Ask => {
                    let prompter = self.clone();
                    tokio::spawn(async move {
                        if let Err(error) = prompter.look_again(&session).await {
                            tracing::warn!(%session, %error, "a run that a crash has cut off was not looked at");
                        }
                    });
                    continue;
                }
                OnRestart::Cancel => true,
            };
            // The session is acquired before any prompt.
            let sat = self.sit(&session);
            if sat.is_ok() {
                self.0.table.open().take_up(&session);
            }
            let prompter = self.clone();
            tokio::spawn(async move {
                let ended = match sat {
                    Ok(sat) => prompter.again(&session, sat, cancels).await,
                    Err(error) => Err(error),
                };
                match ended {
                    Ok(()) => {}
                    // The run had ended, but that was not recorded.
                    Err(error) if error.kind() == ErrorKind::Conflict => {
                        prompter.0.table.open().set(&session, None)
                    }
                    Err(error) => {
                        prompter.0.table.open().leave(&session);
                        tracing::warn!(%session, %error, "a run that a crash has cut off did not go on");
                    }
                }
            });
        }
        Ok(())
    }

    /// Requires no approval for a run that had ended, if that was not recorded before the crash.
    async fn look_again(&self, session: &Arc<str>) -> Result<(), Error> {
        let table = &self.0.table;
        let _looking = table.looking.lock().await;
        let has_run = table
            .lead(session, |name| (self.0.lead)(name))?
            .waits(&[])
            .await;
        table.forget();
        if !has_run? && self.is_left(session) {
            table.open().set(session, None);
        }
        Ok(())
    }

    /// Continues an interrupted run to its end, or cancels it.
    async fn again(
        &self,
        session: &Arc<str>,
        sat: (SessionSlot, Lead),
        cancels: bool,
    ) -> Result<(), Error> {
        let (mut slot, lead) = sat;
        if cancels {
            let closed = async { lead.close().await.and(lead.pauses().await) };
            let pauses = closed
                .await
                .inspect_err(|error| slot.end(Err(error.clone())))?;
            let mut open = self.0.table.open();
            match open.get(session).filter(|_| !pauses.is_empty()) {
                // The run was waiting, but that was not recorded.
                Some(run) => open.wait(session, run.since_ms),
                None => open.set(session, None),
            }
            return Ok(());
        }
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

    /// True if a crash interrupted the run of a session, and its continuation is undecided.
    pub(super) fn is_left(&self, session: &str) -> bool {
        self.0.table.is_left(session)
    }

    /// Refuses further prompts, requests every run to stop, and waits until they have stopped. Runs that are still
    /// active after the grace period are abandoned: their streams end with `Closed`. Calling it again waits again.
    ///
    /// Cancel: prompts are refused immediately; active runs continue to stop.
    pub async fn close(&self, grace: Duration) {
        self.0.table.close(grace).await;
    }

    /// Returns the name of the session; the default one if none is given.
    pub(crate) fn session_of(&self, name: Option<&Arc<str>>) -> Arc<str> {
        name.unwrap_or(&self.0.default_session).clone()
    }

    fn named(&self, name: Option<&str>) -> Arc<str> {
        name.map_or_else(|| self.session_of(None), Arc::from)
    }

    pub(super) async fn begin(
        &self,
        request: &PromptRequest,
        session: &Arc<str>,
    ) -> Result<RunStream, Error> {
        check_prompt(&request.prompt)?;
        if request.call.is_some() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "what another agent asks is no stream of events",
            ));
        }
        self.begin_on(
            &*request.prompt,
            session,
            request.timeout_ms.map(Duration::from_millis),
        )
        .await
    }

    pub(super) async fn begin_on(
        &self,
        prompt: impl Into<Prompt>,
        session: &Arc<str>,
        timeout: Option<Duration>,
    ) -> Result<RunStream, Error> {
        let (mut slot, lead) = self.sit_anew(session)?;
        let run = lead
            .prompt(prompt, None)
            .inspect_err(|error| slot.end(Err(error.clone())))?;
        RunStream::begin(run, slot, timeout).await
    }

    /// Returns the object from the agent of a session.
    async fn object_in(&self, session: &Arc<str>, request: ObjectRequest) -> Result<Value, Error> {
        let prompt = Arc::clone(&request.prompt);
        let output = object::output(request)?;
        let (mut slot, lead) = self.sit_anew(session)?;
        let run = lead
            .object(&prompt, output)
            .inspect_err(|error| slot.end(Err(error.clone())))?;
        object::object_from_result(&RunStream::begin(run, slot, None).await?.finish().await?)
    }

    /// Acquires a session for a new run.
    fn sit_anew(&self, session: &Arc<str>) -> Result<(SessionSlot, Lead), Error> {
        if self.is_left(session) {
            Err(left_behind(session))
        } else {
            self.sit(session)
        }
    }

    /// Returns the pauses of a session.
    async fn waiting(&self, session: &Arc<str>) -> Result<Vec<WaitingPause>, Error> {
        let table = &self.0.table;
        let _looking = table.looking.lock().await;
        if self.is_left(session) {
            let since_ms = table.open().get(session).map_or(0, |run| run.since_ms);
            let pause = Arc::new(left(session));
            let session = Arc::clone(session);
            return Ok(vec![WaitingPause {
                session,
                since_ms,
                digest: pause.digest(),
                pause,
            }]);
        }
        let lead = table.lead(session, |name| (self.0.lead)(name))?;
        let pauses = match lead.pauses().await {
            // On a full disk, reading is still possible.
            Err(error) if error.kind() == ErrorKind::Storage => {
                let run = self
                    .0
                    .sessions
                    .transcript(&LogId::from(&**session), Seq(u64::MAX))
                    .await;
                run.map_err(told::journal_error)?
                    .pauses()
                    .cloned()
                    .collect()
            }
            pauses => pauses?,
        };
        table.forget();
        let since_ms = table.open().get(session).map_or(0, |run| run.since_ms);
        let one = |pause: Arc<Pause>| {
            let session = Arc::clone(session);
            WaitingPause {
                session,
                since_ms,
                digest: pause.digest(),
                pause,
            }
        };
        Ok(pauses.into_iter().map(one).collect())
    }

    pub(super) fn sit(&self, session: &Arc<str>) -> Result<(SessionSlot, Lead), Error> {
        session::check(session)?;
        let mut slot = self.0.table.sit(Some(session))?;
        let lead = slot
            .lead(|name| (self.0.lead)(name))
            .inspect_err(|error| slot.end(Err(error.clone())))?;
        Ok((slot, lead))
    }
}

/// Boxed futures for all methods that run an agent. The compiler then checks once whether a run is `Send`; in futures
/// of the trait, whose lifetimes have bounds, it would check again in each.
impl LocalPrompter {
    fn prompted(&self, request: PromptRequest) -> BoxFuture<'_, Result<PromptReply, Error>> {
        Box::pin(async move {
            if let Some(call) = request.call.clone() {
                check_prompt(&request.prompt)?;
                return self.answer(request, call).await;
            }
            let session = self.session_of(request.session.as_ref());
            let result = self.begin(&request, &session).await?.finish().await?;
            told::check_outcome(&result.outcome)?;
            match adjutant_agent::Error::check_result((*result).clone()) {
                Ok(_) => Ok(PromptReply::new(session, result)),
                Err(error) => Err(told::agent_error(error)),
            }
        })
    }

    fn streamed(&self, request: PromptRequest) -> BoxFuture<'_, Result<EventStream, Error>> {
        Box::pin(async move {
            let session = self.session_of(request.session.as_ref());
            Ok(Box::pin(self.begin(&request, &session).await?) as EventStream)
        })
    }

    /// A run that was answered continues without its client.
    fn resumed(&self, request: ResumeRequest) -> BoxFuture<'_, Result<EventStream, Error>> {
        let prompter = self.clone();
        let begun =
            tokio::spawn(
                async move { prompter.going_on(request).await.map(RunStream::on_its_own) },
            );
        Box::pin(async move {
            let broken =
                |error| Error::new(ErrorKind::Agent, "the run broke off").with_source(error);
            Ok(Box::pin(begun.await.map_err(broken)??) as EventStream)
        })
    }

    pub(super) fn going_on(
        &self,
        mut request: ResumeRequest,
    ) -> BoxFuture<'_, Result<RunStream, Error>> {
        Box::pin(async move {
            let session = self.session_of(request.session.as_ref());
            // An answer does not create a missing session.
            self.0
                .sessions
                .journal()
                .info(&session::check(&session)?)
                .await
                .map_err(told::journal_error)?;
            let looking = self.0.table.looking.lock().await;
            let (mut slot, lead) = self.sit(&session)?;
            drop(looking);
            if self.is_left(&session) {
                let goes_on = goes_on(&session, &request.answers)
                    .inspect_err(|error| slot.end(Err(error.clone())))?;
                request.answers.clear();
                if !goes_on {
                    let posted = self
                        .0
                        .sessions
                        .journal()
                        .post(&LogId::from(&*session), Post::Cancel)
                        .await;
                    posted
                        .map_err(told::journal_error)
                        .inspect_err(|error| slot.end(Err(error.clone())))?;
                }
            }
            if !request.answers.is_empty() {
                let fit = lead
                    .pauses()
                    .await
                    .and_then(|pauses| match pauses.is_empty() {
                        true => Err(Error::new(
                            ErrorKind::Conflict,
                            "no run of the session waits for an answer",
                        )),
                        false => resuming::fit(&pauses, &[], &request.answers),
                    });
                fit.inspect_err(|error| slot.end(Err(error.clone())))?;
            }
            let answers = self
                .ruled(&lead, request.answers)
                .await
                .inspect_err(|error| slot.end(Err(error.clone())))?;
            slot.answers(lead.pauses().await.unwrap_or_default());
            let run = lead
                .resume(answers, None)
                .await
                .inspect_err(|error| slot.end(Err(error.clone())))?;
            RunStream::begin(run, slot, None).await
        })
    }
}

#[async_trait]
impl Prompter for LocalPrompter {
    async fn prompt(&self, request: PromptRequest) -> Result<PromptReply, Error> {
        self.prompted(request).await
    }

    async fn stream(&self, request: PromptRequest) -> Result<EventStream, Error> {
        self.streamed(request).await
    }

    async fn resume(&self, request: ResumeRequest) -> Result<EventStream, Error> {
        self.resumed(request).await
    }

    async fn pauses(&self, request: PausesRequest) -> Result<PausePage, Error> {
        let limit = session::page(request.limit)?;
        let table = &self.0.table;
        if let Some(session) = &request.session {
            let log = session::check(session)?;
            self.0
                .sessions
                .journal()
                .info(&log)
                .await
                .map_err(told::journal_error)?;
            return Ok(PausePage {
                pauses: self.waiting(session).await?,
                after: None,
            });
        }
        let mut sessions: Vec<_> = table
            .open()
            .waiting(request.after.as_deref())
            .take(limit + 1)
            .collect();
        let more = sessions.len() > limit;
        sessions.truncate(limit);
        let mut page = PausePage::default();
        for (session, _) in &sessions {
            match self.waiting(session).await {
                Ok(waiting) => page.pauses.extend(waiting),
                // It was continued in the meantime.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        page.after = sessions.pop().filter(|_| more).map(|(session, _)| session);
        Ok(page)
    }

    async fn object(&self, request: ObjectRequest) -> Result<Value, Error> {
        check_prompt(&request.prompt)?;
        if let Some(session) = request.session.clone() {
            return self.object_in(&session, request).await;
        }
        let table = &self.0.table;
        let mut slot = table.sit(None)?;
        let model = &self.0.model;
        let asked = object::object(&**model, self.0.options.clone(), request);
        let answer = tokio::select! {
            biased;
            () = table.stopping.cancelled() => Err(told::stopped()),
            answer = asked => answer,
        };
        answer.inspect_err(|error| slot.end(Err(error.clone())))
    }

    async fn messages(&self, request: MessagesRequest) -> Result<MessagePage, Error> {
        let log = session::check(&self.session_of(request.session.as_ref()))?;
        history::messages(&**self.0.sessions.journal(), &log, &request).await
    }

    async fn sessions(&self, request: SessionsRequest) -> Result<SessionPage, Error> {
        history::sessions(&self.0.sessions, &self.0.glances, &request).await
    }

    async fn control(&self, session: Option<&str>, control: Control) -> Result<(), Error> {
        self.hear(self.named(session), control).await
    }

    async fn attach(
        &self,
        session: Option<&str>,
        after: Option<u64>,
    ) -> Result<EventStream, Error> {
        self.attached(&self.named(session), after).await
    }

    async fn fork(
        &self,
        session: Option<&str>,
        request: ForkRequest,
    ) -> Result<SessionInfo, Error> {
        self.forked(&self.named(session), &request).await
    }

    async fn delete(&self, session: &str) -> Result<(), Error> {
        self.deleted(session).await
    }

    async fn look(&self, session: Option<&str>, look: Look) -> Result<Value, Error> {
        self.looked(&self.named(session), &look).await
    }

    async fn undo(&self, _: Option<&str>, _: UndoRequest) -> Result<Undone, Error> {
        Err(told::unkept())
    }
}

/// Returns the question about an interrupted run.
pub(super) fn left(session: &str) -> Pause {
    let ask = Ask::approval("a crash has cut off the run; may it go on?");
    Pause::for_run(
        PauseId(format!("crash/{session}").into()),
        ThreadId::from(session),
        ask,
    )
}

/// Returns whether an answer continues the run; otherwise it is cancelled.
fn goes_on(session: &str, answers: &[Answered]) -> Result<bool, Error> {
    let pause = left(session);
    resuming::fit(&[Arc::new(pause.clone())], &[], answers)?;
    match answers {
        [
            Answered {
                answer: Answer::Approve { args: None, .. },
                ..
            },
        ] => Ok(true),
        [
            Answered {
                answer: Answer::Deny { .. },
                ..
            },
        ] => Ok(false),
        _ => Err(Error::new(
            ErrorKind::Invalid,
            format!("what waits is {} alone: an approval or a denial", pause.id),
        )),
    }
}

/// Returns the error that the session is blocked until the continuation of its run is decided.
pub(super) fn left_behind(session: &str) -> Error {
    let message = format!(
        "a crash has cut off the run of the session {session:?}; hint: approve or deny first that it goes on"
    );
    Error::new(ErrorKind::Conflict, message)
}

pub(super) fn check_prompt(prompt: &str) -> Result<(), Error> {
    if prompt.len() > MAX_PROMPT_BYTES {
        let message = format!(
            "the prompt has {} bytes; it may have {MAX_PROMPT_BYTES}",
            prompt.len()
        );
        return Err(Error::new(ErrorKind::Full, message));
    }
    Ok(())
}

impl fmt::Debug for LocalPrompter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPrompter")
            .field("table", &self.0.table)
            .finish_non_exhaustive()
    }
}
