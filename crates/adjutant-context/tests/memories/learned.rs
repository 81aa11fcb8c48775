//! Learning from a conversation: what a model is shown, what is kept, and how far it was read.

use std::sync::Arc;

use adjutant_agent::memory::MemoryErrorKind;
use adjutant_context::{Learned, MAX_LEARNED, MAX_LEARNED_BYTES, Memories};
use adjutant_llm::{
    Block, Call, CallId, CallResult, Content, Custom, Entry, Error, ErrorKind, FinishReason, Gate,
    Origin, Reply, Request, Script, ScriptedModel, Transcript, Turn, UserMessage,
};
use serde_json::{Value, json};

use super::{ada, add, finds, of, said, say, texts};

/// What a request shows of the conversation.
fn shown(request: &Request) -> Value {
    let text = match request.entries.get(0).map(|stored| &stored.entry) {
        Some(Entry::User(message)) => message.content.iter().find_map(Content::as_text),
        _ => None,
    };
    serde_json::from_str(text.expect("a message of text")).expect("it is JSON")
}

fn with(
    memories: &Memories,
    scripts: impl IntoIterator<Item = Script>,
) -> (Arc<ScriptedModel>, Memories) {
    let model = Arc::new(ScriptedModel::new(scripts));
    (Arc::clone(&model), memories.clone().model(model))
}

async fn learn(memories: &Memories, history: &Transcript) -> Learned {
    memories.learn("s", history).await.expect("it is read")
}

fn turn(text: &str) -> Entry {
    let mut reply = Reply::new("scripted/model".into(), FinishReason::Calls);
    reply.blocks.push(Arc::new(Block::text(text)));
    let call = Call::new(
        CallId {
            turn: 1,
            attempt: 0,
            block: 1,
        },
        "look",
        "{\"secret\":1}",
    );
    reply.blocks.push(Arc::new(Block::Call(call)));
    Entry::Turn(Turn::open(Arc::new(reply)).close_with(|_| CallResult::ok("the result of a tool")))
}

#[tokio::test]
async fn model_is_shown_words_of_people_and_the_assistant_when_there_is_more() {
    let (_, memories) = ada();
    let (model, memories) = with(&memories, [finds(&[])]);
    let mut history = said(&["I am Ada."]);
    history.push(turn("Hello Ada."));
    let reminder = UserMessage {
        origin: Origin::Reminder { by: "clock".into() },
        ..UserMessage::text("Be brief.")
    };
    history.push(Entry::User(reminder));
    let custom = json!({"kind": "note", "data": {"x": 1}});
    history.push(Entry::Custom(
        serde_json::from_value::<Custom>(custom).expect("a custom entry"),
    ));
    history.push(Entry::User(UserMessage {
        origin: Origin::Steering,
        ..UserMessage::text("Faster!")
    }));
    learn(&memories, &history).await;
    let expect = json!({"before": [], "new": [
        {"who": "user", "said": "I am Ada."},
        {"who": "assistant", "said": "Hello Ada."},
        {"who": "user", "said": "Faster!"},
    ]});
    assert_eq!(shown(&model.requests()[0]), expect);
}

#[tokio::test]
async fn only_the_new_part_is_read_when_a_conversation_goes_on() {
    let (_, memories) = ada();
    let (model, memories) = with(
        &memories,
        [
            finds(&["The user is Ada."]),
            finds(&["The user likes tea."]),
        ],
    );
    let mut history = said(&["I am Ada."]);
    let learned = learn(&memories, &history).await;
    assert_eq!(
        learned
            .added
            .iter()
            .map(|fact| &*fact.text)
            .collect::<Vec<_>>(),
        ["The user is Ada."]
    );
    assert!(learned.spent.usage.total() > 0);
    let expect =
        json!({"source": "extraction", "session": "s", "created_at": "2023-11-14T22:13:20Z"});
    assert_eq!(json!(learned.added[0].metadata), expect);
    // Nothing new: nobody is asked.
    assert_eq!(learn(&memories, &history).await, Learned::default());
    say(&mut history, &["I like tea."]);
    learn(&memories, &history).await;
    let expect = json!({
        "before": [{"who": "user", "said": "I am Ada."}],
        "new": [{"who": "user", "said": "I like tea."}],
    });
    assert_eq!(shown(&model.requests()[1]), expect);
    assert_eq!(
        texts(&memories).await,
        ["The user is Ada.", "The user likes tea."]
    );
    model.assert_done();
}

#[tokio::test]
async fn nobody_is_asked_when_no_person_spoke() {
    let (_, memories) = ada();
    let (model, memories) = with(&memories, []);
    let mut history = Transcript::new();
    history.push(turn("Talking to myself."));
    learn(&memories, &history).await;
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn part_is_read_again_when_the_model_failed() {
    let (_, memories) = ada();
    let overloaded = Error::new(ErrorKind::Overloaded, "too much to do");
    let garbage = || Script::new().text("I found two nice facts!");
    let scripts = [
        Script::new().text("{").fail(overloaded),
        garbage(),
        garbage(),
        finds(&["The user is Ada."]),
    ];
    let (model, memories) = with(&memories, scripts);
    let history = said(&["I am Ada."]);
    let error = memories
        .learn("s", &history)
        .await
        .expect_err("the model fails");
    assert_eq!(
        (error.kind, error.is_retryable()),
        (MemoryErrorKind::Model, true)
    );
    // Garbage is sent back for repair once.
    memories
        .learn("s", &history)
        .await
        .expect_err("the model talks");
    assert_eq!(
        (model.requests().len(), texts(&memories).await.len()),
        (3, 0)
    );
    // What failed was billed all the same.
    assert!(
        memories.spent().usage.output >= 20,
        "{:?}",
        memories.spent()
    );
    learn(&memories, &history).await;
    assert_eq!(texts(&memories).await, ["The user is Ada."]);
    model.assert_done();
}

#[tokio::test]
async fn part_is_left_out_when_the_model_refuses_it() {
    let (_, memories) = ada();
    let (model, memories) = with(
        &memories,
        [
            Script::new().stop(FinishReason::Refused),
            finds(&["The user likes tea."]),
        ],
    );
    let mut history = said(&["Something bad."]);
    let learned = learn(&memories, &history).await;
    assert_eq!(learned.warnings.len(), 1, "{learned:?}");
    say(&mut history, &["I like tea."]);
    learn(&memories, &history).await;
    assert_eq!(texts(&memories).await, ["The user likes tea."]);
    model.assert_done();
}

#[tokio::test]
async fn part_is_read_again_when_the_store_failed_and_nothing_is_kept_twice() {
    let (store, memories) = ada();
    let embedder = adjutant_llm::HashEmbedder::new(64);
    let memories = memories.embedder(embedder);
    let gate = Gate::default();
    let (_, memories) = with(
        &memories,
        [
            finds(&["The user is Ada."]).wait_at(0, &gate),
            finds(&["The user is Ada.", "Tea is liked."]),
        ],
    );
    let history = said(&["I am Ada."]);
    let reading = tokio::spawn({
        let (memories, history) = (memories.clone(), history.clone());
        async move { memories.learn("s", &history).await }
    });
    gate.wait_until_reached().await;
    store.fail(true);
    gate.open();
    let error = reading
        .await
        .expect("no panic")
        .expect_err("the disk is gone");
    assert_eq!(error.kind, MemoryErrorKind::Io);
    store.fail(false);
    learn(&memories, &history).await;
    assert_eq!(
        texts(&memories).await,
        ["Tea is liked.", "The user is Ada."]
    );
}

#[tokio::test]
async fn part_is_read_once_when_two_read_it_at_a_time() {
    let (_, memories) = ada();
    let gate = Gate::default();
    let (model, memories) = with(&memories, [finds(&["The user is Ada."]).wait_at(0, &gate)]);
    let history = said(&["I am Ada."]);
    let read = || {
        let (memories, history) = (memories.clone(), history.clone());
        tokio::spawn(async move { memories.learn("s", &history).await })
    };
    let (one, other) = (read(), read());
    gate.wait_until_reached().await;
    gate.open();
    let added = |read: Result<Result<Learned, _>, _>| {
        let read: Result<Learned, adjutant_agent::memory::MemoryError> = read.expect("no panic");
        read.expect("it is read").added.len()
    };
    assert_eq!(added(one.await) + added(other.await), 1);
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn slower_process_keeps_nothing_when_two_read_one_session() {
    let (store, slow) = ada();
    let gate = Gate::default();
    let (_, slow) = with(&slow, [finds(&["Ada is the user."]).wait_at(0, &gate)]);
    let (_, fast) = with(&of(&store, "ada"), [finds(&["The user is Ada."])]);
    let history = said(&["I am Ada."]);
    let reading = tokio::spawn({
        let (slow, history) = (slow.clone(), history.clone());
        async move { slow.learn("s", &history).await }
    });
    gate.wait_until_reached().await;
    learn(&fast, &history).await;
    gate.open();
    let learned = reading.await.expect("no panic").expect("it is no failure");
    assert_eq!((learned.added.len(), learned.warnings.len()), (0, 1));
    assert_eq!(texts(&fast).await, ["The user is Ada."]);
}

#[tokio::test]
async fn sessions_are_read_apart_when_their_names_differ() {
    let (_, memories) = ada();
    let (model, memories) = with(
        &memories,
        [
            finds(&["The user is Ada."]),
            finds(&["The user likes tea."]),
        ],
    );
    learn(&memories, &said(&["I am Ada."])).await;
    memories
        .learn("other/../s", &said(&["I like tea."]))
        .await
        .expect("it is read");
    assert_eq!(texts(&memories).await.len(), 2);
    model.assert_done();
}

#[tokio::test]
async fn session_is_read_anew_when_it_counts_as_unread() {
    let (_, memories) = ada();
    let (model, memories) = with(
        &memories,
        [finds(&["The user is Ada."]), finds(&["the user is  Ada"])],
    );
    let history = said(&["I am Ada."]);
    learn(&memories, &history).await;
    memories.unread("s").await.expect("the store works");
    let learned = learn(&memories, &history).await;
    assert_eq!(
        (learned.known, texts(&memories).await),
        (1, vec!["The user is Ada.".to_owned()])
    );
    model.assert_done();
}

#[tokio::test]
async fn facts_are_bounded_when_a_model_finds_too_many_and_too_long_ones() {
    let (_, memories) = ada();
    let many: Vec<String> = (0..30).map(|n| format!("word{n}x")).collect();
    let long = "x".repeat(MAX_LEARNED_BYTES + 1);
    let mut facts: Vec<&str> = vec!["", &long, "word0x.", " WORD0x "];
    facts.extend(many.iter().map(String::as_str));
    let (_, memories) = with(&memories, [finds(&facts)]);
    let learned = learn(&memories, &said(&["I know many words."])).await;
    assert_eq!(learned.added.len(), MAX_LEARNED);
    assert_eq!(
        learned.warnings,
        ["14 of 34 facts were empty, doubled, too long or too many".into()]
    );
}

#[tokio::test]
async fn long_part_is_read_in_several_requests_and_marked_after_each() {
    let (_, memories) = ada();
    let broken = Script::new().fail(Error::new(ErrorKind::Network, "the line broke"));
    let (model, memories) = with(&memories, [finds(&["one"]), broken, finds(&["two"])]);
    let texts_said: Vec<String> = (0..6)
        .map(|n| format!("{n}{}", "ä".repeat(7_000)))
        .collect();
    let history = said(&texts_said.iter().map(String::as_str).collect::<Vec<_>>());
    memories
        .learn("s", &history)
        .await
        .expect_err("the line broke");
    learn(&memories, &history).await;
    let counts: Vec<usize> = model
        .requests()
        .iter()
        .map(|request| shown(request)["new"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(counts, [3, 3, 3]);
    assert_eq!(texts(&memories).await, ["one", "two"]);
}

#[tokio::test]
async fn answer_is_read_when_it_is_fenced() {
    let (_, memories) = ada();
    let fenced = Script::new()
        .text("Here you are:\n```json\n{\"facts\": [\"The user is Ada.\"]}\n```\nDone.");
    let (_, memories) = with(&memories, [fenced]);
    learn(&memories, &said(&["I am Ada."])).await;
    assert_eq!(texts(&memories).await, ["The user is Ada."]);
}

#[tokio::test]
async fn learning_is_refused_when_there_is_no_model() {
    let (_, memories) = ada();
    add(&memories, &["The user is Ada."]).await;
    let error = memories
        .learn("s", &said(&["I am Ada."]))
        .await
        .expect_err("there is no model");
    assert_eq!(error.kind, MemoryErrorKind::Invalid);
}
