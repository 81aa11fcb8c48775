//! Fan-out over a restart: what has ended is not done again, what waits is what the call waits for.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Agent, AtLimit, Caps, Limits, MemoryJournal, Outcome, Record, Spawn};
use adjutant_llm::{CallResult, Gate, Model, ScriptedModel};
use adjutant_orchestration::{FanOutOptions, fan_out_tool};
use adjutant_tool::{Answer, CallContext, Replay};
use serde_json::json;

use super::{
    desk::{answering, calls, calls_all, died_after, doing, results, says, tool},
    lead, worker,
};

#[tokio::test]
async fn finished_tasks_are_not_done_again_when_the_program_died() {
    let whole = MemoryJournal::default();
    let options = || FanOutOptions::new().max_concurrency(1);
    let args = json!({"tasks": ["a", "b", "c"]});
    let first = lead(args.clone(), worker(doing(3)), options()).journal(whole.clone());
    first.run("Go.").await.expect("the run finishes");
    let left = died_after(&whole, first.session_id(), |it| {
        matches!(it, Record::ChildEnded { .. })
    })
    .await;
    let (model, boss) = (doing(2), ScriptedModel::new([says("Done.")]));
    let again = lead(args, worker(Arc::clone(&model)), options()).model(boss);
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let text = "## Task 1: a\ndid a.\n\n## Task 2: b\ndid b.\n\n## Task 3: c\ndid c.\n\n";
    assert_eq!(
        (results(&result), model.requests().len()),
        (vec![text.to_owned()], 2)
    );
    assert_eq!(result.total_usage.total(), 550, "everything once");
}

#[tokio::test]
async fn call_waits_for_what_its_agents_wait_for_when_they_ask() {
    let journal = MemoryJournal::default();
    let step = || {
        tool("step", Replay::Pure, |_| async {
            Ok(CallResult::ok("stepped"))
        })
    };
    let model = answering(5, |task| match task {
        "" => says("Stepped on."),
        "quick" => says("Quick."),
        _ => calls("step", json!({})),
    });
    let limits = Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    };
    let needy = || {
        worker(Arc::clone(&model))
            .tool(step())
            .limits(limits.clone())
    };
    let boss = Arc::new(ScriptedModel::new([
        calls("each", json!({"tasks": ["x", "quick", "y"]})),
        says("Done."),
    ]));
    let agent = |journal: MemoryJournal| {
        let options = FanOutOptions::new().max_concurrency(2);
        Agent::new(Arc::clone(&boss))
            .tool(fan_out_tool("each", "Does each.", needy(), options))
            .journal(journal)
    };
    let first = agent(journal.clone());
    let log = first.session_id().clone();
    let mut result = first.run("Go.").await.expect("it waits");
    let mut asked = 0;
    while let Outcome::Paused { pauses } = &result.outcome {
        asked += pauses.len();
        let answers = pauses
            .iter()
            .map(|pause| {
                pause.with_answer(Answer::Extend {
                    by: 5,
                    message: None,
                })
            })
            .collect();
        let again = agent(journal.clone()).session(log.clone()).take_over();
        result = again.resume(answers).await.expect("it goes on");
    }
    let text =
        "## Task 1: x\nStepped on.\n\n## Task 2: quick\nQuick.\n\n## Task 3: y\nStepped on.\n\n";
    assert_eq!((results(&result), asked), (vec![text.to_owned()], 2));
    model.assert_done();
}

/// A lead that may have one agent at a time: its tool `late` opens one when it may, and `each` fans out one task.
fn one_place(may_open: bool, helper: impl Model + 'static) -> Agent {
    let late = tool(
        "late",
        Replay::Resumable,
        move |cx: CallContext| async move {
            if !may_open {
                std::future::pending::<()>().await;
            }
            let spawn = cx.get::<dyn Spawn>().expect("it is a call of a run");
            let child = spawn.open("late", Agent::new(doing(1)).into()).await?;
            let result = child.run("Be late.").await?;
            Ok(CallResult::ok(result.text()))
        },
    );
    let script = [
        calls_all(&[("late", json!({})), ("each", json!({"tasks": ["a"]}))]),
        says("Done."),
    ];
    let each = fan_out_tool(
        "each",
        "Does each.",
        Agent::new(helper),
        FanOutOptions::default(),
    );
    let limits = Limits {
        caps: Caps {
            agents: Some(1),
            ..Caps::default()
        },
        ..Limits::default()
    };
    Agent::new(ScriptedModel::new(script))
        .name("lead")
        .tool(late)
        .tool(each)
        .limits(limits)
}

#[tokio::test(start_paused = true)]
async fn agent_at_work_keeps_its_place_when_another_one_would_begin_before_it() {
    let whole = MemoryJournal::default();
    let gate = Gate::default();
    let held = gate.clone();
    let helper = answering(1, move |_| says("Never.").wait_at(0, &held));
    let first = one_place(false, helper).journal(whole.clone());
    let run = tokio::spawn({
        let first = first.clone();
        async move { first.run("Go.").await }
    });
    gate.wait_until_reached().await;
    // What was decided is saved before anybody waits.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let id = first.session_id();
    let is_first = |it: &Record| matches!(it, Record::Prepared { turn, .. } if turn.0 == 1);
    let of_child = std::cell::Cell::new(false);
    let left = died_after(&whole, id, |it| is_first(it) && of_child.replace(true)).await;
    run.abort();
    let again = one_place(true, doing(1)).journal(left).session(id.clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let results = results(&result);
    assert!(
        results[1].contains("did a."),
        "who was at work goes on: {results:?}"
    );
    assert!(results[0].contains("limit of agents"), "{results:?}");
}
