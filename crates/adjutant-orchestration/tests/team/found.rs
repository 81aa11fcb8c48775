//! Teams that outlive their program: who was at work goes on, and who has ended can be given a new task.

use std::sync::Arc;

use adjutant_agent::{Agent, LogId, MemoryJournal, Record};
use adjutant_llm::{Request, Script, ScriptedModel};
use adjutant_orchestration::team::Team;
use serde_json::json;

use super::{
    super::fan_out::desk::{died_after, messages},
    desk::{agent, call, hanging, read, results, says, shown, spawn, wait_team},
};

/// A member that says what it came to, again and again.
fn member() -> (Arc<ScriptedModel>, Agent) {
    let answer = |request: &Request| {
        let task = messages(request).pop().unwrap_or_default();
        let task = task.lines().last().unwrap_or_default().to_owned();
        Script::new().text(format!("Came to: {task}"))
    };
    let model = Arc::new(ScriptedModel::new(
        (0..9).map(|_| Script::from_fn(answer)).collect::<Vec<_>>(),
    ));
    (Arc::clone(&model), Agent::new(model))
}

fn crew(a: Agent, b: Agent) -> Team {
    Team::new("crew").template("a", a).template("b", b)
}

#[tokio::test(start_paused = true)]
async fn lead_is_told_who_goes_on_when_the_program_was_lost() {
    let whole = MemoryJournal::default();
    let lead =
        |model: Arc<ScriptedModel>, a| crew(a, hanging()).install(Agent::new(model).name("boss"));
    let first = lead(
        Arc::new(ScriptedModel::new([spawn("a"), says("Bye."), says("Bye.")])),
        hanging(),
    )
    .journal(whole.clone());
    first.run("Go.").await.expect("the run finishes");
    let log = first.session_id();
    let left = died_after(&whole, log, |it| matches!(it, Record::Returned { .. })).await;
    let model = Arc::new(ScriptedModel::new([wait_team(), read(), says("Fine.")]));
    let again = lead(Arc::clone(&model), member().1)
        .journal(left)
        .session(log.clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let told = shown(&model);
    assert!(
        told[0].contains("At work in your team again, where they stopped: a."),
        "{}",
        told[0]
    );
    assert!(
        results(&result)[2].contains("Came to: The task of a."),
        "{:?}",
        results(&result)
    );
}

#[tokio::test(start_paused = true)]
async fn member_goes_on_with_its_conversation_when_a_later_run_gives_it_a_task() {
    let journal = MemoryJournal::default();
    let lead = |scripts: Vec<Script>, a| crew(a, hanging()).install(agent(scripts).name("boss"));
    let first = lead(
        vec![spawn("a"), wait_team(), read(), says("Fine.")],
        member().1,
    )
    .journal(journal.clone());
    first.run("Go.").await.expect("the run finishes");
    for is_new_program in [false, true] {
        let (model, a) = member();
        let script = vec![
            call("list_teammates", json!({})),
            call("assign_task", json!({"name": "a", "task": "Now this."})),
            wait_team(),
            read(),
            says("Fine."),
        ];
        let again = lead(script, a)
            .journal(journal.clone())
            .session(first.session_id().clone());
        let again = again.take_over();
        let result = again.run("And now?").await.expect("the run finishes");
        let results = results(&result);
        assert!(
            results[0].contains(r#""name":"a","status":"completed""#),
            "{is_new_program}: {results:?}"
        );
        assert!(
            results[3].contains("Came to: Now this."),
            "{is_new_program}: {results:?}"
        );
        assert!(
            shown(&model)[0].contains("The task of a."),
            "it remembers what it did"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn member_is_found_when_another_program_made_it_in_a_session_that_was_seen_before() {
    let journal = MemoryJournal::default();
    let program = |team: &Team, scripts: Vec<Script>| {
        let lead = team
            .clone()
            .install(agent(scripts).name("boss"))
            .journal(journal.clone());
        lead.session(LogId::from("log")).take_over()
    };
    let (one, other) = (crew(member().1, hanging()), crew(member().1, hanging()));
    program(&one, vec![says("Hi.")])
        .run("Hi.")
        .await
        .expect("the run finishes");
    let script = vec![spawn("a"), wait_team(), read(), says("Fine.")];
    program(&other, script)
        .run("Go.")
        .await
        .expect("the run finishes");
    let script = vec![call("list_teammates", json!({})), says("I see.")];
    let result = program(&one, script)
        .run("Who is there?")
        .await
        .expect("the run finishes");
    assert!(
        results(&result)[0].contains(r#""name":"a","status":"completed""#),
        "{:?}",
        results(&result)
    );
}

#[tokio::test(start_paused = true)]
async fn member_goes_on_in_a_new_run_when_its_program_died_and_nobody_resumed() {
    let whole = MemoryJournal::default();
    let lead =
        |model: Arc<ScriptedModel>, a| crew(a, hanging()).install(Agent::new(model).name("boss"));
    let script = [spawn("a"), wait_team(), says("Bye."), says("Bye.")];
    let first = lead(Arc::new(ScriptedModel::new(script)), hanging()).journal(whole.clone());
    first.run("Go.").await.expect("the run finishes");
    let log = first.session_id();
    let is_first = |it: &Record| matches!(it, Record::Prepared { turn, .. } if turn.0 == 1);
    let is_of_member = std::cell::Cell::new(false);
    // The first one is that of the lead.
    let left = died_after(&whole, log, |it| is_first(it) && is_of_member.replace(true)).await;
    let script = [
        call("assign_task", json!({"name": "a", "task": "Go on."})),
        wait_team(),
        read(),
        says("Fine."),
    ];
    let model = Arc::new(ScriptedModel::new(script));
    let (of_a, a) = member();
    let again = lead(Arc::clone(&model), a)
        .journal(left)
        .session(log.clone());
    let result = again.run("And now?").await.expect("the run finishes");
    let told = shown(&model);
    assert!(
        told[0].contains("Ended with your last run, before they were done: a"),
        "{}",
        told[0]
    );
    assert!(
        results(&result)[2].contains("Came to: Go on."),
        "{:?}",
        results(&result)
    );
    assert!(
        shown(&of_a)[0].contains("The task of a."),
        "it remembers what it was to do"
    );
}
