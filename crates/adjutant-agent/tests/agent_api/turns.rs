//! What is decided between two turns.

use std::sync::{Arc, Mutex};

use adjutant_agent::{
    Agent, Completion, EventKind, Failure, HookContext, Journal, Limit, MemoryJournal, Outcome,
    Record, RunChange, Seq, Verdict,
    points::{AfterTurn, MessagePlaced, NextTurn},
    prepare_next_turn, stop_after_turn,
};
use adjutant_llm::{
    CallResult, Edit, Effort, Entry, EntryId, Error, ErrorKind, ModelInfo, Script, ScriptedModel,
    Status, Summary, UserMessage,
};
use futures_util::StreamExt;
use serde_json::json;
use tokio::sync::Notify;

use super::stage::{agent, calls, events, tool};

fn work() -> impl adjutant_tool::ErasedTool + 'static {
    tool("work", |_, _| async { Ok(CallResult::ok("ok")) })
}

fn calling() -> Script {
    Script::new().call("work", json!({}))
}

fn done() -> Script {
    Script::new().text("Done.")
}

/// What the turns of a run changed, as it is recorded.
async fn changes(journal: &MemoryJournal, agent: &Agent) -> Vec<RunChange> {
    let read = journal.read(agent.session_id(), Seq(0));
    let changes = read.filter_map(|stamped| async move {
        match &stamped.expect("memory does not fail").record {
            Record::Settled { change, .. } => Some(change.clone()),
            _ => None,
        }
    });
    changes.collect().await
}

fn change() -> RunChange {
    let mut change = RunChange::default();
    change.model = Some("test/other".into());
    change.thinking = Some(Effort::High);
    change.tools = Some(vec!["work".into()]);
    let into = Summary {
        text: "What was.".into(),
        covers: 1,
    };
    change.edits = vec![Edit::Fold {
        upto: EntryId(0),
        keep: Vec::new(),
        into,
    }];
    change
}

#[tokio::test]
async fn prepare_next_turn_changes_the_run_when_it_says_so() {
    let (journal, model) = (
        MemoryJournal::default(),
        Arc::new(ScriptedModel::new([calling(), done(), done()])),
    );
    let other = Arc::new(ScriptedModel::new([done()]).info(ModelInfo::new("test/other")));
    let agent = Agent::new(Arc::clone(&model))
        .alternative(Arc::clone(&other))
        .journal(journal.clone())
        .tool(work());
    let changed = agent.clone().on(prepare_next_turn(|turn| {
        (!turn.results.is_empty()).then(change)
    }));
    changed.run("Go.").await.expect("the run finishes");
    assert_eq!(
        changes(&journal, &agent).await,
        [change(), RunChange::default()]
    );
    let shown = model
        .requests()
        .into_iter()
        .chain(other.requests())
        .nth(1)
        .expect("two requests");
    assert!(
        matches!(&shown.entries.get(0).expect("entries").entry, Entry::Summary(it) if &*it.text == "What was.")
    );
    assert!(matches!(
        &agent.log().transcript().get(0).expect("entries").entry,
        Entry::User(_)
    ));
    // Changes of a run end with it.
    agent.run("Again.").await.expect("the run finishes");
    let next = model.requests().pop().expect("requests");
    assert_eq!((next.options.thinking, next.tools.len()), (None, 1));
}

#[tokio::test]
async fn prepare_next_turn_changes_nothing_when_it_is_silent() {
    let (journal, model) = (
        MemoryJournal::default(),
        ScriptedModel::new([calling(), done()]),
    );
    let agent = Agent::new(model)
        .journal(journal.clone())
        .tool(work())
        .on(prepare_next_turn(|_| None));
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        changes(&journal, &agent).await,
        [RunChange::default(), RunChange::default()]
    );
}

#[tokio::test]
async fn prepare_next_turn_is_warned_when_it_asks_for_what_is_not_there() {
    let (journal, model) = (
        MemoryJournal::default(),
        ScriptedModel::new([calling(), done()]),
    );
    let other = ScriptedModel::new([done()]).info(ModelInfo::new("test/other"));
    let agent = Agent::new(model)
        .alternative(other)
        .journal(journal.clone());
    let agent = agent.tool(work()).on(prepare_next_turn(|_| {
        let mut change = change();
        change.edits = vec![Edit::Replace {
            at: EntryId(77),
            with: UserMessage::text("?").into(),
        }];
        Some(change)
    }));
    let seen = events(agent.run("Go.").stream().expect("the session is free")).await;
    let warnings: Vec<String> = seen
        .iter()
        .filter_map(|event| match event {
            EventKind::Warning { warning } => Some(warning.message.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(
        warnings,
        ["an edit names an entry that is not shown, so the view stays"]
    );
    let mut kept = change();
    kept.edits = Vec::new();
    assert_eq!(changes(&journal, &agent).await, [kept.clone(), kept]);
}

#[test]
fn changes_join_when_several_functions_say_something() {
    let mut first = change();
    first.edits = Vec::new();
    let mut second = RunChange::default();
    second.thinking = Some(Effort::Low);
    let joined = first.clone().then(second);
    first.thinking = Some(Effort::Low);
    assert_eq!(joined, first);
    assert_eq!(
        RunChange::default().then(RunChange::default()),
        RunChange::default()
    );
}

#[tokio::test]
async fn stop_after_turn_ends_the_run_when_it_says_so() {
    let (model, agent) = agent([calling(), done()]);
    let result = agent
        .tool(work())
        .on(stop_after_turn(|turn| turn.results.len() == 1))
        .run("Go.")
        .await;
    let result = result.expect("the run ends");
    assert!(
        matches!(
            result.outcome,
            Outcome::Finished {
                why: Completion::Stopped,
                ..
            }
        ),
        "{:?}",
        result.outcome
    );
    assert_eq!((model.requests().len(), result.entries.len()), (1, 2));
    assert_eq!(
        calls(&result),
        [("work".to_owned(), Status::Ok, "ok".to_owned())]
    );
}

#[tokio::test]
async fn turn_points_see_the_turn_when_it_is_closed() {
    type Facts = (usize, Vec<String>, usize, usize);
    let seen: Arc<Mutex<Vec<Facts>>> = Arc::default();
    let (next, after) = (Arc::clone(&seen), Arc::clone(&seen));
    let results =
        |results: &[Arc<CallResult>]| results.iter().map(|it| it.text()).collect::<Vec<_>>();
    let (_, agent) = agent([calling().call("other", json!({})), done()]);
    agent
        .tool(work())
        .tool(tool("other", |_, _| async { Ok(CallResult::ok("other")) }))
        .on(prepare_next_turn(move |turn| {
            let facts = (
                turn.reply.calls().count(),
                results(&turn.results),
                turn.view.len(),
                0,
            );
            next.lock().expect("no panic inside").push(facts);
            let into = Summary {
                text: "What was.".into(),
                covers: 2,
            };
            let edits = vec![Edit::Fold {
                upto: EntryId(1),
                keep: Vec::new(),
                into,
            }];
            (!turn.results.is_empty()).then(|| {
                let mut change = RunChange::default();
                change.edits = edits;
                change
            })
        }))
        .on(stop_after_turn(move |turn| {
            let facts = (
                turn.reply.calls().count(),
                results(&turn.results),
                turn.view.len(),
                turn.entries.len(),
            );
            after.lock().expect("no panic inside").push(facts);
            false
        }))
        .run("Go.")
        .await
        .expect("the run finishes");
    let both = || vec!["ok".to_owned(), "other".to_owned()];
    let expected = [
        (2, both(), 2, 0),
        (2, both(), 1, 2),
        (0, vec![], 2, 0),
        (0, vec![], 2, 3),
    ];
    assert_eq!(*seen.lock().expect("no panic inside"), expected);
}

/// The turn points of a run of this agent, by name and in order.
fn told(agent: Agent) -> (Agent, Arc<Mutex<Vec<&'static str>>>) {
    let told: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let (next, after, placed) = (Arc::clone(&told), Arc::clone(&told), Arc::clone(&told));
    let agent = agent
        .on(prepare_next_turn(move |_| {
            next.lock().expect("no panic inside").push("next");
            None
        }))
        .on(stop_after_turn(move |_| {
            after.lock().expect("no panic inside").push("after");
            false
        }))
        .on(move |_: HookContext, point: MessagePlaced| {
            placed.lock().expect("no panic inside").push("poll");
            std::future::ready(Verdict::Pass(point))
        });
    (agent, told)
}

#[tokio::test]
async fn turn_points_keep_their_order_when_a_run_has_them_all() {
    let (_, whole) = agent([calling(), done(), done()]);
    let (whole, seen) = told(whole.tool(work()));
    let handle = whole.clone();
    let whole = whole.tool(tool("never", |_, _| async { Ok(CallResult::ok("")) }));
    handle.queue().steer("first").expect("there is room");
    handle.queue().steer("second").expect("there is room");
    whole.run("Go.").await.expect("the run finishes");
    assert_eq!(
        *seen.lock().expect("no panic inside"),
        ["poll", "next", "after", "poll", "next", "after"]
    );

    let (_, failing) = agent([Script::new().fail(Error::new(ErrorKind::Invalid, "no"))]);
    let (failing, seen) = told(failing);
    failing.queue().follow_up("waits").expect("there is room");
    failing.run("Go.").await.expect_err("the model fails");
    assert_eq!(
        (
            seen.lock().expect("no panic inside").len(),
            !failing.queue().is_empty()
        ),
        (0, true)
    );

    let (_, cancelled) = agent([calling(), done()]);
    let handle = cancelled.clone();
    let (cancelled, seen) = told(cancelled.tool(tool("work", move |_, _| {
        handle.queue().steer("waits").expect("there is room");
        assert!(handle.abort(), "a run is live");
        async { Ok(CallResult::ok("ok")) }
    })));
    let result = cancelled.run("Go.").await.expect("a cancel is no error");
    assert!(
        matches!(result.outcome, Outcome::Cancelled { .. }),
        "{:?}",
        result.outcome
    );
    assert_eq!(
        (
            seen.lock().expect("no panic inside").len(),
            !cancelled.queue().is_empty()
        ),
        (0, true)
    );
}

#[tokio::test]
async fn run_fails_when_a_turn_point_denies_or_panics() {
    let panics = |agent: Agent| agent.on(stop_after_turn(|_| std::panic::panic_any("no more")));
    let denies = |agent: Agent| {
        agent.on(|_: HookContext, _: NextTurn| async { Verdict::Deny("no more".into()) })
    };
    let later =
        |agent: Agent| agent.on(|_: HookContext, _: AfterTurn| async { Verdict::Deny("".into()) });
    type With = Box<dyn Fn(Agent) -> Agent>;
    let table: [(With, &str, &str); 3] = [
        (
            Box::new(panics),
            "after_turn",
            "a hook of after_turn panicked: no more",
        ),
        (Box::new(denies), "next_turn", "no more"),
        (Box::new(later), "after_turn", "denied by a hook"),
    ];
    for (with, point, reason) in table {
        let (model, agent) = agent([calling(), done()]);
        agent.queue().steer("first").expect("there is room");
        agent.queue().steer("waits").expect("there is room");
        let seen = events(
            with(agent.clone().tool(work()))
                .run("Go.")
                .stream()
                .expect("the session is free"),
        )
        .await;
        let Some(EventKind::RunFinished { result }) = seen.last() else {
            unreachable!("the last event")
        };
        let failure = Failure::Denied {
            point: point.into(),
            reason: reason.into(),
        };
        assert_eq!(result.outcome, Outcome::Failed { failure });
        let denied = EventKind::Denied {
            point: point.into(),
            reason: reason.into(),
            call: None,
        };
        assert_eq!(seen.iter().filter(|event| **event == denied).count(), 1);
        assert_eq!(
            (
                model.requests().len(),
                agent.queue().items().len(),
                result.calls.len()
            ),
            (1, 1, 1)
        );
        agent.run("Again.").await.expect("the session can be used");
    }
}

#[tokio::test]
async fn run_is_cancelled_when_a_turn_point_hangs() {
    let (_, agent) = agent([calling(), done()]);
    let reached = Arc::new(Notify::new());
    let reaches = Arc::clone(&reached);
    let agent = agent.tool(work()).on(move |_: HookContext, _: NextTurn| {
        reaches.notify_one();
        std::future::pending::<Verdict<NextTurn>>()
    });
    let task = tokio::spawn(
        agent
            .run("Go.")
            .stream()
            .expect("the session is free")
            .finish(),
    );
    reached.notified().await;
    assert!(agent.abort());
    let result = task.await.expect("no panic").expect("a cancel is no error");
    assert!(
        matches!(result.outcome, Outcome::Cancelled { .. }),
        "{:?}",
        result.outcome
    );
    assert_eq!((result.entries.len(), result.turns), (2, 1));
}

#[tokio::test]
async fn turn_points_are_asked_when_the_turn_is_the_last() {
    let (_, agent) = agent([calling()]);
    let (agent, seen) = told(agent.tool(work()).max_turns(1));
    let result = agent.run("Go.").await.expect("a limit is no error");
    assert_eq!(
        result.outcome,
        Outcome::Limit {
            limit: Limit::Turns
        }
    );
    assert_eq!(*seen.lock().expect("no panic inside"), ["next", "after"]);
}
