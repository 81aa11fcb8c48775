//! The rules of the loop: order and width of a batch, and what a reply's end means.

#[path = "loop_rules/stage.rs"]
mod stage;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{Agent, Completion, ErrorKind, EventKind, Failure, Limit, Limits, Outcome};
use adjutant_llm::{CallResult, Entry, FinishReason, Script, Status, Terminate};
use adjutant_tool::{ToolSpec, tool_fn};
use serde_json::json;
use stage::{agent, calls, events, spec, tool};
use tokio::sync::{Barrier, watch};

/// How many bodies run at a time, and how many did at most.
#[derive(Clone, Default)]
struct Gauge {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Gauge {
    async fn pass(&self, wait: impl Future<Output = ()>) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        wait.await;
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

fn batch(names: &[&str]) -> Script {
    names
        .iter()
        .fold(Script::new(), |script, name| script.call(*name, json!({})))
}

/// Runs one batch; gives how many bodies ran at a time. `pair` ends only when two of it run together.
async fn width(names: &[&str], limits: Limits) -> usize {
    let (_, agent) = agent([batch(names), Script::new().text("Done.")]);
    let (gauge, pair) = (Gauge::default(), Arc::new(Barrier::new(2)));
    let gauged = |name: &'static str, spec: adjutant_tool::ToolSpec| {
        let (gauge, pair) = (gauge.clone(), Arc::clone(&pair));
        tool_fn(spec, move |_, _| {
            let (gauge, pair) = (gauge.clone(), Arc::clone(&pair));
            async move {
                let wait = async {
                    if name == "pair" {
                        pair.wait().await;
                    }
                    // Time passes only when nothing else can move: whatever may begin beside this has begun.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                };
                gauge.pass(wait).await;
                Ok(CallResult::ok("done"))
            }
        })
    };
    let agent = agent
        .limits(limits)
        .tool(gauged("pair", spec("pair")))
        .tool(gauged("free", spec("free")));
    let agent = agent.tool(gauged(
        "single",
        ToolSpec {
            sequential: true,
            ..spec("single")
        },
    ));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(result.text(), "Done.");
    gauge.most()
}

#[tokio::test(start_paused = true)]
async fn batch_runs_together_when_nothing_forbids_it() {
    assert_eq!(width(&["free"; 5], Limits::default()).await, 5);
    assert_eq!(width(&["free"; 12], Limits::default()).await, 8);
}

#[tokio::test(start_paused = true)]
async fn batch_keeps_to_its_width_when_there_are_more_calls() {
    assert_eq!(
        width(
            &["pair"; 6],
            Limits {
                max_parallel_tools: 2,
                ..Limits::default()
            }
        )
        .await,
        2
    );
    assert_eq!(
        width(
            &["free"; 3],
            Limits {
                max_parallel_tools: 0,
                ..Limits::default()
            }
        )
        .await,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn batch_runs_one_by_one_when_a_tool_or_the_run_says_so() {
    assert_eq!(
        width(&["free", "single", "free"], Limits::default()).await,
        1
    );
    assert_eq!(
        width(&["free", "free", "single"], Limits::default()).await,
        2,
        "it waits for those before it"
    );
    assert_eq!(
        width(
            &["free", "free"],
            Limits {
                sequential: true,
                ..Limits::default()
            }
        )
        .await,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn batch_runs_together_when_a_tool_is_unknown() {
    assert_eq!(
        width(&["nobody", "pair", "pair"], Limits::default()).await,
        2
    );
}

#[tokio::test]
async fn results_keep_the_order_of_the_calls_when_tools_end_in_reverse() {
    let script = (0..3).fold(Script::new(), |script, n| {
        script.call("wait", json!({"n": n}))
    });
    let (_, agent) = agent([script, Script::new().text("Done.")]);
    let ended = watch::Sender::new(0);
    let agent = agent.tool(tool("wait", move |args, _| {
        let ended = ended.clone();
        async move {
            let n = args["n"].as_u64().unwrap_or_default();
            let before = ended
                .subscribe()
                .wait_for(|ended| *ended == 2 - n)
                .await
                .map(|ended| *ended);
            ended.send_replace(before.expect("the sender lives") + 1);
            Ok(CallResult::ok(n.to_string()))
        }
    }));
    let (mut ends, mut starts) = (Vec::new(), Vec::new());
    for event in events(agent.run("Go.").stream().expect("the session is free")).await {
        match event {
            EventKind::ToolStarted { call, .. } => starts.push(call.block),
            EventKind::ToolFinished { call, .. } => ends.push(call.block),
            EventKind::RunFinished { result } => {
                let texts: Vec<String> = calls(&result)
                    .into_iter()
                    .map(|(_, _, text)| text)
                    .collect();
                assert_eq!(texts, ["0", "1", "2"]);
            }
            _ => {}
        }
    }
    assert_eq!((starts, ends), (vec![0, 1, 2], vec![2, 1, 0]));
    let Entry::Turn(turn) = &agent.log().transcript()[1] else {
        unreachable!("a turn follows the prompt")
    };
    let pairs: Vec<_> = turn
        .pairs()
        .map(|(call, result)| (call.id.block, result.text()))
        .collect();
    assert_eq!(pairs, [(0, "0".into()), (1, "1".into()), (2, "2".into())]);
}

fn ending() -> [impl adjutant_tool::ErasedTool + 'static; 3] {
    [
        ("no", Terminate::No),
        ("maybe", Terminate::IfAll),
        ("now", Terminate::Now),
    ]
    .map(|(name, terminate)| {
        tool(name, move |_, _| async move {
            Ok(CallResult {
                terminate,
                ..CallResult::ok("")
            })
        })
    })
}

async fn why(names: &[&str]) -> (Completion, u32) {
    let (_, agent) = agent([batch(names), Script::new().text("Done.")]);
    let agent = ending().into_iter().fold(agent, Agent::tool);
    let result = agent.run("Go.").await.expect("the run finishes");
    let Outcome::Finished { why, .. } = result.outcome else {
        unreachable!("the run finishes")
    };
    (why, result.turns)
}

#[tokio::test]
async fn run_ends_when_results_terminate_it() {
    assert_eq!(why(&["maybe", "maybe"]).await, (Completion::Terminated, 1));
    assert_eq!(why(&["no", "now"]).await, (Completion::Terminated, 1));
    assert_eq!(why(&["maybe", "now"]).await, (Completion::Terminated, 1));
    assert_eq!(why(&["maybe", "no"]).await, (Completion::Answer, 2));
    assert_eq!(why(&["maybe", "nobody"]).await, (Completion::Answer, 2));
    assert_eq!(why(&[]).await, (Completion::Answer, 1));
}

fn echo() -> impl adjutant_tool::ErasedTool + 'static {
    tool("echo", |_, _| async { Ok(CallResult::ok("said")) })
}

#[tokio::test]
async fn run_executes_the_last_calls_when_its_turns_are_spent() {
    let (model, agent) = agent((0..3).map(|_| batch(&["echo", "echo"])));
    let result = agent
        .tool(echo())
        .max_turns(2)
        .run("Go.")
        .await
        .expect("a limit is no error");
    assert_eq!(
        result.outcome,
        Outcome::Limit {
            limit: Limit::Turns
        }
    );
    assert_eq!(
        (result.turns, result.calls.len(), model.requests().len()),
        (2, 4, 2)
    );
    assert!(
        calls(&result)
            .iter()
            .all(|(_, status, _)| *status == Status::Ok)
    );
}

#[tokio::test]
async fn run_asks_nothing_when_it_has_no_turns() {
    let (model, agent) = agent([]);
    let result = agent
        .max_turns(0)
        .run("Go.")
        .await
        .expect("a limit is no error");
    assert_eq!(
        (&result.outcome, result.turns),
        (
            &Outcome::Limit {
                limit: Limit::Turns
            },
            0
        )
    );
    assert_eq!((model.requests().len(), result.entries.len()), (0, 1));
}

#[tokio::test]
async fn run_finishes_when_the_last_turn_answers() {
    let (_, agent) = agent([batch(&["echo"]), Script::new().text("Done.")]);
    let result = agent
        .tool(echo())
        .max_turns(2)
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!((result.is_finished(), result.turns), (true, 2));
}

#[tokio::test]
async fn run_goes_past_the_default_when_turns_are_unlimited() {
    let scripts = || {
        (0..60)
            .map(|_| batch(&["echo"]))
            .chain([Script::new().text("Done.")])
    };
    let limited = agent(scripts())
        .1
        .tool(echo())
        .run("Go.")
        .await
        .expect("a limit is no error");
    assert_eq!(
        (limited.outcome, limited.turns),
        (
            Outcome::Limit {
                limit: Limit::Turns
            },
            50
        )
    );
    let free = agent(scripts()).1.tool(echo()).limits(Limits {
        max_turns: None,
        ..Limits::default()
    });
    assert_eq!(free.run("Go.").await.expect("the run finishes").turns, 61);
}

#[tokio::test]
async fn calls_never_run_when_the_reply_was_cut_off() {
    let (_, agent) = agent([
        batch(&["echo", "nobody"]).stop(FinishReason::Length),
        Script::new().text("Shorter."),
    ]);
    let result = agent
        .tool(echo())
        .run("Go.")
        .await
        .expect("the run goes on");
    let statuses: Vec<Status> = calls(&result)
        .into_iter()
        .map(|(_, status, _)| status)
        .collect();
    assert_eq!(
        (statuses, result.turns),
        (vec![Status::Truncated, Status::Truncated], 2)
    );
    assert_eq!(result.text(), "Shorter.");
}

#[tokio::test]
async fn run_finishes_by_length_when_a_text_was_cut_off() {
    let (_, agent) = agent([Script::new().text("And then").stop(FinishReason::Length)]);
    let result = agent.run("Go.").await.expect("the run finishes");
    assert!(
        matches!(
            result.outcome,
            Outcome::Finished {
                why: Completion::Length,
                ..
            }
        ),
        "{:?}",
        result.outcome
    );
}

#[tokio::test]
async fn run_fails_with_its_calls_closed_when_the_model_refuses() {
    for (stop, failure) in [
        (
            FinishReason::Refused,
            Failure::Refused { text: "No.".into() },
        ),
        (
            FinishReason::Filtered,
            Failure::Filtered { text: "No.".into() },
        ),
    ] {
        let (_, agent) = agent([Script::new().text("No.").call("echo", json!({})).stop(stop)]);
        let agent = agent.tool(echo());
        let error = agent.run("Go.").await.expect_err("a refusal is a failure");
        let result = error.result().expect("the run has a result");
        assert_eq!(
            (error.kind(), &result.outcome),
            (ErrorKind::Failed, &Outcome::Failed { failure })
        );
        assert_eq!(
            calls(result),
            [(
                "echo".into(),
                Status::Denied,
                "not executed: the reply was refused".into()
            )]
        );
        assert_eq!(agent.log().transcript().len(), 2);
    }
}

#[tokio::test]
async fn model_is_asked_again_when_it_pauses() {
    let (model, agent) = agent([
        Script::new().text("Let me").stop(FinishReason::Paused),
        Script::new().text("think."),
    ]);
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!((result.turns, result.text().as_str()), (2, "think."));
    assert_eq!(model.requests()[1].entries.len(), 2);
}

#[tokio::test]
async fn run_finishes_when_the_reply_is_empty() {
    let (_, agent) = agent([Script::new()]);
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (
            result.is_finished(),
            result.text().as_str(),
            result.entries.len()
        ),
        (true, "", 2)
    );
}

#[tokio::test]
async fn model_is_told_when_a_call_cannot_run() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let strict = tool_fn(
        adjutant_tool::ToolSpec::new("strict", "A tool.", schema),
        |args, _| async move { Ok(CallResult::ok(args.to_string())) },
    );
    let script = batch(&["nobody", "strict"])
        .call_raw("strict", r#"{"n": "#)
        .call_raw("strict", r#"{"n": "7",}"#);
    let (_, agent) = agent([
        script.call_raw("strict", r#"{"n": 12345678901234567}"#),
        Script::new().text("Done."),
    ]);
    let result = agent
        .tool(strict)
        .run("Go.")
        .await
        .expect("the run finishes");
    let statuses: Vec<Status> = calls(&result)
        .into_iter()
        .map(|(_, status, _)| status)
        .collect();
    let invalid = Status::InvalidArguments;
    assert_eq!(
        statuses,
        [
            Status::UnknownTool,
            invalid,
            invalid,
            Status::Ok,
            Status::Ok
        ]
    );
    assert_eq!(
        result.calls[0].result.text(),
        r#"unknown tool "nobody"; the tools are: strict"#
    );
    let args: Vec<Option<&str>> = result
        .calls
        .iter()
        .map(|report| report.result.args.as_deref())
        .collect();
    assert_eq!(args, [None, None, None, Some(r#"{"n":7}"#), None]);
    assert_eq!(result.calls[4].result.text(), r#"{"n":12345678901234567}"#);
    let Entry::Turn(turn) = &result.entries[1] else {
        unreachable!("a turn follows the prompt")
    };
    assert_eq!(
        &*turn.reply().calls().nth(3).expect("five calls").args,
        r#"{"n": "7",}"#
    );
}
