//! Tools in the loop: which are there, what of their results reaches whom, and how calls are stopped.

#[path = "tools_loop/early.rs"]
mod early;
#[path = "tools_loop/output.rs"]
mod output;
#[path = "approval/stage.rs"]
mod stage;
#[path = "approval/watch.rs"]
mod watch;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Agent, EventKind, Flush, HookContext, Journal, Limits, LogId, MemoryJournal, Outcome, Owner,
    Record, RunNo, Seq, Stamped, TurnNo, Verdict, points::BeforeTool,
};
use adjutant_llm::{
    Block, Call, CallId, CallResult, Entry, FinishReason, FixedWorld, Reply, Script, ScriptedModel,
    Status, Terminate,
};
use adjutant_tool::{
    Approval, CallContext, Composite, ToolError, ToolErrorKind, ToolSpec, Toolbox, Tools,
    external_tool, tool_fn, toolbox_fn,
};
use serde_json::{Value, json};
use stage::{agent, answered, calls, names, script, spec};
use tokio::sync::Notify;
use watch::{Ran, shown, told};

fn declared(model: &ScriptedModel) -> Vec<Vec<String>> {
    let names =
        |tools: &[adjutant_llm::ToolDecl]| tools.iter().map(|tool| tool.name.to_string()).collect();
    model
        .requests()
        .iter()
        .map(|request| names(&request.tools))
        .collect()
}

#[tokio::test]
async fn note_of_a_call_is_in_the_log_before_the_call_goes_on() {
    let (journal, seen) = (MemoryJournal::default(), Arc::new(AtomicUsize::new(0)));
    let (log, notes) = (journal.clone(), Arc::clone(&seen));
    let write = tool_fn(spec("write"), move |_: Value, cx: CallContext| {
        let (log, notes) = (log.clone(), Arc::clone(&notes));
        async move {
            let large = cx
                .note("write.done", json!("x".repeat(70_000)))
                .await
                .expect_err("it is too large");
            assert_eq!(large.kind, ToolErrorKind::InvalidArguments);
            cx.note("write.done", json!({"path": "a"})).await?;
            let mut records = log.read(&LogId::from("log"), Seq(0));
            while let Some(stamped) = futures_util::StreamExt::next(&mut records).await {
                let stamped = stamped.expect("memory does not fail");
                let Record::App {
                    kind,
                    version: 1,
                    data,
                } = &stamped.record
                else {
                    continue;
                };
                notes.fetch_add(
                    usize::from(&**kind == "write.done" && data["path"] == "a"),
                    Ordering::SeqCst,
                );
            }
            Ok(CallResult::ok("done"))
        }
    });
    let (_, agent) = agent([
        Script::new().call("write", json!({"n": 1})),
        Script::new().text("Done."),
    ]);
    let agent = agent
        .tool(write)
        .journal(journal)
        .session(LogId::from("log"));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (calls(&result)[0].1, seen.load(Ordering::SeqCst)),
        (Status::Ok, 1)
    );
}

#[tokio::test]
async fn toolset_is_resolved_once_a_turn_when_it_changes() {
    let call = || {
        Script::new()
            .call("odd", json!({"n": 1}))
            .call("even", json!({"n": 2}))
    };
    let (model, agent) = agent([
        call(),
        call(),
        Script::new().text("Done."),
        Script::new().text("Done."),
    ]);
    let (ran, resolved) = (Ran::default(), Arc::new(AtomicUsize::new(0)));
    let sets = ["odd", "even"].map(|name| {
        Tools::new(name)
            .tool(ran.tool(spec(name)))
            .toolset()
            .clone()
    });
    let counts = Arc::clone(&resolved);
    let agent = agent.toolbox(toolbox_fn("flips", move |_| {
        let set = sets[counts.fetch_add(1, Ordering::SeqCst) % 2].clone();
        async move { Ok(set) }
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    agent.run("Again.").await.expect("the run finishes");
    let expect = ["odd", "even", "odd", "even"].map(|name| vec![name.to_owned()]);
    assert_eq!(
        (declared(&model), resolved.load(Ordering::SeqCst)),
        (expect.to_vec(), 4)
    );
    let unknown = |name: &str, is: &str| {
        (
            name.to_owned(),
            Status::UnknownTool,
            format!("unknown tool {name:?}; the tools are: {is}"),
        )
    };
    let ran = |name: &str, n: u64| (name.to_owned(), Status::Ok, format!("{{\"n\":{n}}}"));
    assert_eq!(
        calls(&result),
        [
            ran("odd", 1),
            unknown("even", "odd"),
            unknown("odd", "even"),
            ran("even", 2)
        ]
    );
}

#[tokio::test]
async fn toolbox_filters_by_context_when_its_predicate_says_so() {
    let start = |name: &str| {
        let (model, agent) = agent(script(&[("secret", json!({"n": 1}))]));
        let secret = Tools::new("secret").tool(Ran::default().tool(spec("secret")));
        let open = Tools::new("open").tool(Ran::default().tool(spec("open")));
        let secret = secret.filter(|who, _| &*who.name == "chief");
        let all = Composite::new("all")
            .toolbox(secret)
            .toolbox(open)
            .toolbox(Tools::new("empty"));
        let agent = agent.name(name).toolbox(all);
        let denies =
            |_: HookContext, _: BeforeTool| async { Verdict::<BeforeTool>::Deny("hooked".into()) };
        (model, agent.on(denies))
    };
    let (model, chief) = start("chief");
    let result = chief.run("Go.").await.expect("the run finishes");
    assert_eq!(declared(&model)[0], ["secret", "open"]);
    assert_eq!(calls(&result)[0].2, "not executed: hooked");
    let (model, clerk) = start("clerk");
    let result = clerk.run("Go.").await.expect("the run finishes");
    assert_eq!(declared(&model)[0], ["open"]);
    assert_eq!(
        calls(&result)[0].2,
        "unknown tool \"secret\"; the tools are: open"
    );
}

#[tokio::test]
async fn hidden_tool_is_refused_when_the_model_calls_it() {
    let call = |block, name: &str| {
        Arc::new(Block::Call(Call::new(
            CallId {
                turn: 1,
                attempt: 0,
                block,
            },
            name,
            r#"{"n":1}"#,
        )))
    };
    let mut reply = Reply::new("test/model".into(), FinishReason::Calls);
    reply.blocks = vec![call(0, "hidden"), call(1, "look"), call(2, "nobody")];
    let mut prepared = Record::turn_prepared(TurnNo(1), "test/model".into(), Vec::new());
    if let Record::Prepared { hidden, .. } = &mut prepared {
        *hidden = vec!["hidden".into()];
    }
    let records = vec![
        Record::began(RunNo(1), vec![Entry::User("Go.".into())], Limits::default()),
        Record::Opened {
            turn: TurnNo(1),
            last: None,
        },
        prepared,
        Record::reply_received(TurnNo(1), Arc::new(reply), None),
    ];
    let (journal, id) = (MemoryJournal::default(), LogId("log".into()));
    let stamp = |(seq, record)| Arc::new(Stamped::new(Seq(seq), 0, "main".into(), record));
    let batch: Vec<_> = (1..).zip(records).map(stamp).collect();
    let mut log = journal
        .own(
            &id,
            &Owner {
                takes_over: true,
                ..Owner::default()
            },
        )
        .await
        .expect("memory does not fail");
    log.append(&batch, Flush::Now)
        .await
        .expect("memory does not fail");
    drop(log);
    let ran = Ran::default();
    let agent = Agent::new(ScriptedModel::new([Script::new().text("Done.")]))
        .journal(journal)
        .session(id);
    let agent = agent
        .tool(ran.tool(spec("hidden")))
        .tool(ran.tool(spec("look")));
    let result = agent.resume(Vec::new()).await.expect("the run finishes");
    let expect = [
        (
            "hidden",
            Status::Denied,
            "not executed: tool \"hidden\" is not available in this turn",
        ),
        ("look", Status::Ok, r#"{"n":1}"#),
        (
            "nobody",
            Status::UnknownTool,
            "unknown tool \"nobody\"; the tools are: look",
        ),
    ];
    assert_eq!(
        calls(&result),
        expect.map(|(name, status, text)| (name.to_owned(), status, text.to_owned()))
    );
    assert_eq!(ran.args().len(), 1);
}

#[tokio::test]
async fn sequential_calls_stop_when_the_run_is_cancelled() {
    let batch: Vec<_> = (0..3).map(|n| ("waits", json!({"n": n}))).collect();
    let (_, agent) = agent(script(&batch));
    let reached = Arc::new(Notify::new());
    let reaches = Arc::clone(&reached);
    let agent = agent
        .limits(Limits {
            sequential: true,
            ..Limits::default()
        })
        .tool(tool_fn(spec("waits"), move |_: Value, cx: CallContext| {
            reaches.notify_one();
            async move {
                cx.cancel.cancelled().await;
                Err(ToolError::new(ToolErrorKind::Cancelled, "stopped well"))
            }
        }));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let (mut started, mut finished) = (0, 0);
    while let Some(event) = running.next().await {
        match event.kind {
            EventKind::ToolStarted { .. } => {
                started += 1;
                running.cancel();
            }
            EventKind::ToolFinished { .. } => finished += 1,
            _ => {}
        }
    }
    let result = running
        .result()
        .expect("the drive ended")
        .expect("a cancel is no error");
    let never = "not executed: the run was ended first";
    let expect = ["stopped well", never, never]
        .map(|text| ("waits".to_owned(), Status::Cancelled, text.to_owned()));
    assert_eq!((calls(result), started, finished), (expect.to_vec(), 3, 3));
}

#[tokio::test(start_paused = true)]
async fn cancelled_and_timed_out_calls_are_told_apart_when_they_end() {
    let calls_of = [0, 1, 2, 3].map(|n| ("ends", json!({"n": n})));
    let (_, agent) = agent(script(&calls_of));
    let agent = agent
        .calls(|calls| calls.timeout = Some(Duration::from_secs(5)))
        .calls(|calls| calls.grace = Duration::ZERO);
    let agent = agent.tool(tool_fn(
        spec("ends"),
        |args: Value, _: CallContext| async move {
            match args["n"].as_u64() {
                Some(0) => Err(ToolError::new(
                    ToolErrorKind::TimedOut,
                    "the server did not answer",
                )),
                Some(1) => Err(ToolError::new(
                    ToolErrorKind::Cancelled,
                    "someone else stopped it",
                )),
                _ => std::future::pending().await,
            }
        },
    ));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    while let Some(event) = running.next().await {
        if let EventKind::ToolStarted { call, .. } = event.kind
            && call.block == 2
        {
            stopper.stop_call(call);
        }
    }
    let result = running
        .result()
        .expect("the drive ended")
        .expect("the run finishes");
    let expect = [
        (Status::TimedOut, "the server did not answer"),
        (Status::Cancelled, "someone else stopped it"),
        (
            Status::Cancelled,
            "cancelled: the call was stopped; it may have taken effect",
        ),
        (
            Status::TimedOut,
            "the tool did not end within 5s and was given up; it may have taken effect",
        ),
    ];
    assert_eq!(
        calls(result),
        expect.map(|(status, text)| ("ends".to_owned(), status, text.to_owned()))
    );
    assert_eq!(result.text(), "Done.");
}

#[tokio::test]
async fn call_does_not_begin_when_it_was_stopped_before() {
    let (ran, (_, agent)) = (
        Ran::default(),
        agent(script(&[
            ("write", json!({"n": 1})),
            ("write", json!({"n": 2})),
        ])),
    );
    let agent = agent.tool(ran.tool(ToolSpec {
        approval: Approval::Always,
        ..spec("write")
    }));
    let parked = agent.run("Go.").await.expect("the run waits");
    let answers = names(&parked)
        .iter()
        .map(|name| answered(name, adjutant_tool::Answer::approve()))
        .collect();
    let running = agent.resume(answers).stream().expect("the session is free");
    running.stopper().stop_call(CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    });
    // Of another turn: nothing happens.
    running.stopper().stop_call(CallId {
        turn: 9,
        attempt: 0,
        block: 1,
    });
    let result = running.finish().await.expect("the run finishes");
    let expect = [
        (
            "write",
            Status::Cancelled,
            "cancelled: the call was stopped before it began",
        ),
        ("write", Status::Ok, r#"{"n":2}"#),
    ];
    assert_eq!(
        calls(&result),
        expect.map(|(name, status, text)| (name.to_owned(), status, text.to_owned()))
    );
    assert_eq!(ran.args(), [json!({"n": 2})]);
}

#[tokio::test]
async fn executor_is_missing_when_a_tool_is_only_declared() {
    let start = || {
        agent(script(&[("away", json!({"n": 1}))]))
            .1
            .tool(external_tool(spec("away")))
    };
    let parked = start().run("Go.").await.expect("the run waits");
    assert_eq!(names(&parked), ["main/c1_0_0"]);
    let refused = start()
        .limits(Limits {
            unattended: true,
            ..Limits::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    let text = "not executed: tool \"away\" is run elsewhere, and nobody can be asked in this run";
    assert_eq!(
        calls(&refused),
        [("away".into(), Status::Denied, text.into())]
    );
}

#[tokio::test]
async fn events_of_denied_and_terminated_batches_are_as_drawn_when_they_run() {
    let (ask, end) = (
        ["turn_started", "reply_started", "reply_finished"],
        ["turn_finished", "run_finished"],
    );
    let begin = ["run_started", "entry_added"];
    let one = ["tool_started", "tool_finished"];
    let both = [
        "tool_started",
        "tool_started",
        "tool_finished",
        "tool_finished",
    ];
    let answer = [&ask[..], &end[..]].concat();
    let start = |first: Terminate, second: Terminate| {
        let (_, agent) = agent(script(&[
            ("ends", json!({"n": 0})),
            ("ends", json!({"n": 1})),
        ]));
        agent.tool(tool_fn(spec("ends"), move |args: Value, _| async move {
            Ok(CallResult {
                terminate: if args["n"] == 0 { first } else { second },
                ..CallResult::ok("done")
            })
        }))
    };
    let (no, all, now) = (Terminate::No, Terminate::IfAll, Terminate::Now);
    let sequential = |agent: Agent| {
        agent.limits(Limits {
            sequential: true,
            ..Limits::default()
        })
    };
    let denied = |agent: Agent| {
        agent.on(|_: HookContext, point: BeforeTool| async move {
            if point.args["n"] == 0 {
                Verdict::Deny("no".into())
            } else {
                Verdict::Pass(point)
            }
        })
    };
    let table = [
        (
            "parallel",
            start(no, no),
            [&begin[..], &ask, &both, &end[..1], &answer].concat(),
        ),
        (
            "sequential",
            sequential(start(no, no)),
            [&begin[..], &ask, &one, &one, &end[..1], &answer].concat(),
        ),
        (
            "denied",
            denied(start(no, no)),
            [
                &begin[..],
                &ask,
                &["denied"],
                &one,
                &one,
                &end[..1],
                &answer,
            ]
            .concat(),
        ),
        (
            "all terminate",
            start(all, all),
            [&begin[..], &ask, &both, &end[..]].concat(),
        ),
        (
            "some terminate",
            start(all, no),
            [&begin[..], &ask, &both, &end[..1], &answer].concat(),
        ),
        (
            "one ends it",
            start(no, now),
            [&begin[..], &ask, &both, &end[..]].concat(),
        ),
        (
            "denied does not end it",
            denied(start(no, all)),
            [
                &begin[..],
                &ask,
                &["denied"],
                &one,
                &one,
                &end[..1],
                &answer,
            ]
            .concat(),
        ),
    ];
    for (name, agent, expect) in table {
        assert_eq!(
            told(agent.run("Go.").stream().expect("the session is free")).await,
            expect,
            "{name}"
        );
    }
}

#[tokio::test]
async fn tool_result_is_reported_when_it_ends() {
    let world = FixedWorld::at_ms(0);
    let (model, agent) = agent(script(&[("tool", json!({"n": "1"}))]));
    let agent = agent
        .world(world)
        .tool(tool_fn(spec("tool"), |_: Value, _| async {
            Ok(CallResult {
                details: json!({"code": 7}),
                ..CallResult::new(Status::Failed, "broken")
            })
        }));
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event.kind);
    }
    let expect = CallResult {
        args: Some(r#"{"n":1}"#.into()),
        ..CallResult {
            details: json!({"code": 7}),
            ..CallResult::new(Status::Failed, "broken")
        }
    };
    let started = events.iter().find_map(|event| match event {
        EventKind::ToolStarted {
            call, name, args, ..
        } => Some((*call, name.to_string(), args.to_string())),
        _ => None,
    });
    let id = CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    };
    assert_eq!(started, Some((id, "tool".into(), r#"{"n":1}"#.into())));
    let finished = events.iter().find_map(|event| match event {
        EventKind::ToolFinished {
            call,
            name,
            result,
            duration,
        } => Some((*call, name.to_string(), (**result).clone(), *duration)),
        _ => None,
    });
    assert_eq!(
        finished,
        Some((id, "tool".into(), expect.clone(), Duration::ZERO))
    );
    let result = running
        .result()
        .expect("the drive ended")
        .expect("the run finishes");
    assert_eq!(
        (
            &*result.calls[0].result,
            result.calls[0].call,
            result.calls[0].duration
        ),
        (&expect, id, Duration::ZERO)
    );
    assert!(matches!(result.outcome, Outcome::Finished { .. }));
    assert_eq!(shown(&model, 1), ["broken"]);
}
