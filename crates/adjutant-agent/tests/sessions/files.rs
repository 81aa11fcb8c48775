//! Sessions in files: whole, or an error and nothing else.

use std::sync::{Arc, atomic::AtomicUsize};

use adjutant_agent::{
    Journal, JournalErrorKind, LogId, LogQuery, MemoryJournal, Record, SessionMeta, Sessions,
    Stamped,
};
use adjutant_llm::{Entry, UserMessage};
use serde_json::{Value, json};

use super::stage::{Full, all, id, kind, log, message, sessions, stamped, stored, write};

async fn export(journal: &MemoryJournal, name: &str) -> Vec<u8> {
    let mut file = Vec::new();
    sessions(journal)
        .export(&id(name), &mut file)
        .await
        .expect("it is exported");
    file
}

/// What comes of a file in an empty journal; it has nothing if that is an error.
async fn import(file: &[u8]) -> Result<MemoryJournal, adjutant_agent::JournalError> {
    let journal = MemoryJournal::default();
    match sessions(&journal).import(file, |_, _| {}).await {
        Ok(info) => {
            assert_eq!(all(&journal).await, [info.log]);
            Ok(journal)
        }
        Err(error) => {
            assert_eq!(all(&journal).await, [], "{error}");
            Err(error)
        }
    }
}

fn texts(texts: &[&str]) -> Vec<Arc<Stamped>> {
    let entry = |text: &&str| Record::Appended {
        entries: vec![Entry::User(UserMessage::text(*text))],
    };
    stamped(texts.iter().map(entry))
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).expect("each line is JSON")
}

#[tokio::test]
async fn file_is_lines_of_json_when_a_session_is_exported() {
    let journal = MemoryJournal::default();
    log(&journal, "a").await;
    let stored = stored(&journal, &id("a")).await;
    let mut file = Vec::new();
    let exported = sessions(&journal)
        .export(&id("a"), &mut file)
        .await
        .expect("it is exported");
    let link = stored.last().expect("it has records").link;
    assert_eq!(
        (exported.records, exported.attachments),
        (stored.len() as u64, 0)
    );
    assert_eq!((exported.bytes, exported.link), (file.len() as u64, link));
    let text = String::from_utf8(file).expect("it is text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), stored.len() + 2);
    let header = json(lines[0]);
    assert_eq!(
        (&header["format"], &header["version"]),
        (&"adjutant-session".into(), &1.into())
    );
    assert_eq!(
        (&header["id"], &header["about"]["agent"]),
        (&"a".into(), &"boss".into())
    );
    for (line, stored) in lines[1..].iter().zip(&stored) {
        assert_eq!(json(line)["record"]["link"], stored.link.to_string());
        let bytes = std::str::from_utf8(&stored.bytes).expect("it is text");
        assert!(line.ends_with(&format!("\"bytes\":{bytes}}}}}")), "{line}");
    }
    assert_eq!(
        json(lines[lines.len() - 1])["footer"]["records"],
        stored.len()
    );
}

#[tokio::test]
async fn session_is_the_same_when_it_was_carried_in_a_file() {
    let journal = MemoryJournal::default();
    log(&journal, "a").await;
    sessions(&journal)
        .title(&id("a"), "A title")
        .await
        .expect("it is there");
    let other = import(&export(&journal, "a").await)
        .await
        .expect("the file is whole");
    assert_eq!(
        stored(&other, &id("a")).await,
        stored(&journal, &id("a")).await
    );
    let [one, two] = [&journal, &other].map(sessions);
    assert_eq!(
        two.journal()
            .info(&id("a"))
            .await
            .expect("it is there")
            .about,
        one.journal().info(&id("a")).await.expect("there").about
    );
    assert!(two.verify(&id("a")).await.is_ok());
    assert_eq!(
        export(&other, "a").await.len(),
        export(&journal, "a").await.len()
    );
}

#[tokio::test]
async fn name_must_be_free_when_a_session_is_imported() {
    let journal = MemoryJournal::default();
    write(&journal, "a", &texts(&["x"])).await;
    let (file, sessions) = (export(&journal, "a").await, sessions(&journal));
    assert_eq!(
        kind(sessions.import(&file[..], |_, _| {}).await),
        JournalErrorKind::Exists
    );
    assert_eq!(
        kind(sessions.import(&file[..], |name, _| *name = id("")).await),
        JournalErrorKind::Invalid
    );
    let info = sessions
        .import(&file[..], |name, _| *name = id("b/../c"))
        .await
        .expect("the name is free");
    assert_eq!(info.log, id("b/../c"));
    assert_eq!(all(&journal).await, [id("a"), id("b/../c")]);
}

#[tokio::test]
async fn empty_session_is_carried_when_it_has_only_a_description() {
    let journal = MemoryJournal::default();
    let about = SessionMeta {
        title: Some("Nothing yet".into()),
        parent: Some((id("gone"), adjutant_agent::Seq(3))),
        ..SessionMeta::default()
    };
    sessions(&journal)
        .create(&id("a"), about.clone())
        .await
        .expect("the name is free");
    let other = import(&export(&journal, "a").await)
        .await
        .expect("the file is whole");
    assert_eq!(
        sessions(&other)
            .journal()
            .info(&id("a"))
            .await
            .expect("it is there")
            .about,
        about
    );
}

#[tokio::test]
async fn attachment_stands_once_when_many_records_have_it() {
    let journal = MemoryJournal::default();
    let (one, two) = ("ü\n\"".repeat(30_000), "y".repeat(70_000));
    // More records than are appended together stand between the first and the last.
    let mut said = vec![one.as_str(), two.as_str()];
    said.extend(["x"; 600]);
    said.extend([one.as_str(), two.as_str(), one.as_str()]);
    write(&journal, "a", &texts(&said)).await;
    let file = export(&journal, "a").await;
    let text = std::str::from_utf8(&file).expect("it is text");
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("{\"attachment\":"))
            .count(),
        2
    );
    let other = import(&file).await.expect("the file is whole");
    assert_eq!(
        stored(&other, &id("a")).await,
        stored(&journal, &id("a")).await
    );

    let without: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("{\"attachment\":"))
        .collect();
    let without = without.join("\n") + "\n";
    assert_eq!(
        kind(import(without.as_bytes()).await),
        JournalErrorKind::Corrupt
    );
}

#[tokio::test]
async fn file_is_refused_when_it_is_cut_at_any_byte() {
    let journal = MemoryJournal::default();
    write(&journal, "a", &texts(&["one", "ü", "three"])).await;
    write(
        &journal,
        "b",
        &texts(&["one", &"z".repeat(66_000), "three"]),
    )
    .await;
    let (file, large) = (export(&journal, "a").await, export(&journal, "b").await);
    let cuts = (0..file.len()).map(|end| &file[..end]);
    for cut in cuts.chain((0..large.len()).step_by(997).map(|end| &large[..end])) {
        let error = import(cut).await.expect_err("it is not whole");
        assert_eq!(
            error.kind,
            JournalErrorKind::Corrupt,
            "{}: {error}",
            cut.len()
        );
    }
    let mut longer = file.clone();
    longer.push(b'\n');
    assert_eq!(kind(import(&longer).await), JournalErrorKind::Corrupt);
}

#[tokio::test]
async fn file_is_refused_when_any_byte_is_changed() {
    let journal = MemoryJournal::default();
    write(&journal, "a", &texts(&["one", "ü\n", "three"])).await;
    let file = export(&journal, "a").await;
    for at in 0..file.len() {
        // A space where a line feed was, a capital letter, another digit, and a byte that is no text.
        for by in [1_u8, 0x20, 0x2a, 0x80] {
            let mut file = file.clone();
            file[at] ^= by;
            let error = import(&file).await.expect_err("it is not what was written");
            let kind = error.kind;
            assert!(
                matches!(kind, JournalErrorKind::Corrupt | JournalErrorKind::Version),
                "{at} {by}: {error}"
            );
        }
    }
}

/// The file with its last line made anew.
fn sealed(lines: &[String]) -> Vec<u8> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let sha256 = adjutant_agent::Digest::compute(text.as_bytes());
    let link = json(&lines[lines.len() - 1])["record"]["link"].to_string();
    let (records, bytes) = (lines.len() - 1, text.len());
    let footer = format!(
        "{{\"footer\":{{\"records\":{records},\"attachments\":0,\"link\":{link},\"bytes\":{bytes},\"sha256\":\"{sha256}\"}}}}\n"
    );
    (text + &footer).into_bytes()
}

#[tokio::test]
async fn file_is_refused_when_it_is_sealed_and_yet_wrong() {
    let journal = MemoryJournal::default();
    write(&journal, "a", &texts(&["one", "two"])).await;
    let text = String::from_utf8(export(&journal, "a").await).expect("it is text");
    let lines: Vec<String> = text.lines().take(3).map(str::to_owned).collect();
    assert!(
        import(&sealed(&lines)).await.is_ok(),
        "the seal is made as it should be"
    );
    let table: [(&str, usize, &str, &str, JournalErrorKind); 6] = [
        (
            "format",
            0,
            "adjutant-session",
            "tar",
            JournalErrorKind::Corrupt,
        ),
        (
            "version",
            0,
            "\"version\":1",
            "\"version\":2",
            JournalErrorKind::Version,
        ),
        (
            "name",
            0,
            "\"id\":\"a\"",
            "\"id\":\"\"",
            JournalErrorKind::Invalid,
        ),
        (
            "order",
            2,
            "\"seq\":2",
            "\"seq\":3",
            JournalErrorKind::Corrupt,
        ),
        ("content", 2, "two", "owt", JournalErrorKind::Corrupt),
        ("record", 1, "\"v\":2", "\"v\":3", JournalErrorKind::Corrupt),
    ];
    for (what, line, from, to, expect) in table {
        let mut lines = lines.clone();
        assert!(lines[line].contains(from), "{what}");
        lines[line] = lines[line].replace(from, to);
        let error = import(&sealed(&lines)).await.expect_err(what);
        assert_eq!(error.kind, expect, "{what}: {}", message(&error));
    }
    assert_eq!(kind(import(b"").await), JournalErrorKind::Corrupt);
    assert_eq!(
        kind(import(&[b'x'; 5_000]).await),
        JournalErrorKind::Corrupt
    );
}

#[tokio::test]
async fn nothing_is_left_when_the_disk_is_full_while_importing() {
    let journal = MemoryJournal::default();
    write(&journal, "a", &texts(&["x"; 700])).await;
    let file = export(&journal, "a").await;
    for left in 0..3 {
        let full = Full {
            journal: journal.clone(),
            left: Arc::new(AtomicUsize::new(left)),
        };
        let made = Sessions::new(Arc::new(full))
            .import(&file[..], |name, _| *name = id("b"))
            .await;
        assert_eq!(kind(made), JournalErrorKind::Io);
        assert_eq!(all(&journal).await, [id("a")]);
    }
}

/// A file that takes so many bytes.
struct Disk(usize);

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn export_fails_when_the_disk_is_full_or_there_is_no_session() {
    let journal = MemoryJournal::default();
    write(&journal, "a", &texts(&["x"; 10])).await;
    for room in [0, 100, 1_000] {
        assert_eq!(
            kind(sessions(&journal).export(&id("a"), &mut Disk(room)).await),
            JournalErrorKind::Io
        );
    }
    assert_eq!(
        kind(sessions(&journal).export(&id("b"), &mut Vec::new()).await),
        JournalErrorKind::Missing
    );
}

#[test]
fn futures_may_move_between_threads_when_they_are_made() {
    fn is_send<T: Send>(_: &T) {}
    let sessions = sessions(&MemoryJournal::default());
    let (id, mut out): (LogId, Vec<u8>) = (id("a"), Vec::new());
    is_send(&sessions.import(&b""[..], |_, _| {}));
    is_send(&sessions.export(&id, &mut out));
    is_send(&sessions.fork(&id, None, &id));
    is_send(&sessions.diff(&id, &id));
    is_send(&sessions.tree(&id));
    is_send(&sessions.verify(&id));
    is_send(&sessions.show_page(&id, adjutant_agent::Seq(0), 1));
}

#[tokio::test]
async fn file_is_refused_when_it_says_too_much_of_a_session() {
    let journal = MemoryJournal::default();
    let huge = "x".repeat(10_000);
    for about in [
        json!({"agent": huge, "labels": []}),
        json!({"parent": [huge, 1], "labels": []}),
    ] {
        let header = json!({"format": "adjutant-session", "version": 1, "id": "a", "created_ms": 0, "about": about});
        let file = format!("{header}\n");
        let refused = sessions(&journal)
            .import(file.as_bytes(), |_, _| {})
            .await
            .expect_err("it is too long");
        assert_eq!(refused.kind, JournalErrorKind::Invalid, "{refused}");
    }
    assert_eq!(
        journal
            .list(&LogQuery::default())
            .await
            .expect("memory lists")
            .logs,
        []
    );
}
