//! Logs: put aside by size, read from the end, followed.

use std::{
    fs::{self, OpenOptions},
    io::Write,
};

use adjutant_runtime::{Logs, Workspace, backend::LogLimits};

fn logs(max_bytes: u64, kept: u32) -> (tempfile::TempDir, Logs) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut limits = LogLimits::default();
    (limits.max_bytes, limits.kept) = (max_bytes, kept);
    let workspace = Workspace::at(folder.path());
    fs::create_dir(workspace.logs()).expect("it can be made");
    (folder, Logs::new(&workspace, limits))
}

fn write(logs: &Logs, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(logs.path())
        .expect("it can be opened");
    file.write_all(text.as_bytes()).expect("it can be written");
}

#[test]
fn limits_are_a_mebibyte_five_times() {
    let limits = LogLimits::default();
    assert_eq!((limits.max_bytes, limits.kept + 1), (1 << 20, 5));
}

#[test]
fn log_that_is_long_is_put_aside_and_the_oldest_is_forgotten() {
    let (folder, logs) = logs(10, 2);
    logs.rotate().expect("there is nothing to do");
    let mut writer = OpenOptions::new()
        .append(true)
        .create(true)
        .open(logs.path())
        .expect("it can be opened");
    for line in ["first line\n", "second line\n", "third line\n", "4\n"] {
        writer
            .write_all(line.as_bytes())
            .expect("it can be written");
        logs.rotate().expect("it is put aside");
    }
    let read = |name: &str| fs::read_to_string(folder.path().join("logs").join(name)).ok();
    assert_eq!(
        read("output.log").as_deref(),
        Some("4\n"),
        "the same writer goes on at the beginning"
    );
    let aside = (
        read("output.1.log"),
        read("output.2.log"),
        read("output.3.log"),
    );
    assert_eq!(
        aside,
        (
            Some("third line\n".to_owned()),
            Some("second line\n".to_owned()),
            None
        )
    );
}

#[test]
fn newest_whole_lines_are_kept_of_a_log_that_is_much_too_long() {
    let (folder, logs) = logs(100, 1);
    let text: String = (0..1_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    write(&logs, &text);
    logs.rotate().expect("it is put aside");
    let kept = fs::read_to_string(folder.path().join("logs/output.1.log")).expect("it is there");
    let wanted: String = (978..1_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    assert_eq!(
        kept, wanted,
        "whole lines, twice as many bytes as a file may have at most"
    );
    assert_eq!(fs::metadata(logs.path()).expect("it is there").len(), 0);
}

#[test]
fn tail_reads_over_files_that_were_put_aside() {
    let (_folder, logs) = logs(20, 3);
    for number in 0..10 {
        write(&logs, &format!("line {number}\n"));
        logs.rotate().expect("it is put aside");
    }
    write(&logs, "no end");
    assert_eq!(
        logs.tail(3).expect("it can be read"),
        ["line 8", "line 9", "no end"]
    );
    assert_eq!(logs.tail(0).expect("it can be read"), Vec::<String>::new());
    assert_eq!(logs.tail(usize::MAX).expect("it can be read").len(), 11);
}

#[tokio::test(start_paused = true)]
async fn follower_sees_each_line_also_after_the_log_was_put_aside() {
    let (_folder, logs) = logs(20, 1);
    write(&logs, "one\ntwo\n");
    let mut lines = logs.follow(1).expect("it can be read");
    assert_eq!(lines.next().await.expect("it can be read"), "two");
    write(&logs, "three\npart");
    assert_eq!(lines.next().await.expect("it can be read"), "three");
    let waiting = tokio::time::timeout(std::time::Duration::from_secs(1), lines.next()).await;
    assert!(waiting.is_err(), "the line has no end");
    write(&logs, "ial \u{fffd}, and long enough\n");
    assert_eq!(
        lines.next().await.expect("it can be read"),
        "partial \u{fffd}, and long enough"
    );
    logs.rotate().expect("it is put aside");
    write(&logs, "new\n");
    assert_eq!(lines.next().await.expect("it can be read"), "new");
}
