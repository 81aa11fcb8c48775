//! What a store makes is its owner's alone, whatever the umask; what it finds open to others is told with the cure.
#![cfg(all(feature = "jsonl", feature = "sqlite", unix))]

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use adjutant_core::{Flush, Folded, Journal, Owner, Post, PostNo, Record, Seq, Stamped};
use adjutant_llm::{Entry, UserMessage};
use adjutant_store::{JsonlJournal, Sqlite};

/// Where the child with another umask works.
const PLACE: &str = "ADJUTANT_TEST_PLACE";

/// A log with all that can stand beside it; it is owned as long as the value lives.
async fn fill(journal: &dyn Journal) -> Box<dyn adjutant_core::Log> {
    let log = "log".into();
    let mut held = journal
        .own(&log, &Owner::default())
        .await
        .expect("it is free");
    let entries = vec![Entry::User(UserMessage::text("large ".repeat(20_000)))];
    let record = Arc::new(Stamped::new(
        Seq(1),
        1,
        "main".into(),
        Record::Appended { entries },
    ));
    held.append(&[record], Flush::Now)
        .await
        .expect("it is written");
    held.keep(Folded {
        seq: Seq(1),
        format: "x".into(),
        bytes: "y".into(),
    })
    .await
    .expect("it is kept");
    journal
        .post(&log, Post::Cancel)
        .await
        .expect("it is posted");
    journal
        .post(&log, Post::Cancel)
        .await
        .expect("it is posted");
    held.mark_consumed(PostNo(1))
        .await
        .expect("it is forgotten");
    held
}

/// Runs in the child: everything that a store makes, in folders that it makes.
#[tokio::test]
async fn child() {
    let Ok(place) = env::var(PLACE) else { return };
    let place = Path::new(&place);
    let jsonl = JsonlJournal::open(place.join("jsonl")).expect("opens");
    let sqlite = Sqlite::open(place.join("sessions.db")).expect("opens");
    assert_eq!((jsonl.exposure(), sqlite.exposed()), (None, None));
    let held = (fill(&jsonl).await, fill(&sqlite.journal()).await);
    check(place);
    drop(held);
}

/// Every file and folder below is its owner's alone.
#[track_caller]
fn check(place: &Path) {
    let mut found = Vec::new();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it can be listed") {
            let path = entry.expect("it can be read").path();
            let about = path.metadata().expect("it is there");
            let mode = about.permissions().mode() & 0o777;
            assert_eq!(
                mode,
                if about.is_dir() { 0o700 } else { 0o600 },
                "{}",
                path.display()
            );
            if about.is_dir() {
                folders.push(path.clone());
            }
            found.push(path);
        }
    }
    let all = [
        "sessions.db",
        "sessions.db-wal",
        "sessions.db-shm",
        "sessions.db-owners",
        "jsonl",
        "jsonl/locks/blobs",
    ];
    let log = [
        "records.jsonl",
        "meta.json",
        "owner.json",
        "held-1",
        "posts.jsonl",
        "fold",
    ];
    let log = log.map(|name| format!("jsonl/logs/log/{name}"));
    for name in all.into_iter().chain(log.iter().map(String::as_str)) {
        assert!(
            found.contains(&place.join(name)),
            "{name} is missing: {found:?}"
        );
    }
    let has = |folder: PathBuf| found.iter().any(|path| path.parent() == Some(&folder));
    assert!(
        has(place.join("jsonl/blobs")) && has(place.join("sessions.db-owners")),
        "{found:?}"
    );
}

#[test]
fn everything_is_its_owners_alone_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("umask {umask}; exec \"$0\" --exact private::child"));
        let child = shell
            .arg(env::current_exe().expect("a test"))
            .env(PLACE, folder.path())
            .output();
        let child = child.expect("it starts");
        assert!(
            child.status.success(),
            "umask {umask}: {}",
            String::from_utf8_lossy(&child.stdout)
        );
        assert!(
            folder.path().join("jsonl").is_dir(),
            "the child did its work"
        );
    }
}

#[tokio::test]
async fn store_that_others_may_enter_is_told_with_the_cure() {
    let folder = tempfile::tempdir().expect("a folder");
    let (jsonl, sqlite) = (
        folder.path().join("it's"),
        folder.path().join("sessions.db"),
    );
    fs::create_dir(&jsonl).expect("it is made");
    fs::write(&sqlite, "").expect("it is made");
    let open = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is set")
    };
    open(&jsonl, 0o755);
    open(&sqlite, 0o640);
    let told = |exposed: Option<&adjutant_store::Exposed>| exposed.expect("it is told").to_string();
    let cure = |text: &str| {
        text.split_once("; hint: ")
            .expect("there is a cure")
            .1
            .to_owned()
    };
    for text in [
        told(JsonlJournal::open(&jsonl).expect("opens").exposure()),
        told(Sqlite::open(&sqlite).expect("opens").exposed()),
    ] {
        assert!(
            text.starts_with("others on this machine may enter the store of sessions: /"),
            "{text}"
        );
        let cured = Command::new("sh")
            .arg("-c")
            .arg(cure(&text))
            .status()
            .expect("it starts");
        assert!(cured.success(), "{text}");
    }
    assert_eq!(JsonlJournal::open(&jsonl).expect("opens").exposure(), None);
    assert_eq!(Sqlite::open(&sqlite).expect("opens").exposed(), None);
}

#[tokio::test]
async fn planted_links_are_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, theirs) = (
        folder.path().join("sessions.db"),
        folder.path().join("theirs"),
    );
    let link = |from: &Path| std::os::unix::fs::symlink(&theirs, from).expect("it is linked");
    link(&path);
    Sqlite::open(&path).expect_err("a database is not made behind a link");
    assert!(!theirs.exists());
    fs::remove_file(&path).expect("it is removed");
    fs::create_dir(&theirs).expect("it is made");
    fs::write(theirs.join("Cargo.lock"), "").expect("it is made");
    link(&folder.path().join("sessions.db-owners"));
    let journal = Sqlite::open(&path).expect("opens").journal();
    let error = journal
        .own(&"log".into(), &Owner::default())
        .await
        .expect_err("nothing is cleared away behind a link");
    assert!(error.to_string().contains("is a link"), "{error}");
    assert!(theirs.join("Cargo.lock").exists());
}
