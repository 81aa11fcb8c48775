//! Checks of how far sources were read, and of many calls at once.

use adjutant_agent::memory::{FactId, MemoryErrorKind, NewFact};

use super::stage::{MemoryStage, fact};
use crate::suite::{Verdict, equal, holds, join_task, ok};

pub(super) async fn kept_by_source(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, ann, bob) = (stage.open().await, stage.owner("ann"), stage.owner("bob"));
    let marked =
        async |owner, source: &str| ok("marked", stage.open().await.read_mark(owner, source).await);
    equal(
        "a source that was never read",
        &marked(&ann, "s").await?,
        &0,
    )?;
    let table = [
        (&ann, "s", 0, 5, true),
        (&ann, "s", 0, 6, false),
        (&ann, "s", 5, 9, true),
        (&ann, "s", 6, 10, false),
        (&ann, "S", 0, 1, true),
        (&ann, "s\0", 0, 2, true),
        (&bob, "s", 5, 7, false),
        (&bob, "s", 0, 1 << 40, true),
        (&ann, "../é", 0, 3, true),
    ];
    for (owner, source, from, to, want) in table {
        let before = marked(owner, source).await?;
        let kept = ok("marking", memory.mark(owner, source, from, to).await)?;
        equal(
            &format!("whether a mark from {from} to {to} is kept"),
            &kept,
            &want,
        )?;
        equal(
            "the mark",
            &marked(owner, source).await?,
            &if want { to } else { before },
        )?;
    }
    equal("the mark", &marked(&ann, "s").await?, &9)
}

pub(super) async fn one_is_faster(stage: &MemoryStage<'_>) -> Verdict {
    let owner = stage.owner("a");
    for from in 0..5 {
        let mut marking = Vec::new();
        for _ in 0..6 {
            let (memory, owner) = (stage.open().await, owner.clone());
            marking.push(tokio::spawn(async move {
                ok("marking", memory.mark(&owner, "s", from, from + 1).await)
            }));
        }
        let mut kept = 0;
        for marking in marking {
            kept += i32::from(join_task("who marks", marking).await?);
        }
        equal("how many were faster", &kept, &1)?;
    }
    equal(
        "the mark",
        &ok("marked", stage.open().await.read_mark(&owner, "s").await)?,
        &5,
    )
}

pub(super) async fn adding_at_once(stage: &MemoryStage<'_>) -> Verdict {
    let owner = stage.owner("a");
    let mut adding = Vec::new();
    for adder in 0..6 {
        let (memory, owner) = (stage.open().await, owner.clone());
        adding.push(tokio::spawn(async move {
            for number in 0..10 {
                let new = NewFact::new(FactId(format!("{adder}-{number}").into()), "tea", 1_000);
                ok("adding", memory.add(&owner, vec![new]).await)?;
            }
            match memory
                .add(&owner, vec![fact("same", &format!("by {adder}"))])
                .await
            {
                Ok(()) => Ok(1),
                Err(error) if error.kind == MemoryErrorKind::Exists => Ok(0),
                Err(error) => ok("adding", Err(error)),
            }
        }));
    }
    let mut first = 0;
    for adding in adding {
        first += join_task("who adds", adding).await?;
    }
    equal("how many gave the same name", &first, &1)?;
    let memory = stage.open().await;
    equal(
        "how many facts there are",
        &ok("listing", memory.list(&owner, None, 100).await)?.len(),
        &61,
    )?;
    holds(
        "all can be found",
        ok("searching", memory.by_words(&owner, "tea", 100).await)?.len() == 60,
    )
}
