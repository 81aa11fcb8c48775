//! JSON lines that were cut, flipped, filled up or taken away: nothing half-written is believed.
#![cfg(feature = "jsonl")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_core::{
    Digest, Flush, Folded, Journal, JournalErrorKind, Log, LogId, LogQuery, Owner, Post, PostNo,
    Record, Seq, Stamped, sessions::Sessions,
};
use adjutant_llm::{Entry, ThreadId, UserMessage};
use adjutant_store::JsonlJournal;
use futures_util::{StreamExt, TryStreamExt};
use tempfile::TempDir;

use crate::scratch::folder;

const LOG: &str = "a/b";
/// The folder of the log.
const FOLDER: &str = "logs/a%2fb";

fn said(seq: u64, text: &str) -> Arc<Stamped> {
    let record = Record::Appended {
        entries: vec![Entry::User(UserMessage::text(text))],
    };
    Arc::new(Stamped::new(
        Seq(seq),
        1_000 + seq,
        ThreadId::from("main"),
        record,
    ))
}

fn batch(from: u64, to: u64) -> Vec<Arc<Stamped>> {
    (from..=to).map(|seq| said(seq, &seq.to_string())).collect()
}

fn open(folder: &TempDir) -> (JsonlJournal, LogId) {
    (
        JsonlJournal::open(folder.path()).expect("the folder is there"),
        LOG.into(),
    )
}

/// A file of the log.
fn file(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(FOLDER).join(name)
}

async fn own(journal: &JsonlJournal, log: &LogId) -> Box<dyn Log> {
    journal
        .own(log, &Owner::default())
        .await
        .expect("the log is free")
}

async fn read(journal: &JsonlJournal, log: &LogId) -> Result<Vec<Arc<Stamped>>, JournalErrorKind> {
    journal
        .read(log, Seq(0))
        .try_collect()
        .await
        .map_err(|error| error.kind)
}

async fn append(held: &mut dyn Log, batch: &[Arc<Stamped>]) {
    held.append(batch, Flush::Now).await.expect("it is written");
}

/// A log of batches of 1, 2 and 1 records; its file.
async fn small(folder: &TempDir) -> (PathBuf, Vec<u8>) {
    let (journal, log) = open(folder);
    let mut held = own(&journal, &log).await;
    for (from, to) in [(1, 1), (2, 3), (4, 4)] {
        append(&mut *held, &batch(from, to)).await;
    }
    let path = file(folder, "records.jsonl");
    let bytes = fs::read(&path).expect("the file is there");
    (path, bytes)
}

/// How many records the whole batches have in these first bytes of the small log.
fn whole(bytes: &[u8]) -> u64 {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    [0, 1, 3, 4]
        .into_iter()
        .rfind(|count| *count <= lines)
        .expect("there are none at least")
}

#[tokio::test]
async fn file_that_is_torn_behind_what_was_flushed_keeps_its_whole_batches() {
    let folder = folder();
    let (path, bytes) = small(&folder).await;
    let (journal, log) = open(&folder);
    let (head, flushed) = (
        file(&folder, "head"),
        fs::read(file(&folder, "head")).expect("it is there"),
    );
    let first = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("there is a line")
        + 1;
    let (link, digits) = (&bytes[..first], 64);
    let at = link
        .windows(7)
        .position(|window| window == br#""link":"#)
        .expect("it has a link")
        + 8;
    let link = std::str::from_utf8(&link[at..at + digits]).expect("it is text");
    for length in first..=bytes.len() {
        // What a crash leaves that came after the first batch had been flushed.
        let text = format!("{{\"seq\":1,\"length\":{first},\"link\":\"{link}\"}}");
        fs::write(&head, format!("{text:159}\n")).expect("it is older");
        fs::write(&path, &bytes[..length]).expect("it is cut");
        let there = whole(&bytes[..length]);
        // Who reads repairs nothing.
        assert_eq!(
            read(&journal, &log).await,
            Ok(batch(1, there)),
            "cut at {length}"
        );
        assert_eq!(
            journal.info(&log).await.expect("it is there").head,
            Seq(there),
            "cut at {length}"
        );
        assert_eq!(fs::read(&path).expect("the file is there").len(), length);
        let mut held = own(&journal, &log).await;
        assert_eq!(held.head().seq, Seq(there), "cut at {length}");
        held.append(&batch(there + 1, there + 2), Flush::Lazy)
            .await
            .expect("it is written");
        assert_eq!(
            read(&journal, &log).await,
            Ok(batch(1, there + 2)),
            "cut at {length}"
        );
        // Nothing more was flushed than what its next owner found.
        let now = fs::read(&head).expect("it is there");
        assert_eq!(now.len(), flushed.len());
        assert!(
            now.starts_with(format!("{{\"seq\":{there},").as_bytes()),
            "cut at {length}"
        );
    }
}

#[tokio::test]
async fn tail_that_was_cut_off_is_found_at_every_byte() {
    for flush in [Flush::Now, Flush::Lazy] {
        let folder = folder();
        let (path, bytes) = small(&folder).await;
        let (journal, log) = open(&folder);
        let mut held = own(&journal, &log).await;
        // What was never flushed may be lost with the machine; an empty batch flushes it.
        held.append(&batch(5, 5), flush)
            .await
            .expect("it is written");
        if flush == Flush::Lazy {
            held.append(&[], Flush::Now).await.expect("it is flushed");
        }
        drop(held);
        let all = fs::read(&path).expect("the file is there");
        assert!(all.len() > bytes.len());
        for length in 0..all.len() {
            fs::write(&path, &all[..length]).expect("it is cut");
            let there = whole(&bytes[..length.min(bytes.len())]);
            assert_eq!(
                journal.info(&log).await.expect("it is there").head,
                Seq(5),
                "cut at {length}"
            );
            let sound = Sessions::new(Arc::new(journal.clone()))
                .verify(&log)
                .await
                .expect_err("it is found");
            assert_eq!(sound.kind, JournalErrorKind::Corrupt, "cut at {length}");
            let gone = format!("record {} in ", there + 1);
            assert!(
                sound.to_string().starts_with(&gone),
                "cut at {length}: {sound}"
            );
            // What is left can be read up to there, and is not gone on with.
            let mut left: Vec<_> = journal.read(&log, Seq(0)).collect().await;
            assert_eq!(
                left.pop().map(|last| last.map_err(|error| error.kind)),
                Some(Err(JournalErrorKind::Corrupt))
            );
            let left: Result<Vec<_>, _> = left.into_iter().collect();
            assert_eq!(
                left.expect("only the last item fails"),
                batch(1, there),
                "cut at {length}"
            );
            let owned = journal
                .own(&log, &Owner::default())
                .await
                .expect_err("it is not gone on with");
            assert_eq!(owned.kind, JournalErrorKind::Corrupt, "cut at {length}");
            assert_eq!(
                fs::read(&path).expect("the file is there").len(),
                length,
                "nothing is changed"
            );
        }
        // All but the last record are left; that is what the error tells to do.
        let sessions = Sessions::new(Arc::new(journal.clone()));
        sessions
            .fork(&log, Some(Seq(4)), &"left".into())
            .await
            .expect("it is forked");
        assert_eq!(
            sessions
                .verify(&"left".into())
                .await
                .expect("it is sound")
                .records,
            4
        );
        fs::write(&path, &all).expect("it is healed");
        assert_eq!(own(&journal, &log).await.head().seq, Seq(5));
    }
}

#[tokio::test]
async fn head_that_is_gone_damaged_or_of_another_log_is_found_and_an_older_log_gets_one() {
    let folder = folder();
    let (path, bytes) = small(&folder).await;
    let (journal, log) = open(&folder);
    let (head, meta) = (file(&folder, "head"), file(&folder, "meta.json"));
    let kept = fs::read_to_string(&head).expect("it is there");
    for wrong in [
        kept.replacen("4", "3", 1),
        kept.replacen("\"link\":\"", "\"link\":\"0", 1),
        String::new(),
        "{".into(),
    ] {
        fs::write(&head, wrong).expect("it is damaged");
        assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Corrupt));
    }
    fs::remove_file(&head).expect("it is removed");
    assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Corrupt));
    // Logs had no head once: such a one is read as it is, and gets it from its next owner.
    let older = fs::read_to_string(&meta)
        .expect("it is there")
        .replace(",\"has_head\":true", "");
    fs::write(&meta, older).expect("it is older");
    assert_eq!(read(&journal, &log).await, Ok(batch(1, 4)));
    drop(own(&journal, &log).await);
    assert_eq!(fs::read_to_string(&head).expect("it is there"), kept);
    fs::write(&path, &bytes[..bytes.len() - 1]).expect("it is cut");
    assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Corrupt));
}

#[tokio::test]
async fn flipped_bit_is_found_anywhere_and_nothing_is_cut() {
    let folder = folder();
    let (path, bytes) = small(&folder).await;
    let (journal, log) = open(&folder);
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, &flipped).expect("it is flipped");
        assert_eq!(
            read(&journal, &log).await,
            Err(JournalErrorKind::Corrupt),
            "flipped at {at}"
        );
        let owned = journal
            .own(&log, &Owner::default())
            .await
            .map(drop)
            .map_err(|error| error.kind);
        assert_eq!(owned, Err(JournalErrorKind::Corrupt), "flipped at {at}");
        assert_eq!(
            fs::read(&path).expect("the file is there"),
            flipped,
            "flipped at {at}"
        );
    }
    fs::write(&path, &bytes).expect("it is healed");
    assert_eq!(read(&journal, &log).await, Ok(batch(1, 4)));
}

#[tokio::test]
async fn damage_before_the_fold_is_told_to_who_reads_it_and_stops_no_owner() {
    let folder = folder();
    let (path, mut bytes) = small(&folder).await;
    let (journal, log) = open(&folder);
    let mut held = own(&journal, &log).await;
    let fold = Folded {
        seq: Seq(3),
        format: "x".into(),
        bytes: "0123456789".into(),
    };
    held.keep(fold).await.expect("it is kept");
    drop(held);
    bytes[2] ^= 1;
    fs::write(&path, &bytes).expect("it is flipped");
    assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Corrupt));
    let after: Vec<_> = journal
        .read(&log, Seq(3))
        .map(|it| it.expect("it is whole").seq)
        .collect()
        .await;
    assert_eq!(after, [Seq(4)]);
    append(&mut *own(&journal, &log).await, &batch(5, 5)).await;
    assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Corrupt));
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).expect("a record behind the fold is flipped");
    let owned = journal
        .own(&log, &Owner::default())
        .await
        .map(drop)
        .map_err(|error| error.kind);
    assert_eq!(owned, Err(JournalErrorKind::Corrupt));
}

#[tokio::test]
async fn fold_of_other_records_than_were_flushed_stops_an_owner() {
    let folder = folder();
    let (path, _) = small(&folder).await;
    let (journal, log) = open(&folder);
    let head = path.with_file_name("head");
    let known = fs::read_to_string(&head).expect("there is a head");
    let mut held = own(&journal, &log).await;
    append(&mut *held, &batch(5, 6)).await;
    held.keep(Folded {
        seq: Seq(6),
        format: "x".into(),
        bytes: "0123456789".into(),
    })
    .await
    .expect("it is kept");
    drop(held);
    let newest = fs::read_to_string(&head).expect("there is a head");
    let owned = async |text: &str| {
        fs::write(&head, text).expect("it is written");
        journal
            .own(&log, &Owner::default())
            .await
            .map(drop)
            .map_err(|error| error.kind)
    };
    let other = |text: &str| {
        let at = text.find("link").expect("a link") + 7;
        let digit = if &text[at..=at] == "0" { "1" } else { "0" };
        format!("{}{digit}{}", &text[..at], &text[at + 1..])
    };
    for text in [&known, &newest] {
        assert_eq!(
            owned(&other(text)).await,
            Err(JournalErrorKind::Corrupt),
            "{text}"
        );
        assert_eq!(owned(text).await, Ok(()), "{text}");
    }
}

#[tokio::test]
async fn lines_in_another_order_or_missing_are_found() {
    let folder = folder();
    let (path, bytes) = small(&folder).await;
    let (journal, log) = open(&folder);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let orders: [&[usize]; 5] = [
        &[1, 2, 3],
        &[0, 1, 3],
        &[0, 3],
        &[0, 0, 1, 2, 3],
        &[0, 2, 1, 3],
    ];
    for order in orders {
        let text: Vec<u8> = order
            .iter()
            .flat_map(|line| lines[*line])
            .copied()
            .collect();
        fs::write(&path, text).expect("it is written");
        assert_eq!(
            read(&journal, &log).await,
            Err(JournalErrorKind::Corrupt),
            "{order:?}"
        );
    }
}

#[tokio::test]
async fn flipped_bit_of_an_attachment_is_found() {
    let folder = folder();
    let (journal, log) = open(&folder);
    let large = said(1, &"large ".repeat(20_000));
    let mut held = own(&journal, &log).await;
    append(&mut *held, &[Arc::clone(&large)]).await;
    let blob = fs::read_dir(folder.path().join("blobs"))
        .expect("the folder is there")
        .next();
    let blob = blob
        .expect("there is a blob")
        .expect("it can be read")
        .path();
    let mut bytes = fs::read(&blob).expect("it can be read");
    bytes[70_000] ^= 4;
    fs::write(&blob, &bytes).expect("it is flipped");
    assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Corrupt));
    // The same text in another record heals it.
    let again = Arc::new(Stamped::new(
        Seq(2),
        5,
        ThreadId::from("main"),
        large.record.clone(),
    ));
    append(&mut *held, &[Arc::clone(&again)]).await;
    assert_eq!(read(&journal, &log).await, Ok(vec![large, again]));
    fs::remove_file(&blob).expect("it is removed");
    assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Corrupt));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn full_disk_is_told_and_nothing_half_written_is_believed() {
    let folder = folder();
    let (journal, log) = open(&folder);
    let (path, aside) = (file(&folder, "records.jsonl"), folder.path().join("aside"));
    let mut held = own(&journal, &log).await;
    fs::rename(&path, &aside).expect("it is moved");
    std::os::unix::fs::symlink("/dev/full", &path).expect("it is linked");
    let full = held
        .append(&batch(1, 3), Flush::Now)
        .await
        .expect_err("nothing can be written");
    assert_eq!(full.kind, JournalErrorKind::Io);
    let cause = std::error::Error::source(&full).map(ToString::to_string);
    assert_eq!(
        cause.as_deref(),
        Some("No space left on device (os error 28)")
    );
    let unknown = held
        .append(&batch(1, 3), Flush::Now)
        .await
        .expect_err("it must be owned again");
    assert_eq!(unknown.kind, JournalErrorKind::Io);
    drop(held);
    fs::rename(&aside, &path).expect("it is moved back");
    let mut held = own(&journal, &log).await;
    append(&mut *held, &batch(1, 3)).await;
    assert_eq!(read(&journal, &log).await, Ok(batch(1, 3)));
}

#[tokio::test]
async fn folder_that_cannot_be_used_is_told() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").expect("it is written");
    for path in [file.clone(), file.join("below")] {
        assert_eq!(
            JsonlJournal::open(path)
                .expect_err("a file is no folder")
                .kind,
            JournalErrorKind::Io
        );
    }
    // What stands in the way of blobs keeps large texts from being written, and nothing else.
    let (journal, log) = open(&folder);
    let mut held = own(&journal, &log).await;
    fs::write(folder.path().join("blobs"), "").expect("it is written");
    let large = [said(1, &"large ".repeat(20_000))];
    let error = held
        .append(&large, Flush::Lazy)
        .await
        .expect_err("no blob can be written");
    assert_eq!(error.kind, JournalErrorKind::Io);
    drop(held);
    append(&mut *own(&journal, &log).await, &batch(1, 1)).await;
    assert_eq!(read(&journal, &log).await, Ok(batch(1, 1)));
}

#[tokio::test]
async fn log_of_a_newer_program_is_refused() {
    let folder = folder();
    small(&folder).await;
    let (journal, log) = open(&folder);
    let path = file(&folder, "meta.json");
    let meta = fs::read_to_string(&path)
        .expect("it is there")
        .replace(r#""v":1"#, r#""v":2,"new":[]"#);
    fs::write(&path, meta).expect("it is written");
    assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Version));
    let owned = journal
        .own(&log, &Owner::default())
        .await
        .expect_err("it is newer");
    assert_eq!(owned.kind, JournalErrorKind::Version);
}

#[tokio::test]
async fn torn_post_is_cut_off_by_the_next_one() {
    let folder = folder();
    small(&folder).await;
    let (journal, log) = open(&folder);
    let path = file(&folder, "posts.jsonl");
    assert_eq!(
        journal
            .post(&log, Post::Cancel)
            .await
            .expect("it is posted"),
        PostNo(1)
    );
    let mut text = fs::read(&path).expect("it is there");
    text.extend_from_slice(br#"{"no":2,"post":{"po"#);
    fs::write(&path, text).expect("it is torn");
    assert_eq!(
        journal
            .post(&log, Post::Cancel)
            .await
            .expect("it is posted"),
        PostNo(2)
    );
    let posts = journal
        .posts(&log, PostNo(0))
        .expect("posts are told")
        .take(2);
    let numbers: Vec<u64> = posts
        .map(|posted| posted.expect("it can be read").no.0)
        .collect()
        .await;
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test]
async fn damaged_fold_is_none() {
    let folder = folder();
    let (journal, log) = open(&folder);
    let mut held = own(&journal, &log).await;
    append(&mut *held, &batch(1, 2)).await;
    let fold = Folded {
        seq: Seq(2),
        format: "x".into(),
        bytes: "0123456789".into(),
    };
    held.keep(fold.clone()).await.expect("it is kept");
    assert_eq!(
        journal.load_fold(&log).await.expect("it can be read"),
        Some(fold)
    );
    let path = file(&folder, "fold");
    let bytes = fs::read(&path).expect("it is there");
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).expect("it is cut");
        assert_eq!(
            journal.load_fold(&log).await.expect("it can be read"),
            None,
            "cut at {length}"
        );
    }
    // A fold of records that are not there is of another log.
    fs::write(&path, bytes).expect("it is healed");
    let records = file(&folder, "records.jsonl");
    let kept = fs::read(&records).expect("they are there");
    fs::write(&records, "").expect("they are cut off");
    assert_eq!(journal.load_fold(&log).await.expect("it can be read"), None);
    // As many records of as many bytes, but others.
    drop(held);
    let none = Digest::GENESIS;
    fs::write(
        file(&folder, "head"),
        format!(r#"{{"seq":0,"length":0,"link":"{none}"}}"#),
    )
    .expect("nothing was flushed");
    let mut held = own(&journal, &log).await;
    append(&mut *held, &[said(1, "1"), said(2, "3")]).await;
    assert_eq!(
        fs::read(&records).expect("they are there").len(),
        kept.len()
    );
    assert_eq!(journal.load_fold(&log).await.expect("it can be read"), None);
    fs::write(&records, kept).expect("they are healed");
    assert_eq!(
        journal
            .load_fold(&log)
            .await
            .expect("it can be read")
            .map(|fold| fold.seq),
        Some(Seq(2))
    );
}

#[tokio::test]
async fn rename_that_was_cut_has_one_name() {
    let folder = folder();
    small(&folder).await;
    let (journal, log) = open(&folder);
    let path = file(&folder, "meta.json");
    let meta = fs::read_to_string(&path)
        .expect("it is there")
        .replace(r#""names":["a/b"]"#, r#""names":["a/b","c"]"#);
    assert!(meta.contains(r#"["a/b","c"]"#));
    fs::write(&path, meta).expect("it is written");
    let names = async || {
        let page = journal
            .list(&LogQuery::default())
            .await
            .expect("they are listed");
        page.logs
            .into_iter()
            .map(|info| info.log.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["a/b"]);
    fs::rename(folder.path().join(FOLDER), folder.path().join("logs/c")).expect("it is renamed");
    assert_eq!(names().await, ["c"]);
    assert_eq!(read(&journal, &"c".into()).await, Ok(batch(1, 4)));
    assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Missing));
}

#[tokio::test]
async fn names_never_leave_the_folder() {
    let folder = folder();
    let inside = folder.path().join("inside");
    let journal = JsonlJournal::open(&inside).expect("it is made");
    for name in ["../x", "/x", "..", ".", "a/../../x", "~", "x\0", "\\..\\x"] {
        own(&journal, &name.into()).await;
    }
    let names = |path: &Path| {
        let entries = fs::read_dir(path).expect("it is there");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("it can be read").file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), ["inside"]);
    assert_eq!(names(&inside), ["locks", "logs", "trash"]);
    assert_eq!(names(&inside.join("logs")).len(), 8);
}

#[tokio::test]
async fn one_log_that_cannot_be_read_keeps_no_other_from_being_listed() {
    for (name, contents) in [
        (
            "meta.json",
            r#"{"v":9,"names":["a/b"],"created_ms":1,"about":{"labels":[]}}"#,
        ),
        ("owner.json", "{"),
    ] {
        let folder = folder();
        small(&folder).await;
        let (journal, log) = open(&folder);
        drop(own(&journal, &"other".into()).await);
        fs::write(file(&folder, name), contents).expect("it is written");
        let page = journal
            .list(&LogQuery::default())
            .await
            .expect("the others are listed");
        assert_eq!(
            page.logs
                .iter()
                .map(|info| &*info.log.0)
                .collect::<Vec<_>>(),
            ["other"],
            "{name}"
        );
        assert!(
            journal.info(&log).await.is_err(),
            "the damage is told to who asks for it: {name}"
        );
    }
}

#[tokio::test]
async fn numbers_and_lines_without_end_are_damage_and_stop_nobody() {
    let folder = folder();
    let (path, _) = small(&folder).await;
    let (journal, log) = open(&folder);
    let owner = fs::read_to_string(file(&folder, "owner.json")).expect("it is there");
    let last = owner.replace(r#""epoch":1,"#, &format!(r#""epoch":{},"#, u64::MAX));
    fs::write(file(&folder, "owner.json"), &last).expect("it is written");
    assert_eq!(
        journal
            .own(&log, &Owner::default())
            .await
            .map(drop)
            .map_err(|it| it.kind),
        Err(JournalErrorKind::Corrupt)
    );
    let records = fs::File::options()
        .write(true)
        .open(path)
        .expect("it is there");
    records.set_len(30 << 30).expect("it takes no room");
    assert_eq!(read(&journal, &log).await, Err(JournalErrorKind::Corrupt));
    assert_eq!(
        journal
            .list(&LogQuery::default())
            .await
            .expect("it is passed over")
            .logs
            .len(),
        0
    );
}

#[tokio::test]
async fn fork_has_the_fold_that_stands_for_its_records() {
    let folder = folder();
    let (journal, log) = open(&folder);
    let mut held = own(&journal, &log).await;
    append(&mut *held, &batch(1, 4)).await;
    let fold = Folded {
        seq: Seq(3),
        format: "test".into(),
        bytes: "fold".into(),
    };
    held.keep(fold.clone()).await.expect("it is kept");
    let sessions = Sessions::new(Arc::new(journal.clone()));
    for (at, expect) in [
        (None, Some(&fold)),
        (Some(Seq(3)), Some(&fold)),
        (Some(Seq(2)), None),
    ] {
        let to = LogId::from(format!("at {at:?}"));
        sessions.fork(&log, at, &to).await.expect("it is forked");
        assert_eq!(
            journal.load_fold(&to).await.expect("it is read").as_ref(),
            expect,
            "{at:?}"
        );
    }
}
