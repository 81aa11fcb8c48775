//! Many at once.

use std::sync::Arc;

use adjutant_agent::{Flush, Owner};

use super::stage::{JournalStage, append, batch, is_log, own, read};
use crate::suite::{Verdict, equal, holds, join_task, ok};

pub(super) async fn many_logs_at_once(stage: &JournalStage<'_>) -> Verdict {
    let handles = [stage.open().await, stage.open().await];
    let mut writing = Vec::new();
    for number in 0..50 {
        let (journal, log) = (
            Arc::clone(&handles[number % 2]),
            stage.log(&format!("log {number}")),
        );
        writing.push(tokio::spawn(async move {
            let mut held = own(&*journal, &log, &Owner::default()).await?;
            for seq in 0..20 {
                let flush = if seq % 10 == 9 {
                    Flush::Now
                } else {
                    Flush::Lazy
                };
                ok(
                    "appending",
                    held.append(&batch(seq * 2 + 1, seq * 2 + 2), flush).await,
                )?;
            }
            Ok(())
        }));
    }
    for writing in writing {
        join_task("a writer", writing).await?;
    }
    let (reopened, want) = (stage.open().await, batch(1, 40));
    for number in 0..50 {
        is_log(&*reopened, &stage.log(&format!("log {number}")), &want).await?;
    }
    Ok(())
}

pub(super) async fn read_while_appending(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    let writing = tokio::spawn(async move {
        for round in 0..60 {
            append(&mut *held, &batch(round * 3 + 1, round * 3 + 3)).await?;
        }
        Ok(())
    });
    let other = stage.open().await;
    let mut seen = 0;
    while seen < 180 && !writing.is_finished() {
        let records = read(&*other, &log, 0).await?;
        let count = records.len() as u64;
        holds(
            &format!("nothing that was read goes away: {seen}, then {count}"),
            count >= seen,
        )?;
        holds(
            &format!("batches are read whole: {count}"),
            count.is_multiple_of(3),
        )?;
        equal("the beginning of the log", &records, &batch(1, count))?;
        seen = count;
    }
    join_task("a writer", writing).await?;
    is_log(&*other, &log, &batch(1, 180)).await
}
