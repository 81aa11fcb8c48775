//! Ownership: the owner of a log, the next owner, and when it is free.

use adjutant_agent::{Flush, Holder, JournalErrorKind, Owner};

use super::stage::{JournalStage, append, batch, check_error, is_log, own, when_free};
use crate::suite::{Verdict, equal, holds, join_task, ok};

pub(super) async fn second_owner_refused(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let first = Owner::default();
    let mut held = own(&*journal, &log, &first).await?;
    check_error(
        "a second owner",
        journal.own(&log, &Owner::default()).await,
        JournalErrorKind::Owned,
    )?;
    let elsewhere = stage.open().await;
    for refusal in [
        elsewhere.own(&log, &Owner::default()).await.err(),
        elsewhere.delete(&log).await.err(),
    ] {
        equal(
            "a second owner elsewhere",
            &refusal.as_ref().map(|it| it.kind),
            &Some(JournalErrorKind::Owned),
        )?;
        let holder = refusal
            .as_ref()
            .and_then(|it| it.holder.as_ref())
            .map(|holder| &holder.owner);
        equal("who has it", &holder, &Some(&first.id))?;
    }
    append(&mut *held, &batch(1, 2)).await?;
    check_error(
        "a second owner",
        journal
            .own(
                &log,
                &Owner {
                    id: "second".into(),
                    takes_over: false,
                },
            )
            .await,
        JournalErrorKind::Owned,
    )?;
    append(&mut *held, &batch(3, 3)).await?;
    // Other logs are as free as before.
    drop(own(&*journal, &stage.log("other"), &Owner::default()).await?);
    is_log(&*journal, &log, &batch(1, 3)).await
}

pub(super) async fn same_owner_fences(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    for handle in [journal.clone(), stage.open().await] {
        let owner = Owner::default();
        let mut before = own(&*journal, &log, &owner).await?;
        let mut after = ok("owning once more", handle.own(&log, &owner).await)?;
        let next = after.head().seq.0 + 1;
        let late = before.append(&batch(next, next), Flush::Lazy).await;
        check_error(
            "appending by the value from before",
            late,
            JournalErrorKind::Fenced,
        )?;
        append(&mut *after, &batch(next, next + 1)).await?;
        let late = before.append(&batch(next, next), Flush::Now).await;
        check_error(
            "appending by the value from before",
            late,
            JournalErrorKind::Fenced,
        )?;
        append(&mut *after, &batch(next + 2, next + 2)).await?;
    }
    is_log(&*journal, &log, &batch(1, 6)).await
}

pub(super) async fn drop_frees(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let other = stage.open().await;
    for round in 0..4 {
        let journal = if round % 2 == 0 { &journal } else { &other };
        let mut held = own(&**journal, &log, &Owner::default()).await?;
        append(&mut *held, &batch(round + 1, round + 1)).await?;
    }
    is_log(&*journal, &log, &batch(1, 4)).await
}

pub(super) async fn death_frees(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    append(&mut *held, &batch(1, 3)).await?;
    stage.lab.crash(held).await;
    let reopened = stage.open().await;
    let mut held = own(&*reopened, &log, &Owner::default()).await?;
    append(&mut *held, &batch(4, 4)).await?;
    is_log(&*reopened, &log, &batch(1, 4)).await
}

pub(super) async fn epochs_grow(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let owner = Owner {
        id: "one".into(),
        takes_over: false,
    };
    let mut epochs = Vec::new();
    for _ in 0..2 {
        let held = own(&*journal, &log, &owner).await?;
        epochs.push(held.head().epoch);
        let again = ok("owning once more", journal.own(&log, &owner).await)?;
        epochs.push(again.head().epoch);
        let taken = ok(
            "taking over",
            journal
                .own(
                    &log,
                    &Owner {
                        takes_over: true,
                        ..Owner::default()
                    },
                )
                .await,
        )?;
        epochs.push(taken.head().epoch);
        drop((held, again, taken));
        epochs.push(
            own(&*stage.open().await, &log, &Owner::default())
                .await?
                .head()
                .epoch,
        );
    }
    holds(
        &format!("epochs grow: {epochs:?}"),
        epochs.is_sorted_by(|one, next| one < next),
    )
}

pub(super) async fn owned_is_told(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let owner = Owner::default();
    let held = own(&*journal, &log, &owner).await?;
    for journal in [&journal, &stage.open().await] {
        let info = ok("info", journal.info(&log).await)?;
        holds(
            "a log that is owned says so, and by whom",
            info.is_owned && info.owner.as_ref() == Some(&owner.id),
        )?;
    }
    drop(held);
    when_free("telling that a log is free", async || {
        let info = journal.info(&log).await?;
        if info.is_owned {
            Err(adjutant_agent::JournalError::already_owned(
                &log,
                Holder {
                    owner: "somebody".into(),
                    ..Holder::default()
                },
            ))
        } else {
            Ok(())
        }
    })
    .await
}

pub(super) async fn one_of_many(stage: &JournalStage<'_>) -> Verdict {
    let log = stage.log("log");
    let mut asking = Vec::new();
    for _ in 0..8 {
        let (journal, log) = (stage.open().await, log.clone());
        asking.push(tokio::spawn(async move {
            Ok(journal.own(&log, &Owner::default()).await)
        }));
    }
    let (mut held, mut refusals) = (Vec::new(), Vec::new());
    for asking in asking {
        match join_task("an owner", asking).await? {
            Ok(log) => held.push(log),
            Err(error) => refusals.push(error.kind),
        }
    }
    equal("how many have the log", &held.len(), &1)?;
    equal(
        "what the others hear",
        &refusals,
        &vec![JournalErrorKind::Owned; 7],
    )?;
    append(&mut *held.remove(0), &batch(1, 1)).await?;
    is_log(&*stage.open().await, &log, &batch(1, 1)).await
}
