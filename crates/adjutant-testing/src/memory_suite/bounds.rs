//! Checks with input that is too large, too much, or nothing.

use adjutant_agent::memory::{
    FactChange, FactId, MAX_FACT_BYTES, MAX_FACTS, MAX_METADATA_BYTES, MemoryErrorKind, NewFact,
    OwnerId,
};
use serde_json::json;

use super::stage::{MemoryStage, add, build_fact, check_error, fact, has, metadata};
use crate::suite::{Verdict, equal, ok};

pub(super) async fn too_large_refused(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let kept = fact("kept", "text");
    add(&*memory, &owner, [kept.clone()]).await?;
    let text = "x".repeat(MAX_FACT_BYTES + 1);
    let large = metadata(&[("a", json!("x".repeat(MAX_METADATA_BYTES)))]);
    for (what, bad) in [
        ("an empty text", fact("bad", "")),
        ("a large text", fact("bad", &text)),
        (
            "a large text of few letters",
            fact("bad", &"é".repeat(MAX_FACT_BYTES / 2 + 1)),
        ),
        (
            "large metadata",
            NewFact {
                metadata: large.clone(),
                ..fact("bad", "text")
            },
        ),
        ("an empty name", fact("", "text")),
    ] {
        check_error(
            &format!("adding {what}"),
            memory.add(&owner, vec![bad]).await,
            MemoryErrorKind::Invalid,
        )?;
    }
    for (what, change) in [
        ("an empty text", FactChange::new(2_000).text("", None)),
        ("a large text", FactChange::new(2_000).text(&*text, None)),
        (
            "large metadata",
            FactChange {
                metadata: large,
                ..FactChange::new(2_000)
            },
        ),
    ] {
        let updated = memory.update(&owner, &kept.id, change).await;
        check_error(
            &format!("updating to {what}"),
            updated,
            MemoryErrorKind::Invalid,
        )?;
    }
    for bad in [OwnerId("".into()), OwnerId("x".repeat(513).into())] {
        let added = memory.add(&bad, vec![fact("bad", "text")]).await;
        check_error(
            "adding for an owner of a bad name",
            added,
            MemoryErrorKind::Invalid,
        )?;
    }
    has(&*stage.open().await, &owner, &[build_fact(&kept)]).await
}

pub(super) async fn what_fits_is_kept(stage: &MemoryStage<'_>) -> Verdict {
    let memory = stage.open().await;
    let owner = stage.owner("");
    let owner = OwnerId(format!("{owner}{}", "x".repeat(512 - owner.0.len())).into());
    let fits = NewFact {
        metadata: metadata(&[(
            "a",
            json!("x".repeat(MAX_METADATA_BYTES - r#"{"a":""}"#.len())),
        )]),
        ..fact("one", &"é".repeat(MAX_FACT_BYTES / 2))
    };
    add(&*memory, &owner, [fits.clone()]).await?;
    has(&*stage.open().await, &owner, &[build_fact(&fits)]).await?;
    // Merging must not exceed the limit.
    let more = FactChange {
        metadata: metadata(&[("b", json!(1))]),
        ..FactChange::new(2_000)
    };
    check_error(
        "metadata that grows",
        memory.update(&owner, &fits.id, more).await,
        MemoryErrorKind::Invalid,
    )?;
    has(&*memory, &owner, &[build_fact(&fits)]).await
}

pub(super) async fn full(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let new = |number: usize| NewFact::new(FactId(format!("{number}").into()), "x", 1);
    for from in (0..MAX_FACTS).step_by(10_000) {
        add(&*memory, &owner, (from..from + 10_000).map(new)).await?;
    }
    let more = memory.add(&owner, vec![new(MAX_FACTS)]).await;
    check_error("adding one fact too many", more, MemoryErrorKind::Full)?;
    add(&*memory, &stage.owner("b"), [new(1)]).await?;
    ok("deleting", memory.delete(&owner, &"7".into()).await)?;
    let two = memory
        .add(&owner, vec![new(MAX_FACTS), new(MAX_FACTS + 1)])
        .await;
    check_error("adding one fact too many", two, MemoryErrorKind::Full)?;
    add(&*memory, &owner, [new(MAX_FACTS)]).await?;
    equal(
        "how many there are",
        &ok("listing", memory.list(&owner, None, usize::MAX).await)?.len(),
        &MAX_FACTS,
    )
}
