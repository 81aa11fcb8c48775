//! The control loop: checks every agent, gets the next step from its course, and performs it. All state is in this
//! task.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use adjutant_agent::chain;
use adjutant_tool::Cancel;
use tokio::{sync::mpsc, time};
use uuid::Uuid;

use super::{
    AgentRow, Course, Notice, Supervisor, SupervisorReport,
    course::{DownReason, Flight, SupervisorStep, is_up},
    work::{self, Done, DoneSender},
};
use crate::{Desired, Error, ErrorKind, Goal, Instance, Loaded, Logs, Status};

/// The interval of the checks of agents and orders.
const LOOK: Duration = Duration::from_millis(100);
/// The number of such checks between two checks of the logs.
const LOGS_EVERY: u64 = 10;
/// The number of checks between two attempts to read a desired state, and to adopt an agent that another process held.
const UNREAD_EVERY: u64 = 10;
/// The maximum number of failed health checks.
const MISSES: u32 = 3;

/// A running supervisor.
pub(super) struct Drive {
    by: Supervisor,
    agents: BTreeMap<Uuid, Cared>,
    told: DoneSender,
    done: mpsc::UnboundedReceiver<Done>,
    mark: Option<Vec<u8>>,
    looks: u64,
    is_loading: bool,
    /// True if another process held an agent at the last search.
    is_held: bool,
    is_rotating: bool,
    queue: u64,
    problems: Vec<String>,
    /// Notices that are sent when the table contains their changes.
    untold: Mutex<Vec<Notice>>,
}

/// A supervised agent.
struct Cared {
    instance: Arc<dyn Instance>,
    desired: Desired,
    /// True if its desired state could not be read: no step is taken until it can.
    is_unread: bool,
    course: Course,
    /// The stored version of its course.
    kept: Option<Course>,
    flight: Flight,
    is_leaving: bool,
    status: Option<Status>,
    /// The time of its last start, in milliseconds since 1970-01-01 UTC.
    begun_ms: u64,
    /// Its number in the queue.
    queued: Option<u64>,
    /// The time of its next health check, and the number of failed ones.
    probe_at: time::Instant,
    is_probed: bool,
    misses: u32,
}

impl Drive {
    /// Finds the agents.
    pub(super) async fn begin(by: Supervisor) -> Result<Self, Error> {
        let (told, done) = mpsc::unbounded_channel();
        // Before anything is read, so that later orders are detected.
        let mark = by.operator.home().mark();
        let loaded = by.backend.load().await?;
        let (looks, queue, agents, problems) = (0, 0, BTreeMap::new(), Vec::new());
        let mut drive = Self {
            by,
            agents,
            told,
            done,
            mark,
            looks,
            is_loading: false,
            is_held: false,
            is_rotating: false,
            queue,
            problems,
            untold: Mutex::default(),
        };
        drive.take_in(loaded);
        drive.advance();
        Ok(drive)
    }

    /// Runs until it is requested to stop.
    pub(super) async fn work(&mut self, end: &Cancel) {
        let mut tick = time::interval(LOOK);
        tick.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = end.cancelled() => return,
                Some(done) = self.done.recv() => self.finish(done),
                _ = tick.tick() => self.look(),
            }
            self.advance();
        }
    }

    /// Adds agents that were not known.
    fn take_in(&mut self, loaded: Loaded) {
        for instance in loaded.instances {
            let id = instance.id();
            if self.agents.contains_key(&id) {
                continue;
            }
            let course = self.by.operator.home().course(id).unwrap_or_default();
            let kept = Some(course.clone());
            let mut cared = Cared {
                instance,
                desired: Desired::NOTHING,
                is_unread: false,
                course,
                kept,
                flight: Flight::default(),
                is_leaving: false,
                status: None,
                begun_ms: 0,
                queued: None,
                probe_at: time::Instant::now() + self.by.settings.probe_every,
                is_probed: false,
                misses: 0,
            };
            self.read_desired(id, &mut cared);
            self.agents.insert(id, cared);
        }
        self.is_held = loaded
            .problems
            .iter()
            .any(|problem| problem.kind() == ErrorKind::Busy);
        // An error is reported once, not at every check.
        let new = loaded
            .problems
            .iter()
            .map(ToString::to_string)
            .filter(|text| !self.problems.contains(text));
        let new: Vec<String> = new.collect();
        new.iter().for_each(|text| self.problem(None, text));
        self.problems = loaded.problems.iter().map(ToString::to_string).collect();
    }

    fn read_desired(&self, id: Uuid, cared: &mut Cared) {
        match self.by.operator.home().desired(id) {
            Ok(desired) => {
                (cared.desired, cared.is_unread) = (desired, false);
                if cared.course.take(&desired) {
                    cared.queued = None;
                }
            }
            Err(error) => {
                // The previous value is used; without one, the desired state is unknown. Reported once.
                if !cared.is_unread {
                    self.problem(Some(cared.instance.name()), &chain(&error));
                }
                cared.is_unread = true;
            }
        }
    }

    /// Checks for new orders, unresponsive agents, and grown logs.
    fn look(&mut self) {
        self.looks += 1;
        let mark = self.by.operator.home().mark();
        let again = self.is_held && self.looks.is_multiple_of(UNREAD_EVERY);
        if (again || mark != self.mark) && !self.is_loading {
            (self.mark, self.is_loading) = (mark, true);
            self.read_all(|_| true);
            work::load(Arc::clone(&self.by.backend), self.told.clone());
        }
        if self.looks.is_multiple_of(LOGS_EVERY) && !self.is_rotating {
            self.is_rotating = true;
            self.rotate();
        }
        if self.looks.is_multiple_of(UNREAD_EVERY) {
            self.read_all(|cared| cared.is_unread);
        }
        self.probe();
    }

    /// Reads the desired states of the matching agents.
    fn read_all(&mut self, fits: impl Fn(&Cared) -> bool) {
        let mut agents = std::mem::take(&mut self.agents);
        agents
            .iter_mut()
            .filter(|(_, cared)| fits(cared))
            .for_each(|(id, cared)| self.read_desired(*id, cared));
        self.agents = agents;
    }

    fn rotate(&self) {
        let told = self.told.clone();
        let logs: Vec<(Uuid, Logs)> = self
            .agents
            .iter()
            .map(|(id, cared)| (*id, cared.instance.logs()))
            .collect();
        tokio::task::spawn_blocking(move || {
            let rotated = logs
                .into_iter()
                .filter_map(|(id, logs)| Some((id, logs.rotate().err()?)));
            let _ = told.send(Done::Rotated(rotated.collect()));
        });
    }

    fn probe(&mut self) {
        let (now, settings) = (time::Instant::now(), &self.by.settings);
        for cared in self.agents.values_mut() {
            let is_idle = cared.flight == Flight::default() && !cared.is_probed;
            if is_idle
                && cared.probe_at <= now
                && matches!(cared.status, Some(Status::Ready | Status::Working))
            {
                cared.is_probed = true;
                work::probe(
                    Arc::clone(&cared.instance),
                    settings.probe_within,
                    self.told.clone(),
                );
            }
        }
    }

    /// Processes the result of an operation.
    fn finish(&mut self, done: Done) {
        match done {
            Done::Started(id, ended) => self.started(id, ended),
            Done::Stopped(id, ended, why) => self.stopped(id, ended, why),
            Done::Removed(id, ended) => self.removed(id, ended),
            Done::Probed(id, answered) => self.probed(id, answered),
            Done::Loaded(loaded) => {
                self.is_loading = false;
                match loaded {
                    Ok(loaded) => self.take_in(loaded),
                    Err(error) => self.problem(None, &chain(&error)),
                }
            }
            Done::Rotated(wrong) => {
                self.is_rotating = false;
                for (id, error) in wrong {
                    let name = self.agents.get(&id).map(|cared| cared.instance.name());
                    self.problem(name, &chain(&error));
                }
            }
        }
    }

    fn started(&mut self, id: Uuid, ended: Result<(), Error>) {
        let (now, unit) = (self.by.world.now_ms(), self.by.world.unit());
        let Some(cared) = self.agents.get_mut(&id) else {
            return;
        };
        cared.flight.starting = false;
        let delay = self.by.settings.probe_every;
        (cared.probe_at, cared.misses) = (time::Instant::now() + delay, 0);
        let is_wished =
            !cared.flight.ending && cared.desired.goal == Goal::Running && !cared.course.restart;
        match ended {
            Ok(()) => {
                // It was running, whatever its state is now.
                cared.course.see(&Status::Ready, now, || unit);
                let last = cared.instance.workspace().last_update().ok().flatten();
                let last = last
                    .filter(|told| told.at_ms >= cared.begun_ms)
                    .and_then(|told| told.failed);
                if let Some(why) = last {
                    let name = cared.instance.name();
                    self.problem(
                        Some(name),
                        &format!("its update failed, and what ran before runs: {why}"),
                    );
                }
            }
            Err(error) if is_wished => {
                let (fault, message) = match cared.instance.status() {
                    Status::Failed { reason, message } => {
                        (DownReason::from_reason(reason), message.to_string())
                    }
                    _ => (DownReason::from_kind(error.kind()), chain(&error)),
                };
                cared.course.fail(fault, &message, now, unit);
                self.tell_failure(id, &message);
            }
            // It was stopped during its start.
            Err(_) => {}
        }
    }

    fn stopped(&mut self, id: Uuid, ended: Result<(), Error>, why: Option<Arc<str>>) {
        let (now, unit) = (self.by.world.now_ms(), self.by.world.unit());
        let Some(cared) = self.agents.get_mut(&id) else {
            return;
        };
        cared.flight.ending = false;
        match ended {
            Ok(()) => {
                cared.course.stopped();
                if let Some(why) = why {
                    cared.course.fail(DownReason::Crash, &why, now, unit);
                    self.tell_failure(id, &why);
                }
            }
            Err(error) => {
                cared.course.hindered(now, unit);
                let name = cared.instance.name();
                self.problem(
                    Some(name),
                    &format!("it could not be stopped: {}", chain(&error)),
                );
            }
        }
    }

    fn removed(&mut self, id: Uuid, ended: Result<(), Error>) {
        let (now, unit) = (self.by.world.now_ms(), self.by.world.unit());
        let Some(cared) = self.agents.get_mut(&id) else {
            return;
        };
        (cared.flight.ending, cared.is_leaving) = (false, false);
        match ended {
            Ok(()) => {
                let agent = cared.instance.name();
                self.agents.remove(&id);
                self.tell(Notice::Status {
                    agent,
                    id,
                    status: Status::Removed,
                });
            }
            Err(error) => {
                cared.course.hindered(now, unit);
                let name = cared.instance.name();
                self.problem(
                    Some(name),
                    &format!("it could not be removed: {}", chain(&error)),
                );
            }
        }
    }

    fn probed(&mut self, id: Uuid, answered: bool) {
        let Some(cared) = self.agents.get_mut(&id) else {
            return;
        };
        cared.is_probed = false;
        cared.probe_at = time::Instant::now() + self.by.settings.probe_every;
        cared.misses = if answered { 0 } else { cared.misses + 1 };
        let is_up = matches!(cared.instance.status(), Status::Ready | Status::Working);
        if cared.misses >= MISSES && is_up && cared.flight == Flight::default() {
            cared.misses = 0;
            cared.flight.ending = true;
            let why = format!("it did not answer, {MISSES} times");
            work::stop(
                Arc::clone(&cared.instance),
                Some(why.into()),
                self.told.clone(),
            );
        }
    }

    /// Performs the next step of every agent. Queued agents come first, the longest waiting ones before others.
    fn advance(&mut self) {
        let mut order: Vec<(u64, Arc<str>, Uuid)> = Vec::with_capacity(self.agents.len());
        order.extend(
            self.agents
                .iter()
                .map(|(id, it)| (it.queued.unwrap_or(u64::MAX), it.instance.name(), *id)),
        );
        order.sort_unstable();
        let takes = |it: &&Cared| it.flight.starting || is_up(&it.instance.status());
        let taken = self.agents.values().filter(takes).count();
        let mut places = self
            .by
            .settings
            .max_running
            .map(|most| most.saturating_sub(taken));
        for (_, _, id) in order {
            self.advance_one(id, &mut places);
        }
        self.publish();
    }

    fn advance_one(&mut self, id: Uuid, places: &mut Option<usize>) {
        let now = self.by.world.now_ms();
        let Some(cared) = self.agents.get_mut(&id) else {
            return;
        };
        let status = cared.instance.status();
        let mut failed = None;
        if cared.flight == Flight::default()
            && cared.course.see(&status, now, || self.by.world.unit())
        {
            failed = Some(message(&status));
        }
        let step = match cared.is_unread {
            true => SupervisorStep::Rest,
            false => cared.course.step(
                cared.desired.goal,
                &status,
                cared.flight,
                *places != Some(0),
                now,
            ),
        };
        let (instance, told) = (Arc::clone(&cared.instance), self.told.clone());
        let mut waits = None;
        match step {
            SupervisorStep::Rest | SupervisorStep::Pause { .. } => {
                (cared.queued, cared.course.is_waiting) = (None, false)
            }
            SupervisorStep::Queue => {
                if cared.queued.is_none() {
                    self.queue += 1;
                    (cared.queued, cared.course.is_waiting) = (Some(self.queue), true);
                    waits = self.by.settings.max_running;
                }
            }
            SupervisorStep::Start => {
                *places = places.map(|left| left.saturating_sub(1));
                cared.course.starts();
                (cared.queued, cared.flight.starting, cared.begun_ms) = (None, true, now);
                work::start(instance, self.by.settings.ready_within, told);
            }
            SupervisorStep::Stop => {
                cared.flight.ending = true;
                work::stop(instance, None, told);
            }
            SupervisorStep::Remove => {
                (cared.flight.ending, cared.is_leaving) = (true, true);
                work::remove(instance, told);
            }
        }
        let agent = cared.instance.name();
        if cared.status.as_ref() != Some(&status) {
            cared.status = Some(status.clone());
            self.tell(Notice::Status {
                agent: Arc::clone(&agent),
                id,
                status,
            });
        }
        if let Some(why) = failed {
            self.tell_failure(id, &why);
        }
        if let Some(max_running) = waits {
            self.tell(Notice::Waiting {
                agent,
                id,
                max_running,
            });
        }
        self.keep(id);
    }

    /// Writes its course, unless its directory is being deleted.
    fn keep(&mut self, id: Uuid) {
        let Some(cared) = self.agents.get_mut(&id) else {
            return;
        };
        if cared.is_leaving || cared.kept.as_ref() == Some(&cared.course) {
            return;
        }
        // A failed write is not repeated at every check: the next change tries again.
        cared.kept = Some(cared.course.clone());
        if let Err(error) = self.by.operator.home().keep(id, &cared.course) {
            let name = cared.instance.name();
            self.problem(Some(name), &chain(&error));
        }
    }

    fn tell_failure(&self, id: Uuid, why: &str) {
        let Some(Cared {
            instance, course, ..
        }) = self.agents.get(&id)
        else {
            return;
        };
        let (agent, now) = (instance.name(), self.by.world.now_ms());
        self.tell(match &course.given_up {
            Some(why) => Notice::GivenUp {
                agent,
                id,
                why: Arc::clone(why),
            },
            None => {
                let pause_ms = course.next_ms.unwrap_or(now).saturating_sub(now);
                Notice::Pause {
                    agent,
                    id,
                    attempts: course.attempts,
                    pause_ms,
                    why: why.into(),
                }
            }
        });
    }

    fn problem(&self, agent: Option<Arc<str>>, message: &str) {
        self.tell(Notice::Problem {
            agent,
            message: message.into(),
        });
    }

    fn tell(&self, notice: Notice) {
        self.untold
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(notice);
    }

    /// Publishes the statuses of all agents if they have changed, and then the notices, so that receivers see the new
    /// table.
    fn publish(&self) {
        let mut rows: Vec<AgentRow> = self
            .agents
            .iter()
            .map(|(id, cared)| cared.row(*id))
            .collect();
        rows.sort_by(|one, other| (&one.agent, one.id).cmp(&(&other.agent, other.id)));
        self.by.table.send_if_modified(|table| {
            let is_new = **table != *rows;
            if is_new {
                *table = rows.into();
            }
            is_new
        });
        self.by.agents.send_if_modified(|known| {
            let is_new = !known.keys().eq(self.agents.keys());
            if is_new {
                *known = Arc::new(
                    self.agents
                        .iter()
                        .map(|(id, it)| (*id, Arc::clone(&it.instance)))
                        .collect(),
                );
            }
            is_new
        });
        for notice in
            std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner))
        {
            // There may be no receivers.
            let _ = self.by.notices.send(notice);
        }
    }

    /// Stops every running agent, and reports each outcome.
    pub(super) async fn end(mut self, at_once: &Cancel) -> SupervisorReport {
        let mut report = SupervisorReport::default();
        let mut ending: BTreeMap<Uuid, Arc<str>> = BTreeMap::new();
        for (id, cared) in &mut self.agents {
            if !(cared.flight.starting || cared.flight.ending || is_up(&cared.instance.status())) {
                report.idle.push(cared.instance.name());
                continue;
            }
            ending.insert(*id, cared.instance.name());
            if !cared.flight.ending {
                cared.flight.ending = true;
                work::stop(Arc::clone(&cared.instance), None, self.told.clone());
            }
        }
        let until = time::Instant::now() + self.by.settings.end_within;
        let mut tick = time::interval(LOOK);
        while !ending.is_empty() {
            tokio::select! {
                () = at_once.cancelled() => break,
                () = time::sleep_until(until) => break,
                _ = tick.tick() => {}
                Some(done) = self.done.recv() => match done {
                    Done::Stopped(id, Ok(()), _) => report.stopped.extend(ending.remove(&id)),
                    Done::Removed(id, Ok(())) => {
                        ending.remove(&id);
                        self.removed(id, Ok(()));
                    }
                    Done::Stopped(id, Err(error), _) | Done::Removed(id, Err(error)) => {
                        report.left.extend(ending.remove(&id).map(|name| (name, chain(&error).into())));
                    }
                    _ => {}
                },
            }
            self.show();
        }
        report.left.extend(
            ending
                .into_values()
                .map(|name| (name, "it had not ended in time".into())),
        );
        self.show();
        report
    }

    /// Publishes the statuses of agents while they stop.
    fn show(&mut self) {
        let mut told = Vec::new();
        for (id, cared) in &mut self.agents {
            let status = cared.instance.status();
            if cared.status.as_ref() != Some(&status) {
                cared.status = Some(status.clone());
                told.push(Notice::Status {
                    agent: cared.instance.name(),
                    id: *id,
                    status,
                });
            }
        }
        told.into_iter().for_each(|notice| self.tell(notice));
        self.publish();
    }
}

impl Cared {
    fn row(&self, id: Uuid) -> AgentRow {
        let Course {
            restarts,
            is_waiting,
            next_ms,
            given_up,
            ..
        } = self.course.clone();
        let (agent, goal, status) = (
            self.instance.name(),
            self.desired.goal,
            self.instance.status(),
        );
        AgentRow {
            agent,
            id,
            status,
            goal,
            restarts,
            is_waiting,
            next_ms,
            given_up,
        }
    }
}

fn message(status: &Status) -> String {
    match status {
        Status::Failed { message, .. } => message.to_string(),
        _ => "it ended by itself".to_owned(),
    }
}
