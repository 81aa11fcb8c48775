//! The limits of a call: each is reached by a real program, and not reached by the same program with less.

use adjutant_toolkit::{CommandLimits, Sandbox, Shell};
use serde_json::json;

use super::{ask, said, tell};

/// The sandboxes of this machine, with these limits.
fn sandboxes(limits: &[&str]) -> Vec<(&'static str, Sandbox)> {
    let mut set = CommandLimits::default();
    for limit in limits {
        set.set(limit).expect("a limit");
    }
    let all = [
        ("landlock", Sandbox::landlock()),
        ("bwrap", Sandbox::bwrap()),
    ];
    let (held, refused): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, sandbox)| sandbox.refuses().is_none());
    for (name, _) in refused {
        tell(format_args!("SKIPPED: {name}"));
    }
    held.into_iter()
        .map(|(name, sandbox)| (name, sandbox.limits(set)))
        .collect()
}

/// A limit, a program that stays below it, one that reaches it, and the message.
const ROWS: &[(&str, &str, &str, &str)] = &[
    (
        "memory=300M",
        "python3 -c 'import time; b = bytearray(100 << 20); time.sleep(0.5)'",
        "python3 -c 'import time; b = bytearray(400 << 20); time.sleep(20)'",
        "[killed: it used more than 300MiB of memory; hint: use less, or ask the user to raise the limit with `--limit memory=600M`",
    ),
    // Pages that processes share count once.
    (
        "memory=300M",
        "python3 -c 'import os, time; b = bytearray(150 << 20); [os.fork() for _ in range(2)]; time.sleep(0.5)'",
        "for i in 1 2 3 4; do setsid python3 -c 'import time; b = bytearray(100 << 20); time.sleep(20)' & done; sleep 20",
        "[killed: it used more than 300MiB of memory; hint: ",
    ),
    (
        "memory=300M",
        "true",
        "python3 -c 'import mmap, time; b = mmap.mmap(-1, 400 << 20); [b.__setitem__(i, 1) for i in range(0, len(b), 4096)]; time.sleep(20)'",
        "[killed: it used more than 300MiB of memory; hint: ",
    ),
    (
        "cpu=2s",
        "sleep 1",
        "sh -c 'while :; do :; done'",
        "[killed: it used more than 2 s of CPU time; hint: use less, or ask the user to raise the limit with `--limit cpu=4s`",
    ),
    // Processes that have ended count too.
    (
        "cpu=2s",
        "true",
        "while :; do python3 -c 'for i in range(3000000): pass'; done",
        "[killed: it used more than 2 s of CPU time; hint: ",
    ),
    (
        "file=8M",
        "head -c 4000000 /dev/zero > f; rm f",
        "head -c 20000000 /dev/zero > f",
        "[killed: one of its files reached 8MiB; hint: use less, or ask the user to raise the limit with `--limit file=16M`",
    ),
    (
        "disk=40M",
        "for i in 1 2 3; do head -c 30000000 /dev/zero > f; sleep 0.1; : > f; done; head -c 20000000 /dev/zero > f; sleep 0.3; rm f",
        "for i in 1 2 3 4 5 6; do head -c 10000000 /dev/zero > $TMPDIR/f$i; done; sleep 20",
        "[killed: it wrote more than 40MiB of files; hint: use less, or ask the user to raise the limit with `--limit disk=80M`",
    ),
    (
        "disk=40M",
        "mkdir d; head -c 20000000 /dev/zero > d/f; sleep 0.3; rm -r d",
        "mkdir d; for i in 1 2 3 4 5 6; do head -c 10000000 /dev/zero > d/f$i; done; sleep 20",
        "[killed: it wrote more than 40MiB of files; hint: ",
    ),
    // Files without a name count too.
    (
        "disk=40M",
        "true",
        "python3 -c 'import os, time; f = open(\"f\", \"wb\"); os.unlink(\"f\"); f.write(bytes(60000000)); f.flush(); time.sleep(20)'",
        "[killed: it wrote more than 40MiB of files; hint: ",
    ),
    (
        "processes=20",
        "for i in 1 2 3 4 5; do sleep 0.3 & done; wait",
        "i=0; while [ $i -lt 60 ]; do i=$((i+1)); sleep 20 & done; wait",
        "[killed: it had more than 20 processes or 8192 threads; hint: ",
    ),
];

#[test]
fn call_ends_at_each_limit_and_not_below() {
    std::thread::scope(|scope| {
        for row in ROWS {
            scope.spawn(|| check(row));
        }
    });
}

fn check((limit, below, above, message): &(&str, &str, &str, &str)) {
    for (name, sandbox) in sandboxes(&[limit]) {
        let place = tempfile::tempdir().expect("a folder");
        let tools = Shell::new(place.path(), sandbox)
            .expect("a shell")
            .toolbox();
        let run = |command: &str| {
            let args = json!({ "command": command, "timeout_secs": 60 });
            said(&tools, "run_command", args)
        };
        let shown = run(below);
        assert!(shown.ends_with("[exit code 0]"), "{name}, {limit}: {shown}");
        let shown = run(above);
        assert!(shown.contains(message), "{name}, {limit}, {above}: {shown}");
        assert!(
            shown.contains("`limits: {"),
            "the setting is named: {shown}"
        );
    }
}

#[test]
fn command_in_the_background_ends_at_a_limit_and_a_program_is_told() {
    for (name, sandbox) in sandboxes(&["memory=200M", "file=1M"]) {
        let place = tempfile::tempdir().expect("a folder");
        let tools = Shell::new(place.path(), sandbox)
            .expect("a shell")
            .toolbox();
        let command = "python3 -c 'import time; b = bytearray(300 << 20); time.sleep(60)'";
        said(
            &tools,
            "run_command",
            json!({ "command": command, "background": true }),
        );
        let shown = std::iter::repeat_with(|| {
            std::thread::yield_now();
            said(&tools, "command_output", json!({ "id": "c1" }))
        })
        .find(|shown| !shown.contains("it still runs"))
        .unwrap_or_default();
        assert!(
            shown.contains("[killed: it used more than 200MiB of memory; hint: "),
            "{name}: {shown}"
        );
        // A program that handles the error goes on, and the result names the limit.
        let program = "try: open('f', 'wb').write(b'x' * 3000000)\nexcept OSError as e: print(e)";
        let shown = said(
            &tools,
            "run_command",
            json!({ "argv": ["python3", "-c", program] }),
        );
        assert!(
            shown.contains("[exit code 0]") && shown.contains("--limit file=2M"),
            "{name}: {shown}"
        );
    }
}

/// Without limits nothing is killed but what has too many processes.
#[test]
fn limits_that_are_none_are_not_reached() {
    let limits = ["memory=none", "disk=none", "file=none", "cpu=none"];
    for (name, sandbox) in sandboxes(&limits) {
        let place = tempfile::tempdir().expect("a folder");
        let tools = Shell::new(place.path(), sandbox)
            .expect("a shell")
            .toolbox();
        let command = "python3 -c 'import time; b = bytearray(300 << 20); open(\"f\", \"wb\").write(b); time.sleep(0.3)'";
        let shown = ask(&tools, "run_command", json!({ "command": command }));
        assert!(shown.is_ok(), "{name}: {shown:?}");
    }
}
