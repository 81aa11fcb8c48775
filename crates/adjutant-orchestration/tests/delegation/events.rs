//! What an observer sees of delegated tasks.

use adjutant_agent::{Event, EventKind};
use adjutant_llm::{CallResult, Script};
use adjutant_orchestration::{Delegation, Profile, Registry};
use adjutant_tool::{Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};

use super::desk::{boss, boss_with, delegates, register, register_as, reports, says, task};

async fn seen(agent: &adjutant_agent::Agent) -> Vec<Event> {
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event);
    }
    events
}

#[tokio::test]
async fn progress_shows_what_the_agent_says_and_what_comes_of_it_when_it_works() {
    let registry = Registry::new();
    let script = |_| {
        vec![
            Script::new().text("l".repeat(600)).call("step", json!({})),
            Script::new().call("step", json!({})),
            Script::new().text("  ").call("step", json!({})),
            reports("Done."),
        ]
    };
    register_as(&registry, Profile::new("coder", ""), script, |agent| {
        let spec = ToolSpec {
            replay: Replay::Pure,
            ..ToolSpec::new("step", "Steps.", json!({ "type": "object" }))
        };
        agent.tool(tool_fn(spec, |_, _| async {
            Ok(CallResult::ok("stepped"))
        }))
    });
    let (_, agent) = boss(
        &registry,
        [delegates([task("coder", "Do it.")]), says("Done.")],
    );
    let told: Vec<Value> = seen(&agent)
        .await
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::ToolProgress { progress, .. } if event.who.depth == 0 => {
                Some(progress.details)
            }
            _ => None,
        })
        .collect();
    let long = format!(
        "{}\n[cut here: 100 characters are left out]",
        "l".repeat(500)
    );
    let expected = [
        json!({ "agent": "coder-task-1", "kind": "progress", "text": long }),
        json!({ "agent": "coder-task-1", "kind": "result", "text": "Done." }),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn whole_tree_is_in_one_stream_when_agents_delegate_on() {
    let registry = Registry::new();
    register(&registry, Profile::new("lead", "").max_depth(1), |_| {
        vec![delegates([task("coder", "Code it.")]), reports("Led.")]
    });
    register(&registry, Profile::new("coder", ""), |_| {
        vec![reports("Coded.")]
    });
    let delegation = Delegation::new(registry).max_depth(2);
    let (_, agent) = boss_with(
        delegation,
        [delegates([task("lead", "Lead it.")]), says("Done.")],
    );
    let events = seen(&agent).await;
    let line = |event: &Event| match &event.kind {
        EventKind::RunStarted => Some(format!("{} starts", event.who.path)),
        EventKind::RunFinished { .. } => Some(format!("{} finishes", event.who.path)),
        EventKind::ChildOpened { child, .. } => {
            Some(format!("{} opens {}", event.who.path, child.name))
        }
        EventKind::ChildEnded { outcome, usage, .. } => {
            assert!(usage.total() > 0, "what it used is told");
            Some(format!("{} hears: {}", event.who.path, outcome.kind()))
        }
        _ => None,
    };
    let expected = [
        "boss starts",
        "boss opens lead-lead-1",
        "boss/lead-lead-1 starts",
        "boss/lead-lead-1 opens coder-code-1",
        "boss/lead-lead-1/coder-code-1 starts",
        "boss/lead-lead-1/coder-code-1 finishes",
        "boss/lead-lead-1 hears: finished",
        "boss/lead-lead-1 finishes",
        "boss hears: finished",
        "boss finishes",
    ];
    assert_eq!(events.iter().filter_map(line).collect::<Vec<_>>(), expected);
    let EventKind::RunFinished { result } = &events.last().expect("some").kind else {
        unreachable!("the end")
    };
    assert!(
        result.total_usage.total() > result.usage.total(),
        "usage rolls up"
    );
}
