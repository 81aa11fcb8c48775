//! What runs again, and what does not: the four classes, over a log that is cut and opened anew.

#[path = "replay/diverge.rs"]
mod diverge;
#[path = "approval/stage.rs"]
mod stage;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    Agent, Answered, HookContext, Journal, LogId, MemoryJournal, Owner, Record, RunResult, Seq,
    Stamped, Verdict,
    points::{AfterTool, BeforeTool},
};
use adjutant_llm::{CallResult, FixedWorld, Script, ScriptedModel, Status};
use adjutant_tool::{Answer, CallContext, ErasedTool, Replay, ToolError, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};
use stage::{agent, answered, calls, names, script, spec};

pub(crate) async fn records(journal: &MemoryJournal, id: &LogId) -> Vec<Arc<Stamped>> {
    journal
        .read(id, Seq(0))
        .map(|read| read.expect("memory does not fail"))
        .collect()
        .await
}

/// The log as a crash leaves it, right behind the first record that is as wanted.
pub(crate) async fn cut(
    journal: &MemoryJournal,
    id: &LogId,
    last: impl Fn(&Record) -> bool,
) -> MemoryJournal {
    let all = records(journal, id).await;
    let end = all
        .iter()
        .position(|stamped| last(&stamped.record))
        .expect("the log has such a record");
    let copy = MemoryJournal::default();
    let mut log = copy
        .own(
            id,
            &Owner {
                takes_over: true,
                ..Owner::default()
            },
        )
        .await
        .expect("memory does not fail");
    log.append(&all[..=end], adjutant_agent::Flush::Now)
        .await
        .expect("memory does not fail");
    copy
}

/// Goes on in another program, over this log.
pub(crate) async fn go_on(
    journal: &MemoryJournal,
    id: &LogId,
    tool: impl ErasedTool + 'static,
    answers: Vec<Answered>,
) -> RunResult {
    let agent =
        Agent::new(ScriptedModel::new([Script::new().text("Done.")])).journal(journal.clone());
    agent
        .session(id.clone())
        .take_over()
        .tool(tool)
        .resume(answers)
        .await
        .expect("the run goes on")
}

/// A tool of a class; counts how often its body takes effect, step by step if it may have steps.
fn tool(replay: Replay, done: &Arc<AtomicUsize>) -> impl ErasedTool + 'static {
    let done = Arc::clone(done);
    tool_fn(
        ToolSpec {
            replay,
            ..spec("tool")
        },
        move |_: Value, cx: CallContext| {
            let done = Arc::clone(&done);
            async move {
                let work = || async { Ok(done.fetch_add(1, Ordering::SeqCst)) };
                if replay == Replay::Resumable {
                    cx.once("work", work).await?;
                } else {
                    work().await?;
                }
                Ok::<_, ToolError>(CallResult::ok("done"))
            }
        },
    )
}

#[tokio::test]
async fn call_runs_again_by_its_class_when_its_run_was_cut_behind_its_launch() {
    let unknown = "outcome unknown: the call was started, but the program ended before its result was seen; \
                   check whether it took effect before you call it again";
    let table = [
        (Replay::Pure, 2, Status::Ok, "done"),
        (Replay::Idempotent, 2, Status::Ok, "done"),
        (Replay::Once, 1, Status::OutcomeUnknown, unknown),
        (Replay::Resumable, 2, Status::Ok, "done"),
    ];
    for (replay, times, status, text) in table {
        let (journal, done) = (MemoryJournal::default(), Arc::default());
        let (_, agent) = agent(script(&[("tool", json!({"n": 1}))]));
        let agent = agent.journal(journal.clone()).tool(tool(replay, &done));
        agent.run("Go.").await.expect("the run finishes");
        let id = agent.session_id();
        let cut = cut(&journal, id, |record| {
            matches!(record, Record::Launched { .. })
        })
        .await;
        let result = go_on(&cut, id, tool(replay, &done), Vec::new()).await;
        assert_eq!(
            calls(&result),
            [("tool".into(), status, text.into())],
            "{replay:?}"
        );
        assert_eq!(
            (done.load(Ordering::SeqCst), result.text().as_str()),
            (times, "Done."),
            "{replay:?}"
        );
    }
}

#[tokio::test]
async fn once_only_calls_are_never_repeated_when_a_step_is_recorded() {
    let unknown = "step \"work\" was begun before a crash; whether it took effect is not known";
    let noted: fn(&Record) -> bool = |record| matches!(record, Record::Noted { .. });
    let begun: fn(&Record) -> bool = |record| matches!(record, Record::Begun { .. });
    // The last one: if the program that goes on does not have the tool.
    let rows = [
        (noted, Status::Ok, "done", Status::UnknownTool),
        (
            begun,
            Status::OutcomeUnknown,
            unknown,
            Status::OutcomeUnknown,
        ),
    ];
    for (last, status, text, gone) in rows {
        let (journal, done) = (MemoryJournal::default(), Arc::default());
        let (_, agent) = agent(script(&[("tool", json!({"n": 1}))]));
        let agent = agent
            .journal(journal.clone())
            .tool(tool(Replay::Resumable, &done));
        agent.run("Go.").await.expect("the run finishes");
        let cut_here = cut(&journal, agent.session_id(), last).await;
        let result = go_on(
            &cut_here,
            agent.session_id(),
            tool(Replay::Resumable, &done),
            Vec::new(),
        )
        .await;
        assert_eq!(calls(&result), [("tool".into(), status, text.into())]);
        let cut_here = cut(&journal, agent.session_id(), last).await;
        let other = tool_fn(spec("other"), |_: Value, _: CallContext| async {
            Ok(CallResult::ok("done"))
        });
        let result = go_on(&cut_here, agent.session_id(), other, Vec::new()).await;
        assert_eq!(result.calls[0].result.status, gone);
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }
}

/// Asks between two steps.
fn careful(done: &Arc<AtomicUsize>) -> impl ErasedTool + 'static {
    let done = Arc::clone(done);
    tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("tool")
        },
        move |_: Value, cx: CallContext| {
            let done = Arc::clone(&done);
            async move {
                let step = || async { Ok(done.fetch_add(1, Ordering::SeqCst)) };
                let before = cx.once("before", step).await?;
                let name = cx.ask("name", "What name?").await?;
                let after = cx.once("after", step).await?;
                Ok(CallResult::ok(format!("{before} {name} {after}")))
            }
        },
    )
}

#[tokio::test]
async fn pause_goes_on_over_programs_when_its_log_is_cut_anywhere_around_it() {
    let cuts: [fn(&Record) -> bool; 4] = [
        |record| matches!(record, Record::Paused { .. }),
        |record| matches!(record, Record::Unanswered { .. }),
        |record| matches!(record, Record::Suspended { .. }),
        |record| matches!(record, Record::Resumed { .. }),
    ];
    for (n, last) in cuts.into_iter().enumerate() {
        let (journal, done) = (MemoryJournal::default(), Arc::default());
        let (_, agent) = agent(script(&[("tool", json!({"n": 1}))]));
        let agent = agent.journal(journal.clone()).tool(careful(&done));
        let id = agent.session_id();
        let parked = agent.run("Go.").await.expect("the run waits");
        let answer = vec![answered(&names(&parked)[0], Answer::give("Ada"))];
        agent
            .resume(answer.clone())
            .await
            .expect("the run finishes");
        done.store(1, Ordering::SeqCst);
        let cut = cut(&journal, id, last).await;
        // What was answered already is not waited for any more.
        let answers = if n == 3 { Vec::new() } else { answer };
        let result = go_on(&cut, id, careful(&done), answers).await;
        assert_eq!(
            calls(&result),
            [("tool".into(), Status::Ok, r#"0 "Ada" 1"#.into())],
            "cut {n}"
        );
        assert_eq!(done.load(Ordering::SeqCst), 2, "cut {n}");
    }
}

#[tokio::test]
async fn somebody_is_asked_again_when_the_program_ended_before_the_answer() {
    let (journal, done) = (MemoryJournal::default(), Arc::default());
    let (_, agent) = agent(script(&[("tool", json!({"n": 1}))]));
    let agent = agent.journal(journal.clone()).tool(careful(&done));
    agent.run("Go.").await.expect("the run waits");
    let cut = cut(&journal, agent.session_id(), |record| {
        matches!(record, Record::Paused { .. })
    })
    .await;
    // Nobody had said yet that nobody can answer: no answer is missing, and the next drive asks.
    let parked = go_on(&cut, agent.session_id(), careful(&done), Vec::new()).await;
    assert_eq!(names(&parked), ["main/c1_0_0/name"]);
    let asked = records(&cut, agent.session_id()).await;
    assert_eq!(
        asked
            .iter()
            .filter(|stamped| matches!(stamped.record, Record::Paused { .. }))
            .count(),
        1
    );
}

#[tokio::test]
async fn records_are_the_same_when_world_and_model_are_fixed() {
    let mut logs = Vec::new();
    for _ in 0..2 {
        let (journal, done) = (MemoryJournal::default(), Arc::default());
        let (_, agent) = agent(script(&[
            ("tool", json!({"n": "1"})),
            ("tool", json!({"n": 2})),
        ]));
        let agent = agent
            .journal(journal.clone())
            .world(FixedWorld::at_ms(5))
            .tool(careful(&done));
        let agent = agent
            .on(|_: HookContext, mut point: BeforeTool| async move {
                point.args["n"] = json!(7);
                Verdict::Pass(point)
            })
            .on(|_: HookContext, point: AfterTool| async move { Verdict::Pass(point) });
        let parked = agent.run("Go.").await.expect("the run waits");
        let answers = names(&parked)
            .iter()
            .map(|name| answered(name, Answer::give("Ada")))
            .collect();
        agent.resume(answers).await.expect("the run finishes");
        let all = records(&journal, agent.session_id()).await;
        let bytes = |stamped: &Arc<Stamped>| {
            String::from_utf8_lossy(stamped.bytes().expect("JSON")).into_owned()
        };
        logs.push(all.iter().map(bytes).collect::<Vec<_>>());
    }
    assert!(logs[0].len() > 20);
    assert_eq!(logs[0], logs[1]);
}
