//! Plays a session: its runs, what is done to them while they are at work, and what is answered when they wait.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{
    Agent, Answered, Event, EventKind, Journal, Lane, LogId, Outcome, PauseId, Queued, Record,
    RunNo, RunResult, Running, Seq, Stamped,
};
use adjutant_llm::{Custom, FixedWorld, Request, Script, ScriptedModel, UserMessage};
use adjutant_tool::{Answer, Cancel};
use futures_util::StreamExt;
use serde_json::json;

use super::{
    actors, check,
    dripping::Dripping,
    keeping::Keeping,
    plan::{After, Cut, How, Plan, Poke, Step},
    tools::World,
};

/// How long whatever was left behind may need to end; no time passes in truth.
const LONG: Duration = Duration::from_secs(3_600);

/// One drive as it was seen.
pub(crate) struct Seen {
    pub(crate) events: Vec<Event>,
    /// Whether it was read to its end.
    pub(crate) whole: bool,
    pub(crate) result: Option<RunResult>,
}

/// A message that was queued.
pub(crate) struct Pushed {
    pub(crate) text: String,
    pub(crate) handle: Queued,
    /// How many records there were when it was taken back, if it was.
    pub(crate) withdrawn_at: Option<usize>,
    /// Whether it was lost with a program that ended before any run heard of it.
    pub(crate) lost: bool,
    /// Its handle is of a program that has given the log up.
    pub(crate) stale: bool,
}

/// A session on its way.
pub(crate) struct Session<'p> {
    plan: &'p Plan,
    pub(crate) world: World,
    pub(crate) journal: Keeping,
    pub(crate) agent: Agent,
    model: Arc<ScriptedModel>,
    pub(crate) models: Vec<Arc<ScriptedModel>>,
    pub(crate) drives: Vec<Seen>,
    pub(crate) pushed: Vec<Pushed>,
    /// Whether nothing was cut, so that everything that was used is known.
    pub(crate) clean: bool,
}

impl<'p> Session<'p> {
    pub(crate) fn new(plan: &'p Plan) -> Self {
        Self::on(plan, Keeping::default())
    }

    /// The same, with this journal.
    pub(crate) fn on(plan: &'p Plan, journal: Keeping) -> Self {
        let (world, model) = (World::default(), scripted(Vec::new()));
        let agent = Agent::new(Dripping(Arc::clone(&model)))
            .world(FixedWorld::at_ms(1_000))
            .journal(journal.clone());
        let agent = actors::equip(&plan.gear, &world, agent);
        let (models, drives, pushed) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            plan,
            world,
            journal,
            agent,
            model,
            models,
            drives,
            pushed,
            clean: true,
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.plan
    }

    /// Plays all steps.
    pub(crate) async fn play(&mut self) {
        for (at, step) in self.plan.steps.iter().enumerate() {
            self.step(at, step).await;
        }
    }

    async fn step(&mut self, at: usize, step: &Step) {
        for lane in &step.queued {
            self.push(*lane);
        }
        self.model = scripted(step.lines.iter().map(super::plan::Line::script).collect());
        self.models.push(Arc::clone(&self.model));
        let token = Cancel::new();
        self.agent = self
            .agent
            .clone()
            .limits(step.limits())
            .model(Dripping(Arc::clone(&self.model)));
        let running = self
            .agent
            .run(format!("Go on, {at}."))
            .cancel(token.clone())
            .stream()
            .expect("the session is free");
        self.watch(running, step.cut, Some(&token), &step.pokes)
            .await;
        let mut afters = step.afters.iter();
        while !self.agent.log().pauses().is_empty() {
            let last = After {
                how: How::GivesUp,
                cut: Cut::Never,
                choice: 0,
            };
            self.after(*afters.next().unwrap_or(&last)).await;
        }
        // Time passes only when nothing else can move: bodies that were dropped are gone.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let peak = self.world.peak();
        assert!(
            peak <= step.parallel as usize,
            "{peak} bodies at a time, not {}",
            step.parallel
        );
    }

    async fn after(&mut self, after: After) {
        let pauses = self.agent.log().pauses();
        let answered = |pause: &PauseId, answer| Answered {
            pause: pause.clone(),
            answer,
            shown: None,
        };
        let fits: Vec<Answered> = pauses
            .iter()
            .zip(0_u8..)
            .map(|(pause, n)| {
                answered(
                    &pause.id,
                    actors::answer(&pause.ask, after.choice.wrapping_add(n)),
                )
            })
            .collect();
        match after.how {
            How::Here => {}
            How::Elsewhere => self.move_on().await,
            How::Wrongly => {
                let stranger = answered(&PauseId("main/c99_0_0".into()), Answer::approve());
                let running = self
                    .agent
                    .resume([fits.clone(), vec![stranger]].concat())
                    .stream()
                    .expect("free");
                let seen = read(running).await;
                assert!(seen.result.is_none(), "an answer to nothing was taken");
                assert!(matches!(
                    &seen.events[..],
                    [Event {
                        kind: EventKind::RunPaused { .. },
                        ..
                    }]
                ));
                assert_eq!(self.agent.log().pauses(), pauses);
            }
            How::GivesUp => {
                // What surrounds the drive may judge it otherwise, and then it is an error.
                let _judged = self.agent.cancel_paused().await;
                assert!(
                    self.agent.log().pauses().is_empty(),
                    "a run that was given up waits"
                );
                self.drives.push(Seen {
                    events: Vec::new(),
                    whole: false,
                    result: None,
                });
                return;
            }
        }
        let running = self
            .agent
            .resume(fits)
            .stream()
            .expect("the session is free");
        self.watch(running, after.cut, None, &[]).await;
    }

    /// Opens the log in another program.
    async fn move_on(&mut self) {
        let log: LogId = self.agent.session_id().clone();
        let pauses = self.agent.log().pauses();
        let records = self.records().await;
        let logged = check::queue(&records);
        for pushed in self.pushed.iter_mut().filter(|pushed| !pushed.stale) {
            // What was taken back when its run had parked is known to the program that ends here, and to nobody else.
            let open = logged
                .number(&pushed.text)
                .is_some_and(|item| !logged.has_ended(item));
            if let Some(place) = pushed.withdrawn_at.filter(|_| open) {
                let went_on = records[place..]
                    .iter()
                    .any(|it| matches!(it.record, Record::Opened { .. }));
                assert!(
                    !went_on,
                    "{} was taken back, and the run that went on did not tell",
                    pushed.text
                );
                pushed.withdrawn_at = None;
            }
            pushed.lost |= pushed.handle.is_queued() && pushed.handle.item().is_none();
            pushed.stale = true;
        }
        let agent = Agent::new(Dripping(Arc::clone(&self.model))).world(FixedWorld::at_ms(2_000));
        self.agent = actors::equip(
            &self.plan.gear,
            &self.world,
            agent.journal(self.journal.clone()),
        )
        .session(log)
        .take_over();
        self.agent.log().open().await.expect("the log opens");
        assert_eq!(
            self.agent.log().pauses(),
            pauses,
            "another program waits for something else"
        );
    }

    async fn watch(
        &mut self,
        mut running: Running,
        cut: Cut,
        token: Option<&Cancel>,
        pokes: &[(usize, Poke)],
    ) {
        let mut events = Vec::new();
        self.clean &= cut == Cut::Never;
        while let Some(event) = running.next().await {
            let at = events.len();
            events.push(event);
            match cut {
                Cut::Handle(n) if n == at => running.cancel(),
                Cut::Token(n) if n == at => token.map_or_else(|| running.cancel(), Cancel::cancel),
                Cut::Drop(n) if n == at => {
                    drop(running);
                    // The run is closed in the background.
                    tokio::time::sleep(LONG).await;
                    assert!(!self.agent.is_running(), "a run that was dropped goes on");
                    // It parked, or was closed, without being seen: another look at the log tells.
                    self.agent.log().open().await.expect("the log opens");
                    return self.drives.push(Seen {
                        events,
                        whole: false,
                        result: None,
                    });
                }
                _ => {}
            }
            for (_, poke) in pokes.iter().filter(|(n, _)| *n == at) {
                self.poke(*poke).await;
            }
        }
        let seen = ended(events, &running);
        assert!(
            seen.result.is_some(),
            "the log holds, so the run has a result: {:?}",
            running.result()
        );
        self.drives.push(seen);
    }

    async fn poke(&mut self, poke: Poke) {
        match poke {
            Poke::Queue(lane) => self.push(lane),
            Poke::Custom => {
                let custom = Custom {
                    kind: "mark".into(),
                    value: json!(self.pushed.len()),
                };
                self.keep(format!("{custom:?}"), self.agent.queue().steer(custom));
            }
            Poke::Interrupt => {
                self.clean = false;
                let text = self.text();
                self.keep(text.clone(), self.agent.queue().interrupt(text.as_str()));
            }
            Poke::Withdraw => {
                let place = self.records().await.len();
                if let Some(pushed) = self
                    .pushed
                    .iter_mut()
                    .rev()
                    .find(|it| !it.stale && it.handle.is_queued())
                {
                    assert!(
                        pushed.handle.withdraw(),
                        "a queued message could not be withdrawn"
                    );
                    pushed.withdrawn_at = Some(place);
                }
            }
            Poke::Abort => {
                self.clean = false;
                let _ = self.agent.abort();
            }
        }
    }

    fn text(&self) -> String {
        format!("message {}", self.pushed.len())
    }

    fn push(&mut self, lane: Lane) {
        let text = self.text();
        let message = UserMessage::text(text.as_str());
        let queued = if lane == Lane::Steering {
            self.agent.queue().steer(message)
        } else {
            self.agent.queue().follow_up(message)
        };
        self.keep(text, queued);
    }

    fn keep(&mut self, text: String, queued: Result<Queued, adjutant_agent::Error>) {
        let handle = queued.expect("there is room");
        self.pushed.push(Pushed {
            text,
            handle,
            withdrawn_at: None,
            lost: false,
            stale: false,
        });
    }

    /// The records of the session.
    pub(crate) async fn records(&self) -> Vec<Stamped> {
        let records = self
            .journal
            .read(self.agent.session_id(), Seq(0))
            .map(|stamped| {
                let stamped = stamped.expect("memory does not fail");
                Stamped::new(
                    stamped.seq,
                    stamped.at_ms,
                    stamped.thread.clone(),
                    stamped.record.clone(),
                )
            });
        records.collect().await
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = Request> {
        self.models.iter().flat_map(|model| model.requests())
    }

    /// What the newest drives of the runs came to, if they were seen.
    pub(crate) fn results(&self) -> impl Iterator<Item = &RunResult> {
        self.drives
            .iter()
            .filter_map(|seen| seen.result.as_ref())
            .filter(|result| result.run != RunNo(0))
    }
}

fn scripted(scripts: Vec<Script>) -> Arc<ScriptedModel> {
    let more = std::iter::repeat_with(|| Script::new().text("Done.")).take(60);
    Arc::new(ScriptedModel::new(scripts.into_iter().chain(more)).info(actors::info()))
}

/// Reads a drive to its end.
pub(crate) async fn read(mut running: Running) -> Seen {
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event);
    }
    ended(events, &running)
}

fn ended(events: Vec<Event>, running: &Running) -> Seen {
    let result = running.result().expect("the drive has ended").ok().cloned();
    let told = events.last().map(|event| event.kind.clone());
    if let Some(result) = &result {
        let result = Arc::new(result.clone());
        let end = match result.outcome {
            Outcome::Paused { .. } => EventKind::RunPaused { result },
            _ => EventKind::RunFinished { result },
        };
        assert_eq!(told, Some(end), "the last event is not the result");
    }
    Seen {
        events,
        whole: true,
        result,
    }
}
