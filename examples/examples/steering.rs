//! Steering: messages to an agent while it works, one of which is withdrawn in time.

use adjutant::{
    Agent, EventKind,
    llm::{Entry, Origin, Script, ScriptedModel},
    tool,
};
use serde_json::json;

/// Reads a chapter.
#[tool(replay = "pure")]
async fn read_chapter(number: u32) -> String {
    // A real tool would wait for something here: meanwhile others see that it began.
    tokio::task::yield_now().await;
    format!("chapter {number} is long")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = [
        Script::new().call("read_chapter", json!({"number": 1})),
        Script::new().text("Chapter one, in German: ..."),
        Script::new().text("And a title: Der lange Weg."),
    ];
    let agent = Agent::new(ScriptedModel::new(script)).tool(read_chapter);
    let mut running = agent.run("Sum up chapter one.").stream()?;
    while let Some(event) = running.next().await {
        match event.kind {
            EventKind::ToolStarted { name, .. } => {
                println!("{name} runs; the user steers");
                agent.queue().steer("In German, please.")?;
                agent.queue().follow_up("Then find a title.")?;
                let mistake = agent.queue().follow_up("And order a pizza.")?;
                println!("withdrawn in time: {}", mistake.withdraw());
            }
            EventKind::EntryAdded { content } => {
                if let Entry::User(message) = &*content {
                    let text = message.content[0].as_text().unwrap_or_default();
                    println!("{}: {text}", who(&message.origin));
                }
            }
            EventKind::ReplyFinished { reply, .. } => println!("agent: {}", reply.text()),
            _ => {}
        }
    }
    Ok(())
}

fn who(origin: &Origin) -> &'static str {
    match origin {
        Origin::Steering => "steered",
        Origin::FollowUp => "followed up",
        _ => "asked",
    }
}
