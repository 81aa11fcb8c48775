//! Programs that do not want to end: whatever they try, nothing of them is left when their call is over.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use adjutant_llm::Status;
use adjutant_tool::Cancel;
use serde_json::{Value, json};

use crate::{
    programs::program,
    stage::{Stage, calls, lead, result, text},
};

/// What a script does that ignores every word, with a child that does too.
const DEAF: &str = "trap '' TERM INT HUP; (trap '' TERM INT HUP; echo child >&2; touch said; while :; do sleep 1; done) & \
                    echo $! >> pids; echo $$ >> pids; while [ ! -e said ]; do sleep 0.01; done; touch up; \
                    while :; do sleep 1; done";

/// A process that left its group and its session, and does not know its parent any more.
const FORKED: &str = "setsid sh -c '(trap \"\" TERM HUP; echo $$ > pids; echo up > up; exec sleep 600) & exit' >/dev/null 2>&1 </dev/null; \
                      while [ ! -e up ]; do sleep 0.01; done;";

/// Whether a process is there and has not ended.
fn lives(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with(['Z', 'X']))
}

/// Waits for something that another process does.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain: {what}");
}

/// Waits until a file is there: another process makes it.
async fn there(path: &Path) {
    until("a file of a process", || path.exists()).await;
}

/// The processes whose working folder this is.
pub(crate) fn at_work(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().expect("the folder is there");
    let all = std::fs::read_dir("/proc")
        .expect("there are processes")
        .filter_map(Result::ok);
    let here =
        all.filter(|it| std::fs::read_link(it.path().join("cwd")).is_ok_and(|cwd| cwd == folder));
    here.map(|it| it.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Nothing of the processes is left that the script has noted.
#[track_caller]
fn nothing_left(stage: &Stage) {
    let noted = text(&stage.work("pids"));
    let left: Vec<&str> = noted.split_whitespace().filter(|id| lives(id)).collect();
    assert!(left.is_empty(), "{left:?} of {noted:?}");
}

async fn called(stage: &Stage, script: &str, fields: Value) -> (String, Status) {
    let engine = stage.engine(program(stage, script, fields)).await;
    let ran = lead(&engine).run("Hello.").await.expect("the run finishes");
    (result(&ran, 0), ran.calls[0].result.status)
}

/// Calls a program that makes the file `up`, and lets its time pass as soon as that is there.
async fn overdue(stage: &Stage, script: &str) -> (String, Status) {
    let (time, up) = (Duration::from_secs(600), stage.work("up"));
    let passes = async {
        there(&up).await;
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    };
    tokio::join!(called(stage, script, json!({ "timeout": "600s" })), passes).0
}

#[tokio::test]
async fn program_that_takes_too_long_is_killed_with_its_children() {
    let stage = Stage::new(calls("tool", json!({})));
    let (text, status) = overdue(&stage, DEAF).await;
    assert_ne!(status, Status::Ok);
    assert_eq!(
        text,
        "the program took longer than 10m and was killed\nstandard error:\nchild"
    );
    nothing_left(&stage);
}

#[tokio::test]
async fn program_that_ends_when_it_is_asked_has_the_time_to() {
    let stage = Stage::new(calls("tool", json!({})));
    let script = "trap 'echo tidied > tidied; exit 0' TERM; echo $$ > pids; touch up; while :; do sleep 0.01; done";
    let (text, status) = overdue(&stage, script).await;
    assert_ne!(status, Status::Ok, "{text}");
    assert!(stage.work("tidied").exists());
    nothing_left(&stage);
}

#[tokio::test]
async fn program_is_killed_when_its_run_is_cancelled() {
    let stage = Stage::new(calls("tool", json!({})));
    let engine = stage.engine(program(&stage, DEAF, json!({}))).await;
    let (cancel, up) = (Cancel::new(), stage.work("up"));
    let agent = lead(&engine);
    let run = agent.run("Hello.").cancel(cancel.clone());
    let (ran, ()) = tokio::join!(run, async {
        there(&up).await;
        cancel.cancel()
    });
    drop(ran);
    nothing_left(&stage);
}

#[tokio::test]
async fn program_is_killed_when_its_run_is_dropped() {
    let stage = Stage::new(calls("tool", json!({})));
    let engine = stage
        .engine(program(
            &stage,
            &format!("{FORKED} rm up; {DEAF}"),
            json!({}),
        ))
        .await;
    let up = stage.work("up");
    {
        let agent = lead(&engine);
        let run = agent.run("Hello.");
        tokio::select! {
            _ = run => panic!("it does not end"),
            () = async { there(&up).await; } => {}
        }
    }
    // The turn of a run that was dropped is closed in the background.
    let noted = text(&stage.work("pids"));
    until("the end of the processes", || {
        !noted.split_whitespace().any(lives)
    })
    .await;
}

#[tokio::test]
async fn program_is_killed_when_the_runtime_ends() {
    let stage = Stage::new(calls("tool", json!({})));
    let manifest = program(&stage, DEAF, json!({}));
    let up = stage.work("up");
    let (builder, gone) = (stage.builder(manifest), stage.work("pids"));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let engine = builder.build().await.expect("it is right");
            tokio::spawn(async move { lead(&engine).run("Hello.").await });
            tokio::time::timeout(Duration::from_secs(20), there(&up))
                .await
                .expect("it is up");
        });
    })
    .join()
    .expect("it ends");
    // Nobody waits for what is ended then.
    let noted = text(&gone);
    until("the end of the processes", || {
        !noted.split_whitespace().any(lives)
    })
    .await;
}

#[tokio::test]
async fn process_that_left_the_group_is_killed_when_its_call_ends() {
    let stage = Stage::new(calls("tool", json!({})));
    let (text, status) = called(&stage, &format!("{FORKED} echo done"), json!({})).await;
    assert_eq!((text.as_str(), status), ("done\n", Status::Ok));
    nothing_left(&stage);
}

#[tokio::test]
async fn process_in_the_background_that_holds_the_pipe_does_not_hold_the_call() {
    let stage = Stage::new(calls("tool", json!({})));
    let began = Instant::now();
    let (text, status) = called(&stage, "(sleep 600) & echo $! > pids; echo done", json!({})).await;
    assert_eq!((text.as_str(), status), ("done\n", Status::Ok));
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    nothing_left(&stage);
}

#[tokio::test]
async fn process_outside_the_group_that_holds_the_pipe_does_not_hold_the_call() {
    let stage = Stage::new(calls("tool", json!({})));
    let script = "setsid sh -c 'echo $$ > pids; exec sleep 600' & while [ ! -s pids ]; do sleep 0.01; done; echo done";
    let began = Instant::now();
    let (text, _) = called(&stage, script, json!({})).await;
    assert_eq!(text, "done\n");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    nothing_left(&stage);
}

#[tokio::test]
async fn program_that_floods_without_end_is_killed_in_its_time() {
    let stage = Stage::new(calls("tool", json!({})));
    let script =
        "echo $$ > pids; trap '' TERM; touch up; while :; do echo flood; echo flood >&2; done";
    let (text, status) = overdue(&stage, script).await;
    assert_ne!(status, Status::Ok);
    assert!(
        text.contains("bytes left out]") || text.contains("flood"),
        "{text}"
    );
    assert!(text.len() < 100_000);
    nothing_left(&stage);
}

#[tokio::test]
async fn program_that_forks_without_end_is_killed() {
    let stage = Stage::new(calls("tool", json!({})));
    // Each makes another one in a session of its own and goes away; there are never many.
    let script = "cat > next.sh <<'END'\n#!/bin/sh\ntrap '' TERM\nsleep 0.02\necho $$ >> pids\n[ -e stop ] && exit\nexec setsid sh ./next.sh\nEND\n\
                  setsid sh ./next.sh >/dev/null 2>&1 </dev/null &\nwhile [ ! -s pids ]; do sleep 0.01; done; echo done";
    let (text, _) = called(&stage, script, json!({})).await;
    assert_eq!(text, "done\n");
    nothing_left(&stage);
    // One that lives has not noted itself at once, and may be made by one that was looked at before.
    for _ in 0..4 {
        assert_eq!(at_work(&stage.work(".")), [""; 0]);
    }
    stage.file("agent/work/stop", "");
}

#[tokio::test]
async fn calls_at_the_same_time_do_not_kill_each_other() {
    let script = adjutant_llm::Script::new()
        .call("tool", json!({}))
        .call("tool", json!({}))
        .call("tool", json!({}));
    let stage = Stage::new([script, adjutant_llm::Script::new().text("Done.")]);
    let engine = stage
        .engine(program(
            &stage,
            "mkdir first 2>/dev/null && exit 0; sleep 0.3; echo done",
            json!({}),
        ))
        .await;
    let ran = lead(&engine).run("Hello.").await.expect("the run finishes");
    let mut texts: Vec<String> = (0..3).map(|at| result(&ran, at)).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["", "done\n", "done\n"]);
}
