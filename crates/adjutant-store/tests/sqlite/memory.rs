//! Memory: what belongs to whom, and what is found.

use adjutant_core::memory::{
    Fact, FactChange, FactId, Memory, MemoryErrorKind, Metadata, NewFact, OwnerId, Vector,
};
use serde_json::{Value, json};

use super::Place;

fn owner(name: &str) -> OwnerId {
    OwnerId(name.into())
}

fn vector(numbers: &[f32]) -> Option<Vector> {
    Some(Vector {
        model: "embedder".into(),
        numbers: numbers.to_vec(),
    })
}

fn fact(id: &str, text: &str, numbers: &[f32]) -> NewFact {
    let fact = NewFact::new(FactId(id.into()), text, 5);
    match vector(numbers).filter(|_| !numbers.is_empty()) {
        Some(vector) => NewFact {
            vector: Some(vector),
            ..fact
        },
        None => fact,
    }
}

#[tokio::test]
async fn owner_touches_nobody_elses_facts() {
    let place = Place::new();
    let memory = place.open().memory();
    let (mine, yours) = (owner("mine"), owner("mine' OR '1'='1"));
    let (id, kept) = (
        FactId("id".into()),
        Fact::new(FactId("id".into()), "apples, red", Metadata::new(), 5),
    );
    memory
        .add(&mine, vec![fact("id", "apples, red", &[1.0, 0.0])])
        .await
        .expect("added");
    memory
        .add(&yours, vec![fact("other", "apples, green", &[1.0, 0.0])])
        .await
        .expect("added");
    assert_eq!(memory.get(&yours, &id).await.expect("read"), None);
    let change = FactChange::new(6).text("hostile", None);
    assert_eq!(
        memory
            .update(&yours, &id, change)
            .await
            .expect_err("missing")
            .kind,
        MemoryErrorKind::Missing
    );
    assert_eq!(
        memory.delete(&yours, &id).await.expect_err("missing").kind,
        MemoryErrorKind::Missing
    );
    assert!(memory.mark(&yours, "log", 0, 9).await.expect("marked"));
    assert_eq!(memory.read_mark(&mine, "log").await.expect("read"), 0);
    // The words that keep owners apart in the index are no way around it.
    for query in ["apples", "o1 o2 owner:o1", "owner:\"o1\" apples"] {
        let found = memory.by_words(&yours, query, 10).await.expect("searched");
        assert!(
            found
                .iter()
                .all(|found| found.fact.id.0.as_ref() == "other"),
            "{query}"
        );
    }
    let near = vector(&[1.0, 0.0]).expect("a vector");
    let found = memory.by_vector(&mine, &near, 10).await.expect("searched");
    assert_eq!(
        found.iter().map(|found| &found.fact).collect::<Vec<_>>(),
        [&kept]
    );
    assert_eq!(memory.list(&mine, None, 10).await.expect("listed"), [kept]);
}

#[tokio::test]
async fn vectors_are_ranked_by_their_cosine() {
    let place = Place::new();
    let (memory, me) = (place.open().memory(), owner("me"));
    let facts = vec![
        fact("far", "a", &[-3.0, 0.0]),
        fact("near", "b", &[10.0, 0.1]),
        fact("middle", "c", &[1.0, 1.0]),
        fact("zero", "d", &[0.0, 0.0]),
        fact("longer", "e", &[1.0, 0.0, 0.0]),
        fact("none", "f", &[]),
    ];
    memory.add(&me, facts).await.expect("added");
    let other = Vector {
        model: "another".into(),
        numbers: vec![1.0, 0.0],
    };
    memory
        .add(
            &me,
            vec![NewFact {
                vector: Some(other),
                ..NewFact::new(FactId("other".into()), "g", 5)
            }],
        )
        .await
        .expect("added");
    let found = async |limit| {
        let found = memory
            .by_vector(&me, &vector(&[2.0, 0.0]).expect("a vector"), limit)
            .await
            .expect("searched");
        found
            .into_iter()
            .map(|found| (found.fact.id.0.to_string(), (found.score * 100.0).round()))
            .collect::<Vec<_>>()
    };
    let all = [
        ("near", 100.0),
        ("middle", 71.0),
        ("zero", 0.0),
        ("far", -100.0),
    ]
    .map(|(id, at)| (id.to_owned(), at));
    assert_eq!(found(10).await, all);
    assert_eq!(found(2).await, all[..2]);
    // A text that changes without a vector has none any more.
    memory
        .update(
            &me,
            &FactId("near".into()),
            FactChange::new(6).text("new", None),
        )
        .await
        .expect("changed");
    memory
        .delete(&me, &FactId("zero".into()))
        .await
        .expect("deleted");
    assert_eq!(found(10).await, [all[1].clone(), all[3].clone()]);
    let vectors: i64 = place
        .raw()
        .query_row("SELECT count(*) FROM vectors", [], |row| row.get(0))
        .expect("counted");
    assert_eq!(vectors, 4);
}

#[tokio::test]
async fn change_sets_text_and_metadata_and_what_it_is_found_by() {
    let place = Place::new();
    let (memory, me, id) = (place.open().memory(), owner("me"), FactId("id".into()));
    let metadata = |pairs: &[(&str, Value)]| -> Metadata {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), value.clone()))
            .collect()
    };
    let added = NewFact {
        metadata: metadata(&[("a", json!(1)), ("b", json!([2]))]),
        ..fact("id", "likes tea", &[])
    };
    memory.add(&me, vec![added]).await.expect("added");
    let change = FactChange::new(9).text("likes coffee", None);
    let change = FactChange {
        metadata: metadata(&[("a", Value::Null), ("c", json!("3"))]),
        ..change
    };
    let mut want = Fact::new(
        id.clone(),
        "likes coffee",
        metadata(&[("b", json!([2])), ("c", json!("3"))]),
        5,
    );
    want.updated_ms = 9;
    assert_eq!(
        memory.update(&me, &id, change).await.expect("changed"),
        want
    );
    assert_eq!(
        memory.get(&me, &id).await.expect("read"),
        Some(want.clone())
    );
    assert_eq!(memory.by_words(&me, "tea", 9).await.expect("searched"), []);
    let found = memory.by_words(&me, "Coffee!", 9).await.expect("searched");
    assert_eq!(found.len(), 1);
    assert!(found[0].score > 0.0);
    assert_eq!(found[0].fact, want);
}

#[tokio::test]
async fn limits_are_errors_and_nothing_is_added() {
    let place = Place::new();
    let (memory, me) = (place.open().memory(), owner("me"));
    let long = "x".repeat(16 * 1024 + 1);
    let heavy = NewFact {
        metadata: [("a".into(), json!(long.clone()))].into(),
        ..fact("heavy", "text", &[])
    };
    for wrong in [
        fact("empty", "", &[]),
        fact("long", &long, &[]),
        fact("", "text", &[]),
        fact("nan", "text", &[f32::NAN]),
        heavy,
    ] {
        let error = memory
            .add(&me, vec![fact("fine", "text", &[]), wrong])
            .await
            .expect_err("refused");
        assert_eq!(error.kind, MemoryErrorKind::Invalid, "{error}");
    }
    for name in [String::new(), "x".repeat(513)] {
        let error = memory
            .add(&owner(&name), Vec::new())
            .await
            .expect_err("refused");
        assert_eq!(error.kind, MemoryErrorKind::Invalid);
    }
    memory
        .add(&me, vec![fact("fine", "text", &[])])
        .await
        .expect("added");
    let error = memory
        .add(
            &me,
            vec![fact("new", "text", &[]), fact("fine", "text", &[])],
        )
        .await
        .expect_err("exists");
    assert_eq!(error.kind, MemoryErrorKind::Exists);
    let many = (0..100_000)
        .map(|number| fact(&format!("{number}"), "text", &[]))
        .collect();
    let error = memory.add(&me, many).await.expect_err("full");
    assert_eq!(error.kind, MemoryErrorKind::Full);
    assert_eq!(memory.list(&me, None, 10).await.expect("listed").len(), 1);
}

#[tokio::test]
async fn mark_moves_only_from_where_it_is() {
    let place = Place::new();
    let (memory, me) = (place.open().memory(), owner("me"));
    for (from, to, is_kept) in [
        (0, 5, true),
        (0, 6, false),
        (5, u64::MAX, true),
        (u64::MAX, 1, true),
    ] {
        assert_eq!(
            memory.mark(&me, "log", from, to).await.expect("marked"),
            is_kept
        );
    }
    assert_eq!(memory.read_mark(&me, "log").await.expect("read"), 1);
    assert_eq!(memory.read_mark(&me, "other").await.expect("read"), 0);
}
