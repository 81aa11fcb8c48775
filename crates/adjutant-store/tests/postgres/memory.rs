//! Memory: facts of owners, found by words and vectors, never another owner's.

use adjutant_core::{
    Memory,
    memory::{FactChange, FactId, MemoryErrorKind, Metadata, NewFact, OwnerId, ScoredFact, Vector},
};
use serde_json::json;

use super::place;

fn vector(numbers: &[f32]) -> Vector {
    Vector {
        model: "embedder".into(),
        numbers: numbers.to_vec(),
    }
}

fn fact(id: &str, text: &str, now_ms: u64) -> NewFact {
    NewFact::new(FactId::from(id), text, now_ms)
}

fn ids(found: &[ScoredFact]) -> Vec<&str> {
    found.iter().map(|found| &*found.fact.id.0).collect()
}

#[tokio::test]
async fn facts_are_added_changed_listed_and_deleted() {
    let place = place!("facts_are_added_changed_listed_and_deleted");
    let memory = place.open().await.memory();
    let owner = OwnerId::from("me\0");
    let metadata = Metadata::from([("nul\0".into(), json!("\0")), ("old".into(), json!(1.5))]);
    let facts = vec![
        NewFact {
            metadata,
            ..fact("b", "likes tea\0", 5)
        },
        fact("a", "lives in Köln", 5),
        fact("c", "is 40", 4),
    ];
    memory.add(&owner, facts).await.expect("they are new");
    let error = memory
        .add(&owner, vec![fact("d", "new", 9), fact("a", "again", 9)])
        .await
        .expect_err("it is there");
    assert_eq!(error.kind, MemoryErrorKind::Exists);
    let list = memory.list(&owner, None, 10).await.expect("a list");
    assert_eq!(
        list.iter().map(|fact| &*fact.id.0).collect::<Vec<_>>(),
        ["c", "a", "b"]
    );
    assert_eq!(
        memory
            .list(&owner, Some(&FactId::from("c")), 1)
            .await
            .expect("a list"),
        list[1..2]
    );
    let change = FactChange {
        metadata: Metadata::from([("old".into(), json!(null)), ("new".into(), json!([1]))]),
        ..FactChange::new(7).text("likes coffee", None)
    };
    let changed = memory
        .update(&owner, &FactId::from("b"), change)
        .await
        .expect("it is there");
    assert_eq!(
        (&*changed.text, changed.created_ms, changed.updated_ms),
        ("likes coffee", 5, 7)
    );
    assert_eq!(
        changed.metadata,
        Metadata::from([("nul\0".into(), json!("\0")), ("new".into(), json!([1]))])
    );
    assert_eq!(
        memory.get(&owner, &FactId::from("b")).await.expect("read"),
        Some(changed)
    );
    assert!(
        memory
            .by_words(&owner, "tea", 9)
            .await
            .expect("found")
            .is_empty()
    );
    assert_eq!(
        ids(&memory.by_words(&owner, "COFFEE?", 9).await.expect("found")),
        ["b"]
    );
    memory
        .delete(&owner, &FactId::from("b"))
        .await
        .expect("it is there");
    for error in [
        memory
            .delete(&owner, &FactId::from("b"))
            .await
            .expect_err("it is gone"),
        memory
            .update(&owner, &FactId::from("b"), FactChange::new(8))
            .await
            .expect_err("it is gone"),
    ] {
        assert_eq!(error.kind, MemoryErrorKind::Missing);
    }
}

#[tokio::test]
async fn fact_that_cannot_be_is_refused() {
    let place = place!("fact_that_cannot_be_is_refused");
    let memory = place.open().await.memory();
    let owner = OwnerId::from("me");
    let large = Metadata::from([("large".into(), json!("x".repeat(17 * 1024)))]);
    for refused in [
        fact("", "text", 1),
        fact("a", "", 1),
        fact("a", &"x".repeat(16 * 1024 + 1), 1),
        NewFact {
            metadata: large,
            ..fact("a", "text", 1)
        },
        NewFact {
            vector: Some(vector(&[f32::NAN])),
            ..fact("a", "text", 1)
        },
    ] {
        let error = memory
            .add(&owner, vec![refused])
            .await
            .expect_err("it cannot be");
        assert_eq!(error.kind, MemoryErrorKind::Invalid);
    }
    let error = memory
        .add(&OwnerId::from(""), vec![fact("a", "text", 1)])
        .await
        .expect_err("nobody");
    assert_eq!(error.kind, MemoryErrorKind::Invalid);
    memory
        .add(&owner, vec![fact("a", "text", 1)])
        .await
        .expect("it can be");
    place.execute("update $.owners set facts = 99999");
    let two = vec![fact("b", "text", 1), fact("c", "text", 1)];
    assert_eq!(
        memory
            .add(&owner, two)
            .await
            .expect_err("one too many")
            .kind,
        MemoryErrorKind::Full
    );
    assert_eq!(
        memory.get(&owner, &FactId::from("b")).await.expect("read"),
        None
    );
    memory
        .add(&owner, vec![fact("b", "text", 1)])
        .await
        .expect("there is room for one");
    memory
        .delete(&owner, &FactId::from("a"))
        .await
        .expect("it is there");
    memory
        .add(&owner, vec![fact("c", "text", 1)])
        .await
        .expect("there is room for one");
}

#[tokio::test]
async fn nearest_vectors_are_found_best_first() {
    let place = place!("nearest_vectors_are_found_best_first");
    let memory = place.open().await.memory();
    let owner = OwnerId::from("me");
    let of_another = Vector {
        model: "another".into(),
        numbers: vec![1.0, 0.0],
    };
    let mut facts = vec![
        NewFact {
            vector: Some(vector(&[2.0, 0.0])),
            ..fact("same", "x", 1)
        },
        NewFact {
            vector: Some(vector(&[3.0, 4.0])),
            ..fact("near", "x", 1)
        },
        NewFact {
            vector: Some(vector(&[-1.0, 0.0])),
            ..fact("opposite", "x", 1)
        },
        NewFact {
            vector: Some(vector(&[0.0, 0.0])),
            ..fact("nowhere", "x", 1)
        },
        NewFact {
            vector: Some(vector(&[1.0, 0.0, 0.0])),
            ..fact("longer", "x", 1)
        },
        NewFact {
            vector: Some(of_another),
            ..fact("another", "x", 1)
        },
        fact("none", "x", 1),
    ];
    facts.extend((0..300).map(|number| NewFact {
        vector: Some(vector(&[0.0, 1.0])),
        ..fact(&format!("{number:03}"), "x", 2)
    }));
    memory.add(&owner, facts).await.expect("they are new");
    let found = memory
        .by_vector(&owner, &vector(&[1.0, 0.0]), 4)
        .await
        .expect("found");
    assert_eq!(ids(&found), ["same", "near", "000", "001"]);
    let scores: Vec<f64> = found.iter().map(|found| found.score).collect();
    assert!(
        (scores[0] - 1.0).abs() < 1e-9 && (scores[1] - 0.6).abs() < 1e-9 && scores[2] == 0.0,
        "{scores:?}"
    );
    assert_eq!(
        memory
            .by_vector(&owner, &vector(&[1.0, 0.0]), 1_000)
            .await
            .expect("found")
            .len(),
        303
    );
    memory
        .update(
            &owner,
            &FactId::from("same"),
            FactChange::new(3).text("y", None),
        )
        .await
        .expect("it is there");
    let found = memory
        .by_vector(&owner, &vector(&[1.0, 0.0]), 1)
        .await
        .expect("found");
    assert_eq!(ids(&found), ["near"]);
}

#[tokio::test]
async fn nothing_touches_another_owner() {
    let place = place!("nothing_touches_another_owner");
    let memory = place.open().await.memory();
    let (me, other) = (OwnerId::from("me"), OwnerId::from("me\0"));
    memory
        .add(
            &me,
            vec![NewFact {
                vector: Some(vector(&[1.0])),
                ..fact("id", "my secret", 1)
            }],
        )
        .await
        .expect("it is new");
    let id = FactId::from("id");
    assert_eq!(memory.get(&other, &id).await.expect("read"), None);
    let change = FactChange::new(2).text("changed", None);
    assert_eq!(
        memory
            .update(&other, &id, change)
            .await
            .expect_err("not theirs")
            .kind,
        MemoryErrorKind::Missing
    );
    assert_eq!(
        memory
            .delete(&other, &id)
            .await
            .expect_err("not theirs")
            .kind,
        MemoryErrorKind::Missing
    );
    assert!(
        memory
            .list(&other, None, 9)
            .await
            .expect("a list")
            .is_empty()
    );
    assert!(
        memory
            .list(&other, Some(&id), 9)
            .await
            .expect("a list")
            .is_empty()
    );
    assert!(
        memory
            .by_words(&other, "secret", 9)
            .await
            .expect("found")
            .is_empty()
    );
    assert!(
        memory
            .by_vector(&other, &vector(&[1.0]), 9)
            .await
            .expect("found")
            .is_empty()
    );
    memory
        .add(&other, vec![fact("id", "their secret", 1)])
        .await
        .expect("the name is free");
    assert_eq!(
        &*memory
            .get(&me, &id)
            .await
            .expect("read")
            .expect("it is there")
            .text,
        "my secret"
    );
}

#[tokio::test]
async fn mark_moves_only_from_where_it_is() {
    let place = place!("mark_moves_only_from_where_it_is");
    let memory = place.open().await.memory();
    let (me, other) = (OwnerId::from("me"), OwnerId::from("other"));
    assert!(!memory.mark(&me, "log\0", 3, 5).await.expect("kept"));
    for (from, to, is_kept) in [
        (0, 7, true),
        (0, 9, false),
        (6, 9, false),
        (7, u64::MAX, true),
        (u64::MAX, 0, true),
        (0, 2, true),
    ] {
        assert_eq!(
            memory.mark(&me, "log\0", from, to).await.expect("kept"),
            is_kept,
            "{from} {to}"
        );
    }
    assert_eq!(memory.read_mark(&me, "log\0").await.expect("read"), 2);
    assert_eq!(
        (
            memory.read_mark(&me, "log").await.expect("read"),
            memory.read_mark(&other, "log\0").await.expect("read")
        ),
        (0, 0)
    );
}
