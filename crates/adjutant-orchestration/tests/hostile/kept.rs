//! Children that belong to a run: parked runs, lines that are used too late, budgets, and tasks that are found twice.

use std::sync::{Arc, Mutex};

use adjutant_agent::{
    Agent, Answered, AtLimit, Caps, Flush, Journal, Limits, MemoryJournal, Outcome, Owner, Record,
    RunLine,
};
use adjutant_llm::{CallResult, Gate, Script};
use adjutant_orchestration::{Background, BackgroundOptions, TaskState};
use adjutant_tool::{Answer, Replay};
use serde_json::json;

use super::super::{
    background::{helped_by, launches, lead, waits_for},
    fan_out::desk::{answering, answers, calls, doing, messages, records, says, tool},
};

/// A lead that waits for the outside after one turn.
fn asking(
    scripts: Vec<Script>,
    background: &Background,
) -> (Arc<adjutant_llm::ScriptedModel>, Agent) {
    let (model, agent) = lead(background, scripts);
    (
        model,
        agent.limits(Limits {
            max_turns: Some(1),
            at_limit: AtLimit::Ask,
            ..Limits::default()
        }),
    )
}

fn extended(outcome: &Outcome) -> Vec<Answered> {
    let Outcome::Paused { pauses } = outcome else {
        unreachable!("it waits: {outcome:?}")
    };
    pauses
        .iter()
        .map(|it| {
            it.with_answer(Answer::Extend {
                by: 9,
                message: None,
            })
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn result_is_told_once_when_the_run_was_parked_and_goes_on_here() {
    let (model, agent) = asking(
        vec![launches("a"), says("Heard."), says("Heard.")],
        &helped_by(doing(1)),
    );
    let result = agent.run("Go.").await.expect("it waits");
    let result = agent
        .resume(extended(&result.outcome))
        .await
        .expect("the run finishes");
    let told = messages(model.requests().last().expect("it was asked"))
        .iter()
        .filter(|text| text.contains("did a."))
        .count();
    assert_eq!(
        (told, result.text().as_str(), result.total_usage.total()),
        (1, "Heard.", 440)
    );
}

#[tokio::test(start_paused = true)]
async fn model_hears_of_its_task_when_the_run_was_parked_and_goes_on_elsewhere() {
    let journal = MemoryJournal::default();
    let (_, first) = asking(vec![launches("a")], &helped_by(doing(1)));
    let first = first.journal(journal.clone());
    let result = first.run("Go.").await.expect("it waits");
    let (model, again) = asking(vec![says("Heard."), says("Heard.")], &helped_by(doing(1)));
    let again = again
        .journal(journal.clone())
        .session(first.session_id().clone())
        .take_over();
    let result = again
        .resume(extended(&result.outcome))
        .await
        .expect("the run finishes");
    let told = messages(model.requests().last().expect("it was asked"));
    assert_eq!(
        told.iter().filter(|text| text.contains("did a.")).count(),
        1,
        "{told:?}"
    );
    assert_eq!(result.total_usage.total(), 440);
}

#[tokio::test(start_paused = true)]
async fn line_stays_harmless_when_its_run_and_its_agent_are_gone() {
    let kept: Arc<Mutex<Option<RunLine>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let keep = tool("keep", Replay::Once, move |cx| {
        let keeps = Arc::clone(&keeps);
        async move {
            *keeps.lock().expect("nobody panics inside") = Some(RunLine::from_context(&cx)?);
            Ok(CallResult::ok("kept"))
        }
    });
    let model = Arc::new(adjutant_llm::ScriptedModel::new([
        calls("keep", json!({})),
        says("Done."),
        says("Heard."),
    ]));
    let agent = Agent::new(Arc::clone(&model)).tool(keep);
    agent.run("Go.").await.expect("the run finishes");
    let line = kept
        .lock()
        .expect("nobody panics inside")
        .take()
        .expect("it was kept");
    line.app("late", 1, json!({}));
    let queued = line.steer("Late.").expect("there is room");
    assert!(line.has_queued() && queued.is_queued());
    assert!(line.follow_up("Later.").expect("there is room").withdraw());
    let result = agent.run("Again.").await.expect("the run finishes");
    assert_eq!(
        (result.text().as_str(), line.has_queued()),
        ("Heard.", false)
    );
    let told = messages(&model.requests()[2]);
    assert_eq!(
        told.iter().filter(|text| *text == "Late.").count(),
        1,
        "{told:?}"
    );
    drop(agent);
    line.app("late", 1, json!({}));
    let _ = line.steer("Nobody hears.");
}

#[tokio::test(start_paused = true)]
async fn budget_holds_when_tasks_in_the_background_spend_it() {
    let step = || {
        tool("step", Replay::Pure, |_| async {
            Ok(CallResult::ok("stepped"))
        })
    };
    let model = answering(500, |_| calls("step", json!({})));
    let background = Background::new(BackgroundOptions::new());
    let background = background.agent("helper", "", Agent::new(model).tool(step()).max_turns(100));
    let (_, agent) = lead(
        &background,
        [
            launches("a"),
            launches("b"),
            waits_for("task-1"),
            waits_for("task-2"),
            says("Done."),
        ],
    );
    let agent = agent.limits(Limits {
        caps: Caps {
            tokens: Some(3_000),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let result = agent.run("Go.").await.expect("the run ends");
    assert!(
        result.total_usage.total() <= 3_330,
        "{}",
        result.total_usage.total()
    );
}

fn keeping(journal: &MemoryJournal, model: Arc<adjutant_llm::ScriptedModel>) -> Background {
    let background = Background::new(BackgroundOptions::new()).keep_in(journal.clone());
    background.agent("helper", "Helps.", Agent::new(model).name("helper"))
}

fn keeps() -> Script {
    calls(
        "launch_task",
        json!({"agent": "helper", "task": "a", "keep": true}),
    )
}

/// The logs of a program that died right after this record of the session, when the task was at work.
async fn died(until: fn(&Record) -> bool) -> (MemoryJournal, Agent) {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let held = gate.clone();
    let background = keeping(
        &journal,
        answering(1, move |_| says("Never.").wait_at(0, &held)),
    );
    let (_, first) = lead(&background, [keeps(), says("Done.")]);
    let first = first.journal(journal.clone());
    first.run("Go.").await.expect("the run finishes");
    gate.wait_until_reached().await;
    let left = MemoryJournal::default();
    let own = adjutant_agent::LogId(background.snapshot()[0].thread.as_str().into());
    for (log, cut) in [(first.session_id(), true), (&own, false)] {
        let records = records(&journal, log).await;
        let end = records
            .iter()
            .position(|it| cut && until(&it.record))
            .map_or(records.len(), |at| at + 1);
        let mut mine = left
            .own(log, &Owner::default())
            .await
            .expect("nobody has it");
        mine.append(&records[..end], Flush::Now)
            .await
            .expect("there is room");
    }
    (left, first)
}

#[tokio::test(start_paused = true)]
async fn kept_task_goes_on_once_when_its_launch_is_entered_again_after_it_was_found() {
    let launched =
        |it: &Record| matches!(it, Record::App { kind, .. } if &**kind == "background.launched");
    let (left, first) = died(launched).await;
    let helper = doing(2);
    let background = keeping(&left, Arc::clone(&helper));
    let (_, again) = lead(
        &background,
        [waits_for("task-1"), says("Done."), says("Done.")],
    );
    let again = again.journal(left).session(first.session_id().clone());
    background
        .resume_kept(&again)
        .await
        .expect("the session is there");
    let result = again.resume(Vec::new()).await.expect("the run finishes");
    let answers = answers(&result);
    assert_eq!(
        (&answers[0]["status"], &answers[1]["result"]),
        (&json!("launched"), &json!("did a.")),
        "{answers:?}"
    );
    assert_eq!(
        (background.snapshot().len(), background.snapshot()[0].state),
        (1, TaskState::Completed)
    );
    assert_eq!(helper.requests().len(), 1, "it is done once");
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_task_end_with_it_when_it_launches_its_own() {
    let gate = Gate::default();
    let held = gate.clone();
    let inner = helped_by(answering(2, move |_| says("Never.").wait_at(0, &held)));
    let (_, middle) = lead(
        &inner,
        [launches("deep"), launches("deeper"), says("Middle.")],
    );
    let outer = Background::new(BackgroundOptions::new()).agent("helper", "", middle);
    let (_, agent) = lead(&outer, [launches("a"), waits_for("task-1"), says("Done.")]);
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(answers(&result)[1]["result"], "Middle.");
    let states: Vec<_> = inner
        .snapshot()
        .iter()
        .map(|task| (task.id.to_string(), task.state))
        .collect();
    let cancelled = |id: &str| (id.to_owned(), TaskState::Cancelled);
    assert_eq!(states, [cancelled("task-1"), cancelled("task-2")]);
    // What was asked of a model and not answered counts as spent.
    assert!(
        result.total_usage.total() >= 6 * 110,
        "{}",
        result.total_usage.total()
    );
    assert!(agent.queue().is_empty());
}

#[tokio::test(start_paused = true)]
async fn fan_out_ends_when_nothing_may_run_at_a_time_and_tasks_are_huge() {
    let mut options = adjutant_orchestration::FanOutOptions::new();
    options.max_concurrency = 0;
    // The tasks are larger than the model's window, and shown whole all the same.
    let worker = Agent::new(answering(3, |task| says(format!("{} bytes", task.len()))));
    let worker = adjutant_agent::Floor::off().install(worker);
    let each = adjutant_orchestration::fan_out_tool("each", "Does each.", worker, options);
    let tasks = vec!["é".repeat(500_000); 3];
    let model =
        adjutant_llm::ScriptedModel::new([calls("each", json!({"tasks": tasks})), says("Done.")]);
    let result = Agent::new(model)
        .tool(each)
        .run("Go.")
        .await
        .expect("the run finishes");
    let text = result.calls[0].result.text();
    assert_eq!(
        (text.matches("1000000 bytes").count(), text.len() < 2_000),
        (3, true),
        "{text}"
    );
}

fn step() -> impl adjutant_tool::ErasedTool + 'static {
    tool("step", Replay::Pure, |_| async {
        Ok(CallResult::ok("stepped"))
    })
}

#[tokio::test(start_paused = true)]
async fn task_ends_when_it_would_wait_for_somebody() {
    let helper = Agent::new(answering(3, |_| calls("step", json!({})))).tool(step());
    let helper = helper.limits(Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    });
    let background = Background::new(BackgroundOptions::new()).agent("helper", "", helper);
    let (_, agent) = lead(
        &background,
        [launches("a"), waits_for("task-1"), says("Done.")],
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (result.text().as_str(), &answers(&result)[1]["status"]),
        ("Done.", &json!("failed"))
    );
}

#[tokio::test(start_paused = true)]
async fn task_at_work_ends_before_the_run_parks_and_counts_once_when_it_goes_on_elsewhere() {
    let (journal, gate) = (MemoryJournal::default(), Gate::default());
    let needy = || {
        let model = answering(2, |task| {
            if task.is_empty() {
                says("Stepped on.")
            } else {
                calls("step", json!({}))
            }
        });
        let agent = Agent::new(model).tool(step()).limits(Limits {
            max_turns: Some(1),
            at_limit: AtLimit::Ask,
            ..Limits::default()
        });
        adjutant_agent::agent_tool("needy", "Needs more.", agent)
    };
    let held = gate.clone();
    let helper = answering(1, move |_| says("Helped.").wait_at(0, &held));
    let both = super::super::fan_out::desk::calls_all(&[
        ("launch_task", json!({"agent": "helper", "task": "a"})),
        ("needy", json!({"task": "b"})),
    ]);
    let (_, first) = lead(&helped_by(helper), [both]);
    let first = first.tool(needy()).journal(journal.clone());
    let opens = gate.clone();
    tokio::spawn(async move {
        opens.wait_until_reached().await;
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        opens.open();
    });
    let began = tokio::time::Instant::now();
    let parked = first.run("Go.").await.expect("it waits");
    assert_eq!(began.elapsed().as_secs(), 10, "the task was waited for");
    let (model, again) = lead(&helped_by(doing(0)), [says("Done."), says("Done.")]);
    let again = again
        .tool(needy())
        .journal(journal.clone())
        .session(first.session_id().clone())
        .take_over();
    let result = again
        .resume(extended(&parked.outcome))
        .await
        .expect("the run finishes");
    assert_eq!((result.text().as_str(), result.calls.len()), ("Done.", 2));
    let told = messages(model.requests().last().expect("it was asked"));
    assert_eq!(
        told.iter().filter(|text| text.contains("Helped.")).count(),
        1,
        "{told:?}"
    );
    let spent: u64 = records(&journal, first.session_id())
        .await
        .iter()
        .map(|it| {
            if let Record::Replied { reply, .. } = &it.record {
                reply.usage.total()
            } else {
                0
            }
        })
        .sum();
    assert_eq!(result.total_usage.total(), spent);
}
