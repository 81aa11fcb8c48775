//! What a command may take and show, and that it ends.

use std::{
    fs,
    time::{Duration, Instant},
};

use adjutant_tool::{Replay, ToolErrorKind, Tools};
use adjutant_toolkit::{Hosts, Network, Sandbox, Shell};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ask, said, tell, who::by_everyone};

/// A shell in the best sandbox of this machine; none where there is no sandbox.
fn shell() -> Option<(TempDir, Shell)> {
    let sandbox = Sandbox::new();
    if let Some(why) = sandbox.refuses() {
        tell(format_args!("SKIPPED: {why}"));
        return None;
    }
    let place = tempfile::tempdir().expect("a folder");
    let shell = Shell::new(place.path(), sandbox).expect("a shell");
    Some((place, shell))
}

#[track_caller]
fn check(tools: &Tools, command: &str, expect: &str) {
    assert_eq!(
        said(tools, "run_command", json!({ "command": command })),
        expect,
        "{command}"
    );
}

#[test]
fn commands_say_what_they_wrote_and_how_they_ended() {
    let Some((_place, shell)) = shell() else {
        return;
    };
    let tools = shell.toolbox();
    let table = [
        ("echo out; echo err >&2", "out\nerr\n[exit code 0]"),
        ("exit 3", "[no output]\n[exit code 3]"),
        // bubblewrap reports a signal as a shell does.
        (
            "kill -9 $$",
            match Sandbox::new().report().by {
                "bwrap" => "[no output]\n[exit code 137]",
                _ => "[no output]\n[ended by signal 9]",
            },
        ),
        ("cat; echo read", "read\n[exit code 0]"),
        (
            "printf '\\033[31mred\\033[0m\\r\\n\\033]0;t\\007x'",
            "red\nx\n[exit code 0]",
        ),
        (
            "head -c 100 /dev/zero",
            "[100 bytes of binary output, which is not shown]\n[exit code 0]",
        ),
        (
            "printf a > f && cat f && cd / && cat $OLDPWD/f",
            "aa\n[exit code 0]",
        ),
        (
            "test -w $HOME && test -w $TMPDIR && echo $TERM",
            "dumb\n[exit code 0]",
        ),
    ];
    for (command, expect) in table {
        check(&tools, command, expect);
    }
    assert_eq!(
        said(
            &tools,
            "run_command",
            json!({ "argv": ["echo", "a  b", "$HOME"] })
        ),
        "a  b $HOME\n[exit code 0]"
    );
    let missing = said(
        &tools,
        "run_command",
        json!({ "argv": ["no-such-program"] }),
    );
    assert!(missing.ends_with("[exit code 127]"), "{missing}");
}

/// A call costs what it starts: one thread of this program and the processes of the sandbox.
#[test]
fn call_starts_few_processes() {
    const PATIENCE: Duration = Duration::from_secs(60);
    // With Landlock a second thread and the program, with bubblewrap its two processes and the program.
    for (sandbox, most) in [(Sandbox::landlock(), 3), (Sandbox::bwrap(), 4)] {
        if let Some(why) = sandbox.refuses() {
            tell(format_args!("SKIPPED: {why}"));
            continue;
        }
        let place = tempfile::tempdir().expect("a folder");
        let tools = Shell::new(place.path(), sandbox)
            .expect("a shell")
            .toolbox();
        let newest = || {
            let load = fs::read_to_string("/proc/loadavg").expect("a line");
            let last = load.split_ascii_whitespace().next_back();
            last.and_then(|last| last.parse::<i64>().ok())
                .expect("a number")
        };
        let started = || {
            let before = newest();
            said(&tools, "run_command", json!({ "argv": ["/bin/true"] }));
            newest() - before
        };
        // The first call starts more, and other programs start theirs meanwhile.
        started();
        let began = Instant::now();
        let least = std::iter::repeat_with(started)
            .take_while(|_| began.elapsed() < PATIENCE)
            .find(|count| (1..=most).contains(count));
        assert!(least.is_some(), "more than {most} processes in every call");
    }
}

#[test]
fn environment_is_cleared_but_for_a_list() {
    let Some((_place, shell)) = shell() else {
        return;
    };
    let shown = said(
        &shell.toolbox(),
        "run_command",
        json!({ "command": "env | cut -d= -f1 | sort" }),
    );
    let allowed = "PATH LANG LANGUAGE TZ USER CONDA_DEFAULT_ENV CONDA_PREFIX GIT_AUTHOR_EMAIL GIT_AUTHOR_NAME \
                   GIT_COMMITTER_EMAIL GIT_COMMITTER_NAME GOROOT GOTOOLCHAIN JAVA_HOME JDK_HOME RUSTUP_TOOLCHAIN \
                   VIRTUAL_ENV ASDF_DATA_DIR BUN_INSTALL FNM_DIR MISE_DATA_DIR RBENV_ROOT SDKMAN_DIR VOLTA_HOME CARGO_HOME \
                   RUSTUP_HOME PYENV_ROOT NVM_DIR GOMODCACHE PYTHONUSERBASE TAR_OPTIONS HOME TMPDIR TERM PWD OLDPWD SHLVL _ \
                   [exit";
    let is_locale = |name: &&str| name.starts_with("LC_");
    for name in shown
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !is_locale(name))
    {
        assert!(allowed.split(' ').any(|it| it == name), "{name}");
    }
    let shell = shell.variable("CARGO_MANIFEST_DIR");
    check(
        &shell.toolbox(),
        "test -n \"$CARGO_MANIFEST_DIR\" && echo set",
        "set\n[exit code 0]",
    );
}

/// What test suites do: a server on loopback, a pool of processes, a Unix socket, a file in `/tmp` that the next command reads.
#[test]
fn everyday_tests_work_or_the_result_names_what_is_missing() {
    const SUITE: &str = "import socket, tempfile, multiprocessing
def listen():
    s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 2)
def pool():
    with multiprocessing.Pool(2) as p: assert p.map(abs, [-1]) == [1]
def unix():
    socket.socket(socket.AF_UNIX).bind(tempfile.mkdtemp() + '/s')
def shared():
    open('/tmp/shared', 'w').write('kept'); open('/dev/shm/shared', 'w').write('kept')
if __name__ == '__main__':
    for work in (listen, pool, unix, shared):
        try: work(); print(work.__name__, 'ok')
        except OSError as e: print(work.__name__, e)
";
    for sandbox in [Sandbox::landlock(), Sandbox::bwrap()] {
        if let Some(why) = sandbox.refuses() {
            tell(format_args!("SKIPPED: {why}"));
            continue;
        }
        let is_bwrap = sandbox.report().by == "bwrap";
        let place = tempfile::tempdir().expect("a folder");
        fs::write(place.path().join("suite.py"), SUITE).expect("a file");
        let tools = Shell::new(place.path(), sandbox)
            .expect("a shell")
            .toolbox();
        let shown = said(
            &tools,
            "run_command",
            json!({ "command": "python3 suite.py" }),
        );
        if shown.contains("[exit code 127]") {
            tell(format_args!("SKIPPED: python3 is not installed"));
        } else if is_bwrap {
            assert_eq!(
                shown,
                "listen ok\npool ok\nunix ok\nshared ok\n[exit code 0]"
            );
            let later = "cat /tmp/shared /dev/shm/shared";
            check(&tools, later, "keptkept\n[exit code 0]");
        } else {
            assert!(
                shown.contains("[this sandbox is Landlock: ")
                    && shown.contains("hint: install bubblewrap"),
                "{shown}"
            );
        }
    }
}

/// Programs of builds: owners of files, shared memory and queues, debuggers, the package database, settings of versions.
#[test]
fn programs_that_run_outside_run_in_bubblewrap() {
    const COMMANDS: [&str; 8] = [
        "mkdir a && touch a/b && cp -a a c && chown $(id -u):$(id -g) a/b",
        "touch d && install -o $(id -u) -g $(id -g) d e && chgrp $(id -g) e",
        "fakeroot true",
        "ipcrm -m $(ipcmk -M 4096 | grep -o '[0-9]*$')",
        "strace -o trace true",
        "dpkg-query --show base-files",
        "java -version",
        "mvn --version",
    ];
    let sandbox = Sandbox::bwrap();
    if let Some(why) = sandbox.refuses() {
        return tell(format_args!("SKIPPED: {why}"));
    }
    let end = |sandbox: &Sandbox, command: &str| {
        let place = tempfile::tempdir().expect("a directory");
        let shell = Shell::new(place.path(), sandbox.clone()).expect("a shell");
        said(
            &shell.toolbox(),
            "run_command",
            json!({ "command": command }),
        )
    };
    for command in COMMANDS {
        let outside = end(&Sandbox::danger_without_any(), command);
        if outside.contains("[exit code 0]") {
            let inside = end(&sandbox, command);
            assert!(inside.contains("[exit code 0]"), "{command}: {inside}");
        } else {
            tell(format_args!("SKIPPED: {command}: {outside}"));
        }
    }
    let other = end(&sandbox, "touch a && chown 4711 a");
    assert!(other.contains("Operation not permitted"), "{other}");
}

#[test]
fn arguments_that_cannot_be_meant_are_refused() {
    let Some((_place, shell)) = shell() else {
        return;
    };
    let tools = shell.toolbox();
    let table: [(Value, &str); 6] = [
        (json!({}), "give either command or argv"),
        (
            json!({ "command": "a", "argv": ["a"] }),
            "give either command or argv",
        ),
        (json!({ "command": "  " }), "there is no command in it"),
        (
            json!({ "command": "a\0b" }),
            "a command cannot contain the character NUL",
        ),
        (
            json!({ "command": "a", "cwd": ".." }),
            "cwd is no folder below the root",
        ),
        (
            json!({ "command": "a", "cwd": "none" }),
            "cwd cannot be entered: entity not found",
        ),
    ];
    for (args, expect) in table {
        assert_eq!(said(&tools, "run_command", args), expect);
    }
    let set = tools.toolset();
    let spec = |name| set.get(name).expect("a tool").spec();
    assert_eq!(spec("run_command").replay, Replay::Once);
    let hints = ["run_command", "command_output", "stop_command"].map(|name| spec(name).hints);
    assert_eq!(
        hints.map(|it| it.reads_only),
        [false, true, false].map(Some)
    );
    assert_eq!(
        hints.map(|it| it.open_world),
        [true, false, false].map(Some)
    );
}

#[test]
fn long_output_is_shown_with_its_ends_and_read_whole() {
    let Some((_place, shell)) = shell() else {
        return;
    };
    let tools = shell.toolbox();
    let shown = said(&tools, "run_command", json!({ "command": "seq 1 200000" }));
    assert!(
        shown.starts_with("1\n2\n") && shown.ends_with("\n200000\n[exit code 0]"),
        "{}",
        shown.len()
    );
    assert!(
        shown.len() < 70_000
            && shown.contains(" bytes left out; command_output reads it all under the id c1]")
    );
    let part = said(
        &tools,
        "command_output",
        json!({ "id": "c1", "from_line": 100_000 }),
    );
    assert!(
        part.starts_with("100000\n100001\n") && part.contains("[it goes on at line 10"),
        "{part}"
    );
    let end = said(
        &tools,
        "command_output",
        json!({ "id": "c1", "from_line": 199_999 }),
    );
    assert_eq!(end, "199999\n200000\n[end of the output]");
    let flood = said(
        &tools,
        "run_command",
        json!({ "command": "yes flood | head -c 80000000" }),
    );
    assert!(
        flood.contains("only the first 64 MiB are kept on disk]"),
        "{}",
        flood.len()
    );
    assert_eq!(
        said(&tools, "command_output", json!({ "id": "c9" })),
        "there is no command of this id; there are c1, c2"
    );
}

#[test]
fn commands_end_whatever_they_do_against_it() {
    let Some((_place, shell)) = shell() else {
        return;
    };
    let tools = shell.toolbox();
    let table = [
        ("sleep 600", "sleep"),
        ("trap '' TERM INT HUP; while :; do sleep 0.1; done", "deaf"),
        (
            "setsid sh -c 'trap \"\" TERM; sleep 600' & wait",
            "a session of its own",
        ),
        ("yes", "a flood"),
    ];
    for (command, name) in table {
        let began = Instant::now();
        let error = ask(
            &tools,
            "run_command",
            json!({ "command": command, "timeout_secs": 1 }),
        )
        .expect_err("it ends");
        assert_eq!(error.kind, ToolErrorKind::TimedOut, "{name}");
        assert!(
            error.message.ends_with("[killed: it took longer than 1 s]"),
            "{name}"
        );
        assert!(began.elapsed() < Duration::from_secs(10), "{name}");
    }
    let began = Instant::now();
    check(&tools, "sleep 600 & echo gone", "gone\n[exit code 0]");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "what holds the output is not waited for"
    );
}

#[test]
fn commands_in_the_background_have_a_handle_and_end_with_the_run() {
    let Some((place, shell)) = shell() else {
        return;
    };
    let tools = shell.toolbox();
    let start = |keep: bool| {
        let args =
            json!({ "command": "echo up; touch up; sleep 600", "background": true, "keep": keep });
        let shown = said(&tools, "run_command", args);
        assert!(
            shown.starts_with("[it runs in the background as c"),
            "{shown}"
        );
        while fs::remove_file(place.path().join("up")).is_err() {
            std::thread::yield_now();
        }
    };
    // What was written is read a moment later.
    let shows = |id: &str, wanted: &str| {
        while said(&tools, "command_output", json!({ "id": id })) != wanted {
            std::thread::yield_now();
        }
    };
    start(false);
    shows("c1", "up\n[it still runs]");
    assert_eq!(
        said(&tools, "stop_command", json!({ "id": "c1" })),
        "up\n[stopped]"
    );
    assert_eq!(
        said(
            &tools,
            "command_output",
            json!({ "id": "c1", "from_line": 1 })
        ),
        "up\n[end of the output]"
    );
    start(false);
    start(true);
    shell.end_run();
    shows("c2", "up\n[stopped]");
    shows("c3", "up\n[it still runs]");
}

#[test]
fn nothing_runs_where_nothing_can_hold_it() {
    let place = tempfile::tempdir().expect("a folder");
    for sandbox in [Sandbox::landlock(), Sandbox::bwrap()]
        .into_iter()
        .filter(|it| it.refuses().is_some())
    {
        let shell = Shell::new(place.path(), sandbox).expect("a shell");
        let error = ask(
            &shell.toolbox(),
            "run_command",
            json!({ "command": "echo ran" }),
        )
        .expect_err("it is refused");
        assert_eq!(error.kind, ToolErrorKind::Denied);
        assert!(
            error
                .message
                .starts_with("no command runs without a sandbox: ")
                && error.message.contains("hint: ")
        );
    }
    // This program does not call `sandbox_helper`.
    let cures = [
        (
            Sandbox::landlock(),
            "only bubblewrap can hold a list of hosts; hint: take `Sandbox::bwrap()`",
        ),
        (
            Sandbox::danger_without_any(),
            "only bubblewrap can hold a list of hosts; hint: take `Sandbox::bwrap()`",
        ),
        (
            Sandbox::bwrap(),
            "hint: call `adjutant_toolkit::sandbox_helper()` first in `main`",
        ),
    ];
    for (sandbox, cure) in cures
        .into_iter()
        .filter(|(sandbox, _)| sandbox.refuses().is_none())
    {
        let sandbox = sandbox.network(Network::Hosts(Hosts::new(["example.org"]).expect("a list")));
        assert!(
            sandbox.report().to_string().contains(cure),
            "{}",
            sandbox.report()
        );
        let shell = Shell::new(place.path(), sandbox).expect("a shell");
        let error = ask(
            &shell.toolbox(),
            "run_command",
            json!({ "command": "mkdir ran" }),
        )
        .expect_err("it is refused");
        assert!(
            error.kind == ToolErrorKind::Denied && error.message.contains(cure),
            "{}",
            error.message
        );
    }
    let shell = Shell::new(place.path(), Sandbox::danger_without_any()).expect("a shell");
    check(&shell.toolbox(), "echo ran", "ran\n[exit code 0]");
}

/// Each makes 1,100 processes at most, which sleep: as children of children, and each in a session of its own.
const BOMBS: [&str; 2] = [
    "b() { if [ $1 = 0 ]; then sleep {t}; else b $(($1-1)) & b $(($1-1)) & wait; fi; }; b 9",
    "i=0; while [ $i -lt 1100 ]; do i=$((i+1)); setsid sleep {t} & done; wait",
];

#[test]
fn bombs_of_processes_end_with_an_error_and_leave_nothing() {
    let own = [
        "--exact",
        "shell::bombs_of_processes_end_with_an_error_and_leave_nothing",
        "--nocapture",
    ];
    by_everyone(&own, |who| {
        for (name, sandbox) in [
            ("landlock", Sandbox::landlock()),
            ("bwrap", Sandbox::bwrap()),
        ] {
            if let Some(why) = sandbox.refuses() {
                tell(format_args!("SKIPPED: {who}, {name}: {why}"));
                continue;
            }
            let place = tempfile::tempdir().expect("a folder");
            let tools = Shell::new(place.path(), sandbox)
                .expect("a shell")
                .toolbox();
            for (number, bomb) in BOMBS.into_iter().enumerate() {
                let time = format!("8{number}{}", std::process::id());
                let args = json!({ "command": bomb.replace("{t}", &time), "timeout_secs": 30 });
                let error = ask(&tools, "run_command", args).expect_err("it ends");
                let expect = "[killed: it had more than 512 processes or 8192 threads; hint: use less, or ask the user to raise the limit with \
                              `--limit processes=1024` or with `limits: {processes: 1024}` of `sandbox` in settings.yaml]";
                assert!(
                    error.message.ends_with(expect),
                    "{who}, {name}, {bomb}: {}",
                    error.message
                );
                let lines = fs::read_dir("/proc").expect("processes").flatten();
                let left =
                    lines.filter_map(|it| fs::read_to_string(it.path().join("cmdline")).ok());
                assert_eq!(
                    left.filter(|line| line.contains(&time)).count(),
                    0,
                    "{who}, {name}, {bomb}"
                );
            }
        }
    });
}
