//! A lead with members and background tasks whose program is killed, again and again: nobody is forgotten.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use adjutant_agent::{Agent, Error, Journal, LogId, MemoryJournal, RunResult, Seq, Stamped};
use adjutant_llm::{CallResult, Entry, Request, Script, ScriptedModel};
use adjutant_orchestration::{AtEnd, Background, BackgroundOptions, team::Team};
use adjutant_store::{Postgres, Sqlite};
use adjutant_tool::{CallContext, Replay};
use futures_util::StreamExt;
use serde_json::json;

use super::{
    fan_out::desk::{calls, calls_all, messages, says, tool},
    trees::torn::Torn,
};

/// What everyone comes to.
const RESULTS: [&str; 5] = ["a", "b", "c", "x", "y"];
/// The most requests of one agent in one program.
const REQUESTS: usize = 20;

/// How often each agent did what may be done once.
type Deeds = Arc<Mutex<BTreeMap<String, usize>>>;

/// Everything that outlives a program.
struct Stage {
    journal: Arc<dyn Journal>,
    /// True if its time passes only when nobody works: not with a journal that works on threads of its own.
    is_paused: bool,
    deeds: Deeds,
}

/// Runs what a program does, in a runtime of its own that ends with it.
fn play<T>(is_paused: bool, work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(is_paused)
        .build();
    runtime.expect("a runtime").block_on(work)
}

fn model(
    answer: impl Fn(&Request) -> Script + Clone + Send + Sync + 'static,
) -> Arc<ScriptedModel> {
    let scripts = (0..REQUESTS).map(|_| Script::from_fn(answer.clone()));
    Arc::new(ScriptedModel::new(scripts.collect::<Vec<_>>()))
}

fn turns(request: &Request) -> Vec<String> {
    let turns = request
        .entries
        .iter()
        .filter(|it| matches!(it.entry, Entry::Turn(_)));
    turns.map(|it| json!(it.entry).to_string()).collect()
}

/// The records of a log; none if there is no such log.
async fn records(journal: &Arc<dyn Journal>, log: &LogId) -> Vec<Arc<Stamped>> {
    journal
        .read(log, Seq(0))
        .filter_map(|it| async { it.ok() })
        .collect()
        .await
}

impl Stage {
    fn in_memory() -> Self {
        Self {
            journal: Arc::new(MemoryJournal::default()),
            is_paused: true,
            deeds: Deeds::default(),
        }
    }

    fn on(journal: impl Journal + 'static) -> Self {
        Self {
            journal: Arc::new(journal),
            is_paused: false,
            deeds: Deeds::default(),
        }
    }

    /// The number of records of a log.
    fn len(&self, log: &LogId) -> u64 {
        play(self.is_paused, records(&self.journal, log)).len() as u64
    }

    /// An agent that does something once, and then says what it came to.
    fn worker(&self) -> Agent {
        let answer = |request: &Request| {
            let task = messages(request).remove(0);
            let name = task
                .split_whitespace()
                .last()
                .unwrap_or_default()
                .to_owned();
            match turns(request).is_empty() {
                true => calls("act", json!({})),
                false => says(format!("Result of {name}")),
            }
        };
        let deeds = Arc::clone(&self.deeds);
        let act = tool("act", Replay::Once, move |cx: CallContext| {
            let deeds = Arc::clone(&deeds);
            async move {
                *deeds
                    .lock()
                    .expect("nobody panics inside")
                    .entry(cx.who.thread.to_string())
                    .or_default() += 1;
                Ok(CallResult::ok("done"))
            }
        });
        Agent::new(model(answer)).tool(act)
    }

    /// A lead that sets everyone to work, and ends when it knows what all came to.
    fn lead(&self) -> Agent {
        let answer = |request: &Request| {
            let (turns, told) = (turns(request), messages(request));
            let knows = |name: &str| {
                let result = format!("Result of {name}");
                turns.iter().chain(&told).any(|text| text.contains(&result))
            };
            if turns.is_empty() {
                let member = |name: &str| {
                    (
                        "spawn_teammate",
                        json!({"name": name, "task": format!("Do {name}")}),
                    )
                };
                let task = |name: &str| {
                    (
                        "launch_task",
                        json!({"agent": "helper", "task": format!("Do {name}")}),
                    )
                };
                return calls_all(&[member("a"), member("b"), member("c"), task("x"), task("y")]);
            }
            if !["a", "b", "c"].into_iter().all(knows) {
                return calls_all(&[
                    ("wait_for_team", json!({"timeout_s": 60})),
                    ("read_messages", json!({})),
                ]);
            }
            says(if RESULTS.into_iter().all(knows) {
                "All is done."
            } else {
                "I wait."
            })
        };
        let options = BackgroundOptions::new().at_end(AtEnd::Wait);
        let background = Background::new(options).agent("helper", "Helps.", self.worker());
        let names = ["a", "b", "c"];
        let team = names.into_iter().fold(Team::new("crew"), |team, name| {
            team.template(name, self.worker())
        });
        team.install(background.install(Agent::new(model(answer)).name("lead")))
    }

    /// A program goes on until its log has so many records; the result if it came to its end before.
    fn program(&self, log: &LogId, most: u64) -> Option<RunResult> {
        play(self.is_paused, async {
            let torn = Torn::new(&self.journal, most);
            let broken = torn.broken();
            let lead = self.lead().journal(torn).session(log.clone()).take_over();
            let is_new = records(&self.journal, log).await.is_empty();
            let run = async {
                if is_new {
                    lead.run("Go.").await
                } else {
                    lead.resume(Vec::new()).await
                }
            };
            tokio::select! {
                biased;
                () = broken.notified() => None,
                ended = run => match ended {
                    Ok(result) => Some(result),
                    // The program died when all was over.
                    Err(Error::Answers(_)) => None,
                    Err(error) => unreachable!("{error:?}"),
                },
            }
        })
    }

    /// Everybody's result was told to the lead, and nobody did twice what may be done once.
    #[track_caller]
    fn check(&self, log: &LogId, ended: Option<&RunResult>, about: &str) {
        let all = play(self.is_paused, records(&self.journal, log));
        let text = all
            .iter()
            .map(|it| json!(it.record).to_string())
            .collect::<Vec<_>>()
            .join("\n");
        let outcome = ended.map(|ended| &ended.outcome);
        assert!(
            text.lines()
                .any(|it| it.contains("ended") && it.contains("All is done.")),
            "{about}: {outcome:?}\n{text}"
        );
        for (thread, times) in &*self.deeds.lock().expect("nobody panics inside") {
            assert_eq!(*times, 1, "{about}: {thread} acted twice");
        }
    }
}

fn session(name: impl std::fmt::Display) -> LogId {
    LogId(format!("session-{name}").into())
}

fn records_of_a_whole_run() -> u64 {
    let (stage, log) = (Stage::in_memory(), session(0));
    let ended = stage.program(&log, u64::MAX);
    stage.check(&log, Some(&ended.expect("it is not killed")), "a whole run");
    stage.len(&log)
}

/// A program is killed when its log has so many records, and another one goes on. Where time passes by itself, there may
/// be fewer of them.
fn kill_once(stage: &Stage, most: u64) {
    let log = session(most);
    let ended = stage
        .program(&log, most)
        .or_else(|| stage.program(&log, u64::MAX));
    stage.check(&log, ended.as_ref(), &format!("killed at {most}"));
}

/// Ten programs are killed one after the other, the first when its log has so many records.
fn kill_ten_times(stage: &Stage, first: u64, step: u64) {
    let (log, mut ended) = (session(format!("ten-{first}")), None);
    for kill in 0..10 {
        let at = stage.len(&log) + if kill == 0 { first } else { step };
        ended = stage.program(&log, at);
    }
    ended = ended.or_else(|| stage.program(&log, u64::MAX));
    stage.check(&log, ended.as_ref(), &format!("first killed at {first}"));
}

#[test]
fn nobody_is_forgotten_when_the_program_is_killed_at_any_record() {
    (1..records_of_a_whole_run()).for_each(|most| kill_once(&Stage::in_memory(), most));
}

#[test]
fn nobody_is_forgotten_when_the_program_is_killed_ten_times() {
    let step = records_of_a_whole_run() / 11;
    (1..=step).for_each(|first| kill_ten_times(&Stage::in_memory(), first, step));
}

#[test]
fn nobody_is_forgotten_in_a_database_when_the_program_is_killed() {
    let (all, folder) = (
        records_of_a_whole_run(),
        tempfile::tempdir().expect("a folder"),
    );
    let open = |name: String| {
        Sqlite::open(folder.path().join(name))
            .expect("it opens")
            .journal()
    };
    // At every record in memory, at some here: each takes a database of its own.
    (1..all)
        .step_by(3)
        .for_each(|most| kill_once(&Stage::on(open(format!("{most}.db"))), most));
    kill_ten_times(&Stage::on(open("ten.db".to_owned())), 5, all / 11);
    let server = match adjutant_testing::PostgresServer::start() {
        Ok(server) => server,
        Err(why) => return eprintln!("skipped: postgres: {why}"),
    };
    for most in (2..all).step_by(9) {
        // Its connections belong to a runtime, and end with it.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        let store =
            runtime.block_on(async { Postgres::connect(server.url("postgres").as_str()).await });
        kill_once(&Stage::on(store.expect("it connects").journal()), most);
    }
}
