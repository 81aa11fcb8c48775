//! The rule of the end: a lead is told once that its team is not done, and its answer is never lost.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Agent, CancelBy, Outcome};
use adjutant_llm::{CallResult, Error, ErrorKind, Script, ScriptedModel};
use adjutant_orchestration::team::MemberStatus;
use adjutant_tool::{Answer, CallContext, Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::desk::{
    agent, call, events, hanging, last, lead, led, read, reporting, results, says, send, shown,
    spawn, taken, team, told, wait, wait_team,
};

const NOT_DONE: &str = "Before you finish: your team is not done.";

#[tokio::test(start_paused = true)]
async fn lead_is_told_once_when_it_would_leave_members_at_work() {
    let model = Arc::new(ScriptedModel::new([
        spawn("a"),
        says("My answer."),
        says("My answer, still."),
    ]));
    let (crew, seen) = reporting(team().template("a", hanging()));
    let begun = Instant::now();
    let result = crew
        .install(Agent::new(Arc::clone(&model)))
        .run("Go.")
        .await
        .expect("the run finishes");
    let asked = shown(&model);
    assert_eq!(
        (result.turns, result.text().as_str()),
        (3, "My answer, still.")
    );
    assert!(
        asked[2].contains(NOT_DONE) && asked[2].contains("- a still works: The task of a."),
        "{}",
        asked[2]
    );
    assert_eq!(
        taken(&seen)[0].members[0].status,
        MemberStatus::Left,
        "the rest is ended"
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn lead_is_told_when_it_would_leave_messages_unread() {
    let model = Arc::new(ScriptedModel::new([
        spawn("a"),
        wait_team(),
        says("Done."),
        read(),
        says("Now I know."),
    ]));
    let crew = team().template("a", agent([says("Important.")]));
    let result = crew
        .install(Agent::new(Arc::clone(&model)))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert!(shown(&model)[3].contains("- you have 1 unread message from a"));
    assert_eq!(result.text(), "Now I know.");
}

#[tokio::test(start_paused = true)]
async fn lead_is_not_told_when_its_team_is_done() {
    let crew = team().template("a", agent([says("Yes.")]));
    let result = led(&crew, [spawn("a"), wait(), says("Done.")]).await;
    assert_eq!((result.turns, result.text().as_str()), (3, "Done."));
    let alone = led(&team(), [says("Alone.")]).await;
    assert_eq!((alone.turns, alone.text().as_str()), (1, "Alone."));
}

#[tokio::test(start_paused = true)]
async fn lead_may_wait_when_it_was_told() {
    let crew = team().template(
        "a",
        agent([
            call("wait_for_message", json!({"timeout_s": 5})),
            says("Here it is."),
        ]),
    );
    let (crew, seen) = reporting(crew);
    let result = led(
        &crew,
        [
            spawn("a"),
            says("Done?"),
            wait_team(),
            wait_team(),
            read(),
            says("Done."),
        ],
    )
    .await;
    assert!(
        results(&result)[3].contains("Here it is."),
        "{:?}",
        results(&result)
    );
    assert_eq!(
        (result.text().as_str(), taken(&seen)[0].members[0].status),
        ("Done.", MemberStatus::Completed)
    );
}

#[tokio::test(start_paused = true)]
async fn lead_is_told_again_when_something_has_changed_since() {
    let model = Arc::new(ScriptedModel::new([
        spawn("a"),
        says("Done?"),
        spawn("b"),
        says("Done now?"),
        call("team_status", json!({})),
        says("Done."),
    ]));
    let crew = team().template("a", hanging()).template("b", hanging());
    let result = crew
        .install(Agent::new(Arc::clone(&model)))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(
        (result.turns, result.text().as_str()),
        (6, "Done."),
        "of one state it is told once"
    );
    assert_eq!(shown(&model)[5].matches(NOT_DONE).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn members_are_not_held_by_the_rule() {
    let model = Arc::new(ScriptedModel::new([says("Mine.")]));
    let crew = team()
        .template("a", Agent::new(Arc::clone(&model)))
        .template("b", hanging());
    led(
        &crew,
        [spawn("b"), spawn("a"), wait(), says("Done."), says("Bye.")],
    )
    .await;
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn answer_is_kept_when_the_lead_says_nothing_more() {
    let silent = Script::new();
    let result = led(
        &team().template("a", hanging()),
        [spawn("a"), says("My answer."), silent],
    )
    .await;
    assert_eq!((result.text().as_str(), result.turns), ("My answer.", 3));
}

#[tokio::test(start_paused = true)]
async fn answer_is_kept_when_the_limit_of_turns_is_reached_after_it() {
    let crew = team().template("a", hanging());
    let two = lead(&crew, [spawn("a"), says("My answer.")]).max_turns(2);
    assert_eq!(
        two.run("Go.").await.expect("the run finishes").text(),
        "My answer."
    );
    let three = lead(&crew, [spawn("a"), says("My answer."), wait_team()]).max_turns(3);
    let result = three.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (result.text().as_str(), result.is_finished()),
        ("My answer.", true)
    );
}

#[tokio::test(start_paused = true)]
async fn answer_is_kept_when_the_model_fails_after_it() {
    let fails = Script::new().fail(Error::new(ErrorKind::Auth, "no key"));
    let result = led(
        &team().template("a", hanging()),
        [spawn("a"), says("My answer."), fails],
    )
    .await;
    assert_eq!(result.text(), "My answer.");
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_run_waits_for_the_next_one() {
    let crew = team().template("a", hanging());
    let model = Arc::new(ScriptedModel::new([spawn("a"), says("One."), says("Two.")]));
    let lead = crew.install(Agent::new(Arc::clone(&model)).max_turns(2));
    lead.run("Go.").await.expect("the run finishes");
    assert!(lead.queue().is_empty());
    lead.run("Again.").await.expect("the run finishes");
    assert!(!shown(&model)[2].contains(NOT_DONE));
}

#[tokio::test(start_paused = true)]
async fn members_end_when_the_lead_is_cancelled() {
    let (crew, seen) = reporting(
        team()
            .template("a", agent([wait(), says("Never.")]))
            .template("b", hanging()),
    );
    let lead = lead(&crew, [spawn("a"), spawn("b"), wait(), says("Never.")]);
    let mut running = lead.run("Go.").stream().expect("the session is free");
    let mut calls = 0;
    while let Some(event) = running.next().await {
        let starts = matches!(event.kind, adjutant_agent::EventKind::ToolStarted { .. });
        calls += u32::from(starts && event.who.depth == 0);
        if calls == 3 {
            running.cancel();
        }
    }
    let result = running
        .result()
        .expect("it has ended")
        .expect("the log holds")
        .clone();
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    assert_eq!(taken(&seen).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_unread_is_told_at_the_end() {
    let (crew, seen) = reporting(
        team()
            .template("a", hanging())
            .template("b", agent([says("Yes.")])),
    );
    let script = [
        spawn("a"),
        send("a", "Hello."),
        spawn("b"),
        wait_team(),
        says("Done."),
        says("Bye."),
    ];
    let events = events(&lead(&crew, script)).await;
    let ended = told(&events, "team.ended").remove(0).1;
    assert_eq!(ended["unread"], json!(["msg-2"]));
    assert_eq!(ended["members"][0]["unread"], json!(["msg-1"]));
    let report = taken(&seen).remove(0);
    assert_eq!(
        (report.unread, &report.members[0].unread[..]),
        (vec!["msg-2".into()], &["msg-1".into()][..])
    );
    assert_eq!(last(&events).text(), "Bye.");
}

#[tokio::test(start_paused = true)]
async fn team_goes_on_when_a_run_that_waited_for_the_outside_is_resumed() {
    let spec = ToolSpec {
        replay: Replay::Resumable,
        ..ToolSpec::new("ask", "A tool.", json!({"type": "object"}))
    };
    let asks = tool_fn(spec, |_: Value, cx: CallContext| async move {
        Ok(CallResult::ok(
            cx.ask("question", "Well?").await?.to_string(),
        ))
    });
    let crew = team().template("a", agent([says("One."), says("Two.")]));
    let again = call("assign_task", json!({"name": "a", "task": "Go on."}));
    let script = [
        spawn("a"),
        wait_team(),
        call("ask", json!({})),
        read(),
        again,
        wait(),
        says("Done."),
    ];
    let lead = crew.install(agent(script).tool(asks));
    let parked = lead.run("Go.").await.expect("the run is parked");
    let Outcome::Paused { pauses } = &parked.outcome else {
        unreachable!("{:?}", parked.outcome)
    };
    let answer = pauses[0].with_answer(Answer::Give {
        value: json!("Yes."),
    });
    let result = lead.resume(vec![answer]).await.expect("the run finishes");
    let results = results(&result);
    assert!(
        results[3].contains("One."),
        "mail waits for the lead: {results:?}"
    );
    assert!(results[5].contains("Two."), "{results:?}");
}
