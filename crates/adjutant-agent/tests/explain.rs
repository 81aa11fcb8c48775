//! What would be done again: it is what a run then decides, wherever its log ends.

#[path = "crash/outside.rs"]
mod outside;

use std::{collections::BTreeSet, sync::Arc};

use adjutant_agent::{
    Activity, Admission, Agent, Answered, AtLimit, CallFate, Flush, Journal, Limits, LogId,
    MemoryJournal, Next, Outcome, Owner, PauseId, Record, ResumeAction, Run, Seq, Spawn, Stamped,
    drive,
};
use adjutant_llm::{
    CallId, CallResult, FixedWorld, Model, ModelInfo, Script, ScriptedModel, Status, model_fn,
};
use adjutant_tool::{
    Answer, Approval, AskKind, CallContext, Replay, ToolSpec, external_tool, tool_fn,
};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// What was decided, or said to be.
#[derive(Debug, Default, PartialEq)]
struct Told {
    again: BTreeSet<CallId>,
    fresh: BTreeSet<CallId>,
    unknown: BTreeSet<CallId>,
    closed: BTreeSet<CallId>,
    /// Prepare, ask, settle.
    others: Vec<String>,
}

fn said(run: &Run) -> (Told, BTreeSet<PauseId>) {
    let (mut told, mut waits, mut asked) = (Told::default(), BTreeSet::new(), BTreeSet::new());
    for rerun in run.explain() {
        assert!(!rerun.to_string().is_empty());
        match rerun.redo {
            ResumeAction::Prepare { turn } => told.others.push(format!("prepare {turn}")),
            ResumeAction::Ask { turn, attempt, .. } => {
                told.others.push(format!("ask {turn} {attempt}"))
            }
            ResumeAction::Settle { turn } => told.others.push(format!("settle {turn}")),
            ResumeAction::Wait { pause } => {
                asked.extend(pause.call_id().filter(|_| pause.key.is_none()));
                waits.insert(pause.id.clone());
            }
            ResumeAction::Call {
                call, fate, replay, ..
            } => match fate {
                CallFate::RunAgain => {
                    assert!(told.again.insert(call) && replay != Some(Replay::Once))
                }
                CallFate::EnterAgain { waits, .. } if waits.is_empty() => {
                    assert!(told.again.insert(call))
                }
                CallFate::EnterAgain { .. } => {}
                CallFate::OutcomeUnknown => assert!(told.unknown.insert(call)),
                CallFate::NotStarted => assert!(told.fresh.insert(call)),
                CallFate::Closed => assert!(told.closed.insert(call)),
                other => unreachable!("no such fate: {other:?}"),
            },
            other => unreachable!("nothing else is redone: {other:?}"),
        }
    }
    // What waits for a word is not begun.
    told.fresh.retain(|call| !asked.contains(call));
    (told, waits)
}

/// What the run decides, one thing after the other, until something must happen outside.
fn decided(run: &Run) -> (Told, BTreeSet<PauseId>) {
    let (mut told, mut waits) = (
        Told::default(),
        run.pauses()
            .map(|pause| pause.id.clone())
            .collect::<BTreeSet<_>>(),
    );
    let (mut run, mut busy) = (run.clone(), BTreeSet::new());
    loop {
        let mut follow = Vec::new();
        match run.next(&busy) {
            Next::Start(acts) => {
                for act in acts {
                    match act {
                        Activity::Prepare { turn } => told.others.push(format!("prepare {turn}")),
                        Activity::Ask { turn, attempt } => {
                            told.others.push(format!("ask {turn} {attempt}"))
                        }
                        // What was closed just now is settled for the first time.
                        Activity::Settle { .. }
                            if !(told.unknown.is_empty() && told.closed.is_empty()) => {}
                        Activity::Settle { turn } => told.others.push(format!("settle {turn}")),
                        Activity::Call { call, again, .. } => {
                            assert!(
                                if again {
                                    &mut told.again
                                } else {
                                    &mut told.fresh
                                }
                                .insert(call)
                            )
                        }
                        Activity::Admit { call } => {
                            let (args, replay) = ("{}".into(), Replay::Pure);
                            let admission = Admission::Allow {
                                args,
                                changed: false,
                                title: None,
                                replay,
                                sequential: false,
                            };
                            follow.push(Record::Admitted { call, admission });
                            continue;
                        }
                        _ => {}
                    }
                    busy.insert(act.id());
                }
            }
            Next::Decide(records) => {
                for record in records {
                    if matches!(record, Record::Retracted { .. }) {
                        follow.push(record);
                        continue;
                    }
                    let Record::Returned { call, result, .. } = &record else {
                        // The end of a run closes what it waits for.
                        let ends = matches!(record, Record::Ended { .. });
                        waits = if ends { BTreeSet::new() } else { waits };
                        return (told, waits);
                    };
                    let unknown = result.status == Status::OutcomeUnknown;
                    if unknown {
                        &mut told.unknown
                    } else {
                        &mut told.closed
                    }
                    .insert(*call);
                    follow.push(record);
                }
            }
            Next::Park(pauses) => {
                assert!(pauses.iter().all(|pause| waits.contains(&pause.id)));
                return (told, waits);
            }
            _ => return (told, waits),
        }
        for record in follow {
            let seq = Seq(run.seq().0 + 1);
            run.apply(&Stamped::new(seq, 0, "main".into(), record))
                .expect("what is decided follows");
        }
    }
}

#[track_caller]
fn check(run: &Run, at: usize) -> Told {
    let ((said, waiting), (decided, waits)) = (said(run), decided(run));
    assert_eq!(said, decided, "after {at} records");
    // What is closed waits for nobody.
    if decided.closed.is_empty() {
        assert_eq!(waiting, waits, "after {at} records");
    }
    decided
}

/// Checks the folds of all beginnings of a log; gives what was found in all of them.
fn check_all(records: &[Arc<Stamped>], thread: &str) -> Told {
    let (mut run, mut all) = (Run::default(), Told::default());
    for (at, stamped) in (1..).zip(records) {
        if stamped.thread.as_str() != thread {
            continue;
        }
        run.apply(stamped).expect("the log folds");
        for wish in [false, true] {
            let mut run = run.clone();
            if wish && run.is_open() {
                let asked = Record::CancelAsked {
                    by: adjutant_agent::CancelBy::User,
                };
                run.apply(&Stamped::new(Seq(run.seq().0 + 1), 0, thread.into(), asked))
                    .expect("it can be wished");
            }
            let told = check(&run, at);
            all.again.extend(told.again);
            all.fresh.extend(told.fresh);
            all.unknown.extend(told.unknown);
            all.closed.extend(told.closed);
            all.others.extend(told.others);
        }
    }
    assert_eq!(run.explain(), [], "nothing is open any more");
    all
}

#[tokio::test]
async fn explanation_is_what_the_run_decides_when_calls_of_all_classes_are_cut_anywhere() {
    let outside = outside::begun();
    outside::lock(&outside).fuel = 100_000;
    drive(
        &mut outside::fold(&outside),
        &mut outside::FuelPort::new(&outside),
    )
    .await
    .expect("there is fuel");
    let read = |bytes: &bytes::Bytes| {
        Arc::new(serde_json::from_slice::<Stamped>(bytes).expect("the log reads back"))
    };
    let log: Vec<_> = outside::lock(&outside).log.iter().map(read).collect();
    let all = check_all(&log, "main");
    assert!(
        all.again.len() >= 18
            && all.unknown.len() >= 6
            && all.fresh.len() >= 24
            && !all.closed.is_empty(),
        "{all:?}"
    );
}

/// An agent that waits in every way there is: for approval, in a body, for a result, for more turns, under it.
fn agent(journal: &(impl Journal + Clone + 'static)) -> Agent {
    let spec = |name: &str| ToolSpec::new(name.to_owned(), "A tool.", json!({"type": "object"}));
    let write = tool_fn(
        ToolSpec {
            approval: Approval::Always,
            ..spec("write")
        },
        |_: Value, _: CallContext| async { Ok(CallResult::ok("ok")) },
    );
    let look = tool_fn(
        ToolSpec {
            replay: Replay::Pure,
            ..spec("look")
        },
        |_: Value, _: CallContext| async { Ok(CallResult::ok("ok")) },
    );
    let body = tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("body")
        },
        |_: Value, cx: CallContext| async move {
            cx.once("before", || async { Ok(1) }).await?;
            let name = cx.ask("name", "Who?").await?;
            let step = tool_fn(
                ToolSpec::new("step", "A step.", json!({"type": "object"})),
                |_: Value, _: CallContext| async { Ok(CallResult::ok("stepped")) },
            );
            let needy = Agent::new(model("step")).tool(step).limits(Limits {
                max_turns: Some(1),
                at_limit: AtLimit::Ask,
                ..Limits::default()
            });
            let child = cx
                .get::<dyn Spawn>()
                .expect("a call of a run")
                .open("needy", needy.into())
                .await?;
            Ok(CallResult::ok(format!(
                "{name} {}",
                child.run("Step.").await?.text()
            )))
        },
    );
    let agent = Agent::new(model("write look body away"))
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone());
    let agent = agent
        .tool(write)
        .tool(look)
        .tool(body)
        .tool(external_tool(spec("away")))
        .session(LogId::from("log"));
    agent.limits(Limits {
        max_turns: Some(2),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    })
}

/// Calls these tools twice, and then answers.
fn model(calls: &'static str) -> impl Model + 'static {
    model_fn(ModelInfo::new("test/model"), move |request| {
        let script = match request.entries.len() {
            1 | 2 => calls
                .split(' ')
                .fold(Script::new(), |script, name| script.call(name, json!({}))),
            _ => Script::new().text("Done."),
        };
        ScriptedModel::new([script]).stream(request)
    })
}

fn answers(agent: &Agent) -> Vec<Answered> {
    let answer = |kind| match kind {
        AskKind::Approval => Answer::approve(),
        AskKind::External => Answer::Return {
            result: CallResult::ok("there").into(),
        },
        AskKind::Limit => Answer::Extend {
            by: 5,
            message: None,
        },
        _ => Answer::give("Ada"),
    };
    agent
        .log()
        .pauses()
        .iter()
        .map(|it| it.with_answer(answer(it.ask.kind)))
        .collect()
}

async fn records(journal: &MemoryJournal) -> Vec<Arc<Stamped>> {
    journal
        .read(&LogId::from("log"), Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await
}

async fn played() -> Vec<Arc<Stamped>> {
    let journal = outside::SlowJournal::default();
    let agent = agent(&journal);
    let mut result = agent.run("Go.").await.expect("it waits");
    while let Outcome::Paused { .. } = result.outcome {
        result = agent.resume(answers(&agent)).await.expect("it goes on");
    }
    assert_eq!(result.text(), "Done.");
    records(&journal.0).await
}

#[tokio::test]
async fn explanation_is_what_the_run_decides_when_it_waits_in_every_way() {
    let log = played().await;
    let all = check_all(&log, "main");
    assert!(
        !all.again.is_empty() && !all.fresh.is_empty() && !all.unknown.is_empty(),
        "{all:?}"
    );
    let child = log
        .iter()
        .find(|it| it.thread.as_str() != "main")
        .expect("a child speaks")
        .thread
        .clone();
    check_all(&log, child.as_str());
}

/// A journal with the first records of a log.
async fn cut(log: &[Arc<Stamped>], last: impl Fn(&Stamped) -> bool) -> MemoryJournal {
    let end = log
        .iter()
        .position(|it| last(it))
        .expect("there is such a record");
    let journal = MemoryJournal::default();
    let mut owned = journal
        .own(&LogId::from("log"), &Owner::default())
        .await
        .expect("it is free");
    owned
        .append(&log[..=end], Flush::Now)
        .await
        .expect("memory does not fail");
    journal
}

#[tokio::test]
async fn agent_tells_of_itself_and_of_those_under_it_and_takes_nothing() {
    let log = played().await;
    let journal = cut(&log, |it| {
        matches!(it.record, Record::Prepared { .. }) && it.thread.as_str() != "main"
    })
    .await;
    let holder = journal
        .own(&LogId::from("log"), &Owner::default())
        .await
        .expect("it is free");
    let lines: Vec<_> = agent(&journal)
        .log()
        .explain()
        .await
        .expect("the log reads")
        .iter()
        .map(ToString::to_string)
        .collect();
    let body = "main: call c1_0_2 of body (resumable): is entered again; answered from the log: before, name";
    let child = "main/c1_0_2/needy: turn 1: the model is asked, attempt 0";
    // Whether the other call has ended by then is chance.
    let lines: Vec<_> = lines
        .iter()
        .filter(|line| !line.contains(" of write "))
        .collect();
    assert_eq!(lines, [body, child]);
    drop(holder);
    let journal = cut(&log, |it| matches!(it.record, Record::Suspended { .. })).await;
    let lines: Vec<_> = agent(&journal)
        .log()
        .explain()
        .await
        .expect("the log reads")
        .iter()
        .map(ToString::to_string)
        .collect();
    let expect = [
        "main: call c1_0_0 of write: has not begun, and runs for the first time",
        "main: call c1_0_2 of body (resumable): is entered again when these are answered: main/c1_0_2/name; answered from the log: before",
        "main: call c1_0_3 of away: has not begun, and runs for the first time",
    ];
    assert_eq!(
        lines
            .iter()
            .filter(|line| !line.contains(" waits: "))
            .collect::<Vec<_>>(),
        expect.iter().collect::<Vec<_>>()
    );
    assert_eq!(
        agent(&MemoryJournal::default())
            .log()
            .explain()
            .await
            .expect("there is no log"),
        []
    );
}

#[tokio::test]
async fn once_is_not_run_again_when_its_outcome_is_unknown() {
    let log = played().await;
    let launched = |it: &Stamped| matches!(&it.record, Record::Launched { calls } if calls.iter().any(|call| call.block == 0));
    let journal = cut(&log, launched).await;
    let reruns = agent(&journal)
        .log()
        .explain()
        .await
        .expect("the log reads");
    let fate = reruns.iter().find_map(|rerun| match &rerun.redo {
        ResumeAction::Call {
            call,
            name,
            replay,
            fate,
        } if call.block == 0 => Some((name.to_string(), *replay, fate.clone())),
        _ => None,
    });
    assert_eq!(
        fate,
        Some((
            "write".to_owned(),
            Some(Replay::Once),
            CallFate::OutcomeUnknown
        ))
    );
}
