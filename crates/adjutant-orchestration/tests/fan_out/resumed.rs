//! Fan-out over a restart: what has ended is not done again, what waits is what the call waits for.

use std::sync::Arc;

use adjutant_agent::{Agent, AtLimit, Limits, MemoryJournal, Outcome, Record};
use adjutant_llm::{CallResult, ScriptedModel};
use adjutant_orchestration::{FanOutOptions, fan_out_tool};
use adjutant_tool::{Answer, Replay};
use serde_json::json;

use super::{
    desk::{answering, calls, died_after, doing, results, says, tool},
    lead, worker,
};

#[tokio::test]
async fn finished_tasks_are_not_done_again_when_the_program_died() {
    let whole = MemoryJournal::default();
    let options = || FanOutOptions::new().max_concurrency(1);
    let args = json!({"tasks": ["a", "b", "c"]});
    let first = lead(args.clone(), worker(doing(3)), options()).journal(whole.clone());
    first.run("Go.").await.expect("the run finishes");
    let left = died_after(&whole, first.session_id(), |it| matches!(it, Record::ChildEnded { .. })).await;
    let (model, boss) = (doing(2), ScriptedModel::new([says("Done.")]));
    let again = lead(args, worker(Arc::clone(&model)), options()).model(boss);
    let again = again.journal(left).session(first.session_id().clone());
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let text = "## Task 1: a\ndid a.\n\n## Task 2: b\ndid b.\n\n## Task 3: c\ndid c.\n\n";
    assert_eq!((results(&result), model.requests().len()), (vec![text.to_owned()], 2));
    assert_eq!(result.total_usage.total(), 550, "everything once");
}

#[tokio::test]
async fn call_waits_for_what_its_agents_wait_for_when_they_ask() {
    let journal = MemoryJournal::default();
    let step = || tool("step", Replay::Pure, |_| async { Ok(CallResult::ok("stepped")) });
    let model = answering(5, |task| match task {
        "" => says("Stepped on."),
        "quick" => says("Quick."),
        _ => calls("step", json!({})),
    });
    let limits = Limits { max_turns: Some(1), at_limit: AtLimit::Ask, ..Limits::default() };
    let needy = || worker(Arc::clone(&model)).tool(step()).limits(limits.clone());
    let boss = Arc::new(ScriptedModel::new([calls("each", json!({"tasks": ["x", "quick", "y"]})), says("Done.")]));
    let agent = |journal: MemoryJournal| {
        let options = FanOutOptions::new().max_concurrency(2);
        Agent::new(Arc::clone(&boss)).tool(fan_out_tool("each", "Does each.", needy(), options)).journal(journal)
    };
    let first = agent(journal.clone());
    let log = first.session_id().clone();
    let mut result = first.run("Go.").await.expect("it waits");
    let mut asked = 0;
    while let Outcome::Paused { pauses } = &result.outcome {
        asked += pauses.len();
        let answers = pauses.iter().map(|pause| pause.answered(Answer::Extend { by: 5, message: None })).collect();
        let again = agent(journal.clone()).session(log.clone()).take_over();
        result = again.resume(answers).await.expect("it goes on");
    }
    let text = "## Task 1: x\nStepped on.\n\n## Task 2: quick\nQuick.\n\n## Task 3: y\nStepped on.\n\n";
    assert_eq!((results(&result), asked), (vec![text.to_owned()], 2));
    model.assert_done();
}
