//! The prompt API over a journal without an agent: requests are stored in the inbox, and processed by the process that
//! runs the session.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use adjutant_agent::{
    Answered, DueWork, Event, EventFold, EventKind, Journal, JournalErrorKind, Lane, LogId,
    LogInfo, LogQuery, Pause, Post, PostNo, RecordStream, Seq, SessionMeta, Sessions, Work,
};
use adjutant_llm::UserMessage;
use adjutant_tool::Identity;
use adjutant_toolkit::{Files, Undo};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{
    Control, EventStream, FileHistory, ForkRequest, Glances, Look, MessagePage, MessagesRequest,
    ObjectRequest, PausePage, PausesRequest, PromptReply, PromptRequest, Prompter, ResumeRequest,
    SessionInfo, SessionPage, SessionsRequest, UndoRequest, Undone, WaitingPause, following,
    forking, glance::is_driven, history, live, look, resuming, session, told,
};
use crate::{Error, ErrorKind};

/// The interval between two reads of a log that another process writes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The maximum number of cached folds of logs.
const MAX_FOLDS: usize = 4;

/// The prompt API over the sessions of a journal, whether or not they are running. Cheap to clone.
///
/// It acquires no log. Prompts, messages, answers and stop requests are stored in the inbox of a session. They are
/// durable then, and processed by the current or next process that runs the session. Events are read from the log once
/// a second, without deltas.
#[derive(Clone)]
pub struct StoredPrompter(Arc<Stored>);

type Restoring = dyn Fn(&LogInfo) -> Result<(Undo, Files), Error> + Send + Sync;

struct Stored {
    sessions: Sessions,
    due: Option<Arc<dyn DueWork>>,
    restoring: Option<Box<Restoring>>,
    glances: Glances,
    /// Serializes answers, which are checked and stored one after the other.
    answering: tokio::sync::Mutex<()>,
    /// The folds of followed logs, latest last.
    folds: Mutex<Vec<(LogId, u64, EventFold)>>,
}

impl StoredPrompter {
    /// Creates the API over the sessions of this journal.
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        let (sessions, glances, folds) =
            (Sessions::new(journal), Glances::default(), Mutex::default());
        let answering = tokio::sync::Mutex::default();
        Self(Arc::new(Stored {
            sessions,
            due: None,
            restoring: None,
            glances,
            answering,
            folds,
        }))
    }

    /// Creates the API over a journal with a work queue.
    pub fn with_queue(journal: Arc<dyn DueWork>) -> Self {
        let mut prompter = Self::new(Arc::clone(&journal) as Arc<dyn Journal>);
        if let Some(stored) = Arc::get_mut(&mut prompter.0) {
            stored.due = Some(journal);
        }
        prompter
    }

    /// Sets the function that returns the files of a session and their saved contents. Must be called before it is
    /// cloned.
    #[must_use]
    pub fn undo(
        mut self,
        of: impl Fn(&LogInfo) -> Result<(Undo, Files), Error> + Send + Sync + 'static,
    ) -> Self {
        if let Some(stored) = Arc::get_mut(&mut self.0) {
            stored.restoring = Some(Box::new(of));
        }
        self
    }

    fn journal(&self) -> &Arc<dyn Journal> {
        self.0.sessions.journal()
    }

    /// Returns the info of a session.
    async fn info(&self, name: Option<&str>) -> Result<LogInfo, Error> {
        let name =
            name.ok_or_else(|| Error::new(ErrorKind::Invalid, "a session of a store is named"))?;
        self.journal()
            .info(&session::check(name)?)
            .await
            .map_err(told::journal_error)
    }

    async fn post(&self, log: &LogId, post: Post) -> Result<(), Error> {
        self.journal()
            .post(log, post)
            .await
            .map(drop)
            .map_err(told::journal_error)
    }

    /// Stores a prompt in the inbox of a session, which is created if it does not exist; returns its latest record
    /// before that.
    async fn say(&self, name: &str, text: &str, messages: &[Arc<str>]) -> Result<Seq, Error> {
        let log = session::check(name)?;
        // The ids are part of the same inbox item.
        let said = live::message(
            Lane::FollowUp,
            UserMessage {
                ids: messages.to_vec(),
                ..UserMessage::from(text)
            },
        )?;
        let head = match self.journal().info(&log).await {
            Ok(LogInfo {
                work: Some(Work::Aside { why }),
                ..
            }) => {
                let message = format!(
                    "no worker hears it: {why}; hint: `adjutant fleet retry {name}` has the session driven again"
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            Ok(info) => info.head,
            Err(error) if error.kind == JournalErrorKind::Missing => {
                match self.0.sessions.create(&log, SessionMeta::default()).await {
                    // Another process may create it at the same time.
                    Err(error) if error.kind != JournalErrorKind::Exists => {
                        return Err(told::journal_error(error));
                    }
                    _ => Seq(0),
                }
            }
            Err(error) => return Err(told::journal_error(error)),
        };
        self.post(&log, said).await?;
        Ok(head)
    }

    /// Stores answers to the pauses of a session.
    async fn answer(&self, info: &LogInfo, answers: &[Answered]) -> Result<(), Error> {
        let _alone = self.0.answering.lock().await;
        let open = self
            .0
            .sessions
            .open_run(info)
            .await
            .map_err(told::journal_error)?;
        let pauses = open.map(|open| open.pauses).unwrap_or_default();
        if pauses.is_empty() {
            return Err(Error::new(
                ErrorKind::Conflict,
                "no run of the session waits for an answer",
            ));
        }
        if answers.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "there are no answers"));
        }
        let posted = self.answered(&info.log, None).await?;
        resuming::fit(&pauses, &posted, answers)?;
        let is_heard = |it: &&Answered| {
            pauses
                .iter()
                .any(|pause| pause.id == it.pause && resuming::heard(&posted, pause).is_some())
        };
        for given in answers.iter().filter(|it| !is_heard(it)) {
            let (pause, answer, shown) = (given.pause.clone(), given.answer.clone(), given.shown);
            let posted = self
                .journal()
                .post(
                    &info.log,
                    Post::Answer {
                        pause,
                        answer,
                        shown,
                    },
                )
                .await;
            let before = self
                .answered(&info.log, Some(posted.map_err(told::journal_error)?))
                .await?;
            // Another process may have answered first: the first of two answers counts.
            resuming::fit(&pauses, &before, std::slice::from_ref(given))?;
        }
        Ok(())
    }

    /// Returns the unprocessed answers, up to an inbox item.
    async fn answered(&self, log: &LogId, before: Option<PostNo>) -> Result<Vec<Answered>, Error> {
        let posted = self
            .journal()
            .read_posts(log, PostNo(0))
            .await
            .map_err(told::journal_error)?;
        let earlier = posted
            .into_iter()
            .filter(|it| before.is_none_or(|before| it.no < before));
        let answers = earlier.filter_map(|it| match it.post {
            Post::Answer {
                pause,
                answer,
                shown,
            } => Some(Answered {
                pause,
                answer,
                shown,
            }),
            _ => None,
        });
        Ok(answers.collect())
    }

    /// Returns the events after a record, up to the next end or pause of a run, in any process.
    async fn until_end(&self, name: &Arc<str>, after: Seq) -> Result<EventStream, Error> {
        let events = self.attach(Some(name), Some(after.0)).await?;
        let me: Arc<dyn Prompter> = Arc::new(self.clone());
        Ok(following::until_end(following::follow(
            me,
            Some(Arc::clone(name)),
            (events, after.0),
        )))
    }

    fn waiting(info: &LogInfo, pauses: Vec<Arc<Pause>>) -> impl Iterator<Item = WaitingPause> {
        let (session, since_ms) = (Arc::clone(&info.log.0), info.updated_ms);
        pauses.into_iter().map(move |pause| WaitingPause {
            session: Arc::clone(&session),
            since_ms,
            digest: pause.digest(),
            pause,
        })
    }

    async fn paused(&self, request: &PausesRequest) -> Result<PausePage, Error> {
        let limit = session::page(request.limit)?;
        let sessions = &self.0.sessions;
        if request.session.is_some() {
            let info = self.info(request.session.as_deref()).await?;
            let open = sessions
                .open_run(&info)
                .await
                .map_err(told::journal_error)?;
            let pauses = open.map(|open| open.pauses).unwrap_or_default();
            return Ok(PausePage {
                pauses: Self::waiting(&info, pauses).collect(),
                after: None,
            });
        }
        let after = request.after.as_deref().map(history::mark).transpose()?;
        let mut query = LogQuery {
            limit: history::MAX_LOOKED,
            after,
            ..LogQuery::default()
        };
        let (mut page, mut found) = (PausePage::default(), 0);
        let listed = sessions.list(&query).await.map_err(told::journal_error)?;
        query.after = listed.next;
        for info in listed.logs {
            if !matches!(info.work, Some(Work::Parked { .. }) | None) {
                continue;
            }
            let open = sessions
                .open_run(&info)
                .await
                .map_err(told::journal_error)?;
            let pauses = open.map(|open| open.pauses).unwrap_or_default();
            found += usize::from(!pauses.is_empty());
            page.pauses.extend(Self::waiting(&info, pauses));
            if found == limit {
                page.after = Some(history::mark_of(&info).into());
                return Ok(page);
            }
        }
        page.after = query
            .after
            .as_ref()
            .map(|mark| history::format_mark(mark).into());
        Ok(page)
    }
}

#[async_trait]
impl Prompter for StoredPrompter {
    async fn prompt(&self, request: PromptRequest) -> Result<PromptReply, Error> {
        let within = request.timeout_ms.map(Duration::from_millis);
        let session = request.session.clone();
        let ended = async {
            let mut events = self.stream(request).await?;
            while let Some(event) = events.next().await {
                let event = event?;
                if let EventKind::RunFinished { result } | EventKind::RunPaused { result } =
                    &event.kind
                    && event.who.depth == 0
                {
                    return Ok(PromptReply::new(
                        session.unwrap_or_default(),
                        Arc::clone(result),
                    ));
                }
            }
            Err(Error::new(
                ErrorKind::Agent,
                "the run ended without a result",
            ))
        };
        match within {
            None => ended.await,
            Some(within) => timeout(within, ended).await.unwrap_or_else(|_| {
                Err(Error::new(
                    ErrorKind::TimedOut,
                    "nobody has answered in that time; what was said stays posted",
                ))
            }),
        }
    }

    async fn stream(&self, request: PromptRequest) -> Result<EventStream, Error> {
        let PromptRequest {
            prompt,
            session,
            call,
            ..
        } = request;
        if call.is_some() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "a store has no agent that another one could ask",
            ));
        }
        let session = session
            .ok_or_else(|| Error::new(ErrorKind::Invalid, "a session of a store is named"))?;
        let after = self.say(&session, &prompt, &[]).await?;
        self.until_end(&session, after).await
    }

    async fn resume(&self, request: ResumeRequest) -> Result<EventStream, Error> {
        let info = self.info(request.session.as_deref()).await?;
        self.answer(&info, &request.answers).await?;
        self.until_end(&info.log.0, info.head).await
    }

    async fn pauses(&self, request: PausesRequest) -> Result<PausePage, Error> {
        self.paused(&request).await
    }

    async fn object(&self, _: ObjectRequest) -> Result<Value, Error> {
        Err(Error::new(
            ErrorKind::Invalid,
            "a store has no model that an object could be asked of",
        ))
    }

    async fn messages(&self, request: MessagesRequest) -> Result<MessagePage, Error> {
        let log = self.info(request.session.as_deref()).await?.log;
        history::messages(&**self.journal(), &log, &request).await
    }

    async fn sessions(&self, request: SessionsRequest) -> Result<SessionPage, Error> {
        history::sessions(&self.0.sessions, &self.0.glances, &request).await
    }

    async fn control(&self, session: Option<&str>, control: Control) -> Result<(), Error> {
        if let Control::Prompt { text, messages } = &control {
            let name = session
                .ok_or_else(|| Error::new(ErrorKind::Invalid, "a session of a store is named"))?;
            return self.say(name, text, messages).await.map(drop);
        }
        let info = self.info(session).await?;
        let post = match control {
            Control::Steer { text } => live::message(Lane::Steering, &*text)?,
            Control::FollowUp { text } | Control::Prompt { text, .. } => {
                live::message(Lane::FollowUp, &*text)?
            }
            Control::Answer { answers } => return self.answer(&info, &answers).await,
            Control::Stop {} => {
                let open = self
                    .0
                    .sessions
                    .open_run(&info)
                    .await
                    .map_err(told::journal_error)?;
                if open.is_none() {
                    return Err(live::idle(&info.log.0));
                }
                Post::Cancel
            }
            Control::StopCall { .. } => {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "a call is stopped where its run is performed",
                ));
            }
        };
        self.post(&info.log, post).await
    }

    async fn attach(
        &self,
        session: Option<&str>,
        after: Option<u64>,
    ) -> Result<EventStream, Error> {
        let info = self.info(session).await?;
        let after = live::after(&info, after)?;
        if after == info.head && !is_driven(&info) {
            return Ok(Box::pin(stream::empty()));
        }
        let (stored, fold) = (Arc::clone(&self.0), self.0.taken(&info, after));
        let following = LogFollower {
            stored,
            fold,
            info,
            records: None,
            was_fresh: false,
        };
        Ok(Box::pin(stream::unfold(
            Some((following, after)),
            |state| async move {
                let (mut following, after) = state?;
                match following.next(after).await {
                    Ok(Some(event)) => Some((Ok(event), Some((following, after)))),
                    Ok(None) => None,
                    Err(error) => Some((Err(error), None)),
                }
            },
        )))
    }

    async fn fork(
        &self,
        session: Option<&str>,
        request: ForkRequest,
    ) -> Result<SessionInfo, Error> {
        let info = self.info(session).await?;
        if let Some(model) = &request.model {
            let message = format!(
                "a store has no agent that could go on with {model:?}; hint: fork without it, then `adjutant resume {} --model`",
                request.to
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let said = request
            .prompt
            .as_deref()
            .map(|text| live::message(Lane::FollowUp, text))
            .transpose()?;
        let made = forking::fork(&self.0.sessions, &info.log.0, &request).await?;
        if let Some(said) = said {
            self.post(&made.log, said).await?;
        }
        // Only its records show if its run has ended.
        self.0
            .glances
            .at(&self.0.sessions, made, &mut u64::MAX.clone())
            .await
    }

    async fn delete(&self, session: &str) -> Result<(), Error> {
        self.0
            .sessions
            .delete(&session::check(session)?)
            .await
            .map_err(told::journal_error)
    }

    async fn look(&self, session: Option<&str>, look: Look) -> Result<Value, Error> {
        let Stored {
            sessions,
            glances,
            due,
            ..
        } = &*self.0;
        look::look(
            sessions,
            glances,
            due.as_ref(),
            session.unwrap_or_default(),
            &look,
        )
        .await
    }

    async fn undo(&self, session: Option<&str>, request: UndoRequest) -> Result<Undone, Error> {
        let info = self.info(session).await?;
        let Some(restoring) = &self.0.restoring else {
            return Err(told::unkept());
        };
        if info.is_owned {
            let message = format!("an agent works in the session {:?}", info.log.0);
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let (undo, files) = restoring(&info)?;
        let history = FileHistory::read(&**self.journal(), &info.log)
            .await
            .map_err(told::journal_error)?;
        let to = request
            .to
            .map(|to| live::after(&info, Some(to)))
            .transpose()?;
        let to = to.unwrap_or_else(|| history.before(None).unwrap_or_default());
        let since = history.parted(to).1;
        let restored = tokio::task::spawn_blocking(move || undo.restore(&files, &since)).await;
        let restored = restored.map_err(|error| {
            Error::new(ErrorKind::Storage, "the undo broke down").with_source(error)
        })?;
        let restored = restored.map_err(|error| {
            Error::new(ErrorKind::Conflict, error.to_string()).with_source(error)
        })?;
        let files = restored
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        Ok(Undone {
            files,
            uncovered: history.uncovered(to),
        })
    }
}

impl Stored {
    /// Returns the fold of a log after a record: a cached one, or a new one.
    fn taken(&self, info: &LogInfo, after: Seq) -> Option<EventFold> {
        let mut folds = self.folds.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(log, created_ms, fold): &(LogId, u64, EventFold)| {
            *log == info.log && *created_ms == info.created_ms && fold.at <= after
        };
        let at = folds.iter().position(fits)?;
        let (_, _, mut fold) = folds.remove(at);
        (fold.after, fold.over) = (after, false);
        Some(fold)
    }

    fn keep(&self, info: &LogInfo, fold: EventFold) {
        let mut folds = self.folds.lock().unwrap_or_else(PoisonError::into_inner);
        folds.retain(|(log, ..)| *log != info.log);
        if folds.len() == MAX_FOLDS {
            folds.remove(0);
        }
        folds.push((info.log.clone(), info.created_ms, fold));
    }
}

/// A followed log, until its run has ended or waits.
struct LogFollower {
    stored: Arc<Stored>,
    info: LogInfo,
    /// `None` until the first record was read.
    fold: Option<EventFold>,
    records: Option<RecordStream>,
    /// True if the end of a run was delayed once, because its process may replace the outcome.
    was_fresh: bool,
}

impl LogFollower {
    /// Returns the next event; `None` when the run has ended or waits.
    async fn next(&mut self, after: Seq) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.fold.as_mut().and_then(|fold| fold.ready.pop_front()) {
                return Ok(Some(event));
            }
            if let Some(records) = &mut self.records {
                match records.next().await {
                    Some(stamped) => {
                        let stamped = stamped.map_err(told::journal_error)?;
                        let fold = self.fold.get_or_insert_with(|| {
                            let name = self
                                .info
                                .about
                                .agent
                                .clone()
                                .unwrap_or_else(|| "agent".into());
                            EventFold::new(
                                Arc::new(Identity::root(stamped.thread.clone(), "", name)),
                                after,
                            )
                        });
                        fold.push(&stamped).map_err(told::agent_error)?;
                        self.was_fresh = false;
                    }
                    None => self.records = None,
                }
                continue;
            }
            let journal = self.stored.sessions.journal();
            self.info = journal
                .info(&self.info.log)
                .await
                .map_err(told::journal_error)?;
            let at = self.fold.as_ref().map_or(Seq(0), |fold| fold.at);
            if self.info.head > at {
                self.records = Some(journal.read(&self.info.log, at));
                continue;
            }
            let Some(fold) = &mut self.fold else {
                return Ok(None);
            };
            if fold.tell_said() {
                continue;
            }
            let is_fresh = fold.ended.is_some()
                && self.info.is_owned
                && !mem::replace(&mut self.was_fresh, true);
            // A run without a process, as in a copied log, is emitted up to its last record.
            if (fold.is_at_work() && is_driven(&self.info)) || is_fresh {
                sleep(LOOK_EVERY).await;
                continue;
            }
            let last = fold.take_last();
            if last.is_some() {
                // The end or the pause is emitted once.
                fold.after = fold.at;
                return Ok(last);
            }
            if let Some(fold) = self.fold.take() {
                self.stored.keep(&self.info, fold);
            }
            return Ok(None);
        }
    }
}

impl fmt::Debug for StoredPrompter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredPrompter")
            .field("sessions", &self.0.sessions)
            .finish_non_exhaustive()
    }
}
