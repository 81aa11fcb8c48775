//! Calls in runs of an agent: their log, other programs that go on with it, and one whose program dies.

use std::sync::Arc;

use adjutant_agent::{Agent, Answered, MemoryJournal, Outcome, Pause, RunResult};
use adjutant_llm::{Script, ScriptedModel};
use adjutant_tool::Answer;
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::{
    calls::{Seen, job, order},
    script::{Act, server},
};

fn agent(journal: &MemoryJournal, seen: &Seen, scripts: Vec<Script>, is_task: bool) -> Agent {
    let agent = Agent::new(Arc::new(ScriptedModel::new(scripts))).journal(journal.clone());
    if is_task {
        agent.toolbox(server(job(Arc::clone(seen))))
    } else {
        agent.toolbox(server(order(Arc::clone(seen))))
    }
}

/// Answers to all that a run waits for.
fn answers(result: &RunResult) -> Vec<Answered> {
    let Outcome::Paused { pauses } = &result.outcome else {
        return Vec::new();
    };
    let name = |key: Option<&Arc<str>>| json!({"name": key.map(|key| &**key)});
    let answered = |pause: &Arc<Pause>| Answered {
        pause: pause.id.clone(),
        answer: Answer::give(name(pause.key.as_ref())),
        shown: None,
    };
    pauses.iter().map(answered).collect()
}

#[tokio::test(start_paused = true)]
async fn question_of_a_server_is_answered_by_another_program() {
    let (journal, seen) = (MemoryJournal::default(), Seen::default());
    let first = agent(
        &journal,
        &seen,
        vec![Script::new().call("s_order", json!({}))],
        false,
    );
    let session = first.session_id().clone();
    let mut waits = first.run("Order it.").await.expect("the run waits");
    drop(first);
    // A program of its own for each answer.
    let mut rounds = Vec::new();
    while !answers(&waits).is_empty() {
        rounds.push(answers(&waits).len());
        let next = agent(&journal, &seen, vec![Script::new().text("Done.")], false)
            .session(session.clone())
            .take_over();
        waits = next.resume(answers(&waits)).await.expect("the run goes on");
    }
    assert_eq!((waits.text().as_str(), rounds), ("Done.", vec![2, 1]));
    let seen = seen.lock().expect("nobody panicked");
    let began: Vec<&str> = seen
        .iter()
        .filter_map(|what| what.split(' ').next())
        .collect();
    assert_eq!(began, ["begins", "hears", "orders"]);
}

#[tokio::test(start_paused = true)]
async fn call_that_waits_for_an_answer_outlives_a_server_that_is_away() {
    for (starts, expect) in [
        (5, "ordered"),
        (usize::MAX, "it closed the connection before it said"),
    ] {
        let (journal, seen) = (MemoryJournal::default(), Seen::default());
        let first = agent(
            &journal,
            &seen,
            vec![Script::new().call("s_order", json!({}))],
            false,
        );
        let session = first.session_id().clone();
        let mut waits = first.run("Order it.").await.expect("the run waits");
        drop(first);
        let comes = order(Arc::clone(&seen));
        // In the next program the server is away at first.
        let late = server(move |begun, message: &Value| {
            if begun < starts {
                vec![Act::Die]
            } else {
                comes(begun, message)
            }
        });
        let model = Arc::new(ScriptedModel::new([Script::new().text("Done.")]));
        let next = Agent::new(Arc::clone(&model)).journal(journal.clone());
        let next = next.toolbox(late).session(session).take_over();
        while !answers(&waits).is_empty() {
            waits = next.resume(answers(&waits)).await.expect("the run goes on");
        }
        let told = format!("{:?}", model.requests());
        assert!(told.contains(expect), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn task_of_a_server_is_followed_by_another_program() {
    let (journal, seen) = (MemoryJournal::default(), Seen::default());
    let first = agent(
        &journal,
        &seen,
        vec![Script::new().call("s_job", json!({}))],
        true,
    );
    let session = first.session_id().clone();
    // It dies while it looks at the task.
    assert!(
        timeout(Duration::from_millis(1_500), async {
            first.run("Do it.").await
        })
        .await
        .is_err()
    );
    drop(first);
    let next = || {
        agent(&journal, &seen, vec![Script::new().text("Done.")], true)
            .session(session.clone())
            .take_over()
    };
    let waits = next().resume(Vec::new()).await.expect("the run goes on");
    let ended = next()
        .resume(answers(&waits))
        .await
        .expect("the run goes on");
    assert_eq!(ended.text(), "Done.");
    let seen = seen.lock().expect("nobody panicked");
    assert_eq!((seen.len(), seen[0].as_str()), (2, "makes"), "{seen:?}");
}
