//! Futures that are dropped before they are done.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use adjutant_agent::{Flush, Owner};

use super::stage::{JournalStage, append, batch, is_log, own, read};
use crate::suite::{Verdict, equal, holds};

/// Polls a future a few times, or until it is ready, and drops it.
fn cut<T>(coming: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut coming = pin!(coming);
    (0..polls).find_map(|_| {
        match coming
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(value) => Some(value),
            Poll::Pending => {
                std::thread::yield_now();
                None
            }
        }
    })
}

pub(super) async fn append_dropped(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let owner = Owner::default();
    let mut next = 1;
    for polls in [0, 1, 1, 1, 2, 5, 20] {
        let mut held = own(&*journal, &log, &owner).await?;
        equal("the head", &held.head().seq.0, &(next - 1))?;
        let records = batch(next, next + 4);
        let _ = cut(held.append(&records, Flush::Lazy), polls);
        drop(held);
        let mut held = own(&*journal, &log, &owner).await?;
        let head = held.head().seq.0;
        holds(
            &format!(
                "of 5 records after {} all or none are there: {head}",
                next - 1
            ),
            head == next - 1 || head == next + 4,
        )?;
        let there = read(&*journal, &log, 0).await?;
        equal(
            "the records after a dropped append",
            &there,
            &batch(1, head),
        )?;
        append(&mut *held, &batch(head + 1, head + 1)).await?;
        next = head + 2;
    }
    is_log(&*stage.open().await, &log, &batch(1, next - 1)).await
}

pub(super) async fn own_dropped(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = stage.fill_log("log", 2).await?;
    for polls in [0, 1, 1, 2, 5, 20] {
        let _ = cut(journal.own(&log, &Owner::default()), polls);
        let held = own(&*stage.open().await, &log, &Owner::default()).await?;
        equal("the head", &held.head().seq.0, &2)?;
    }
    is_log(&*journal, &log, &batch(1, 2)).await
}
