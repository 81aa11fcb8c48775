//! What becomes of a new fact next to those that are like it, and of decisions that make no sense.

use std::sync::Arc;

use adjutant_context::{Learned, MAX_LEARNED_BYTES, Memories};
use adjutant_llm::{Error, ErrorKind, Script, ScriptedModel};
use serde_json::{Value, json};

use super::{ada, add, decides, finds, of, said, texts};

/// What is learned from one conversation, with these replies of the model.
async fn learn(memories: &Memories, scripts: Vec<Script>) -> (Arc<ScriptedModel>, Learned) {
    let model = Arc::new(ScriptedModel::new(scripts));
    let memories = memories.clone().model(Arc::clone(&model));
    let learned = memories
        .learn("s", &said(&["Let me tell you something."]))
        .await
        .expect("it is read");
    model.assert_done();
    (model, learned)
}

/// What the memory holds when the user is known to drink green tea, the model finds `found` and decides `decisions`,
/// where `$0` is the id of what is known; and how many warnings there were.
async fn check(decisions: Value, expect: &[&str], warnings: usize) {
    let (_, memories) = ada();
    let known = add(&memories, &["The user drinks green tea."])
        .await
        .remove(0);
    let decisions = decisions.to_string().replace("$0", &known.id.0);
    let decisions = decides(serde_json::from_str(&decisions).expect("it is JSON still"));
    let (_, learned) = learn(
        &memories,
        vec![finds(&["The user drinks black tea."]), decisions],
    )
    .await;
    assert_eq!(
        (texts(&memories).await, learned.warnings.len()),
        (to_strings(expect), warnings),
        "{learned:?}"
    );
}

fn to_strings(texts: &[&str]) -> Vec<String> {
    let mut texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    texts.sort();
    texts
}

const OLD: &str = "The user drinks green tea.";
const NEW: &str = "The user drinks black tea.";

#[tokio::test]
async fn decisions_are_carried_out_when_they_are_right() {
    check(json!([{"event": "add"}]), &[OLD, NEW], 0).await;
    check(json!([{"event": "none"}]), &[OLD], 0).await;
    check(
        json!([{"event": "update", "id": "$0", "text": "The user drinks tea."}]),
        &["The user drinks tea."],
        0,
    )
    .await;
    check(json!([{"event": "delete", "id": "$0"}]), &[], 0).await;
    check(
        json!([{"event": "delete", "id": "$0", "text": null}, {"event": "ADD", "id": null}]),
        &[NEW],
        0,
    )
    .await;
    check(json!([{"event": "add"}, {"event": "add"}]), &[OLD, NEW], 0).await;
}

#[tokio::test]
async fn fact_is_added_as_it_is_when_a_decision_is_wrong() {
    check(
        json!([{"event": "update", "id": "made-up", "text": "Owned."}]),
        &[OLD, NEW],
        1,
    )
    .await;
    check(json!([{"event": "delete", "id": ""}]), &[OLD, NEW], 1).await;
    check(json!([{"event": "delete"}]), &[OLD, NEW], 1).await;
    check(
        json!([{"event": "update", "id": "$0", "text": "  "}]),
        &[OLD, NEW],
        1,
    )
    .await;
    check(
        json!([{"event": "update", "id": "$0", "text": "x".repeat(MAX_LEARNED_BYTES + 1)}]),
        &[OLD, NEW],
        1,
    )
    .await;
    check(json!([{"event": "explode", "id": "$0"}]), &[OLD, NEW], 1).await;
    check(json!([{}]), &[OLD, NEW], 1).await;
    check(json!([]), &[OLD, NEW], 1).await;
}

#[tokio::test]
async fn right_decisions_are_carried_out_when_others_are_wrong() {
    let update = json!({"event": "update", "id": "$0", "text": "The user drinks tea."});
    check(
        json!([{"event": "delete", "id": "made-up"}, update]),
        &["The user drinks tea."],
        1,
    )
    .await;
    check(
        json!([{"event": "explode"}, {"event": "delete", "id": "$0"}]),
        &[NEW],
        1,
    )
    .await;
    // The second one has nothing left to change.
    check(json!([{"event": "delete", "id": "$0"}, update]), &[NEW], 1).await;
}

#[tokio::test]
async fn fact_is_added_as_it_is_when_the_model_talks_or_fails() {
    let garbage = || Script::new().text("I would say they are the same.");
    let failing = Script::new().fail(Error::new(ErrorKind::Network, "the line broke"));
    for scripts in [vec![garbage(), garbage()], vec![failing]] {
        let (_, memories) = ada();
        add(&memories, &[OLD]).await;
        let scripts = [finds(&[NEW])].into_iter().chain(scripts).collect();
        let (_, learned) = learn(&memories, scripts).await;
        assert_eq!(
            (texts(&memories).await, learned.warnings.len()),
            (to_strings(&[OLD, NEW]), 1)
        );
    }
}

#[tokio::test]
async fn decisions_are_read_when_they_are_fenced() {
    let (_, memories) = ada();
    add(&memories, &[OLD]).await;
    let fenced = Script::new().text("```json\n{\"decisions\": [{\"event\": \"none\"}]}\n```");
    let (_, learned) = learn(&memories, vec![finds(&[NEW]), fenced]).await;
    assert_eq!(
        (texts(&memories).await, learned.known),
        (to_strings(&[OLD]), 1)
    );
}

#[tokio::test]
async fn nobody_is_asked_when_a_fact_is_new_or_known_word_for_word() {
    let (_, memories) = ada();
    add(&memories, &[OLD]).await;
    let (model, learned) = learn(
        &memories,
        vec![finds(&["the user  drinks GREEN tea", "Paris is far."])],
    )
    .await;
    assert_eq!(model.requests().len(), 1);
    assert_eq!(
        (learned.known, texts(&memories).await),
        (1, to_strings(&[OLD, "Paris is far."]))
    );
}

#[tokio::test]
async fn second_fact_is_compared_with_the_first_when_both_are_new() {
    let (_, memories) = ada();
    let scripts = vec![finds(&[OLD, NEW]), decides(json!([{"event": "none"}]))];
    let (model, learned) = learn(&memories, scripts).await;
    assert_eq!(
        (model.requests().len(), learned.added.len(), learned.known),
        (2, 1, 1)
    );
}

#[tokio::test]
async fn facts_of_others_stay_when_a_model_names_their_ids() {
    let (store, memories) = ada();
    add(&memories, &[OLD]).await;
    let eve = of(&store, "eve");
    // Of two, so that the ids of the fixed world differ.
    let secret = add(&eve, &["one", "Eve drinks tea."]).await.remove(1);
    let decisions = json!([
        {"event": "delete", "id": secret.id}, {"event": "update", "id": secret.id, "text": "Owned."},
    ]);
    let (model, learned) = learn(&memories, vec![finds(&[NEW]), decides(decisions)]).await;
    assert_eq!(
        (
            learned.deleted.len(),
            learned.updated.len(),
            learned.added.len()
        ),
        (0, 0, 1)
    );
    assert_eq!(texts(&eve).await, ["Eve drinks tea.", "one"]);
    assert!(!format!("{:?}", model.requests()[1]).contains("Eve"));
}

#[tokio::test]
async fn updated_fact_keeps_where_it_came_from() {
    let (_, memories) = ada();
    let (_, first) = learn(&memories, vec![finds(&[OLD])]).await;
    let update =
        json!([{"event": "update", "id": first.added[0].id, "text": "The user drinks tea."}]);
    let model = ScriptedModel::new([finds(&[NEW]), decides(update)]);
    let second = memories
        .clone()
        .model(model)
        .learn("t", &said(&["Again."]))
        .await
        .expect("it is read");
    assert_eq!(second.updated[0].metadata, first.added[0].metadata);
    assert_eq!(second.updated[0].metadata["session"], json!("s"));
}
