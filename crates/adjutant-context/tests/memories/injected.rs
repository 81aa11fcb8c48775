//! The effect: facts beside a person's message, once each, recorded, and never in the way.

use std::sync::Arc;

use adjutant_agent::{Agent, Event, EventKind, memory::Metadata};
use adjutant_context::Memories;
use adjutant_llm::{Content, Entry, HashEmbedder, Origin, Script, ScriptedModel, UserMessage};
use serde_json::{Value, json};

use super::{ada, add};

/// The lines of the entries that a request shows: `person: …`, `memory: …` with the facts only, `agent: …`.
fn shown(model: &ScriptedModel) -> Vec<Vec<String>> {
    let line = |entry: &Entry| match entry {
        Entry::User(UserMessage {
            content, origin, ..
        }) => {
            let text: String = content.iter().filter_map(Content::as_text).collect();
            match origin {
                Origin::Reminder { by } => {
                    let facts: Vec<&str> = text.lines().skip(1).collect();
                    format!("{by}: {}", facts.join(" "))
                }
                _ => format!("person: {text}"),
            }
        }
        Entry::Turn(turn) => format!("agent: {}", turn.reply().text()),
        _ => "?".to_owned(),
    };
    model
        .requests()
        .iter()
        .map(|it| {
            it.entries
                .iter()
                .map(|stored| line(&stored.entry))
                .collect()
        })
        .collect()
}

fn agent(memories: &Memories, answers: usize) -> (Arc<ScriptedModel>, Agent) {
    let model = Arc::new(ScriptedModel::new(
        (0..answers).map(|n| Script::new().text(format!("Answer {n}."))),
    ));
    let agent = Agent::new(Arc::clone(&model))
        .instructions("Be kind.")
        .effect(memories.recall());
    (model, agent)
}

/// What the effect told observers in a run.
async fn reports(agent: &Agent, prompt: &str) -> Vec<Value> {
    let mut running = agent.run(prompt).stream().expect("the session rests");
    let mut reports = Vec::new();
    while let Some(Event { kind, .. }) = running.next().await {
        if let EventKind::Report { data, .. } = kind {
            reports.push(*data);
        }
    }
    reports
}

#[tokio::test]
async fn facts_stand_beside_the_message_when_they_fit_and_the_prompt_stays() {
    let (_, memories) = ada();
    let facts = add(
        &memories,
        &["The user has a dog named Rex.", "The user likes tea."],
    )
    .await;
    let (model, agent) = agent(&memories, 3);
    assert_eq!(
        reports(&agent, "What does my dog eat?").await,
        [json!({"recalled": [facts[0].id]})]
    );
    // The same fact is not shown twice, another one is.
    agent
        .run("And the dog's tea?")
        .await
        .expect("the run finishes");
    agent
        .run("Fine, dog and tea.")
        .await
        .expect("the run finishes");
    let expect = [
        "person: What does my dog eat?",
        "memory: - The user has a dog named Rex.",
        "agent: Answer 0.",
        "person: And the dog's tea?",
        "memory: - The user likes tea.",
        "agent: Answer 1.",
        "person: Fine, dog and tea.",
    ];
    assert_eq!(shown(&model)[0], expect[..2]);
    assert_eq!(shown(&model)[1], expect[..5]);
    assert_eq!(shown(&model)[2], expect);
    assert!(
        model
            .requests()
            .iter()
            .all(|request| &*request.system == "Be kind.")
    );
    // It is recorded: the conversation holds it too.
    assert_eq!(agent.log().transcript().len(), 8);
}

#[tokio::test]
async fn nothing_is_added_when_nothing_fits_or_nobody_spoke() {
    let (_, memories) = ada();
    add(&memories, &["The user has a dog."]).await;
    let (model, agent) = agent(&memories, 2);
    agent
        .run("What is the weather?")
        .await
        .expect("the run finishes");
    let reminder = UserMessage {
        origin: Origin::Reminder { by: "clock".into() },
        ..UserMessage::text("The dog is hungry.")
    };
    agent.run(reminder).await.expect("the run finishes");
    assert_eq!(shown(&model)[1].len(), 3, "{:?}", shown(&model));
}

#[tokio::test]
async fn changed_fact_is_shown_again_when_its_text_is_new() {
    let (_, memories) = ada();
    let world = Arc::new(adjutant_llm::FixedWorld::at_ms(5));
    #[derive(Debug)]
    struct Shared(Arc<adjutant_llm::FixedWorld>);
    impl adjutant_llm::World for Shared {
        fn now_ms(&self) -> u64 {
            self.0.now_ms()
        }
        fn id(&self) -> u128 {
            self.0.id()
        }
        fn unit(&self) -> f64 {
            self.0.unit()
        }
    }
    let memories = memories.world(Shared(Arc::clone(&world)));
    let fact = add(&memories, &["The dog is named Rex."]).await.remove(0);
    let (model, agent) = agent(&memories, 2);
    agent.run("My dog?").await.expect("the run finishes");
    world.advance_ms(1);
    memories
        .update(&fact.id, "The dog is named Max.", Metadata::new())
        .await
        .expect("it is there");
    agent.run("My dog!").await.expect("the run finishes");
    assert_eq!(shown(&model)[1][4], "memory: - The dog is named Max.");
}

#[tokio::test]
async fn run_goes_on_when_the_memory_fails() {
    let (store, memories) = ada();
    add(&memories, &["The user has a dog."]).await;
    store.fail(true);
    let (model, agent) = agent(&memories, 2);
    assert_eq!(
        reports(&agent, "My dog?").await,
        [json!({"failed": "the disk is gone"})]
    );
    store.fail(false);
    agent.run("My dog!").await.expect("the run finishes");
    assert_eq!(shown(&model)[1][3], "memory: - The user has a dog.");
}

#[tokio::test(start_paused = true)]
async fn run_goes_on_when_the_memory_never_answers() {
    let (store, memories) = ada();
    store.hang();
    let (_, agent) = agent(&memories, 1);
    let said = reports(&agent, "My dog?").await;
    assert_eq!(
        said,
        [json!({"failed": "the memory did not answer within 10s"})]
    );
}

#[tokio::test]
async fn run_pays_when_a_query_is_embedded_and_a_preview_asks_nobody() {
    let (_, memories) = ada();
    let embedder = Arc::new(HashEmbedder::new(64));
    let memories = memories.embedder(Arc::clone(&embedder));
    add(&memories, &["The user has a dog."]).await;
    let before = memories.spent().usage.total();
    let (_, agent) = agent(&memories, 1);
    agent
        .log()
        .preview("My dog?")
        .await
        .expect("it can be looked at");
    assert_eq!(
        (embedder.requests().len(), memories.spent().usage.total()),
        (1, before)
    );
    let result = agent.run("My dog?").await.expect("the run finishes");
    let spent = memories.spent().usage.total() - before;
    assert_eq!(result.total_usage.total() - result.usage.total(), spent);
    assert!(spent > 0);
}

#[tokio::test]
async fn facts_are_bounded_and_on_one_line_when_they_are_long() {
    let (_, memories) = ada();
    add(
        &memories,
        &[&format!("dog\n\nignore all {}", "x".repeat(5_000))],
    )
    .await;
    let (model, agent) = agent(&memories, 1);
    agent.run("My dog?").await.expect("the run finishes");
    let line = &shown(&model)[0][1];
    assert!(
        line.starts_with("memory: - dog ignore all xxx") && line.len() < 1_050,
        "{} bytes",
        line.len()
    );
}
