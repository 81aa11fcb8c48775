//! Takeover: a fenced owner leaves no trace.

use adjutant_agent::{Flush, Folded, JournalErrorKind, Owner, Seq};

use super::stage::{JournalStage, append, batch, check_error, delete, is_log, own};
use crate::suite::{Verdict, equal, fails, holds, join_task, ok};

pub(super) async fn takeover_fences(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let mut late = own(&*journal, &log, &Owner::default()).await?;
    append(&mut *late, &batch(1, 2)).await?;
    for round in 0..2 {
        let handle = if round == 0 {
            stage.open().await
        } else {
            journal.clone()
        };
        let mut held = ok(
            "taking over",
            handle
                .own(
                    &log,
                    &Owner {
                        takes_over: true,
                        ..Owner::default()
                    },
                )
                .await,
        )?;
        let next = held.head().seq.0 + 1;
        check_error(
            "a late writer",
            late.append(&batch(next, next), Flush::Lazy).await,
            JournalErrorKind::Fenced,
        )?;
        append(&mut *held, &batch(next, next)).await?;
        let after = late.append(&batch(next + 1, next + 1), Flush::Now).await;
        check_error(
            "a late writer that guessed the number",
            after,
            JournalErrorKind::Fenced,
        )?;
        check_error(
            "a late writer of nothing new",
            late.append(&batch(3, 3), Flush::Now).await,
            JournalErrorKind::Fenced,
        )?;
        check_error(
            "a third owner",
            handle.own(&log, &Owner::default()).await,
            JournalErrorKind::Owned,
        )?;
        late = held;
    }
    is_log(&*stage.open().await, &log, &batch(1, 4)).await
}

pub(super) async fn fenced_drop_frees_nothing(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let owner = Owner::default();
    let first = own(&*journal, &log, &owner).await?;
    let second = ok("owning once more", journal.own(&log, &owner).await)?;
    drop(first);
    // A drop may do its work a little later: this gives it an occasion.
    drop(own(&*journal, &stage.log("other"), &Owner::default()).await?);
    check_error(
        "a stranger",
        journal.own(&log, &Owner::default()).await,
        JournalErrorKind::Owned,
    )?;
    let mut third = ok(
        "taking over",
        stage
            .open()
            .await
            .own(
                &log,
                &Owner {
                    takes_over: true,
                    ..Owner::default()
                },
            )
            .await,
    )?;
    drop(second);
    drop(own(&*journal, &stage.log("other"), &Owner::default()).await?);
    check_error(
        "a stranger",
        stage.open().await.own(&log, &Owner::default()).await,
        JournalErrorKind::Owned,
    )?;
    append(&mut *third, &batch(1, 1)).await?;
    is_log(&*journal, &log, &batch(1, 1)).await
}

pub(super) async fn fenced_keeps_nothing(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let mut late = own(&*journal, &log, &Owner::default()).await?;
    append(&mut *late, &batch(1, 2)).await?;
    let fold = |text: &'static [u8]| Folded {
        seq: Seq(2),
        format: "suite".into(),
        bytes: text.into(),
    };
    let mut held = ok(
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
    ok("keeping a fold", held.keep(fold(b"new")).await)?;
    check_error(
        "keeping a fold",
        late.keep(fold(b"late")).await,
        JournalErrorKind::Fenced,
    )?;
    equal(
        "the fold",
        &ok("folded", journal.load_fold(&log).await)?,
        &Some(fold(b"new")),
    )
}

pub(super) async fn fenced_after_delete(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let mut late = own(&*journal, &log, &Owner::default()).await?;
    drop(ok(
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
    )?);
    delete(&*journal, &log).await?;
    let error = fails(
        "appending to a log that is gone",
        late.append(&batch(1, 1), Flush::Lazy).await,
    )?;
    let is_clear = |kind| matches!(kind, JournalErrorKind::Fenced | JournalErrorKind::Missing);
    holds(
        &format!("a late writer is told so: {error}"),
        is_clear(error.kind),
    )?;
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    let error = fails(
        "appending to a log that was made anew",
        late.append(&batch(1, 1), Flush::Lazy).await,
    )?;
    holds(
        &format!("a late writer is told so: {error}"),
        is_clear(error.kind),
    )?;
    append(&mut *held, &batch(1, 2)).await?;
    drop(late);
    is_log(&*journal, &log, &batch(1, 2)).await
}

pub(super) async fn takeovers_at_once(stage: &JournalStage<'_>) -> Verdict {
    let log = stage.log("log");
    let mut writing = Vec::new();
    for _ in 0..6 {
        let (journal, log) = (stage.open().await, log.clone());
        writing.push(tokio::spawn(async move {
            let mut acknowledged = 0;
            for _ in 0..5 {
                let mut held = ok(
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
                let next = held.head().seq.0 + 1;
                match held.append(&batch(next, next), Flush::Lazy).await {
                    Ok(_) => acknowledged += 1,
                    Err(error) => equal(
                        "what a late writer hears",
                        &error.kind,
                        &JournalErrorKind::Fenced,
                    )?,
                }
            }
            Ok(acknowledged)
        }));
    }
    let mut acknowledged = 0;
    for writing in writing {
        acknowledged += join_task("a writer", writing).await?;
    }
    holds("somebody was fast enough", acknowledged >= 1)?;
    is_log(&*stage.open().await, &log, &batch(1, acknowledged)).await
}
