//! Limits and budgets.

use std::time::Duration;

use adjutant_agent::{CancelBy, EventKind, Limit, Outcome, RunResult};
use adjutant_llm::{ModelInfo, Price, Script, ScriptedModel, Usage};
use adjutant_tool::{CallContext, ToolSpec, Tools, tool_fn};
use serde_json::{Value, json};

use crate::stage::{MODEL, Stage, calls, lead, one, result, run, seen, still, with};

/// The tools of the application: one that takes a minute, one that says much.
fn slow() -> Tools {
    let schema = || json!({ "type": "object", "properties": {} });
    let wait = tool_fn(
        ToolSpec::new("wait", "Waits.", schema()),
        |_: Value, _: CallContext| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(adjutant_llm::CallResult::ok("waited"))
        },
    );
    let talk = tool_fn(
        ToolSpec::new("talk", "Talks.", schema()),
        |_: Value, _: CallContext| async {
            Ok(adjutant_llm::CallResult::ok("word ".repeat(2_000)))
        },
    );
    Tools::new("slow").tool(wait).tool(talk)
}

/// What a run comes to with these scripts and fields.
async fn ran<const N: usize>(scripts: [Script; N], fields: Value) -> RunResult {
    let stage = Stage::new(scripts);
    let manifest = still(one(with(json!({ "toolboxes": ["slow"] }), fields)));
    let engine = stage
        .builder(manifest)
        .toolbox("slow", slow())
        .build()
        .await
        .expect("it is right");
    run(&engine).await
}

#[track_caller]
fn check(ran: &RunResult, limit: Limit) {
    assert_eq!(ran.outcome, Outcome::Limit { limit });
}

fn talks(times: usize) -> Script {
    (0..times).fold(Script::new(), |script, _| script.call("talk", json!({})))
}

#[tokio::test]
async fn turns_are_limited() {
    let scripts = || [talks(1), talks(1), Script::new().text("Done.")];
    check(
        &ran(scripts(), json!({ "limits": { "max_turns": 2 } })).await,
        Limit::Turns,
    );
    check(
        &ran(scripts(), json!({ "max_turns": 1 })).await,
        Limit::Turns,
    );
    assert_eq!(ran(scripts(), json!({ "max_turns": 3 })).await.turns, 3);
    assert_eq!(
        ran(
            scripts(),
            json!({ "max_turns": 1, "limits": { "max_turns": 3 } })
        )
        .await
        .turns,
        3
    );
}

#[tokio::test(start_paused = true)]
async fn calls_run_together_as_far_as_the_limit_says() {
    let wait = || {
        Script::new()
            .call("wait", json!({}))
            .call("wait", json!({}))
            .call("wait", json!({}))
            .call("wait", json!({}))
    };
    for (limits, minutes) in [
        (json!({}), 1),
        (json!({ "max_parallel_tools": 2 }), 2),
        (json!({ "sequential": true }), 4),
    ] {
        let began = tokio::time::Instant::now();
        ran(
            [wait(), Script::new().text("Done.")],
            json!({ "limits": limits }),
        )
        .await;
        assert_eq!(began.elapsed().as_secs(), minutes * 60, "{limits}");
    }
}

#[tokio::test(start_paused = true)]
async fn run_ends_at_its_time() {
    let ran = ran(
        calls("wait", json!({})),
        json!({ "limits": { "timeout": "10s" } }),
    )
    .await;
    assert_eq!(
        ran.outcome,
        Outcome::Cancelled {
            by: CancelBy::Deadline
        }
    );
}

#[tokio::test(start_paused = true)]
async fn call_ends_at_its_time() {
    let ran = ran(
        calls("wait", json!({})),
        json!({ "limits": { "tool_timeout": "10s" } }),
    )
    .await;
    assert!(
        result(&ran, 0).contains("did not end within 10s"),
        "{}",
        result(&ran, 0)
    );
    assert_eq!(ran.text(), "Done.");
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_has_its_grace() {
    for grace in [3, 7] {
        let stage = Stage::new(calls("wait", json!({})));
        let manifest =
            one(json!({ "toolboxes": ["slow"], "limits": { "grace": format!("{grace}s") } }));
        let engine = stage
            .builder(still(manifest))
            .toolbox("slow", slow())
            .build()
            .await
            .expect("it is right");
        let agent = lead(&engine);
        let mut running = agent.run("Hello.").stream().expect("it begins");
        while !matches!(
            running.next().await.expect("it goes on").kind,
            EventKind::ToolStarted { .. }
        ) {}
        let began = tokio::time::Instant::now();
        running.cancel();
        running.finish().await.expect("it ends");
        assert_eq!(began.elapsed().as_secs(), grace);
    }
}

#[tokio::test]
async fn result_is_shown_up_to_its_limit() {
    for (limits, is_cut) in [(json!({ "max_result": "1KiB" }), true), (json!({}), false)] {
        let stage = Stage::new(calls("talk", json!({})));
        let manifest = one(json!({ "toolboxes": ["slow"], "limits": limits }));
        let engine = stage
            .builder(manifest)
            .toolbox("slow", slow())
            .build()
            .await
            .expect("it is right");
        run(&engine).await;
        assert_eq!(seen(&stage.model).len() < 3_000, is_cut);
    }
}

#[tokio::test]
async fn last_turn_without_tools_follows_a_limit() {
    let limits = |at: &str| json!({ "limits": { "max_turns": 1, "at_limit": at } });
    let scripts = || [talks(1), Script::new().text("What I have.")];
    let last = ran(scripts(), limits("last_turn")).await;
    assert_eq!((last.turns, last.text().as_str()), (2, "What I have."));
    check(&ran(scripts(), limits("end")).await, Limit::Turns);
    assert!(matches!(
        ran(scripts(), limits("ask")).await.outcome,
        Outcome::Paused { .. }
    ));
}

#[tokio::test]
async fn unattended_run_refuses_instead_of_waiting() {
    let access = json!({ "default": "ask" });
    let waits = ran(calls("talk", json!({})), json!({ "access": access })).await;
    assert!(matches!(waits.outcome, Outcome::Paused { .. }));
    let limits = json!({ "unattended": true });
    let refused = ran(
        calls("talk", json!({})),
        json!({ "access": access, "limits": limits }),
    )
    .await;
    assert!(
        matches!(refused.outcome, Outcome::Finished { .. }),
        "{:?}",
        refused.outcome
    );
}

/// Both budgets, that of the agent and that of the whole, hold.
async fn budget<const N: usize>(scripts: fn() -> [Script; N], budget: Value, limit: Limit) {
    check(
        &ran(scripts(), json!({ "budget": budget })).await,
        limit.clone(),
    );
    let stage = Stage::new([]);
    let priced = ModelInfo {
        price: Some(Price::dollars(1.0, 1.0, 1.0, 1.0)),
        ..ModelInfo::new("test/priced")
    };
    let model = ScriptedModel::new(scripts()).info(priced);
    let manifest = still(with(
        one(json!({ "toolboxes": ["slow"] })),
        json!({ "budget": budget }),
    ));
    let engine = stage
        .builder(manifest)
        .toolbox("slow", slow())
        .model(MODEL, model)
        .build()
        .await
        .expect("it is right");
    check(&run(&engine).await, limit);
}

fn two_turns() -> [Script; 2] {
    let usage = || Usage {
        input_uncached: 2_000,
        output: 50,
        ..Usage::default()
    };
    [
        talks(1).usage(usage()),
        Script::new().text("Done.").usage(usage()),
    ]
}

#[tokio::test]
async fn tokens_are_limited_for_an_agent_and_for_the_whole() {
    budget(two_turns, json!({ "tokens": 2_100 }), Limit::Tokens).await;
}

#[tokio::test]
async fn requests_are_limited_for_an_agent_and_for_the_whole() {
    budget(two_turns, json!({ "requests": 1 }), Limit::Requests).await;
}

#[tokio::test]
async fn calls_are_limited_for_an_agent_and_for_the_whole() {
    budget(
        || [talks(1), talks(1), Script::new().text("Done.")],
        json!({ "tool_calls": 1 }),
        Limit::ToolCalls,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn time_is_limited_for_an_agent_and_for_the_whole() {
    budget(
        || calls("wait", json!({})),
        json!({ "time": "10s" }),
        Limit::Time,
    )
    .await;
}

#[tokio::test]
async fn money_is_limited_where_the_model_has_a_price() {
    let stage = Stage::new([]);
    let priced = ModelInfo {
        price: Some(Price::dollars(1.0, 1.0, 1.0, 1.0)),
        ..ModelInfo::new("test/priced")
    };
    for manifest in [
        one(json!({ "toolboxes": ["slow"], "budget": { "cost_usd": 0.0021 } })),
        with(
            one(json!({ "toolboxes": ["slow"] })),
            json!({ "budget": { "cost_usd": 0.0021 } }),
        ),
    ] {
        let model = ScriptedModel::new(two_turns()).info(priced.clone());
        let builder = stage
            .builder(manifest)
            .toolbox("slow", slow())
            .model(MODEL, model);
        let engine = builder.build().await.expect("it is right");
        check(
            &lead(&engine)
                .new_session()
                .run("Hello.")
                .await
                .expect("it ends"),
            Limit::Money,
        );
    }
}
