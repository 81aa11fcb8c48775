//! Logs: what is appended is read again, and looked after.

use std::sync::Arc;

use adjutant_core::{
    Attachment, Digest, Folded, GcReport, Journal, JournalErrorKind, LogId, LogQuery, Owner,
    Record, Seq, SessionMeta, Stamped, StoredRecord,
};
use adjutant_llm::FixedWorld;
use adjutant_store::Sqlite;
use futures_util::TryStreamExt;

use super::{Place, append, check_kind, own, record, records, whole};

async fn stored(journal: &impl Journal, log: &str, after: u64) -> Vec<StoredRecord> {
    journal
        .read_stored(&LogId::from(log), Seq(after))
        .try_collect()
        .await
        .expect("readable")
}

#[tokio::test]
async fn log_gives_back_what_was_appended_in_file_and_in_memory() {
    let place = Place::new();
    for sqlite in [place.open(), Sqlite::in_memory().expect("opens")] {
        let journal = sqlite.journal();
        let all = [records(1, 5_000), vec![record(5_001, &"ä".repeat(100_000))]].concat();
        let mut log = own(&journal, "log").await;
        append(&mut *log, &all[..1]).await;
        assert_eq!(append(&mut *log, &all[1..]).await.seq, Seq(5_001));
        assert_eq!(whole(&journal, "log").await, all);
        let mut link = Digest::GENESIS;
        let want = all.iter().map(|stamped| {
            let bytes = stamped.bytes().expect("bytes").clone();
            link = link.then(&bytes);
            let attachments = stamped.attachments().expect("bytes").to_vec();
            StoredRecord {
                seq: stamped.seq,
                bytes,
                link,
                attachments,
            }
        });
        let want: Vec<_> = want.collect();
        assert_eq!(stored(&journal, "log", 0).await, want);
        assert_eq!(stored(&journal, "log", 4_998).await, want[4_998..]);
        assert_eq!(stored(&journal, "log", 5_001).await, []);
        assert_eq!(stored(&journal, "log", u64::MAX).await, []);
    }
}

/// A record with a text of this many bytes, made of a smaller one: encoding so much takes long without optimisation.
fn enormous(bytes: usize) -> Arc<Stamped> {
    let small = record(1, &"x".repeat(100_000));
    let attachment = Attachment {
        digest: Digest::compute(&vec![b'y'; bytes]),
        bytes: vec![b'y'; bytes].into(),
    };
    let before = small
        .attachments()
        .expect("bytes")
        .first()
        .expect("one text is large");
    let json = String::from_utf8(small.bytes().expect("bytes").to_vec()).expect("JSON");
    let json = json.replace(&before.digest.to_string(), &attachment.digest.to_string());
    Arc::new(Stamped::read(json.into(), vec![attachment]).expect("a record"))
}

#[tokio::test]
async fn log_keeps_a_text_of_100_megabytes() {
    let place = Place::new();
    let journal = place.open().journal();
    let all = [enormous(100_000_000), record(2, "after")];
    append(&mut *own(&journal, "log").await, &all).await;
    let found = stored(&place.open().journal(), "log", 0).await;
    assert_eq!(found.len(), 2);
    for (found, want) in found.iter().zip(&all) {
        assert!(found.attachments == want.attachments().expect("bytes"));
        assert_eq!(&found.bytes, want.bytes().expect("bytes"));
    }
}

#[tokio::test]
async fn names_are_data_whatever_they_hold() {
    let place = Place::new();
    let journal = place.open().journal();
    let names = [
        "../../etc/passwd",
        "a/b",
        "a\0b",
        "a",
        "A",
        "ü",
        "u\u{308}",
        "'; DROP TABLE logs; --",
        ".",
        " ",
    ];
    for name in names {
        append(&mut *own(&journal, name).await, &[record(1, name)]).await;
    }
    for name in names {
        assert_eq!(whole(&journal, name).await, [record(1, name)]);
    }
    let mut listed: Vec<_> = journal
        .list(&LogQuery::default())
        .await
        .expect("listed")
        .logs;
    listed.sort_by(|one, other| one.log.cmp(&other.log));
    let mut want: Vec<_> = names.map(LogId::from).to_vec();
    want.sort();
    assert_eq!(
        listed.into_iter().map(|info| info.log).collect::<Vec<_>>(),
        want
    );
    for name in [String::new(), "x".repeat(513)] {
        check_kind(
            journal.own(&name.into(), &Owner::default()).await,
            JournalErrorKind::Invalid,
        );
    }
}

#[tokio::test]
async fn batch_that_does_not_follow_is_refused_whole() {
    let journal = Sqlite::in_memory().expect("opens").journal();
    let mut log = own(&journal, "log").await;
    append(&mut *log, &records(1, 2)).await;
    for wrong in [
        records(2, 3),
        records(4, 4),
        vec![record(3, "a"), record(5, "b")],
    ] {
        check_kind(
            log.append(&wrong, adjutant_core::Flush::Now).await,
            JournalErrorKind::Corrupt,
        );
    }
    append(&mut *log, &records(3, 3)).await;
    assert_eq!(whole(&journal, "log").await, records(1, 3));
}

#[tokio::test]
async fn list_pages_by_change_without_reading_records() {
    let place = Place::new();
    let sqlite = place.open().world(FixedWorld::at_ms(50));
    let journal = sqlite.journal();
    for (number, name) in (1_u64..).zip(["c", "a", "b", "e", "d"]) {
        let mut log = own(&journal, name).await;
        let stamped = Stamped::new(
            Seq(1),
            60 + number / 3,
            "main".into(),
            Record::Withdrawn { item: 1 },
        );
        append(&mut *log, &[Arc::new(stamped)]).await;
        let mut about = SessionMeta::default();
        (about.title, about.agent) = (Some(name.into()), (number > 2).then(|| "coder".into()));
        about.labels = ["all".into(), format!("label \"{name}\"").into()].into();
        about.parent = (name != "a").then(|| ("a".into(), Seq(1)));
        journal
            .describe(&LogId::from(name), about)
            .await
            .expect("described");
    }
    place
        .raw()
        .execute("DELETE FROM records", [])
        .expect("gone");
    let mut query = LogQuery {
        limit: 2,
        ..LogQuery::default()
    };
    let mut pages = Vec::new();
    loop {
        let page = journal.list(&query).await.expect("listed");
        pages.push(
            page.logs
                .iter()
                .map(|info| info.log.0.to_string())
                .collect::<Vec<_>>()
                .concat(),
        );
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    assert_eq!(pages, ["bd", "ea", "c"]);
    let found = async |change: fn(&mut LogQuery)| {
        let mut query = LogQuery::default();
        change(&mut query);
        let page = journal.list(&query).await.expect("listed");
        page.logs
            .iter()
            .map(|info| info.log.0.to_string())
            .collect::<Vec<_>>()
            .concat()
    };
    assert_eq!(
        found(|query| query.agent = Some("coder".into())).await,
        "bde"
    );
    assert_eq!(
        found(|query| query.label = Some("label \"c\"".into())).await,
        "c"
    );
    assert_eq!(found(|query| query.parent = Some("a".into())).await, "bdec");
    assert_eq!(
        found(|query| (query.since_ms, query.before_ms) = (Some(61), Some(62))).await,
        "bde"
    );
    let info = journal.info(&"c".into()).await.expect("known");
    assert_eq!(
        (info.created_ms, info.updated_ms, info.head, info.is_owned),
        (50, 60, Seq(1), false)
    );
    assert!(info.bytes > 0);
}

#[tokio::test]
async fn attachments_stay_until_no_log_has_them() {
    let place = Place::new();
    let journal = place.open().journal();
    let text = "large ".repeat(20_000);
    for name in ["one", "two"] {
        append(
            &mut *own(&journal, name).await,
            &[record(1, &text), record(2, &text)],
        )
        .await;
    }
    let count = || {
        place
            .raw()
            .query_row("SELECT count(*) FROM attachments", [], |row| {
                row.get::<_, i64>(0)
            })
    };
    assert_eq!(count(), Ok(1));
    journal.delete(&"one".into()).await.expect("deleted");
    assert_eq!(journal.sweep().await.expect("swept"), GcReport::default());
    assert_eq!(
        whole(&journal, "two").await,
        [record(1, &text), record(2, &text)]
    );
    journal.delete(&"two".into()).await.expect("deleted");
    assert_eq!(
        journal.sweep().await.expect("swept"),
        GcReport {
            attachments: 1,
            bytes: text.len() as u64
        }
    );
    assert_eq!(count(), Ok(0));
}

#[tokio::test]
async fn fold_is_believed_only_if_it_stands_for_the_log() {
    let place = Place::new();
    let journal = place.open().journal();
    let mut log = own(&journal, "log").await;
    append(&mut *log, &records(1, 3)).await;
    let fold = |seq| Folded {
        seq: Seq(seq),
        format: "test".into(),
        bytes: "a fold".into(),
    };
    check_kind(log.keep(fold(4)).await, JournalErrorKind::Invalid);
    for seq in [0, 2] {
        log.keep(fold(seq)).await.expect("kept");
        assert_eq!(
            journal.load_fold(&"log".into()).await.expect("read"),
            Some(fold(seq))
        );
    }
    for damage in [
        "UPDATE folded SET bytes = 'b fold'",
        "UPDATE folded SET seq = 3",
    ] {
        log.keep(fold(2)).await.expect("kept");
        place.raw().execute(damage, []).expect("damaged");
        assert_eq!(
            journal.load_fold(&"log".into()).await.ok().flatten(),
            None,
            "{damage}"
        );
    }
}
