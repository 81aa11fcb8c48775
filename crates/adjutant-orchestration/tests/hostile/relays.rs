//! Relays: stopped, dropped, steered and used twice between two handoff runs.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{
    Agent, AtLimit, EventKind, HookContext, Limits, MemoryJournal, Outcome, Verdict, points,
};
use adjutant_llm::{CallResult, Error, ErrorKind, Gate, Script, ScriptedModel};
use adjutant_orchestration::{HandoffChain, HandoffChainRun, HandoffTarget};
use adjutant_tool::{Answer, Replay};
use serde_json::json;

use super::super::fan_out::desk::{calls, messages, says, tool};

fn model(scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(scripts))
}

fn hands_to_b() -> Script {
    calls("transfer_to_b", json!({}))
}

/// A handoff chain of `a`, which begins, and `b`.
fn relay(a: Agent, b: Agent) -> HandoffChain {
    HandoffChain::new([
        HandoffTarget::new("a", "", a),
        HandoffTarget::new("b", "", b),
    ])
    .expect("the names are good")
}

/// Reads until a run of this agent has ended.
async fn until_ended(run: &mut HandoffChainRun, name: &str) {
    while let Some(event) = run.next().await {
        if matches!(event.kind, EventKind::RunFinished { .. }) && &*event.who.name == name {
            return;
        }
    }
    unreachable!("{name} ends");
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_over_for_long_when_the_relay_is_stopped_between_two_legs() {
    let b = model([says("B.")]);
    let relay = relay(
        Agent::new(model([hands_to_b()])),
        Agent::new(Arc::clone(&b)),
    );
    let mut run = relay.stream("Go.");
    until_ended(&mut run, "a").await;
    run.cancel();
    let result = run.finish().await.expect("it ends");
    assert_eq!(
        (
            result.last.outcome.kind(),
            &*relay.active().await.expect("it is known")
        ),
        ("cancelled", "b")
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_when_the_relay_is_stopped_before_it_is_read() {
    let a = model([says("A.")]);
    let relay = relay(Agent::new(Arc::clone(&a)), Agent::new(model([])));
    let run = relay.stream("Go.");
    run.cancel();
    let result = run.finish().await.expect("it ends");
    assert_eq!(result.last.outcome.kind(), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn target_keeps_the_conversation_when_the_relay_is_dropped_between_two_legs() {
    let b = model([says("B."), says("B again.")]);
    let relay = relay(
        Agent::new(model([hands_to_b(), says("A.")])),
        Agent::new(Arc::clone(&b)),
    );
    let mut run = relay.stream("Go.");
    until_ended(&mut run, "a").await;
    drop(run);
    assert_eq!(&*relay.active().await.expect("it is known"), "b");
    assert_eq!(relay.run("And?").await.expect("one answers").text(), "B.");
}

#[tokio::test(start_paused = true)]
async fn session_is_free_and_its_owner_known_wherever_the_relay_is_dropped() {
    for reads in 0..60 {
        let b = model((0..3).map(|_| says("B.")));
        let relay = relay(
            Agent::new(model([hands_to_b(), says("A."), says("A.")])),
            Agent::new(Arc::clone(&b)),
        );
        let mut run = relay.stream("Go.");
        let mut read = 0;
        while read < reads && run.next().await.is_some() {
            read += 1;
        }
        drop(run);
        tokio::time::sleep(Duration::from_secs(30)).await;
        let handed_over = format!("{:?}", relay.transcript()).contains("has the conversation now");
        let expected = if handed_over { "b" } else { "a" };
        assert_eq!(
            &*relay.active().await.expect("it is known"),
            expected,
            "dropped after {reads}"
        );
        let result = relay
            .run("And?")
            .await
            .unwrap_or_else(|error| panic!("dropped after {reads}: {error:?}"));
        assert!(
            result.last.outcome.kind() == "finished",
            "dropped after {reads}: {:?}",
            result.last.outcome
        );
        assert_eq!(&*result.last.agent.name, "b", "dropped after {reads}");
        if read < reads {
            return;
        }
    }
    unreachable!("it ends before");
}

#[tokio::test(start_paused = true)]
async fn message_is_placed_once_when_it_was_queued_between_two_legs() {
    let b = model([says("B."), says("B too.")]);
    let relay = relay(
        Agent::new(model([hands_to_b()])),
        Agent::new(Arc::clone(&b)),
    );
    let mut run = relay.stream("Go.");
    until_ended(&mut run, "a").await;
    relay
        .agent("a")
        .expect("it is there")
        .queue()
        .steer("Be quick.")
        .expect("there is room");
    relay
        .agent("b")
        .expect("it is there")
        .queue()
        .follow_up("And then?")
        .expect("there is room");
    let result = run.finish().await.expect("one answers");
    assert_eq!(result.text(), "B too.");
    let told = messages(b.requests().last().expect("it was asked"));
    assert_eq!(told, ["Go.", "Be quick.", "And then?"]);
}

#[tokio::test(start_paused = true)]
async fn target_can_be_asked_again_when_it_failed() {
    let fails = Script::new().fail(Error::new(ErrorKind::Auth, "no key"));
    let relay = relay(
        Agent::new(model([hands_to_b()])),
        Agent::new(model([fails, says("B.")])),
    );
    relay.run("Go.").await.expect_err("b has no key");
    assert_eq!(&*relay.active().await.expect("it is known"), "b");
    assert_eq!(relay.run("Again.").await.expect("one answers").text(), "B.");
}

#[tokio::test(start_paused = true)]
async fn handoff_is_not_lost_when_a_second_prompt_comes_between_two_legs() {
    let b = model([says("B."), says("B again.")]);
    let relay = relay(
        Agent::new(model([hands_to_b(), says("A.")])),
        Agent::new(Arc::clone(&b)),
    );
    let mut run = relay.stream("Go.");
    until_ended(&mut run, "a").await;
    let second = relay.run("Me too.").await;
    let first = run.finish().await;
    let texts: Vec<_> = [&second, &first]
        .iter()
        .filter_map(|it| it.as_ref().ok().map(|it| it.text()))
        .collect();
    assert!(
        !texts.is_empty() && texts.iter().all(|text| text.starts_with('B')),
        "{second:?} {first:?}"
    );
    assert_eq!(&*relay.active().await.expect("it is known"), "b");
}

#[tokio::test(start_paused = true)]
async fn second_prompt_is_refused_when_the_relay_is_at_work() {
    let gate = Gate::default();
    let relay = relay(
        Agent::new(model([says("A.").wait_at(0, &gate), says("A too.")])),
        Agent::new(model([])),
    );
    let first = tokio::spawn({
        let relay = relay.clone();
        async move { relay.run("Go.").await }
    });
    gate.wait_until_reached().await;
    relay.run("Me too.").await.expect_err("it is at work");
    gate.open();
    assert_eq!(
        first.await.expect("no panic").expect("one answers").text(),
        "A."
    );
    assert_eq!(
        relay.run("Now?").await.expect("one answers").text(),
        "A too."
    );
}

fn asks_for_more(agent: Agent) -> Agent {
    let look = tool("look", Replay::Pure, |_| async {
        Ok(CallResult::ok("seen"))
    });
    agent.tool(look).limits(Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    })
}

#[tokio::test(start_paused = true)]
async fn parked_leg_goes_on_with_its_own_agent_when_another_program_resumes_it() {
    let journal = MemoryJournal::default();
    let program = |a: Vec<Script>, b: Vec<Script>| {
        let a = Agent::new(model(a)).journal(journal.clone()).take_over();
        relay(asks_for_more(a), asks_for_more(Agent::new(model(b))))
    };
    let first = program(vec![hands_to_b()], vec![calls("look", json!({}))]);
    let result = first.run("Go.").await.expect("it waits");
    let Outcome::Paused { pauses } = &result.last.outcome else {
        unreachable!("it waits: {result:?}")
    };
    assert_eq!(&*result.last.agent.name, "b");
    let answers: Vec<_> = pauses
        .iter()
        .map(|it| {
            it.with_answer(Answer::Extend {
                by: 3,
                message: None,
            })
        })
        .collect();
    let id = first.session_id().clone();
    drop(first);
    let result = program(vec![], vec![says("B.")])
        .session(id)
        .resume(answers)
        .await
        .expect("one answers");
    assert_eq!(
        (result.text().as_str(), &*result.last.agent.name),
        ("B.", "b")
    );
}

#[tokio::test(start_paused = true)]
async fn conversation_can_still_be_handed_over_when_a_hook_took_too_long_once() {
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let a = Agent::new(model([hands_to_b(), hands_to_b()])).on(
        move |_: HookContext, point: points::Handoff| {
            let first = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Verdict::Pass(point)
            }
        },
    );
    let relay = relay(a, Agent::new(model([says("B.")])));
    let result = tokio::time::timeout(Duration::from_secs(100_000), relay.run("Go."))
        .await
        .expect("it ends");
    assert_eq!(result.expect("one answers").text(), "B.");
}
