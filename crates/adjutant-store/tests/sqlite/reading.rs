//! Databases that cannot be written: on a read-only medium, or by their permissions. They are read all the same.

use std::{env, fs, path::Path, process::Command, sync::Arc};

use adjutant_core::{
    Flush, Journal, JournalErrorKind, LogQuery, Owner, Post, PostNo, Seq, SessionMeta, Sessions,
    kv::KvStore,
};
use adjutant_store::Sqlite;

use super::{Place, append, check_kind, own, records, whole};

/// Where the child that cannot write finds a database.
const PLACE: &str = "ADJUTANT_TEST_READS";
/// What the child says at its end.
const READ: &str = "the child has read";
/// Makes a folder read-only for the command that follows, in a world of mounts of its own.
const MEDIUM: &str = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && exec \"$0\" --exact sqlite::reading::child";
/// Runs the command that follows as a user who owns nothing.
const NOBODY: &str =
    "exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" --exact sqlite::reading::child";

/// Runs in the child: all that reads works, all that writes is told what to do.
#[tokio::test]
async fn child() {
    let Ok(place) = env::var(PLACE) else { return };
    let sqlite = Sqlite::open(Path::new(&place).join("sessions.db")).expect("it opens to be read");
    let (journal, log) = (sqlite.journal(), "log".into());
    assert_eq!(whole(&journal, "log").await, records(1, 40));
    let sessions = Sessions::new(Arc::new(journal.clone()));
    assert_eq!(
        sessions.verify(&log).await.expect("it is sound").records,
        40
    );
    assert_eq!(
        sessions
            .list(&LogQuery::default())
            .await
            .expect("they are listed")
            .logs
            .len(),
        1
    );
    let mut file = Vec::new();
    assert_eq!(
        sessions
            .export(&log, &mut file)
            .await
            .expect("it is exported")
            .records,
        40
    );
    assert_eq!(
        journal
            .read_posts(&log, PostNo(0))
            .await
            .expect("they are told")
            .len(),
        1
    );
    assert!(!journal.info(&log).await.expect("it is known").is_owned);
    let kv = sqlite.kv("shelf");
    assert!(kv.get("key").await.expect("it can be read").is_none());
    let told = check_kind(
        journal.own(&log, &Owner::default()).await,
        JournalErrorKind::ReadOnly,
    );
    let cure = "cannot own log \"log\": the database can only be read; hint: copy it to a place that can be written";
    assert_eq!(
        (told.to_string().as_str(), told.is_retryable()),
        (cure, false)
    );
    check_kind(
        journal.post(&log, Post::Cancel).await,
        JournalErrorKind::ReadOnly,
    );
    check_kind(
        journal.describe(&log, SessionMeta::default()).await,
        JournalErrorKind::ReadOnly,
    );
    check_kind(
        journal.rename(&log, &"new".into()).await,
        JournalErrorKind::ReadOnly,
    );
    check_kind(journal.delete(&log).await, JournalErrorKind::ReadOnly);
    check_kind(journal.sweep().await, JournalErrorKind::ReadOnly);
    println!("{READ}");
}

/// A folder with a database: whole in its file, or with what was written last beside it, as a crash leaves it.
async fn place(is_whole: bool) -> Place {
    let (place, copy) = (Place::new(), Place::new());
    let sqlite = place.open();
    let mut log = own(&sqlite.journal(), "log").await;
    append(&mut *log, &records(1, 39)).await;
    log.append(&records(40, 40), Flush::Now)
        .await
        .expect("it is written");
    sqlite
        .journal()
        .post(&"log".into(), Post::Cancel)
        .await
        .expect("it is posted");
    if is_whole {
        drop((log, sqlite));
        place
            .raw()
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .expect("copied");
        let _ = fs::remove_file(place.folder.path().join("sessions.db-shm"));
        return place;
    }
    for name in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
        fs::copy(
            place.folder.path().join(name),
            copy.folder.path().join(name),
        )
        .expect("it is copied");
    }
    copy
}

/// Reads a database in a child, and tells what it said; nothing if this machine cannot make such a child.
fn read_in(script: &str, command: &str, args: &[&str], place: &Place) -> Option<String> {
    let run = |script: &str| {
        let mut child = Command::new(command);
        child
            .args(args)
            .args(["sh", "-c", script])
            .arg(env::current_exe().expect("a test"))
            .arg(place.folder.path());
        child.env(PLACE, place.folder.path()).output().ok()
    };
    run(&script.replace("exact sqlite::reading::child", "list"))
        .filter(|can| can.status.success())?;
    let done = run(&format!("{script} --nocapture"))?;
    Some(
        [done.stdout, done.stderr]
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .concat(),
    )
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn database_on_a_read_only_medium_is_read() {
    for is_whole in [true, false] {
        let place = place(is_whole).await;
        match read_in(MEDIUM, "unshare", &["-m"], &place) {
            Some(told) => assert!(told.contains(READ), "whole: {is_whole}: {told}"),
            None => println!("skipped: no folder can be made read-only here"),
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn database_that_its_permissions_keep_from_being_written_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let place = place(true).await;
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is set")
    };
    mode(&place.path(), 0o444);
    mode(&place.folder.path().join("sessions.db-owners"), 0o555);
    mode(place.folder.path(), 0o555);
    match read_in(NOBODY, "env", &[], &place) {
        Some(told) => assert!(told.contains(READ), "{told}"),
        None => println!("skipped: no other user can be had here"),
    }
    mode(place.folder.path(), 0o755);
}

#[tokio::test]
async fn owner_of_a_log_is_told_with_its_process() {
    let place = Place::new();
    let first = Owner::default();
    let held = place
        .open()
        .journal()
        .own(&"log".into(), &first)
        .await
        .expect("it is free");
    let error = check_kind(
        place
            .open()
            .journal()
            .own(&"log".into(), &Owner::default())
            .await,
        JournalErrorKind::Owned,
    );
    let holder = error.holder.as_ref().expect("it is told who has it");
    assert_eq!(holder.owner, first.id);
    assert!(
        holder.since.is_some_and(|since| since.as_secs() < 3_600),
        "{holder:?}"
    );
    let process = format!(
        "log \"log\" belongs to another owner (process {}",
        std::process::id()
    );
    assert!(error.to_string().starts_with(&process), "{error}");
    assert_eq!(held.head().seq, Seq(0));
}
