//! Setters do what they say, in any order, and a resume takes what a run takes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Agent, HookContext, Hooks, Limit, LogId, MemoryJournal, Outcome, Verdict, points::BeforeModel,
};
use adjutant_llm::{CallResult, FixedWorld, Gate, Script, ScriptedModel};
use adjutant_tool::{Answer, Approval, ToolSpec, tool_fn};
use serde_json::json;

use super::stage::{agent, spec, tool};

#[tokio::test]
async fn hooks_are_added_when_others_are_there() {
    let heard = Arc::new(AtomicUsize::new(0));
    let counting = |worth: usize| {
        let heard = Arc::clone(&heard);
        move |_: HookContext, point: BeforeModel| {
            heard.fetch_add(worth, Ordering::Relaxed);
            std::future::ready(Verdict::Pass(point))
        }
    };
    let (_, agent) = agent([Script::new().text("Done.")]);
    let agent = agent
        .on(counting(1))
        .hooks(Hooks::default().on(counting(10)))
        .hooks(Hooks::default());
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(heard.load(Ordering::Relaxed), 11);
}

#[tokio::test]
async fn session_stays_chosen_when_the_journal_or_the_world_is_set_later() {
    let (journal, log) = (MemoryJournal::default(), LogId::from("mine"));
    let (_, first) = agent([Script::new().text("One.")]);
    first
        .session(log.clone())
        .journal(journal.clone())
        .run("Go.")
        .await
        .expect("the run finishes");
    let (_, second) = agent([Script::new().text("Two.")]);
    let second = second
        .session(log.clone())
        .world(FixedWorld::at_ms(1_000))
        .journal(journal);
    assert_eq!(second.session_id(), &log);
    second.run("Again.").await.expect("the run finishes");
    assert_eq!(second.log().transcript().len(), 4);
    let begun = second.new_session().journal(MemoryJournal::default());
    assert_ne!(begun.session_id(), &log);
}

/// An agent whose one call waits for a word.
fn waiting(model: &Arc<ScriptedModel>) -> Agent {
    let write = tool_fn(
        ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        },
        |_: serde_json::Value, _| async { Ok(CallResult::ok("ok")) },
    );
    Agent::new(Arc::clone(model))
        .tool(write)
        .tool(tool("look", |_, _| async { Ok(CallResult::ok("ok")) }))
}

#[tokio::test]
async fn resume_takes_a_model_turns_and_a_deadline_when_they_are_given() {
    let asks = || ScriptedModel::new([Script::new().call("write", json!({}))]);
    let looks = || {
        ScriptedModel::new([
            Script::new().call("look", json!({})),
            Script::new().text("Other."),
        ])
    };
    for (turns, expect) in [(2, Limit::Turns.to_string()), (3, "Other.".to_owned())] {
        let (own, other) = (Arc::new(asks()), Arc::new(looks()));
        let agent = waiting(&own);
        agent.run("Go.").await.expect("it waits");
        let answers = agent
            .log()
            .pauses()
            .iter()
            .map(|pause| pause.with_answer(Answer::approve()))
            .collect();
        let resumed = agent
            .resume(answers)
            .model(Arc::clone(&other))
            .max_turns(turns)
            .await
            .expect("no failure");
        let came = match &resumed.outcome {
            Outcome::Limit { limit } => limit.to_string(),
            _ => resumed.text(),
        };
        assert_eq!((came, own.requests().len()), (expect, 1));
    }
    let never = Script::new().text("Never.").wait_at(0, &Gate::default());
    let agent = waiting(&Arc::new(ScriptedModel::new([
        Script::new().call("write", json!({})),
        never,
    ])));
    agent.run("Go.").await.expect("it waits");
    let answers = agent
        .log()
        .pauses()
        .iter()
        .map(|pause| pause.with_answer(Answer::approve()))
        .collect();
    let late = agent
        .resume(answers)
        .deadline(Duration::ZERO)
        .await
        .expect("a cancel is no error");
    assert!(
        matches!(
            late.outcome,
            Outcome::Cancelled {
                by: adjutant_agent::CancelBy::Deadline
            }
        ),
        "{:?}",
        late.outcome
    );
}
