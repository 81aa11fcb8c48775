//! Records: what was appended comes back, what was changed is found.

use std::sync::Arc;

use adjutant_core::{
    Digest, Flush, Folded, Head, Journal, JournalErrorKind, LogId, Owner, Seq, StoredRecord,
};
use adjutant_llm::FixedWorld;
use bytes::Bytes;
use futures_util::TryStreamExt;

use super::{made, own, place, read, record, records, spoken};

#[tokio::test]
async fn log_gives_back_what_was_appended() {
    let place = place!("log_gives_back_what_was_appended");
    let journal = place
        .connect()
        .world(FixedWorld::at_ms(900))
        .await
        .expect("it opens")
        .journal();
    let large = "a text with \0 and ümläut ".repeat(8_000);
    let written = vec![
        record(1, 7),
        spoken(2, &large),
        spoken(3, "\u{0}"),
        spoken(4, &large),
        record(5, 9),
    ];
    assert_eq!(written[1].attachments().expect("attachments").len(), 1);
    let mut log = own(&journal, "log").await;
    assert_eq!(
        log.append(&written[..2], Flush::Lazy)
            .await
            .expect("they follow")
            .seq,
        Seq(2)
    );
    assert_eq!(
        log.append(&written[2..], Flush::Now)
            .await
            .expect("they follow")
            .seq,
        Seq(5)
    );
    assert_eq!(
        log.append(&[], Flush::Now).await.expect("nothing to do"),
        log.head()
    );

    assert_eq!(read(&journal, "log", 0).await.expect("all"), written);
    assert_eq!(
        read(&journal, "log", 3).await.expect("the last ones"),
        written[3..]
    );
    assert_eq!(read(&journal, "log", 5).await.expect("none"), Vec::new());
    assert_eq!(
        read(&journal, "log", u64::MAX).await.expect("none"),
        Vec::new()
    );
    let stored: Vec<StoredRecord> = journal
        .read_stored(&LogId::from("log"), Seq(0))
        .try_collect()
        .await
        .expect("all");
    let mut link = Digest::GENESIS;
    for (stored, written) in stored.iter().zip(&written) {
        link = link.then(written.bytes().expect("bytes"));
        assert_eq!(
            (stored.link, &stored.bytes),
            (link, written.bytes().expect("bytes"))
        );
        assert_eq!(
            stored.attachments,
            written.attachments().expect("attachments")
        );
    }
    let bytes: usize = stored.iter().map(|stored| stored.bytes.len()).sum();
    let info = journal
        .info(&LogId::from("log"))
        .await
        .expect("it is known");
    assert_eq!(
        (info.head, info.bytes, info.updated_ms, info.is_owned),
        (Seq(5), bytes as u64, 1_005, true)
    );
}

#[tokio::test]
async fn log_of_several_pages_is_read_in_order() {
    let place = place!("log_of_several_pages_is_read_in_order");
    let journal = place.open().await.journal();
    let mut log = own(&journal, "log").await;
    for part in 0..5 {
        log.append(&records(part * 1_000, part * 1_000 + 1_000), Flush::Lazy)
            .await
            .expect("they follow");
    }
    // Texts of less than 64 KiB are no attachments: the page is full before 4,096 of them.
    let text = "x".repeat(60_000);
    let wide: Vec<_> = (5_001..5_101).map(|seq| spoken(seq, &text)).collect();
    log.append(&wide, Flush::Lazy).await.expect("they follow");
    let seqs: Vec<u64> = read(&journal, "log", 0)
        .await
        .expect("all")
        .iter()
        .map(|record| record.seq.0)
        .collect();
    assert_eq!(seqs, (1..=5_100).collect::<Vec<_>>());
}

#[tokio::test]
async fn log_has_any_name_and_any_owner() {
    let place = place!("log_has_any_name_and_any_owner");
    let journal = place.open().await.journal();
    let names = [
        "a/../b",
        "..",
        "nul\0nul",
        "日本語 🦀",
        "'; drop table logs; --",
        "%_\\",
        &"é".repeat(256),
    ];
    for name in names {
        let owner = Owner {
            id: format!("owner\0{name}").into(),
            takes_over: false,
        };
        let mut log = journal
            .own(&LogId::from(name), &owner)
            .await
            .expect("it is made");
        log.append(&[spoken(1, name)], Flush::Lazy)
            .await
            .expect("it follows");
    }
    for name in names {
        assert_eq!(
            read(&journal, name, 0).await.expect("it is there"),
            [spoken(1, name)],
            "{name:?}"
        );
    }
    for name in ["", &"x".repeat(513)] {
        let error = journal
            .own(&LogId::from(name), &Owner::default())
            .await
            .expect_err("no name");
        assert_eq!(error.kind, JournalErrorKind::Invalid);
    }
    let error = read(&journal, "none", 0).await.expect_err("no such log");
    assert_eq!(error.kind, JournalErrorKind::Missing);
}

#[tokio::test]
async fn batch_that_does_not_follow_is_corrupt_and_leaves_nothing() {
    let place = place!("batch_that_does_not_follow_is_corrupt_and_leaves_nothing");
    let journal = place.open().await.journal();
    let mut log = own(&journal, "log").await;
    for batch in [
        vec![record(2, 2)],
        vec![record(1, 1), record(3, 3)],
        vec![record(1, 1), record(1, 1)],
    ] {
        let error = log.append(&batch, Flush::Now).await.expect_err("a gap");
        assert_eq!(error.kind, JournalErrorKind::Corrupt);
    }
    let head = log
        .append(&records(0, 2), Flush::Now)
        .await
        .expect("they follow");
    assert_eq!(
        head,
        Head {
            seq: Seq(2),
            ..log.head()
        }
    );
    // Somebody cut the log behind its owner's back.
    place.execute("update $.logs set seq = 1");
    let error = log
        .append(&records(2, 3), Flush::Now)
        .await
        .expect_err("the head is elsewhere");
    assert_eq!(error.kind, JournalErrorKind::Corrupt);
}

#[tokio::test]
async fn record_that_was_changed_is_found() {
    let place = place!("record_that_was_changed_is_found");
    let journal = place.open().await.journal();
    let large = "y".repeat(100_000);
    for (name, change) in [
        (
            "bytes",
            "update $.records set bytes = set_byte(bytes, 9, get_byte(bytes, 9) # 1) where seq = 2",
        ),
        (
            "link",
            "update $.records set link = set_byte(link, 31, get_byte(link, 31) # 1) where seq = 2",
        ),
        ("gap", "delete from $.records where seq = 2"),
        ("end", "delete from $.records where seq = 3"),
        (
            "attachment",
            "update $.attachments set bytes = set_byte(bytes, 5, 0)",
        ),
        ("lost attachment", "delete from $.attachments"),
    ] {
        let mut log = own(&journal, name).await;
        log.append(&[record(1, 1), spoken(2, &large), record(3, 3)], Flush::Now)
            .await
            .expect("they follow");
        drop(log);
        let change = change.replace(
            "where ",
            &format!("where log = (select id from $.logs where name = '{name}') and "),
        );
        place.execute(&change);
        let error = read(&journal, name, 0).await.expect_err("it was changed");
        assert_eq!(error.kind, JournalErrorKind::Corrupt, "{name}: {error}");
    }
    let error = journal
        .own(&LogId::from("end"), &Owner::default())
        .await
        .expect_err("its end is lost");
    assert_eq!(error.kind, JournalErrorKind::Corrupt);
    // Who could not own it does not keep it either.
    assert!(
        !journal
            .info(&LogId::from("end"))
            .await
            .expect("it is there")
            .is_owned
    );
}

#[tokio::test]
async fn fold_is_kept_beside_its_log() {
    let place = place!("fold_is_kept_beside_its_log");
    let journal = place.open().await.journal();
    let id = LogId::from("log");
    assert_eq!(journal.load_fold(&id).await.expect("no log, no fold"), None);
    let mut log = own(&journal, "log").await;
    log.append(&records(0, 5), Flush::Lazy)
        .await
        .expect("they follow");
    let mut folded = Folded {
        seq: Seq(3),
        format: Arc::from("run-1"),
        bytes: Bytes::from_static(b"\0\xff{}"),
    };
    log.keep(folded.clone()).await.expect("it is kept");
    folded.seq = Seq(5);
    log.keep(folded.clone()).await.expect("it is kept");
    assert_eq!(
        journal.load_fold(&id).await.expect("it is there"),
        Some(folded.clone())
    );
    let ahead = Folded {
        seq: Seq(6),
        ..folded.clone()
    };
    assert_eq!(
        log.keep(ahead)
            .await
            .expect_err("there is no such record")
            .kind,
        JournalErrorKind::Invalid
    );
    for (damage, healing) in [
        ("link = 'x'", "link = records.link"),
        ("seq = 3", "seq = 5"),
    ] {
        place.execute(&format!("update $.folds set {damage}"));
        assert_eq!(
            journal.load_fold(&id).await.expect("it can be read"),
            None,
            "{damage}"
        );
        place.execute(&format!(
            "update $.folds set {healing} from $.records where records.seq = 5"
        ));
        assert_eq!(
            journal.load_fold(&id).await.expect("it is there"),
            Some(folded.clone())
        );
    }
    let _other = journal
        .own(
            &id,
            &Owner {
                takes_over: true,
                ..Owner::default()
            },
        )
        .await
        .expect("it is taken");
    assert_eq!(
        log.keep(folded).await.expect_err("it is fenced").kind,
        JournalErrorKind::Fenced
    );
}

#[tokio::test]
async fn sweep_removes_what_no_log_refers_to() {
    let place = place!("sweep_removes_what_no_log_refers_to");
    let journal = place.open().await.journal();
    let (shared, single) = ("s".repeat(70_000), "t".repeat(80_000));
    for (name, texts) in [("one", vec![&shared, &single]), ("two", vec![&shared])] {
        let mut log = own(&journal, name).await;
        let batch: Vec<_> = (1..)
            .zip(texts)
            .map(|(seq, text)| spoken(seq, text))
            .collect();
        log.append(&batch, Flush::Now).await.expect("they follow");
    }
    let swept = journal.sweep().await.expect("it is swept");
    assert_eq!((swept.attachments, swept.bytes), (0, 0));
    journal
        .delete(&LogId::from("one"))
        .await
        .expect("nobody owns it");
    let swept = journal.sweep().await.expect("it is swept");
    assert_eq!((swept.attachments, swept.bytes), (1, 80_000));
    assert_eq!(
        read(&journal, "two", 0).await.expect("it is whole"),
        [spoken(1, &shared)]
    );
    made(&journal, "one", 2).await;
    assert_eq!(
        read(&journal, "one", 0).await.expect("it is new"),
        records(0, 2)
    );
}
