//! What holds for every tree of agents that delegate, however it grows, and wherever it is cut or stopped.

#[path = "trees/check.rs"]
mod check;
#[path = "trees/plan.rs"]
mod plan;
#[path = "trees/stage.rs"]
mod stage;
#[path = "trees/torn.rs"]
pub(crate) mod torn;
#[path = "trees/world.rs"]
mod world;

use std::time::Duration;

use adjutant_agent::{Agent, CancelBy, Error, Event, Outcome, RunResult};
use adjutant_tool::Cancel;
use plan::{Line, Order, Plan, Role, Says, Who};
use proptest::{prelude::*, test_runner::Config};
use stage::{Stage, play};

/// How long agents that heed a wish to stop may take; what they are given by themselves.
const GRACE: Duration = Duration::from_secs(2);
/// What happens in no time that counts: whoever is still at work then waits for nothing.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// A run that is left to itself, and all its events.
async fn run(stage: &Stage, cancel: Option<(usize, Cancel)>) -> (RunResult, Vec<Event>, Duration) {
    let agent = stage.agent(stage.journal.clone());
    let mut running = agent
        .run("Go.")
        .cancel(
            cancel
                .as_ref()
                .map_or_else(Cancel::new, |(_, token)| token.clone()),
        )
        .stream()
        .expect("the session is free");
    let (mut events, mut cancelled) = (Vec::new(), None);
    let reading = async {
        while let Some(event) = running.next().await {
            events.push(event);
            if let Some((at, token)) = &cancel
                && cancelled.is_none()
                && events.len() > *at
            {
                cancelled = Some(tokio::time::Instant::now());
                token.cancel();
            }
        }
    };
    tokio::time::timeout(NEVER, reading)
        .await
        .expect("no deadlock");
    let result = running
        .result()
        .expect("the run has ended")
        .expect("the log holds")
        .clone();
    let took = cancelled.map_or_else(Duration::default, |at| at.elapsed());
    (result, events, took)
}

/// A tree that grows as it likes.
fn grow(plan: &Plan) {
    let stage = Stage::new(plan);
    play(&stage, async {
        stage.let_strangers_in();
        let (result, events, _) = run(&stage, None).await;
        let records = stage.records().await;
        let tree = check::log(&records);
        check::bounds(plan, &tree, &records);
        check::crowds(plan, &stage);
        check::streams(&events, &tree);
        check::reports(plan, &tree, stage.tasks());
        check::usage(&result, &records);
        assert!(
            !matches!(
                result.outcome,
                Outcome::Cancelled { .. } | Outcome::Paused { .. }
            ),
            "{:?}",
            result.outcome
        );
        check::board(&stage, &tree).await;
    });
}

/// A tree whose program dies after some records, again and again; then one goes on to the end.
///
/// There is no limit of agents at a time here: one that was at work does not keep its place through a crash, and is
/// refused if another was faster. Nor is there a board: two agents that give one task to others, each for itself, may
/// do so under one name in two programs; the fixed trees below have one.
fn cut(plan: &Plan, cuts: &[(f64, u64)]) {
    let mut plan = plan.clone();
    (plan.bounds.agents, plan.tasks) = (None, 0);
    let plan = &plan;
    let whole = Stage::new(plan);
    let (expected, length) = play(&whole, async {
        whole.let_strangers_in();
        run(&whole, None).await;
        let records = whole.records().await;
        (check::said(&check::log(&records)), records.len())
    });
    let places: Vec<u64> = cuts
        .iter()
        .map(|(place, _)| 1 + (place * (length - 1) as f64) as u64)
        .collect();
    cut_at(plan, &places, cuts.iter().map(|(_, gap)| *gap), &expected);
}

/// The same, at these records; each time, so many milliseconds pass before the next program.
fn cut_at(plan: &Plan, places: &[u64], gaps: impl IntoIterator<Item = u64>, expected: &[String]) {
    let stage = Stage::new(plan);
    for (place, gap) in places.iter().zip(gaps) {
        stage::die(&stage, *place);
        stage.clock.pass(gap);
    }
    let records = play(&stage, async {
        let agent = stage.agent(stage.journal.clone());
        // What has ended cannot go on, and what fails says so.
        drop(
            tokio::time::timeout(NEVER, go_on(&stage, &agent))
                .await
                .expect("no deadlock"),
        );
        let records = stage.records().await;
        let tree = check::log(&records);
        check::bounds(plan, &tree, &records);
        check::crowds(plan, &stage);
        check::reports(plan, &tree, stage.tasks());
        check::board(&stage, &tree).await;
        records
    });
    // A large tree is ended by its number of requests, of which those of a lost program are some.
    if plan.is_free() && records.len() < 200 {
        assert_eq!(
            check::said(&check::log(&records)),
            expected,
            "cut at {places:?}"
        );
    }
}

/// Goes on where the log ends; begins, if nothing is in it.
async fn go_on(stage: &Stage, agent: &Agent) -> Result<RunResult, Error> {
    if stage.records().await.is_empty() {
        agent.run("Go.").await
    } else {
        agent.resume(Vec::new()).await
    }
}

/// A tree that is stopped after some events.
fn stop(plan: &Plan, place: f64) {
    let whole = Stage::new(plan);
    let length = play(&whole, async {
        whole.let_strangers_in();
        run(&whole, None).await.1.len()
    });
    let stage = Stage::new(plan);
    play(&stage, async {
        stage.let_strangers_in();
        let at = (place * length as f64) as usize;
        let (result, events, took) = run(&stage, Some((at, Cancel::new()))).await;
        assert!(took <= GRACE, "it went on for {took:?}");
        if let Outcome::Cancelled { by } = result.outcome {
            assert_eq!(by, CancelBy::User);
        }
        let records = stage.records().await;
        let tree = check::log(&records);
        check::bounds(plan, &tree, &records);
        check::streams(&events, &tree);
        check::reports(plan, &tree, stage.tasks());
        check::usage(&result, &records);
        tokio::time::sleep(Duration::from_millis(1)).await;
        check::left_nothing(&stage).await;
        check::board(&stage, &tree).await;
    });
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    #[test]
    fn tree_keeps_its_bounds_when_agents_delegate_in_any_way(plan in plan::plans()) {
        grow(&plan);
    }

    #[test]
    fn tree_comes_to_an_end_when_its_programs_die(plan in plan::plans(), cuts in plan::cuts()) {
        cut(&plan, &cuts);
    }

    #[test]
    fn tree_ends_at_once_when_it_is_cancelled_anywhere(plan in plan::plans(), place in 0.0..1.0_f64) {
        stop(&plan, place);
    }
}

/// A tree in which everything happens: two levels, tasks of the board, a handoff, a failure, nobody and oneself.
fn rich() -> Plan {
    let order = |at, task| Order {
        agent: Who::Other(at),
        task,
    };
    let to = |agent| Order { agent, task: None };
    let line = |wait_ms, says| Line { wait_ms, says };
    Plan {
        lead: vec![
            line(
                0,
                Says::Delegates(vec![vec![
                    order(0, Some(0)),
                    order(1, Some(1)),
                    to(Who::Nobody),
                    order(2, Some(2)),
                ]]),
            ),
            line(0, Says::Delegates(vec![vec![to(Who::Oneself)]])),
            line(0, Says::Text),
        ],
        roles: vec![
            Role {
                depth: 1,
                handoffs: 1,
                lines: vec![
                    line(
                        5,
                        Says::Delegates(vec![vec![order(0, None)], vec![order(1, Some(3))]]),
                    ),
                    line(0, Says::Twice),
                ],
                ..Role::default()
            },
            Role {
                concurrency: Some(1),
                lines: vec![
                    line(50_000, Says::Work),
                    line(1, Says::HandsOn(Who::Other(1))),
                ],
                ..Role::default()
            },
            Role {
                lines: vec![line(2, Says::Completes(false))],
                ..Role::default()
            },
        ],
        depth: 2,
        handoffs: 1,
        tasks: 4,
        ..Plan::default()
    }
}

#[test]
fn tree_comes_to_the_same_end_when_it_is_cut_at_any_record() {
    let plan = rich();
    let whole = Stage::new(&plan);
    let (expected, length) = play(&whole, async {
        run(&whole, None).await;
        let records = whole.records().await;
        (check::said(&check::log(&records)), records.len() as u64)
    });
    assert!(
        expected.len() == 4 && length > 100,
        "{length} records: {expected:#?}"
    );
    for place in 1..length {
        let stage = Stage::new(&plan);
        assert!(stage::die(&stage, place), "it dies at {place}");
        let said = play(&stage, async {
            let agent = stage.agent(stage.journal.clone());
            tokio::time::timeout(NEVER, go_on(&stage, &agent))
                .await
                .expect("no deadlock")
                .expect("it goes on");
            let tree = check::log(&stage.records().await);
            check::board(&stage, &tree).await;
            check::said(&tree)
        });
        assert_eq!(said, expected, "cut at {place}");
    }
}

/// Three of one entry that may have one at work, each of whom fails in the end, in two calls of one turn.
fn queued() -> Plan {
    let ann = || Order {
        agent: Who::Other(0),
        task: None,
    };
    let line = |says| Line { wait_ms: 0, says };
    Plan {
        lead: vec![
            line(Says::Delegates(vec![Vec::new()])),
            line(Says::Delegates(vec![vec![ann(), ann()], vec![ann()]])),
        ],
        roles: vec![Role {
            concurrency: Some(1),
            depth: 1,
            lines: vec![
                line(Says::Delegates(vec![vec![ann()], vec![ann()]])),
                line(Says::Delegates(vec![vec![ann()]])),
                line(Says::Fail),
            ],
            ..Role::default()
        }],
        depth: 2,
        ..Plan::default()
    }
}

#[test]
fn tree_comes_to_an_end_when_it_is_cut_where_agents_wait_for_their_places() {
    let plan = queued();
    let whole = Stage::new(&plan);
    let length = play(&whole, async {
        run(&whole, None).await;
        whole.records().await.len() as u64
    });
    for place in 1..length {
        let stage = Stage::new(&plan);
        if !stage::die(&stage, place) {
            continue;
        }
        play(&stage, async {
            let agent = stage.agent(stage.journal.clone());
            let ended = tokio::time::timeout(NEVER, go_on(&stage, &agent)).await;
            drop(ended.unwrap_or_else(|_| panic!("no deadlock when it is cut at {place}")));
        });
    }
}
