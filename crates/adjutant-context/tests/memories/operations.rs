//! Add, search, update, delete, list: of one owner, by words and vectors.

use std::sync::Arc;

use adjutant_agent::memory::{FactId, MAX_FACT_BYTES, MemoryErrorKind, Metadata};
use adjutant_context::Memories;
use adjutant_llm::{
    EmbedderInfo, Embeddings, Error, ErrorKind, HashEmbedder, NanoUsd, Price, Usage, embedder_fn,
};
use serde_json::json;

use super::{NOW, ada, add, of, texts};

async fn found(memories: &Memories, query: &str) -> Vec<(String, f64)> {
    let found = memories.search(query).await.expect("the store works");
    found
        .into_iter()
        .map(|it| (it.fact.text.to_string(), (it.score * 100.0).round() / 100.0))
        .collect()
}

#[tokio::test]
async fn facts_have_ids_and_times_of_the_world_when_they_are_added() {
    let (_, memories) = ada();
    let metadata = Metadata::from([("category".into(), json!("personal"))]);
    let fact = memories
        .add("Ada lives in London.", metadata.clone())
        .await
        .expect("there is room");
    assert_eq!(&*fact.id.0, "00000000-0000-0000-0000-000000000001");
    assert_eq!(
        (fact.metadata.clone(), fact.created_ms, fact.updated_ms),
        (metadata, NOW, NOW)
    );
    assert_eq!(
        memories.get(&fact.id).await.expect("the store works"),
        Some(fact.clone())
    );
    assert_eq!(
        memories.list(None, 10).await.expect("the store works"),
        [fact]
    );
}

#[tokio::test]
async fn update_keeps_metadata_that_is_not_named_when_it_changes_the_text() {
    let (_, memories) = ada();
    let metadata = Metadata::from([
        ("created_at".into(), json!("then")),
        ("category".into(), json!("other")),
    ]);
    let fact = memories.add("Tea.", metadata).await.expect("there is room");
    let change = Metadata::from([("category".into(), json!(null))]);
    let updated = memories
        .update(&fact.id, "Green tea.", change)
        .await
        .expect("it is there");
    assert_eq!(&*updated.text, "Green tea.");
    assert_eq!(
        updated.metadata,
        Metadata::from([("created_at".into(), json!("then"))])
    );
    assert_eq!(updated.created_ms, NOW);
}

#[tokio::test]
async fn owners_are_apart_when_they_share_a_store_and_know_ids() {
    let (store, memories) = ada();
    let eve = of(&store, "eve");
    let fact = memories
        .add("Ada's secret tea.", Metadata::new())
        .await
        .expect("there is room");
    let missing = |kind| assert_eq!(kind, MemoryErrorKind::Missing);
    missing(
        eve.update(&fact.id, "Gone.", Metadata::new())
            .await
            .expect_err("not hers")
            .kind,
    );
    missing(eve.delete(&fact.id).await.expect_err("not hers").kind);
    missing(
        memories
            .delete(&FactId("none".into()))
            .await
            .expect_err("never was")
            .kind,
    );
    assert_eq!(eve.get(&fact.id).await.expect("the store works"), None);
    assert_eq!(
        (found(&eve, "tea").await, texts(&eve).await),
        (vec![], vec![])
    );
    assert_eq!(texts(&memories).await, ["Ada's secret tea."]);
}

#[tokio::test]
async fn facts_are_refused_before_anyone_is_paid_when_they_are_empty_or_too_large() {
    let (store, memories) = ada();
    let embedder = Arc::new(HashEmbedder::new(8));
    let memories = memories.embedder(Arc::clone(&embedder));
    let known = of(&store, "ada")
        .add("Tea.", Metadata::new())
        .await
        .expect("there is room")
        .id;
    for text in ["", " \n", &"x".repeat(MAX_FACT_BYTES + 1)] {
        let error = memories
            .add(text, Metadata::new())
            .await
            .expect_err("not a fact");
        assert_eq!(error.kind, MemoryErrorKind::Invalid);
        let error = memories
            .update(&known, text, Metadata::new())
            .await
            .expect_err("not a fact");
        assert_eq!(error.kind, MemoryErrorKind::Invalid);
    }
    assert!(embedder.requests().is_empty());
    assert!(
        memories
            .add("x".repeat(MAX_FACT_BYTES), Metadata::new())
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn search_scores_by_shared_words_when_there_is_no_embedder() {
    let (_, memories) = ada();
    add(
        &memories,
        &[
            "The user has a dog named Rex.",
            "The user likes green tea.",
            "The user lives in Bern.",
        ],
    )
    .await;
    assert_eq!(
        found(&memories, "What do I feed my dog?").await,
        [("The user has a dog named Rex.".to_owned(), 0.5)]
    );
    assert_eq!(found(&memories, "What is the weather?").await, []);
    assert_eq!(found(&memories, "  ").await, []);
    assert_eq!(memories.spent(), adjutant_context::Spent::default());
}

#[tokio::test]
async fn search_keeps_to_limit_and_threshold_when_they_are_set() {
    let (_, memories) = ada();
    add(
        &memories,
        &[
            "green tea",
            "black tea",
            "tea in the morning at work",
            "coffee",
        ],
    )
    .await;
    let found = |limit, min| {
        let mut memories = memories.clone();
        (memories.limit, memories.min_score) = (limit, min);
        async move {
            memories
                .search("green tea today")
                .await
                .expect("the store works")
                .len()
        }
    };
    assert_eq!(
        (
            found(5, 0.0).await,
            found(2, 0.0).await,
            found(0, 0.0).await
        ),
        (3, 2, 0)
    );
    assert_eq!(
        (
            found(5, 0.5).await,
            found(5, 0.6).await,
            found(usize::MAX, 1.0).await
        ),
        (2, 1, 1)
    );
}

#[tokio::test]
async fn search_fuses_both_when_there_is_an_embedder_and_meters_it() {
    let (store, _) = ada();
    let info = EmbedderInfo {
        price: Some(Price::dollars(1.0, 0.0, 0.0, 0.0)),
        ..EmbedderInfo::new("scripted/hash", 256)
    };
    let mut embedder = HashEmbedder::new(256);
    embedder.info = info;
    let memories = of(&store, "ada").embedder(embedder);
    add(&memories, &["green tea", "black tea", "coffee"]).await;
    of(&store, "ada2")
        .add("green tea", Metadata::new())
        .await
        .expect("there is room");
    let best = found(&memories, "green tea").await;
    assert_eq!(best.first(), Some(&("green tea".to_owned(), 1.0)));
    assert_eq!(best.len(), 2);
    // Three facts and a query, at a token for four bytes and a millionth of a dollar each.
    let used: u64 = ["green tea", "black tea", "coffee", "green tea"]
        .iter()
        .map(|text| adjutant_llm::Estimate.count(text))
        .sum();
    assert_eq!(
        memories.spent().usage,
        Usage {
            input_uncached: used,
            ..Usage::default()
        }
    );
    assert_eq!(memories.clone().spent().cost, Some(NanoUsd(used * 1_000)));
}

#[tokio::test]
async fn search_goes_on_by_words_when_the_embedder_fails_but_nothing_is_added_half() {
    let (_, memories) = ada();
    add(&memories, &["green tea"]).await;
    let info = EmbedderInfo::new("x/y", 2);
    let broken = embedder_fn(info, |_, _| async {
        Err::<Embeddings, _>(Error::new(ErrorKind::Overloaded, "too much to do"))
    });
    let memories = memories.embedder(broken);
    assert_eq!(
        found(&memories, "tea").await,
        [("green tea".to_owned(), 1.0)]
    );
    let error = memories
        .add("black tea", Metadata::new())
        .await
        .expect_err("there is no vector");
    assert_eq!(
        (error.kind, error.is_retryable()),
        (MemoryErrorKind::Model, true)
    );
    assert_eq!(texts(&memories).await, ["green tea"]);
}
