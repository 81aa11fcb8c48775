//! Facts by name: adding, reading, changing, deleting, listing.

use adjutant_agent::memory::{FactChange, FactId, MemoryErrorKind, NewFact};
use serde_json::{Value, json};

use super::stage::{
    MemoryStage, add, build_fact, check_error, fact, finds, get, has, metadata, pointing, vector,
};
use crate::suite::{Verdict, equal, holds, ok};

pub(super) async fn add_then_get(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    has(&*memory, &owner, &[]).await?;
    equal(
        "a fact that was never added",
        &get(&*memory, &owner, "one").await?,
        &None,
    )?;
    let one = NewFact {
        metadata: metadata(&[("from", json!("talk"))]),
        ..fact("one", "likes tea")
    };
    let two = NewFact {
        vector: Some(vector("usual", &[1.0, 0.5])),
        ..NewFact::new("two".into(), "lives in Bern", 2_000)
    };
    add(&*memory, &owner, [two.clone(), one.clone()]).await?;
    has(
        &*stage.open().await,
        &owner,
        &[build_fact(&one), build_fact(&two)],
    )
    .await?;
    add(&*memory, &owner, []).await?;
    has(&*memory, &owner, &[build_fact(&one), build_fact(&two)]).await
}

pub(super) async fn facts_survive(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let texts = [
        "\0 a\0b",
        "one\ntwo\r\n\u{2028}",
        "👩‍👩‍👧‍👦 \u{ffff}\u{10ffff}",
        "'; DROP TABLE facts; --",
        "e\u{301} é",
        " ",
        "{\"a\":1}",
    ];
    let fields = metadata(&[
        ("", json!("")),
        (
            "\0",
            json!([1, 2.5, -0.0, 9_007_199_254_740_993_u64, u64::MAX, i64::MIN]),
        ),
        ("é/\"'", json!({"b": {"a": [{}]}, "a": false})),
        ("empty", json!([])),
    ]);
    let mut facts: Vec<_> = texts
        .iter()
        .map(|text| NewFact {
            metadata: fields.clone(),
            ..fact(text, text)
        })
        .collect();
    add(&*memory, &owner, facts.clone()).await?;
    facts.sort_by(|one, other| one.id.cmp(&other.id));
    has(
        &*stage.open().await,
        &owner,
        &facts.iter().map(build_fact).collect::<Vec<_>>(),
    )
    .await
}

pub(super) async fn adds_are_whole(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let one = fact("one", "first");
    add(&*memory, &owner, [one.clone()]).await?;
    let torn = vec![
        fact("two", "second"),
        fact("one", "again"),
        fact("three", "third"),
    ];
    check_error(
        "adding a name that is there",
        memory.add(&owner, torn).await,
        MemoryErrorKind::Exists,
    )?;
    let bad = vec![fact("two", "second"), fact("three", "")];
    check_error(
        "adding an empty text",
        memory.add(&owner, bad).await,
        MemoryErrorKind::Invalid,
    )?;
    let twice = memory
        .add(&owner, vec![fact("two", "second"), fact("two", "third")])
        .await;
    holds("a name is not given twice by one add", twice.is_err())?;
    has(&*stage.open().await, &owner, &[build_fact(&one)]).await?;
    finds(&*memory, &owner, "first second third again", &["one"]).await
}

pub(super) async fn update_changes(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let (one, two) = (
        NewFact {
            metadata: metadata(&[("k", json!(1))]),
            ..fact("one", "likes tea")
        },
        fact("two", "other"),
    );
    add(&*memory, &owner, [one.clone(), two.clone()]).await?;
    let mut want = build_fact(&one);
    (want.text, want.updated_ms) = ("likes coffee".into(), 5_000);
    let change = FactChange::new(5_000).text("likes coffee", None);
    equal(
        "the fact",
        &ok("updating", memory.update(&owner, &one.id, change).await)?,
        &want,
    )?;
    has(
        &*stage.open().await,
        &owner,
        &[want.clone(), build_fact(&two)],
    )
    .await?;
    want.updated_ms = 6_000;
    let got = ok(
        "updating nothing",
        memory.update(&owner, &one.id, FactChange::new(6_000)).await,
    )?;
    equal("the fact", &got, &want)?;
    has(&*memory, &owner, &[want, build_fact(&two)]).await?;
    let missing = memory
        .update(&owner, &"three".into(), FactChange::new(1).text("x", None))
        .await;
    check_error(
        "updating what is missing",
        missing,
        MemoryErrorKind::Missing,
    )
}

pub(super) async fn metadata_merges(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let one = NewFact {
        metadata: metadata(&[("a", json!(1)), ("b", json!({"x": 1})), ("c", json!("c"))]),
        ..fact("one", "text")
    };
    add(&*memory, &owner, [one.clone()]).await?;
    let fields = metadata(&[
        ("b", json!({"y": null})),
        ("c", Value::Null),
        ("d", json!(4)),
        ("e", Value::Null),
    ]);
    let got = ok(
        "updating",
        memory
            .update(
                &owner,
                &one.id,
                FactChange {
                    metadata: fields,
                    ..FactChange::new(2_000)
                },
            )
            .await,
    )?;
    let want = metadata(&[("a", json!(1)), ("b", json!({"y": null})), ("d", json!(4))]);
    equal("the metadata", &got.metadata, &want)?;
    equal("the text", &&*got.text, &"text")?;
    has(&*stage.open().await, &owner, &[got]).await
}

pub(super) async fn deleted_is_gone(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let (one, two) = (
        pointing("one", "green tea", &[1.0, 0.0]),
        pointing("two", "black tea", &[1.0, 0.1]),
    );
    add(&*memory, &owner, [one.clone(), two.clone()]).await?;
    ok("deleting", stage.open().await.delete(&owner, &one.id).await)?;
    has(&*memory, &owner, &[build_fact(&two)]).await?;
    finds(&*memory, &owner, "green tea", &["two"]).await?;
    let near = ok(
        "searching",
        memory
            .by_vector(&owner, &vector("usual", &[1.0, 0.0]), 10)
            .await,
    )?;
    equal(
        "what is near",
        &near.into_iter().map(|found| found.fact).collect(),
        &vec![build_fact(&two)],
    )?;
    check_error(
        "deleting it again",
        memory.delete(&owner, &one.id).await,
        MemoryErrorKind::Missing,
    )?;
    check_error(
        "deleting what never was",
        memory.delete(&owner, &"three".into()).await,
        MemoryErrorKind::Missing,
    )?;
    let updated = memory.update(&owner, &one.id, FactChange::new(1)).await;
    check_error(
        "updating what was deleted",
        updated,
        MemoryErrorKind::Missing,
    )?;
    let again = fact("one", "white wine");
    add(&*memory, &owner, [again.clone()]).await?;
    has(&*memory, &owner, &[build_fact(&again), build_fact(&two)]).await?;
    finds(&*memory, &owner, "green", &[]).await
}

pub(super) async fn pages(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let ages = [5, 3, 5, 5, 1, 9, 5, 5, 3, 5, 5];
    let facts: Vec<_> = (10..)
        .zip(ages)
        .map(|(number, age)| NewFact::new(FactId(format!("{}", 31 - number).into()), "text", age))
        .collect();
    for fact in &facts {
        add(&*memory, &owner, [fact.clone()]).await?;
    }
    add(&*memory, &stage.owner("b"), [fact("15", "other")]).await?;
    let mut want: Vec<_> = facts.iter().map(build_fact).collect();
    want.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
    // Later changes do not make a fact younger.
    want[0] = ok(
        "updating",
        memory
            .update(&owner, &want[0].id, FactChange::new(100))
            .await,
    )?;
    for limit in [1, 2, 5, 10, 11, 12, usize::MAX] {
        let mut got = Vec::new();
        loop {
            let after = got
                .last()
                .map(|fact: &adjutant_agent::memory::Fact| fact.id.clone());
            let page = ok(
                "listing",
                stage.open().await.list(&owner, after.as_ref(), limit).await,
            )?;
            holds("a page is no longer than it may be", page.len() <= limit)?;
            let is_last = page.len() < limit;
            got.extend(page);
            if is_last || got.len() > want.len() {
                break;
            }
        }
        equal(&format!("all pages of {limit}"), &got, &want)?;
    }
    equal(
        "a page of none",
        &ok("listing", memory.list(&owner, None, 0).await)?,
        &Vec::new(),
    )
}
