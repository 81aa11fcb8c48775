//! A simulation: people post, answer and cancel while machines are slow, cut off, killed and started; then nothing fails any
//! more, and every promise is looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use adjutant_agent::{
    Agent, DueWork, Journal, JournalError, JournalErrorKind, Lane, Limits, LogId, LogInfo, Outcome,
    Owner, Post, Seq, Sessions, Work,
};
use adjutant_fleet::{Fleet, FleetStatus};
use adjutant_llm::{CallResult, Entry, Request, Script, ScriptedModel, UserMessage};
use adjutant_tool::{
    Answer, Approval, Ask, AskKind, CallContext, Cancel, Replay, ToolError, ToolSpec, tool_fn,
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::sleep};

use super::{
    machine::Machine,
    place::{Place, lock},
    server::Server,
};

/// How long a lease lasts, and the time between two renewals, as on PostgreSQL.
const LEASE: Duration = Duration::from_secs(15);
/// How wrong a clock may be.
const WRONG_MS: u64 = 10_000;
/// The time that workers have for the sessions at work once they shall stop.
const GRACE: Duration = Duration::from_secs(5);
/// The longest time that everything may take to its end once nothing fails any more.
const ENDS: Duration = Duration::from_secs(180);
/// How long nobody takes a session once nothing is left to do, and how many times that may not be so.
const REST: Duration = Duration::from_secs(20);
const RESTS: usize = 15;
/// What a session says at the end of a bill.
const DONE: &str = "It is paid.";

/// A simulation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drill {
    pub(crate) seed: u64,
    pub(crate) machines: usize,
    pub(crate) sessions: usize,
    /// How long there are faults.
    pub(crate) faults: Duration,
}

/// What came of a simulation.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Survived {
    pub(crate) kills: usize,
    pub(crate) cuts: usize,
    pub(crate) bills: usize,
    pub(crate) payments: usize,
    pub(crate) claims: u64,
    /// How often somebody wrote whose log another one had.
    pub(crate) fenced: u64,
    pub(crate) aside: usize,
    /// How long everything took to its end once nothing failed any more.
    pub(crate) ended_after: Duration,
    /// When the last payment was made.
    pub(crate) last: Duration,
}

/// The bills that were paid, by bill and step, and when.
type Payments = Arc<Mutex<BTreeMap<(u64, u64), Vec<Duration>>>>;

struct Worker {
    machine: Machine,
    status: FleetStatus,
    stop: Cancel,
    task: JoinHandle<Result<(), JournalError>>,
}

struct Scene {
    drill: Drill,
    place: Arc<Place>,
    server: Arc<Server>,
    payments: Payments,
    workers: Vec<Worker>,
    /// Those that were told to stop.
    leaving: Vec<Worker>,
    survived: Survived,
    machines: u64,
    /// The bills that were posted: of which session, and whether whoever posted knows that it was.
    bills: Mutex<Vec<(LogId, bool)>>,
}

impl Drill {
    /// Plays it.
    ///
    /// # Errors
    /// The first promise that was broken, in words.
    pub(crate) async fn play(self) -> Result<Survived, String> {
        let place = Place::new(self.seed);
        let server = Server::new(&place, LEASE);
        let mut scene = Scene {
            drill: self,
            place,
            server,
            payments: Payments::default(),
            workers: Vec::new(),
            leaving: Vec::new(),
            survived: Survived::default(),
            machines: 0,
            bills: Mutex::default(),
        };
        for _ in 0..self.machines {
            let worker = scene.start();
            scene.workers.push(worker);
        }
        let told = scene.play().await;
        scene
            .workers
            .iter()
            .chain(&scene.leaving)
            .for_each(|worker| worker.stop.cancel());
        told
    }
}

impl Scene {
    fn machine(&mut self) -> Machine {
        self.machines += 1;
        let wrong_by_ms = self.place.below(WRONG_MS * 2).cast_signed() - WRONG_MS.cast_signed();
        Machine::new(&self.server, self.machines, wrong_by_ms, LEASE / 3)
    }

    fn start(&mut self) -> Worker {
        let machine = self.machine();
        let (maker, payments) = (machine.clone(), Arc::clone(&self.payments));
        let fleet = Fleet::new(machine.clone(), move |_: &LogInfo| {
            Ok(agent(&maker, &payments))
        });
        let concurrency = usize::try_from(self.place.below(4)).unwrap_or(0) + 1;
        let (fleet, stop) = (fleet.concurrency(concurrency).grace(GRACE), Cancel::new());
        let status = fleet.status();
        Worker {
            machine,
            status,
            task: tokio::spawn(fleet.run(stop.clone())),
            stop,
        }
    }

    async fn play(&mut self) -> Result<Survived, String> {
        let people = self.machine();
        while self.place.elapsed() < self.drill.faults {
            join_all((0..self.drill.sessions.div_ceil(50)).map(|_| self.people(&people))).await;
            (0..self.drill.machines.div_ceil(50)).for_each(|_| self.trouble());
            self.place.pause(200).await;
        }
        self.place.has_faults.store(false, Ordering::Relaxed);
        self.place.slowness.store(1, Ordering::Relaxed);
        // Answers are waited for, and nothing else.
        self.until("everything waits or has ended", |told| {
            (told.due, told.at_work)
        })
        .await?;
        self.rests().await?;
        let began = self.place.elapsed();
        loop {
            self.retry_all().await?;
            for no in 0..self.drill.sessions {
                self.answer(&people, &session(no), true)
                    .await
                    .map_err(|error| error.to_string())?;
            }
            let told = self
                .until("everything goes on", |told| (told.due, told.at_work))
                .await?;
            if told.parked + told.aside == 0 {
                break;
            }
        }
        self.survived.ended_after = self.place.elapsed() - began;
        self.check().await?;
        self.rests().await?;
        Ok(self.survived.clone())
    }

    /// Something that people do.
    async fn people(&self, people: &Machine) {
        let log =
            session(usize::try_from(self.place.below(self.drill.sessions as u64)).unwrap_or(0));
        // What fails here is what people see: they leave it.
        let _ = match self.place.below(10) {
            0..6 => self.post(people, &log).await,
            6..8 => self.answer(people, &log, false).await,
            8 => people.retry(&log).await.map(drop),
            _ => people.post(&log, Post::Cancel).await.map(drop),
        };
    }

    async fn post(&self, people: &Machine, log: &LogId) -> Result<(), JournalError> {
        let bill = {
            let mut bills = lock(&self.bills);
            bills.push((log.clone(), false));
            bills.len() - 1
        };
        if matches!(people.info(log).await, Err(error) if error.kind == JournalErrorKind::Missing) {
            drop(people.own(log, &Owner::default()).await?);
        }
        let content = Entry::User(UserMessage::text(format!("Pay bill {bill}")));
        people
            .post(
                log,
                Post::Message {
                    lane: Lane::FollowUp,
                    content,
                },
            )
            .await?;
        lock(&self.bills)[bill].1 = true;
        Ok(())
    }

    /// Answers what a session waits for: all of it, or some.
    async fn answer(&self, people: &Machine, log: &LogId, all: bool) -> Result<(), JournalError> {
        let known = people.info(log).await;
        if !matches!(known, Ok(info) if matches!(info.work, Some(Work::Parked { .. }))) {
            return Ok(());
        }
        let run = Sessions::new(Arc::new(people.clone()))
            .transcript(log, Seq(u64::MAX))
            .await?;
        for pause in run.pauses() {
            if all || self.place.below(2) == 0 {
                let answer = if pause.ask.kind == AskKind::Approval {
                    Answer::approve()
                } else {
                    Answer::give(3)
                };
                let it = pause.with_answer(answer);
                people
                    .post(
                        log,
                        Post::Answer {
                            pause: it.pause,
                            answer: it.answer,
                            shown: it.shown,
                        },
                    )
                    .await?;
            }
        }
        Ok(())
    }

    /// Something that goes wrong.
    fn trouble(&mut self) {
        let at = usize::try_from(self.place.below(self.workers.len() as u64)).unwrap_or(0);
        // Those at work first.
        let busy = (0..self.workers.len()).map(|no| (at + no) % self.workers.len());
        let busy = busy
            .into_iter()
            .find(|no| self.workers[*no].status.at_work() > 0)
            .unwrap_or(at);
        match self.place.below(8) {
            0..3 => {
                let next = self.start();
                let worker = std::mem::replace(&mut self.workers[busy], next);
                worker.machine.kill();
                worker.task.abort();
                self.survived.claims += worker.status.claim_count();
                self.survived.kills += 1;
            }
            3..5 => {
                self.workers[busy]
                    .machine
                    .cut(Duration::from_millis(self.place.below(40_000)));
                self.survived.cuts += 1;
            }
            5 => {
                let next = self.start();
                let worker = std::mem::replace(&mut self.workers[busy], next);
                worker.stop.cancel();
                self.leaving.push(worker);
            }
            6 => self
                .place
                .slowness
                .store(self.place.below(100) + 1, Ordering::Relaxed),
            _ => self.place.slowness.store(1, Ordering::Relaxed),
        }
    }

    /// Waits until some numbers of the work are 0.
    async fn until(
        &self,
        what: &str,
        numbers: impl Fn(&adjutant_agent::Backlog) -> (u64, u64),
    ) -> Result<adjutant_agent::Backlog, String> {
        let began = self.place.elapsed();
        loop {
            let told = self
                .server
                .journal
                .backlog()
                .await
                .map_err(|error| error.to_string())?;
            if numbers(&told) == (0, 0) {
                return Ok(told);
            }
            if self.place.elapsed() > began + ENDS {
                return Err(format!("not in {ENDS:?}: {what}: {told:?}"));
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Sooner or later nobody takes a session any more: what is taken time and again is taken for nothing.
    async fn rests(&self) -> Result<(), String> {
        // Deadlines that are waited for come first, and the bills behind them.
        for _ in 0..RESTS {
            let before = self.claims();
            sleep(REST).await;
            if self.claims() == before {
                return Ok(());
            }
        }
        let told = self
            .server
            .journal
            .backlog()
            .await
            .map_err(|error| error.to_string())?;
        Err(format!(
            "in {RESTS} times {REST:?} some session is taken each time: {told:?}"
        ))
    }

    fn claims(&self) -> u64 {
        self.survived.claims
            + self
                .workers
                .iter()
                .chain(&self.leaving)
                .map(|it| it.status.claim_count())
                .sum::<u64>()
    }

    async fn retry_all(&mut self) -> Result<(), String> {
        for no in 0..self.drill.sessions {
            self.survived.aside += match self.server.journal.retry(&session(no)).await {
                Ok(was_aside) => usize::from(was_aside),
                Err(error) if error.kind == JournalErrorKind::Missing => 0,
                Err(error) => return Err(error.to_string()),
            };
        }
        self.server.tell();
        Ok(())
    }

    async fn check(&mut self) -> Result<(), String> {
        let payments = lock(&self.payments).clone();
        if let Some((paid, at)) = payments.iter().find(|(_, at)| at.len() > 1) {
            return Err(format!("bill and step {paid:?} are paid at {at:?}"));
        }
        for (log, written) in &*lock(&self.server.written) {
            let mut machines = BTreeMap::new();
            for pair in written.windows(2) {
                let [(seq, epoch, _), (next, later, _)] = pair else {
                    continue;
                };
                if next < seq || later < epoch {
                    return Err(format!("{log} was written by an owner of before: {pair:?}"));
                }
            }
            if let Some(it) = written
                .iter()
                .find(|(_, epoch, it)| machines.insert(*epoch, *it).is_some_and(|no| no != *it))
            {
                return Err(format!(
                    "{log} was written by two machines in one ownership: {it:?}"
                ));
            }
        }
        let sessions = Sessions::new(Arc::new(self.server.journal.clone()));
        let mut told = BTreeSet::new();
        for no in 0..self.drill.sessions {
            let Ok(run) = sessions.transcript(&session(no), Seq(u64::MAX)).await else {
                continue;
            };
            let mut bill = 0;
            for stored in run.history().iter() {
                match &stored.entry {
                    Entry::User(_) => {
                        bill = bill_of(&stored.entry).unwrap_or(u64::MAX);
                        if !told.insert(bill) {
                            return Err(format!("bill {bill} is heard twice"));
                        }
                    }
                    Entry::Turn(turn) => {
                        for (call, result) in turn.pairs() {
                            let args: Value = serde_json::from_str(&call.args).unwrap_or_default();
                            let step = args["step"].as_u64().unwrap_or(0);
                            let is_paid = payments.contains_key(&(bill, step));
                            if result.text() == format!("paid {step}") && !is_paid {
                                return Err(format!(
                                    "step {step} of bill {bill} is told and was not done"
                                ));
                            }
                        }
                    }
                    _ => {}
                }
            }
            // What a run that was stopped had not come to waits for the next prompt.
            if matches!(run.outcome(), Some(Outcome::Cancelled { .. })) {
                told.extend(
                    run.waiting()
                        .pending_messages()
                        .filter_map(|(.., entry)| bill_of(entry)),
                );
            }
        }
        let bills = lock(&self.bills).clone();
        for (bill, (log, is_known)) in bills.iter().enumerate() {
            if *is_known && !told.contains(&(bill as u64)) {
                let work = self.server.journal.info(log).await.map(|info| info.work);
                return Err(format!("bill {bill} of {log} was forgotten: {work:?}"));
            }
        }
        self.survived.bills = told.len();
        self.survived.payments = payments.len();
        self.survived.last = payments
            .values()
            .flatten()
            .max()
            .copied()
            .unwrap_or_default();
        self.survived.claims = self.claims();
        self.survived.fenced = self.server.fenced.load(Ordering::Relaxed);
        Ok(())
    }
}

fn session(no: usize) -> LogId {
    LogId::from(format!("session {no}"))
}

fn bill_of(said: &Entry) -> Option<u64> {
    let Entry::User(said) = said else { return None };
    said.to_text().rsplit(' ').next()?.parse().ok()
}

/// An agent that pays bills, in steps of which each is done once, and asks people now and then.
fn agent(machine: &Machine, payments: &Payments) -> Agent {
    let spec = |name: &str, replay| ToolSpec {
        replay,
        ..ToolSpec::new(name, "Pays.", json!({"type": "object"}))
    };
    let paying = |spec: ToolSpec| {
        let (machine, payments) = (machine.clone(), Arc::clone(payments));
        tool_fn(spec, move |args: Value, _: CallContext| {
            pay(machine.clone(), Arc::clone(&payments), args)
        })
    };
    let ask = tool_fn(
        spec("ask", Replay::Resumable),
        |args: Value, cx: CallContext| async move {
            let ask = Ask::question("how much?");
            let within = args["within"].as_u64();
            cx.pause(
                "how much",
                within.map_or(ask.clone(), |ms| ask.within(Duration::from_millis(ms))),
            )
            .await?;
            Ok(CallResult::ok("asked"))
        },
    );
    let signed = ToolSpec {
        approval: Approval::Always,
        ..spec("sign", Replay::Once)
    };
    // More turns than any run has.
    Agent::new(ScriptedModel::new((0..100).map(|_| Script::from_fn(next))))
        .world(machine.clock())
        .limits(Limits {
            max_turns: None,
            ..Limits::default()
        })
        .tool(paying(spec("pay", Replay::Once)))
        .tool(paying(signed))
        .tool(ask)
}

async fn pay(machine: Machine, payments: Payments, args: Value) -> Result<CallResult, ToolError> {
    let place = machine.clock().place;
    let number = |name: &str| args[name].as_u64().unwrap_or(u64::MAX);
    // Now and then longer than a lease: who is cut off meanwhile loses its log.
    let most_ms = if place.below(8) == 0 { 40_000 } else { 400 };
    place.pause(most_ms).await;
    if machine.is_dead() {
        return Err(ToolError::failed("the machine is dead"));
    }
    lock(&payments)
        .entry((number("bill"), number("step")))
        .or_default()
        .push(place.elapsed());
    place.pause(400).await;
    Ok(CallResult::ok(format!("paid {}", number("step"))))
}

/// What the model says: by what was said since the last bill.
fn next(request: &Request) -> Script {
    let bill = request
        .entries
        .iter()
        .rev()
        .find_map(|stored| bill_of(&stored.entry));
    let since = request
        .entries
        .iter()
        .rev()
        .take_while(|stored| !matches!(stored.entry, Entry::User(_)));
    let (bill, turns) = (
        bill.unwrap_or(0),
        since
            .filter(|stored| matches!(stored.entry, Entry::Turn(_)))
            .count(),
    );
    let pay = |script: Script, name: &str, step: u64| {
        script.call(name, json!({"bill": bill, "step": step}))
    };
    let ask = |script: Script| script.call("ask", json!({}));
    let ask_within =
        |script: Script| script.call("ask", json!({"within": 3_000 + bill % 7 * 1_000}));
    match (turns, bill % 5) {
        (0, _) => pay(pay(Script::new(), "pay", 0), "pay", 1),
        (1, 0) => pay(Script::new(), "sign", 2),
        (1, 1) => ask(Script::new()),
        (1, 2) => ask_within(Script::new()),
        (1, 3) => ask_within(ask(Script::new())),
        (1, _) => pay(Script::new(), "pay", 2),
        (2, _) => pay(Script::new(), "pay", 3),
        _ => Script::new().text(DONE),
    }
}
