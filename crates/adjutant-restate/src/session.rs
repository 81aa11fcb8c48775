//! The virtual object `Session`: who drives a session is decided by Restate, what happened in it by the journal alone.

use std::{
    fmt, io,
    net::TcpListener,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use adjutant_agent::{
    Agent, Answered, DueLog, DueWork, JournalError, JournalErrorKind, LogId, LogInfo, Owner, Post,
    PostNo, Waker, Work,
};
use adjutant_fleet::{Ended, drive};
use adjutant_tool::Cancel;
use restate_sdk::prelude::*;

use crate::drive_locks::DriveLocks;

/// Makes the agent of a session.
type MakeAgent = dyn Fn(&LogInfo) -> Result<Agent, String> + Send + Sync;

/// The sessions of a journal as the virtual object `Session`, whose keys are their names.
///
/// Its exclusive handler `drive` takes over the log, continues the run and returns when the run waits or has ended.
/// It schedules itself for the next deadline of the run. The shared handlers `post` and `answer` add to the inbox of
/// the session and call `drive`. Restate stores nothing about a session except these calls.
pub struct SessionService {
    driver: Arc<Driver>,
}

struct Driver {
    journal: Arc<dyn DueWork>,
    agents: Arc<MakeAgent>,
    locks: DriveLocks,
}

impl SessionService {
    /// A service over a journal; `agents` creates the agent of a session, or returns an error in one line.
    ///
    /// The agent continues the run with its recorded terms: see [`Agent::resume`].
    pub fn new(
        journal: impl DueWork + 'static,
        agents: impl Fn(&LogInfo) -> Result<Agent, String> + Send + Sync + 'static,
    ) -> Self {
        let (journal, agents) = (Arc::new(journal), Arc::new(agents));
        Self {
            driver: Arc::new(Driver {
                journal,
                agents,
                locks: DriveLocks::default(),
            }),
        }
    }

    /// Serves the calls of a Restate server until it is stopped. Active calls then have 10 s; the remaining ones are
    /// aborted as if the process had died: the server repeats them, on this service or another one.
    ///
    /// Every client of the listener can drive every session: permit only the server.
    ///
    /// # Errors
    /// The listener cannot be used.
    pub async fn serve(self, listener: TcpListener, stop: Cancel) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let driver = Arc::clone(&self.driver);
        HttpServer::new(Endpoint::builder().bind(self).build())
            .serve_with_cancel(listener, stop.cancelled())
            .await;
        driver.give_up().await;
        Ok(())
    }
}

#[restate_sdk::object(name = "Session")]
impl SessionService {
    /// Continues the session until its run waits or has ended; returns the remaining work.
    // A drive takes as long as its run, without output in the meantime. If the service is down for a day, its calls
    // are paused.
    #[handler(
        inactivity_timeout = "1 day",
        abort_timeout = "1 day",
        invocation_retry_policy(
            initial_interval = "100ms",
            factor = 2.0,
            max_interval = "5s",
            max_attempts = 17_280,
            on_max_attempts = "pause"
        )
    )]
    async fn drive(&self, ctx: ObjectContext<'_>) -> HandlerResult<Json<Work>> {
        let (log, driver) = (LogId::from(ctx.key()), Arc::clone(&self.driver));
        // The server stores the remaining work, so that the following steps are deterministic across retries.
        let worked = ctx.run(|| driver.stretch(log.clone())).name("drive").await;
        let next = || ctx.object_client::<SessionServiceClient>(ctx.key()).drive();
        match worked {
            Ok(Json(left)) => {
                if let Work::Parked {
                    until_ms: Some(at), ..
                } = left
                {
                    drop(next().send_after(until(at)));
                }
                Ok(Json(left))
            }
            // The call was cancelled, so the run is cancelled too, and its remaining work gets the stop request.
            Err(cancelled) if cancelled.code() == CANCELLED => {
                let driver = Arc::clone(&self.driver);
                ctx.run(|| driver.cancel(log)).name("cancel").await?;
                drop(next().send());
                Err(cancelled.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Posts to the session, which is created if it does not exist, and calls `drive`.
    #[handler]
    async fn post(&self, ctx: SharedObjectContext<'_>, post: Json<Post>) -> HandlerResult<()> {
        let (log, driver) = (LogId::from(ctx.key()), Arc::clone(&self.driver));
        ctx.run(|| driver.say(log, post.into_inner()))
            .name("post")
            .await?;
        drop(
            ctx.object_client::<SessionServiceClient>(ctx.key())
                .drive()
                .send(),
        );
        Ok(())
    }

    /// Answers what the session waits for, and sends `drive`.
    #[handler]
    async fn answer(
        &self,
        ctx: SharedObjectContext<'_>,
        answer: Json<Answered>,
    ) -> HandlerResult<()> {
        let Json(Answered {
            pause,
            answer,
            shown,
        }) = answer;
        self.post(
            ctx,
            Json(Post::Answer {
                pause,
                answer,
                shown,
            }),
        )
        .await
    }
}

/// The status of a call that was cancelled.
const CANCELLED: u16 = 409;

impl Driver {
    /// Drives a session on its own task: the future here ends with the connection of the server.
    async fn stretch(self: Arc<Self>, log: LogId) -> HandlerResult<Json<Work>> {
        let lock = self.locks.lock(&log).await;
        let driver = Arc::clone(&self);
        let task = tokio::spawn(async move {
            let left = driver.drive(log).await;
            drop(lock);
            left
        });
        task.await
            .map_err(|error| TerminalError::new(format!("the drive of a session ended: {error}")))?
            .map(Json)
    }

    async fn drive(&self, log: LogId) -> HandlerResult<Work> {
        let info = self.journal.info(&log).await.map_err(to_handler_error)?;
        if matches!(info.work, Some(Work::Aside { .. })) {
            return Ok(info.work.unwrap_or_default());
        }
        let ended = match (self.agents)(&info) {
            Ok(agent) => {
                let posts = self
                    .journal
                    .read_posts(&log, PostNo(0))
                    .await
                    .map_err(to_handler_error)?;
                let newest_post = posts.last().map_or(PostNo(0), |posted| posted.no);
                // The server makes one call at a time: another owner of the log is a dead or abandoned attempt.
                let owner = Owner::default();
                let thief = Owner {
                    takes_over: true,
                    ..owner.clone()
                };
                let taken = self
                    .journal
                    .own(&log, &thief)
                    .await
                    .map_err(to_handler_error)?;
                drive(
                    &self.journal,
                    agent,
                    DueLog {
                        info,
                        newest_post,
                        lost: 0,
                        log: taken,
                    },
                    &owner,
                )
                .await
            }
            Err(why) => {
                let why = format!("its agent cannot be made: {why}");
                self.journal
                    .set_aside(&log, &why)
                    .await
                    .map_err(to_handler_error)?;
                Ended::Aside(why.into())
            }
        };
        match ended {
            Ended::Failed(why) => Err(io::Error::other(&*why).into()),
            Ended::Aside(why) => {
                Err(TerminalError::new(format!("the session was set aside: {why}")).into())
            }
            _ => Ok(self
                .journal
                .info(&log)
                .await
                .map_err(to_handler_error)?
                .work
                .unwrap_or_default()),
        }
    }

    async fn say(self: Arc<Self>, log: LogId, post: Post) -> HandlerResult<()> {
        // An answer makes no session.
        if !matches!(post, Post::Message { .. }) {
            self.journal.info(&log).await.map_err(to_handler_error)?;
        }
        Waker::say(&*self.journal, &log, post)
            .await
            .map_err(to_handler_error)
    }

    async fn cancel(self: Arc<Self>, log: LogId) -> HandlerResult<()> {
        match self
            .journal
            .info(&log)
            .await
            .map_err(to_handler_error)?
            .work
        {
            Some(Work::Open | Work::Parked { .. }) => self.say(log, Post::Cancel).await,
            _ => Ok(()),
        }
    }

    /// Fences the active runs here: their later writes are refused.
    async fn give_up(&self) {
        let thief = Owner {
            takes_over: true,
            ..Owner::default()
        };
        for log in self.locks.names() {
            if let Err(error) = self.journal.own(&log, &thief).await {
                tracing::warn!(%error, %log, "a session at work could not be given up");
            }
        }
    }
}

/// Temporary failures are retried by the server; every other result is an answer.
fn to_handler_error(error: JournalError) -> HandlerError {
    let code = match error.kind {
        _ if error.is_retryable() => return error.into(),
        JournalErrorKind::Missing => 404,
        JournalErrorKind::Invalid => 400,
        JournalErrorKind::Unsupported => 501,
        _ => 500,
    };
    TerminalError::new_with_code(code, error.to_string()).into()
}

/// The time until then.
pub(crate) fn until(at_ms: u64) -> Duration {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Duration::from_millis(at_ms).saturating_sub(now)
}

impl fmt::Debug for SessionService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionService")
            .field("journal", &self.driver.journal)
            .finish_non_exhaustive()
    }
}
