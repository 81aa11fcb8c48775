//! Appending and reading: bytes, order, numbers, links.

use std::sync::Arc;

use adjutant_agent::{Digest, Flush, JournalErrorKind, Owner, Record, Seq, Stamped};
use adjutant_llm::ThreadId;
use bytes::Bytes;

use super::stage::{
    JournalStage, LATER_MS, append, batch, check_error, is_log, is_missing, own, read, read_stored,
    text_record,
};
use crate::suite::{Verdict, equal, holds, ok};

pub(super) async fn append_then_read(stage: &JournalStage<'_>) -> Verdict {
    let log = stage.log("log");
    let all = batch(1, 12);
    {
        let journal = stage.open().await;
        let mut held = own(&*journal, &log, &Owner::default()).await?;
        equal("the head of a new log", &held.head().seq, &Seq(0))?;
        is_log(&*journal, &log, &[]).await?;
        append(&mut *held, &all[..1]).await?;
        append(&mut *held, &all[1..7]).await?;
        is_log(&*journal, &log, &all[..7]).await?;
        ok(
            "appending durably",
            held.append(&all[7..], Flush::Now).await,
        )?;
        is_log(&*journal, &log, &all).await?;
    }
    let reopened = stage.open().await;
    is_log(&*reopened, &log, &all).await?;
    let held = own(&*reopened, &log, &Owner::default()).await?;
    equal(
        "the head of a log that is there",
        &held.head().seq,
        &Seq(12),
    )
}

pub(super) async fn batch_of_nothing(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    let head = held.head();
    equal(
        "the head after nothing",
        &ok("appending nothing", held.append(&[], Flush::Now).await)?,
        &head,
    )?;
    append(&mut *held, &batch(1, 2)).await?;
    append(&mut *held, &[]).await?;
    append(&mut *held, &batch(3, 3)).await?;
    is_log(&*journal, &log, &batch(1, 3)).await
}

pub(super) async fn batch_is_atomic(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let owner = Owner::default();
    let mut held = own(&*journal, &log, &owner).await?;
    append(&mut *held, &batch(1, 2)).await?;
    let torn = [&batch(3, 5)[..], &batch(7, 7)].concat();
    check_error(
        "a batch whose last record has a wrong number",
        held.append(&torn, Flush::Lazy).await,
        Corrupt,
    )?;
    is_log(&*journal, &log, &batch(1, 2)).await?;
    let mut held = own(&*journal, &log, &owner).await?;
    equal("the head", &held.head().seq, &Seq(2))?;
    append(&mut *held, &batch(3, 5)).await?;
    drop(held);
    is_log(&*stage.open().await, &log, &batch(1, 5)).await
}

use JournalErrorKind::Corrupt;

pub(super) async fn wrong_number_refused(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let owner = Owner::default();
    let wrong = [
        batch(2, 2),
        batch(3, 3),
        batch(5, 6),
        batch(1, 4),
        [batch(4, 4), batch(4, 4)].concat(),
    ];
    for wrong in [batch(2, 2), vec![text_record(0, 1, "before the first")]] {
        let mut held = own(&*journal, &log, &owner).await?;
        check_error(
            "a first batch that does not begin with 1",
            held.append(&wrong, Flush::Lazy).await,
            Corrupt,
        )?;
    }
    let mut held = own(&*journal, &log, &owner).await?;
    append(&mut *held, &batch(1, 3)).await?;
    for wrong in wrong {
        let mut held = own(&*journal, &log, &owner).await?;
        check_error(
            "a batch that does not follow the head",
            held.append(&wrong, Flush::Lazy).await,
            Corrupt,
        )?;
    }
    is_log(&*journal, &log, &batch(1, 3)).await
}

pub(super) async fn read_after_cursor(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = stage.fill_log("log", 5).await?;
    let whole = read_stored(&*journal, &log, 0).await?;
    for (rest, after) in (0..=5u64).enumerate() {
        equal(
            "the records after a place",
            &read(&*journal, &log, after).await?,
            &batch(after + 1, 5),
        )?;
        equal(
            "what is stored after a place",
            &read_stored(&*journal, &log, after).await?.as_slice(),
            &&whole[rest..],
        )?;
    }
    for after in [6, u64::from(u32::MAX), u64::MAX / 2, u64::MAX] {
        equal(
            "the records behind the end",
            &read(&*journal, &log, after).await?,
            &Vec::new(),
        )?;
        equal(
            "what is stored behind the end",
            &read_stored(&*journal, &log, after).await?,
            &Vec::new(),
        )?;
    }
    Ok(())
}

pub(super) async fn missing_log(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    for _ in 0..2 {
        is_missing(&*journal, &log).await?;
        check_error(
            "info of a log that is missing",
            journal.info(&log).await,
            JournalErrorKind::Missing,
        )?;
        holds(
            "a log that is missing has no fold",
            ok("folded", journal.load_fold(&log).await)?.is_none(),
        )?;
    }
    drop(own(&*journal, &log, &Owner::default()).await?);
    is_log(&*journal, &log, &[]).await
}

pub(super) async fn texts_survive(stage: &JournalStage<'_>) -> Verdict {
    let texts = [
        "",
        " ",
        "\0",
        "a\0b\0\0c",
        "one\ntwo\r\nthree\rfour\u{85}five\u{2028}six\u{2029}seven\u{b}\u{c}",
        "\u{feff}\u{fffe}\u{ffff}\u{10ffff}\u{d7ff}\u{e000}",
        "e\u{301} é ﬁ ß İ ı Ǆ",
        "שלום مرحبا \u{202e}abc\u{202c}",
        "👩‍👩‍👧‍👦 🏳️‍🌈 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
        r#"" \ / \u0000 \n ' ; -- DROP TABLE logs; {"v":2} $1 ?1 %s"#,
        "\u{1}\u{7f}\u{1b}[31m",
    ];
    let all: Vec<_> = (1..)
        .zip(texts)
        .map(|(seq, text)| text_record(seq, LATER_MS, text))
        .collect();
    let (journal, log) = (stage.open().await, stage.log("log"));
    append(&mut *own(&*journal, &log, &Owner::default()).await?, &all).await?;
    is_log(&*stage.open().await, &log, &all).await
}

pub(super) async fn chain_verifies(stage: &JournalStage<'_>) -> Verdict {
    let log = stage.log("log");
    for owner in 0..3 {
        let journal = stage.open().await;
        let mut held = own(&*journal, &log, &Owner::default()).await?;
        append(&mut *held, &batch(owner * 4 + 1, owner * 4 + 3)).await?;
        append(&mut *held, &batch(owner * 4 + 4, owner * 4 + 4)).await?;
    }
    let mut link = Digest::GENESIS;
    let mut opened = Vec::new();
    for record in read_stored(&*stage.open().await, &log, 0).await? {
        let next = record.link;
        opened.push(ok("opening what is stored", record.open(&link))?);
        link = next;
    }
    equal("the records behind the links", &opened, &batch(1, 12))
}

pub(super) async fn bytes_are_kept(stage: &JournalStage<'_>) -> Verdict {
    let line = |seq: u64| {
        let text = r#"{ "record" : {"withdrawn":{"item": 7, "to come":[1.50,1e2,"\u0041"]}}, "x":null,"at_ms":5 ,"#;
        format!("{text}\t\"thread\":\"main\",\"seq\":{seq},\"v\":2 }}")
    };
    elsewhere(stage, [line(1), line(2)]).await
}

pub(super) async fn version_1_is_kept(stage: &JournalStage<'_>) -> Verdict {
    let line = |seq| {
        format!(
            r#"{{"v":1,"seq":{seq},"at_ms":5,"thread":"main","record":{{"record":"withdrawn","item":7}}}}"#
        )
    };
    elsewhere(stage, [line(1), line(2)]).await
}

/// Appends two records that were read from these bytes.
async fn elsewhere(stage: &JournalStage<'_>, lines: [String; 2]) -> Verdict {
    let records = lines
        .clone()
        .map(|line| Stamped::read(Bytes::from(line), Vec::new()).map(Arc::new));
    let records: Vec<_> = ok(
        "reading a record",
        records.into_iter().collect::<Result<_, _>>(),
    )?;
    let (journal, log) = (stage.open().await, stage.log("log"));
    append(
        &mut *own(&*journal, &log, &Owner::default()).await?,
        &records,
    )
    .await?;
    let reopened = stage.open().await;
    let bytes: Vec<Bytes> = read_stored(&*reopened, &log, 0)
        .await?
        .into_iter()
        .map(|stored| stored.bytes)
        .collect();
    equal("the bytes", &bytes, &lines.map(Bytes::from).to_vec())?;
    let meant = |seq| {
        Stamped::new(
            Seq(seq),
            5,
            ThreadId::from("main"),
            Record::Withdrawn { item: 7 },
        )
    };
    equal(
        "what they mean",
        &read(&*reopened, &log, 0).await?,
        &vec![Arc::new(meant(1)), Arc::new(meant(2))],
    )
}

pub(super) async fn clock_backwards(stage: &JournalStage<'_>) -> Verdict {
    let times = [LATER_MS, LATER_MS - 5, 0, LATER_MS + 1, LATER_MS, 1];
    let all: Vec<_> = (1..)
        .zip(times)
        .map(|(seq, at_ms)| text_record(seq, at_ms, "tick"))
        .collect();
    let (journal, log) = (stage.open().await, stage.log("log"));
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    let mut newest = 0;
    for record in all.chunks(1) {
        append(&mut *held, record).await?;
        newest = newest.max(record[0].at_ms);
        equal(
            "the last change",
            &ok("info", journal.info(&log).await)?.updated_ms,
            &newest,
        )?;
    }
    // The newest time need not be in the last record of a batch.
    append(
        &mut *held,
        &[
            text_record(7, LATER_MS + 9, "tick"),
            text_record(8, 3, "tock"),
        ],
    )
    .await?;
    drop(held);
    let info = ok("info", stage.open().await.info(&log).await)?;
    holds(
        "no change is older than the one before",
        info.updated_ms >= newest,
    )?;
    is_log(
        &*journal,
        &log,
        &[
            &all[..],
            &[
                text_record(7, LATER_MS + 9, "tick"),
                text_record(8, 3, "tock"),
            ],
        ]
        .concat(),
    )
    .await
}
