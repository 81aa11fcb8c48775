//! A tree of agents under one budget: children work in parallel, and together never exceed the root's budget.

use adjutant::{
    Agent, CallContext, EventKind, Limits, ToolError,
    agent::{Caps, Spawn},
    llm::{Script, ScriptedModel, Usage},
    tool,
};
use futures_util::future::join_all;
use serde_json::json;

/// Lets one agent look at each of several topics.
#[tool(replay = "resumable")]
async fn research(topics: Vec<String>, cx: CallContext) -> Result<String, ToolError> {
    let spawn = cx
        .get::<dyn Spawn>()
        .ok_or_else(|| ToolError::failed("no agents can be opened here"))?;
    let looking = topics.iter().map(|topic| {
        let spawn = &spawn;
        async move {
            let child = spawn.open(topic, scout(topic).into()).await?;
            let result = child.run(format!("What is there about {topic}?")).await?;
            Ok::<_, ToolError>(format!(
                "{topic}: {}",
                if result.is_finished() {
                    result.text()
                } else {
                    "gave up".into()
                }
            ))
        }
    });
    let found: Result<Vec<_>, _> = join_all(looking).await.into_iter().collect();
    Ok(found?.join("\n"))
}

/// An agent for one topic; each of its requests uses 1,000 tokens.
fn scout(topic: &str) -> Agent {
    let used = Usage {
        input_uncached: 900,
        output: 100,
        ..Usage::default()
    };
    let answer = Script::new().text(format!("all about {topic}")).usage(used);
    Agent::new(ScriptedModel::new([answer])).name(format!("scout-{topic}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = [
        Script::new().call("research", json!({"topics": ["bees", "ants", "wasps"]})),
        Script::new().text("They all have six legs."),
    ];
    let caps = Caps {
        tokens: Some(100_000),
        depth: Some(1),
        agents: Some(8),
        ..Caps::default()
    };
    let agent = Agent::new(ScriptedModel::new(script))
        .name("lead")
        .tool(research)
        .limits(Limits {
            caps,
            ..Limits::default()
        });
    let mut running = agent.run("Compare insects.").stream()?;
    let mut said = Vec::new();
    while let Some(event) = running.next().await {
        if let EventKind::ReplyFinished { reply, .. } = &event.kind
            && event.who.depth > 0
        {
            said.push(format!("{}: {}", event.who.path, reply.text()));
        }
    }
    // The children run concurrently: their order is not deterministic.
    said.sort();
    said.iter().for_each(|line| println!("{line}"));
    let result = running
        .result()
        .ok_or("it has ended")?
        .map_err(Clone::clone)?;
    println!("{}", result.text());
    println!(
        "own {} tokens, all together {}",
        result.usage.total(),
        result.total_usage.total()
    );
    Ok(())
}
