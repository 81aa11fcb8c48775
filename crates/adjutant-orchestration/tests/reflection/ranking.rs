//! What is found for a task, and in which order.

use std::sync::Arc;

use adjutant_agent::kv::MemoryKvStore;
use adjutant_llm::FixedWorld;
use adjutant_orchestration::{
    Reflections,
    reflection::{
        MAX_RECALLED, MAX_REFLECTIONS, MAX_RENDERED_BYTES, OnKvStore, Outcome, Reflection,
        ReflectionId, ReflectionStore,
    },
};

use super::{NOW_MS, failed, summaries};

fn place() -> (Reflections, Arc<FixedWorld>) {
    let world = Arc::new(FixedWorld::at_ms(NOW_MS));
    (Reflections::in_memory().world(world.clone()), world)
}

async fn put(reflections: &Reflections, task: &str, summary: &str) -> ReflectionId {
    reflections
        .record(&failed(task, summary))
        .await
        .expect("it is recorded")
}

#[track_caller]
fn check(found: &[Reflection], expect: &[&str]) {
    assert_eq!(summaries(found), expect);
}

#[tokio::test]
async fn search_goes_by_words_and_not_by_parts_of_words() {
    let (reflections, _) = place();
    put(&reflections, "Refactor the parser's error handling", "one").await;
    put(&reflections, "Write a poem about the harbour", "two").await;
    let found = async |task: &str| reflections.recall(task).await.expect("a search");
    check(
        &found("Error handling: improve it in PARSER!").await,
        &["one"],
    );
    // Substrings, twice the same word, words that everything has, and one word of many: none of them is enough.
    check(&found("parse and hand over errors").await, &[]);
    check(
        &found("harbour harbour harbour entrance dredging").await,
        &[],
    );
    check(&found("please do the task that is about the").await, &[]);
    check(&found("").await, &[]);
    // The only word that tells something is enough.
    check(&found("a poem").await, &["two"]);
}

#[tokio::test]
async fn most_relevant_comes_first() {
    let (reflections, world) = place();
    put(
        &reflections,
        "Build the parser crate with nightly",
        "relevant",
    )
    .await;
    world.advance_ms(1_000);
    put(&reflections, "Build the docs of the crate", "less").await;
    let found = reflections
        .recall("build the parser crate with nightly")
        .await
        .expect("a search");
    check(&found, &["relevant", "less"]);
}

#[tokio::test]
async fn most_helpful_and_then_newest_comes_first_when_relevance_is_equal() {
    let (reflections, world) = place();
    let mut ids = Vec::new();
    for summary in ["alpha", "beta", "gamma", "delta"] {
        ids.push(put(&reflections, "Build the parser", summary).await);
        world.advance_ms(1_000);
    }
    let found = async || {
        reflections
            .recall("build the parser")
            .await
            .expect("a search")
    };
    check(&found().await, &["delta", "gamma", "beta", "alpha"]);
    reflections
        .outcome(&ids[1..2], Outcome::Helped)
        .await
        .expect("it is counted");
    reflections
        .outcome(&ids[3..], Outcome::Useless)
        .await
        .expect("it is counted");
    reflections
        .outcome(&ids[2..3], Outcome::Unknown)
        .await
        .expect("it is counted");
    check(&found().await, &["beta", "gamma", "alpha", "delta"]);
}

#[tokio::test]
async fn estimate_is_the_mean_of_a_beta_distribution() {
    let (reflections, _) = place();
    let id = put(&reflections, "Build it", "x").await;
    let helpfulness =
        async || reflections.list().await.expect("a list").reflections[0].helpfulness();
    assert_eq!(helpfulness().await, 0.5);
    let ids = std::slice::from_ref(&id);
    reflections
        .outcome(ids, Outcome::Helped)
        .await
        .expect("it is counted");
    assert_eq!(helpfulness().await, 2.0 / 3.0);
    reflections
        .outcome(ids, Outcome::Unknown)
        .await
        .expect("it is counted");
    reflections
        .outcome(ids, Outcome::Useless)
        .await
        .expect("it is counted");
    assert_eq!(helpfulness().await, 0.5);
}

#[tokio::test]
async fn number_that_is_recalled_is_bounded() {
    let (reflections, world) = place();
    for n in 0..20 {
        put(&reflections, "Build the parser", &format!("n{n}")).await;
        world.advance_ms(1_000);
    }
    let found = reflections
        .recall("build the parser")
        .await
        .expect("a search");
    check(&found, &["n19", "n18", "n17", "n16", "n15"]);
    assert_eq!(found.len(), MAX_RECALLED);
}

#[tokio::test]
async fn bytes_that_are_recalled_are_bounded_and_what_is_recalled_is_shown_whole() {
    let (reflections, world) = place();
    for n in 0..5 {
        let long = format!("n{n} {}", "ü".repeat(3_900));
        put(
            &reflections,
            &format!("Build the parser {}", "ü".repeat(1_900)),
            &long,
        )
        .await;
        world.advance_ms(1_000);
    }
    put(&reflections, "Build the parser", "short").await;
    let found = reflections
        .recall("build the parser")
        .await
        .expect("a search");
    let shown = Reflections::render(&found);
    assert!(
        shown.len() <= MAX_RENDERED_BYTES && shown.len() > MAX_RENDERED_BYTES / 2,
        "{}",
        shown.len()
    );
    assert_eq!(shown.matches("<reflection id=").count(), found.len());
    assert!(!shown.contains("left out") && !shown.contains("[cut]"));
    assert!(summaries(&found).contains(&"short"));
}

#[tokio::test]
async fn place_is_bounded_and_what_helps_least_goes_first() {
    let store = OnKvStore::new(Arc::new(MemoryKvStore::default()));
    let world = Arc::new(FixedWorld::at_ms(NOW_MS + 10_000_000));
    let reflections = Reflections::new(store.clone()).world(world);
    let mut ids = Vec::new();
    for n in 0..MAX_REFLECTIONS {
        let id = ReflectionId::from(format!("coder-20000229-{n:06}").as_str());
        let it = Reflection::new(
            id,
            failed("Build it", &format!("n{n}")),
            NOW_MS + n as u64 * 1_000,
        );
        ids.push(store.add(&it).await.expect("there is room"));
    }
    reflections
        .outcome(&ids[..1], Outcome::Helped)
        .await
        .expect("it is counted");
    reflections
        .outcome(&ids[7..8], Outcome::Useless)
        .await
        .expect("it is counted");
    put(&reflections, "Build it", "new").await;
    put(&reflections, "Build it", "newer").await;
    let listing = reflections.list().await.expect("a list");
    let kept = summaries(&listing.reflections);
    assert_eq!(kept.len(), MAX_REFLECTIONS);
    // The useless one, and the oldest that nothing is known of.
    assert!(
        kept.contains(&"n0")
            && !kept.contains(&"n7")
            && !kept.contains(&"n1")
            && kept.contains(&"n2")
    );
}
