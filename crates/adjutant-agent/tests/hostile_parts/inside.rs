//! Who looks from inside, numbers that are too large, and toolboxes around toolboxes.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Action, Agent, AtLimit, Caps, HookContext, Limit, Limits, Outcome, Verdict,
    effects::{ToolScope, effect_fn},
    points::{AfterTool, BeforeModel, NextTurn},
};
use adjutant_context::{Compact, Strategy};
use adjutant_llm::{CallResult, NanoUsd, Script, Status, Usage};
use adjutant_tool::{Answer, Bound, ToolSpec, Toolbox, Tools, Toolset, tool_fn};
use futures_util::StreamExt;
use serde_json::json;

use super::stage::{agent, done, say, shown};

const LONG: Duration = Duration::from_secs(600);

fn tool(name: &str, said: impl Into<String>) -> impl adjutant_tool::ErasedTool + 'static {
    let (spec, said) = (
        ToolSpec::new(name, "A tool.", json!({"type": "object"})),
        said.into(),
    );
    tool_fn(spec, move |_, _| {
        let said = said.clone();
        async move { Ok(CallResult::ok(said)) }
    })
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_when_parts_look_at_their_own_agent() {
    let (_, agent) = agent(9_000, [say(json!({"text": "a"})), done()]);
    let place: Arc<Mutex<Option<Agent>>> = Arc::default();
    let own = |place: &Arc<Mutex<Option<Agent>>>| place.lock().expect("no panic").clone();
    let (one, two, three, four) = (place.clone(), place.clone(), place.clone(), place.clone());
    let looks = effect_fn("looks", move |_| {
        let it = own(&one).expect("it is there");
        assert!(it.snapshot().is_running && it.run("Again.").stream().is_err());
        Ok(Vec::new())
    });
    let agent = agent
        .effect(looks)
        .on(move |_: HookContext, point: BeforeModel| {
            let it = own(&two);
            async move {
                let it = it.expect("it is there");
                it.snapshot();
                it.log().transcript();
                Verdict::Pass(point)
            }
        })
        .on(move |_: HookContext, point: AfterTool| {
            let it = own(&three).expect("it is there");
            async move {
                it.snapshot();
                it.queue().steer("Go on.").expect("there is room");
                it.log().append(Vec::new()).await.expect_err("it runs");
                Verdict::Pass(point)
            }
        })
        .on(move |_: HookContext, point: NextTurn| {
            let it = own(&four).expect("it is there");
            async move {
                it.snapshot();
                Verdict::Pass(point)
            }
        });
    *place.lock().expect("no panic") = Some(agent.clone());
    let result = tokio::time::timeout(LONG, agent.run("Go."))
        .await
        .expect("it ends")
        .expect("it answers");
    assert!(result.is_finished());
    place.lock().expect("no panic").take();
}

#[tokio::test(start_paused = true)]
async fn run_goes_on_when_a_listener_panics() {
    let (_, agent) = agent(9_000, [say(json!({"text": "a"})), done()]);
    let heard = agent.log().on_event(|_| panic!("no ears"));
    let result = tokio::time::timeout(LONG, agent.run("Go."))
        .await
        .expect("it ends")
        .expect("it answers");
    assert!(result.is_finished());
    let mut late = agent.log().subscribe();
    drop(agent);
    assert!(late.next().await.is_none());
    heard
        .await
        .expect("it is passed over, and ends with the session");
}

#[tokio::test(start_paused = true)]
async fn sums_stay_at_their_end_when_numbers_are_too_large() {
    let all = Usage {
        input_uncached: u64::MAX,
        cache_read: u64::MAX,
        output: u64::MAX,
        ..Usage::default()
    };
    for caps in [
        Caps::default(),
        Caps {
            tokens: Some(u64::MAX),
            cost: Some(NanoUsd(u64::MAX)),
            wall_ms: Some(u64::MAX),
            ..Caps::default()
        },
    ] {
        let (_, agent) = agent(
            9_000,
            [
                say(json!({"text": "a"})).usage(all),
                say(json!({"text": "a"})).usage(all),
                done(),
            ],
        );
        let charges = effect_fn("charges", move |_| {
            Ok(vec![Action::Charge(all), Action::Charge(all)])
        });
        let agent = agent.effect(charges).effect(Compact {
            strategy: Strategy::Truncate,
            ..Compact::default()
        });
        let ran = tokio::time::timeout(
            LONG,
            agent
                .limits(Limits {
                    caps,
                    ..Limits::default()
                })
                .run("Go."),
        )
        .await;
        let result = ran.expect("it ends").expect("numbers are no failure");
        assert_eq!(result.total_usage.total(), u64::MAX);
    }
}

#[tokio::test(start_paused = true)]
async fn run_can_be_stopped_when_an_effect_stops_it_and_someone_lets_it_go_on_for_ever() {
    let (model, agent) = agent(9_000, [done()]);
    let stops = effect_fn("stops", |_| Ok(vec![Action::Stop(Limit::Stalled)]));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let yes = move |_, _| {
        let times = count.fetch_add(1, Ordering::Relaxed);
        async move {
            (times < 40)
                .then(|| Answer::Extend {
                    by: 1,
                    message: None,
                })
                .or(Some(Answer::Decline { message: None }))
        }
    };
    let agent = agent.effect(stops).responder(yes).limits(Limits {
        at_limit: AtLimit::Ask,
        ..Limits::default()
    });
    let result = tokio::time::timeout(LONG, agent.run("Go."))
        .await
        .expect("it ends")
        .expect("a limit is no error");
    assert_eq!(
        result.outcome,
        Outcome::Limit {
            limit: Limit::Stalled
        }
    );
    assert!(model.requests().len() <= 1);
    assert!(asked.load(Ordering::Relaxed) <= 60);
}

#[tokio::test(start_paused = true)]
async fn toolboxes_hold_when_they_are_stacked_and_their_tools_hidden() {
    let slow = tool_fn(
        ToolSpec::new("slow", "Slow.", json!({"type": "object"})),
        |_, _| async {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            Ok(CallResult::ok("late"))
        },
    );
    let inner = Tools::new("box")
        .tool(tool("loud", "é".repeat(5_000)))
        .tool(slow)
        .tool(tool("shy", "seen"));
    let stacked = inner
        .limit_output(101)
        .time_out(Duration::from_secs(2))
        .prefix("my_");
    let script = ["my_loud", "my_slow", "my_shy", "shy"]
        .iter()
        .fold(Script::new(), |it, name| it.call(*name, json!({})));
    let (model, agent) = agent(9_000, [script, done()]);
    let agent = agent.toolbox(stacked).effect(ToolScope {
        exclude: vec!["my_shy".into()],
        ..ToolScope::default()
    });
    let result = tokio::time::timeout(LONG, agent.run("Go."))
        .await
        .expect("it ends")
        .expect("it answers");
    let names: Vec<_> = model.requests()[0]
        .tools
        .iter()
        .map(|tool| tool.name.to_string())
        .collect();
    assert_eq!(names, ["say", "my_loud", "my_slow"]);
    let states: Vec<_> = result.calls.iter().map(|call| call.result.status).collect();
    assert_eq!(states[..2], [Status::Ok, Status::TimedOut]);
    assert!(
        result.calls[2].result.is_error() && result.calls[3].result.is_error(),
        "{states:?}"
    );
    let seen = &shown(&model)[1][1];
    assert!(seen.len() < 400 && seen.contains("output cut"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_when_confirming_panics_or_nobody_answers() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let inner = tool_fn(
        ToolSpec::new("act", "Acts.", json!({"type": "object"})),
        move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(CallResult::ok("done")) }
        },
    );
    let (_, agent) = agent(9_000, [Script::new().call("act", json!({})), done()]);
    let agent = agent.toolbox(
        Tools::new("box")
            .tool(inner)
            .confirm_when(|_, _| panic!("no idea")),
    );
    let ended = tokio::time::timeout(LONG, agent.run("Go."))
        .await
        .expect("it ends");
    assert_eq!(ran.load(Ordering::Relaxed), 0, "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn run_fails_when_a_toolbox_panics() {
    let (_, agent) = agent(9_000, [done()]);
    let broken = adjutant_tool::toolbox_fn("broken", |_| async { panic!("no box") });
    let agent = agent.toolbox(broken);
    agent.log().preview("Go.").await.expect_err("it fails");
    let error = agent.run("Go.").await.expect_err("it fails");
    assert!(format!("{error:?}").contains("broken"), "{error:?}");
}

#[tokio::test]
async fn offered_tool_runs_when_a_hook_hides_all_others() {
    let (model, agent) = agent(
        9_000,
        [say(json!({"text": "a"})).call("extra", json!({})), done()],
    );
    let agent = agent.on(|_: HookContext, mut point: BeforeModel| async move {
        point.hidden = point.tools.iter().map(|tool| tool.name.clone()).collect();
        point
            .offered
            .push(Toolset::new([Bound::new(tool("extra", "more"))]));
        Verdict::Pass(point)
    });
    let result = agent.run("Go.").await.expect("it answers");
    let names: Vec<_> = model.requests()[0]
        .tools
        .iter()
        .map(|tool| tool.name.to_string())
        .collect();
    assert_eq!(names, ["extra"]);
    assert!(result.calls[0].result.is_error() && !result.calls[1].result.is_error());
}
