//! Large records, and large texts that are stored beside them.

use std::sync::Arc;

use adjutant_agent::{GcReport, Journal, LogId, Owner, Record, Seq, Stamped};
use adjutant_llm::ThreadId;

use super::stage::{JournalStage, LATER_MS, append, delete, entry, is_log, own, text_record};
use crate::suite::{Verdict, equal, ok};

/// A text of this many bytes that no other play has.
fn long(stage: &JournalStage<'_>, bytes: usize) -> String {
    let mut text = stage.prefix.clone();
    text.push_str(&"naïve\0\n".repeat(bytes / "naïve\0\n".len()));
    text
}

pub(super) async fn large_text(stage: &JournalStage<'_>) -> Verdict {
    let all = vec![
        text_record(1, LATER_MS, "before"),
        text_record(2, LATER_MS, &long(stage, 8 * 1024 * 1024)),
        text_record(3, LATER_MS, &long(stage, 64 * 1024 + 1)),
        text_record(4, LATER_MS, "after"),
    ];
    let (journal, log) = (stage.open().await, stage.log("log"));
    append(&mut *own(&*journal, &log, &Owner::default()).await?, &all).await?;
    is_log(&*stage.open().await, &log, &all).await
}

pub(super) async fn large_record(stage: &JournalStage<'_>) -> Verdict {
    let entries = (0..100_000)
        .map(|number| entry(&format!("part {number}")))
        .collect();
    let record = Stamped::new(
        Seq(1),
        LATER_MS,
        ThreadId::from("main"),
        Record::Appended { entries },
    );
    // Several large texts in one record, one of them twice: their order is kept.
    let texts = [3, 1, 2, 1].map(|times| entry(&long(stage, times * 100_000)));
    let many = Stamped::new(
        Seq(2),
        LATER_MS,
        ThreadId::from("main"),
        Record::Appended {
            entries: texts.to_vec(),
        },
    );
    let all = vec![Arc::new(record), Arc::new(many)];
    let (journal, log) = (stage.open().await, stage.log("log"));
    append(&mut *own(&*journal, &log, &Owner::default()).await?, &all).await?;
    is_log(&*stage.open().await, &log, &all).await
}

/// Two logs with one large text, the first of them twice, and the content of each.
async fn sharing(
    stage: &JournalStage<'_>,
    journal: &dyn Journal,
) -> Result<([LogId; 2], Vec<Arc<Stamped>>), String> {
    let text = long(stage, 1024 * 1024);
    let all = vec![
        text_record(1, LATER_MS, &text),
        text_record(2, LATER_MS, &text),
    ];
    let logs = [stage.log("one"), stage.log("two")];
    for log in &logs {
        append(&mut *own(journal, log, &Owner::default()).await?, &all).await?;
    }
    Ok((logs, all))
}

pub(super) async fn attachments_are_shared(stage: &JournalStage<'_>) -> Verdict {
    let journal = stage.open().await;
    let ([one, two], all) = sharing(stage, &*journal).await?;
    delete(&*journal, &one).await?;
    ok("sweeping", journal.sweep().await)?;
    is_log(&*stage.open().await, &two, &all).await?;
    // Attachments that were swept may come again.
    append(&mut *own(&*journal, &one, &Owner::default()).await?, &all).await?;
    delete(&*journal, &two).await?;
    delete(&*journal, &one).await?;
    ok("sweeping", journal.sweep().await)?;
    append(&mut *own(&*journal, &one, &Owner::default()).await?, &all).await?;
    is_log(&*stage.open().await, &one, &all).await
}

pub(super) async fn attachments_swept(stage: &JournalStage<'_>) -> Verdict {
    let journal = stage.open().await;
    // Attachments that others left are not part of this check.
    ok("sweeping", journal.sweep().await)?;
    let ([one, two], all) = sharing(stage, &*journal).await?;
    equal(
        "what a sweep finds while both are there",
        &ok("sweeping", journal.sweep().await)?,
        &GcReport::default(),
    )?;
    is_log(&*journal, &one, &all).await?;
    delete(&*journal, &one).await?;
    equal(
        "what a sweep finds while one is there",
        &ok("sweeping", journal.sweep().await)?,
        &GcReport::default(),
    )?;
    is_log(&*journal, &two, &all).await?;
    delete(&*journal, &two).await?;
    let bytes = all[0]
        .attachments()
        .map_or(0, |attachments| attachments[0].bytes.len() as u64);
    let swept = ok("sweeping", stage.open().await.sweep().await)?;
    equal(
        "what a sweep finds when none is there",
        &swept,
        &GcReport {
            attachments: 1,
            bytes,
        },
    )?;
    equal(
        "what a second sweep finds",
        &ok("sweeping", journal.sweep().await)?,
        &GcReport::default(),
    )
}
