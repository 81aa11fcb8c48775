//! The processes of a drill, the ledger, and the person who answers.

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use adjutant::{
    agent::{DueWork, Journal, LogId, LogQuery, Pause, PauseId, Post, Seq, Sessions, Work},
    llm::{Entry, Status},
    tools::Answer,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use uuid::Uuid;

use super::{ADDRESS, Drill, LEDGER, WORK};
use crate::{fleet::Worker, kill::Rng};

/// How often something is looked at, and how long for a moment to kill in.
const LOOK: Duration = Duration::from_millis(5);
const MOMENT: Duration = Duration::from_secs(2);
/// The longest time that a session may take to go on, or all of them to their end.
const PATIENCE: Duration = Duration::from_secs(120);

/// The processes of a drill, and what was answered.
pub(super) struct Field<'a> {
    pub(super) drill: &'a Drill,
    pub(super) journal: Arc<dyn DueWork>,
    pub(super) sessions: Sessions,
    /// The first answer to each question, by session and question; others came too late.
    pub(super) codes: BTreeMap<(LogId, String), String>,
    answered: BTreeMap<(LogId, PauseId), Instant>,
    server: Option<Worker>,
    client: Option<Worker>,
}

impl<'a> Field<'a> {
    pub(super) fn new(drill: &'a Drill, journal: Arc<dyn DueWork>) -> Self {
        let sessions = Sessions::new(Arc::clone(&journal) as Arc<dyn Journal>);
        let (codes, answered) = (BTreeMap::new(), BTreeMap::new());
        Self {
            drill,
            journal,
            sessions,
            codes,
            answered,
            server: None,
            client: None,
        }
    }

    fn begin(&self, args: &[&str]) -> Result<Worker, String> {
        let mut command = Command::new(&self.drill.program);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        command
            .spawn()
            .map(Worker)
            .map_err(|error| format!("a process does not start: {error}"))
    }

    /// Begins the server, where the one before was.
    pub(super) fn begin_server(&mut self) -> Result<(), String> {
        // An address of this drill alone: while the server is down, nobody else takes its port.
        let own = Ipv4Addr::from_bits(0x7F40_0000 | (std::process::id() & 0x3F_FFFF));
        let before = self
            .address()
            .unwrap_or_else(|_| SocketAddr::from((own, 0)).to_string());
        let files = self.drill.files.to_string_lossy();
        self.server =
            Some(self.begin(&["server", &self.drill.host.to_string(), &files, &before])?);
        Ok(())
    }

    pub(super) async fn begin_client(&mut self) -> Result<(), String> {
        self.until(|field| field.address().is_ok()).await;
        let (url, drill) = (format!("http://{}/mcp", self.address()?), self.drill);
        let (place, host, files) = (
            drill.place.to_string(),
            drill.host.to_string(),
            drill.files.to_string_lossy(),
        );
        let (steps, lease) = (drill.steps.to_string(), drill.lease.as_millis().to_string());
        self.client = Some(self.begin(&["client", &place, &host, &files, &url, &steps, &lease])?);
        Ok(())
    }

    fn address(&self) -> Result<String, String> {
        fs::read_to_string(self.drill.files.join(ADDRESS))
            .map_err(|error| format!("there is no server: {error}"))
    }

    pub(super) fn kill_client(&mut self) {
        self.client = None;
    }

    pub(super) fn kill_server(&mut self) {
        self.server = None;
    }

    /// Stops the client where it is, and waits until a server has acted and answered, which the client does not see.
    pub(super) async fn freeze_client(&self) -> Result<(), String> {
        let did = self.ledger("did").len();
        let pid = self
            .client
            .as_ref()
            .and_then(|Worker(child)| i32::try_from(child.id()).ok());
        let pid = pid
            .and_then(Pid::from_raw)
            .ok_or("the client has no process")?;
        kill_process(pid, Signal::STOP).map_err(|error| error.to_string())?;
        self.until(|field| field.ledger("did").len() > did).await;
        tokio::time::sleep(WORK * 2).await;
        Ok(())
    }

    /// Waits for the next moment in which a server acts.
    pub(super) async fn call(&mut self, rng: &mut Rng) -> Result<(), String> {
        let began = self.ledger("began").len();
        self.answer_all(self.drill.sessions as u64 / 4, rng).await?;
        self.until(|field| field.ledger("began").len() > began)
            .await;
        Ok(())
    }

    /// The lines of the ledger that begin with this word, cut into words.
    pub(super) fn ledger(&self, word: &str) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.drill.files.join(LEDGER)).unwrap_or_default();
        let lines = text
            .lines()
            .map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        lines
            .filter(|words| words.first().is_some_and(|it| it == word))
            .collect()
    }

    /// Waits for a moment until that is so.
    pub(super) async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) && began.elapsed() < MOMENT {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The questions that wait and that nobody has answered; sessions that are set aside are given back.
    pub(super) async fn asked(&self) -> Result<Vec<(LogId, Arc<Pause>)>, String> {
        let query = LogQuery {
            limit: usize::MAX >> 1,
            ..LogQuery::default()
        };
        let mut asked = Vec::new();
        for info in self.journal.list(&query).await.map_err(told)?.logs {
            match info.work {
                Some(Work::Parked { .. }) => {
                    let run = self
                        .sessions
                        .transcript(&info.log, Seq(u64::MAX))
                        .await
                        .map_err(told)?;
                    let new = |pause: &&Arc<Pause>| {
                        !self
                            .answered
                            .contains_key(&(info.log.clone(), pause.id.clone()))
                    };
                    asked.extend(
                        run.pauses()
                            .filter(new)
                            .map(|pause| (info.log.clone(), Arc::clone(pause))),
                    );
                }
                Some(Work::Aside { why }) if why.contains("owners in a row") => {
                    self.journal.retry(&info.log).await.map_err(told)?;
                }
                Some(Work::Aside { why }) => {
                    return Err(format!("{} was set aside: {why}", info.log));
                }
                _ => {}
            }
        }
        Ok(asked)
    }

    /// The first question that waits, within a moment.
    pub(super) async fn question(&self) -> Result<Option<(LogId, Arc<Pause>)>, String> {
        let began = Instant::now();
        loop {
            let first = self.asked().await?.into_iter().next();
            if first.is_some() || began.elapsed() > MOMENT {
                return Ok(first);
            }
            tokio::time::sleep(LOOK * 4).await;
        }
    }

    /// Answers a question; sometimes a second person does so too, and is too late.
    pub(super) async fn answer(
        &mut self,
        log: &LogId,
        pause: &Pause,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let first = Uuid::new_v4().to_string();
        // The name of the server stands before it.
        let question = pause
            .ask
            .prompt
            .split(": ")
            .last()
            .unwrap_or_default()
            .to_owned();
        for code in [
            Some(first.clone()),
            (rng.below(4) == 0).then(|| Uuid::new_v4().to_string()),
        ]
        .into_iter()
        .flatten()
        {
            let it = pause.with_answer(Answer::give(json!({ "code": code })));
            let post = Post::Answer {
                pause: it.pause,
                answer: it.answer,
                shown: it.shown,
            };
            self.journal.post(log, post).await.map_err(told)?;
        }
        self.answered
            .insert((log.clone(), pause.id.clone()), Instant::now());
        match self.codes.insert((log.clone(), question.clone()), first) {
            None => Ok(()),
            Some(_) => Err(format!("{log} asks twice for {question}")),
        }
    }

    /// Answers each question that waits, or one in `of`.
    pub(super) async fn answer_all(&mut self, of: u64, rng: &mut Rng) -> Result<(), String> {
        for (log, pause) in self.asked().await? {
            if rng.below(of) == 0 {
                self.answer(&log, &pause, rng).await?;
            }
        }
        Ok(())
    }

    /// Waits until a call has gone on with the answer to its question, which it must not lose.
    pub(super) async fn went_on(&self, log: &LogId, pause: &Pause) -> Result<(), String> {
        let began = Instant::now();
        let call = pause.call.as_ref().map(|call| call.id);
        while began.elapsed() < PATIENCE {
            self.asked().await?;
            let run = self
                .sessions
                .transcript(log, Seq(u64::MAX))
                .await
                .map_err(told)?;
            for stored in run.history().iter() {
                let Entry::Turn(turn) = &stored.entry else {
                    continue;
                };
                let mut results = turn.reply().calls().zip(turn.results());
                if let Some((_, result)) = results.find(|(of, _)| Some(of.id) == call) {
                    let lost = || {
                        format!(
                            "{log} was answered, and lost {:?}: {}",
                            pause.ask.prompt,
                            result.text()
                        )
                    };
                    return if result.status == Status::Ok {
                        Ok(())
                    } else {
                        Err(lost())
                    };
                }
            }
            if run.pauses().any(|it| it.id != pause.id) {
                return Ok(());
            }
            tokio::time::sleep(LOOK * 4).await;
        }
        Err(format!(
            "{log} was answered, and did not go on: {:?}",
            pause.ask.prompt
        ))
    }

    /// True if every session is at its end.
    pub(super) async fn is_over(&self) -> Result<bool, String> {
        let left = self.journal.backlog().await.map_err(told)?;
        Ok((left.due, left.at_work, left.parked, left.aside) == (0, 0, 0, 0))
    }

    /// Answers everything until everything is at its end.
    pub(super) async fn finish(&mut self, rng: &mut Rng) -> Result<(), String> {
        let mut last = (Instant::now(), 0);
        loop {
            self.answer_all(1, rng).await?;
            if self.is_over().await? {
                return Ok(());
            }
            let done = self.ledger("did").len();
            if last.1 != done {
                last = (Instant::now(), done);
            } else if last.0.elapsed() > PATIENCE {
                let left = self.journal.backlog().await.map_err(told)?;
                return Err(format!("not everything came to its end: {left:?}"));
            }
            tokio::time::sleep(LOOK * 10).await;
        }
    }
}

pub(super) fn told(error: impl std::error::Error) -> String {
    crate::asked::chain(&error)
}
