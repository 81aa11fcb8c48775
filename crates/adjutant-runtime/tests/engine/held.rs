//! Programs in their sandbox: what they reach, what the manifest gives them beyond it, and what is never run.

use std::{fs, net::TcpListener};

use adjutant_llm::Status;
use adjutant_toolkit::{CommandLimits, Sandbox};
use serde_json::{Value, json};

use crate::{
    programs::program,
    stage::{Stage, calls, result, run},
};

/// A folder beside the workspace, with a file in it.
fn outside(stage: &Stage) -> String {
    let file = stage.file("outside/secret", "hidden");
    file.parent().expect("its folder").display().to_string()
}

/// Calls a program with these fields, and gives its text and whether it went well.
async fn called(stage: &Stage, script: &str, fields: Value, sandbox: Sandbox) -> (String, bool) {
    let engine = stage
        .builder(program(stage, script, fields))
        .sandbox(sandbox)
        .build()
        .await
        .expect("it is right");
    let ran = run(&engine).await;
    (result(&ran, 0), ran.calls[0].result.status == Status::Ok)
}

/// The sandboxes of this machine.
fn sandboxes() -> impl Iterator<Item = Sandbox> {
    [Sandbox::landlock(), Sandbox::bwrap()]
        .into_iter()
        .filter(|it| it.refuses().is_none())
}

#[tokio::test]
async fn program_reaches_its_workspace_and_what_the_manifest_gives() {
    let freely = json!({ "danger_without_any": true });
    let table = [
        (
            "echo x > work; echo x > \"$HOME/kept\"; echo x > \"$TMPDIR/kept\"; cat work",
            json!({}),
            true,
        ),
        ("cat $OUT/secret", json!({}), false),
        ("echo x > $OUT/made", json!({}), false),
        ("ln -s $OUT/secret link; cat link", json!({}), false),
        ("cat \"$HOME/../agent.json\"", json!({}), false),
        ("cat $OUT/secret", json!({ "read": ["$OUT"] }), true),
        ("echo x > $OUT/made", json!({ "read": ["$OUT"] }), false),
        (
            "echo x > $OUT/made; cat $OUT/secret",
            json!({ "write": ["$OUT"] }),
            true,
        ),
        ("cat $OUT/secret; echo x > $OUT/made", freely, true),
    ];
    for sandbox in sandboxes() {
        for (script, fields, expect) in &table {
            let stage = Stage::new(calls("tool", json!({})));
            stage.file("agent/agent.json", "{}");
            let out = outside(&stage);
            let [script, fields] =
                [(*script).to_owned(), fields.to_string()].map(|it| it.replace("$OUT", &out));
            let fields: Value = serde_json::from_str(&fields).expect("an object");
            let (text, is_ok) = called(
                &stage,
                &format!("set -e; {script}"),
                json!({ "sandbox": fields }),
                sandbox.clone(),
            )
            .await;
            assert_eq!(
                is_ok, *expect,
                "{script} with {fields} in {sandbox:?}: {text}"
            );
            assert_eq!(
                stage.folder.path().join("outside/made").exists(),
                *expect && script.contains("made"),
                "{script}"
            );
        }
    }
}

#[tokio::test]
async fn program_has_the_network_only_if_the_manifest_gives_it() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let script = format!("exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected'");
    for sandbox in sandboxes() {
        for (fields, expect) in [(json!({}), false), (json!({ "network": true }), true)] {
            let stage = Stage::new(calls("tool", json!({})));
            let (text, is_ok) = called(
                &stage,
                &script,
                json!({ "sandbox": fields }),
                sandbox.clone(),
            )
            .await;
            assert_eq!(
                (is_ok, text == "connected\n"),
                (expect, expect),
                "{fields} in {sandbox:?}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn program_is_refused_with_the_cure_where_nothing_holds_it() {
    for (fields, expect) in [
        (json!({}), false),
        (json!({ "danger_without_any": true }), true),
    ] {
        let stage = Stage::new(calls("tool", json!({})));
        let nothing = Sandbox::refusing("this machine has none");
        let (text, is_ok) =
            called(&stage, "touch ran", json!({ "sandbox": fields }), nothing).await;
        assert_eq!(
            (is_ok, stage.work("ran").exists()),
            (expect, expect),
            "{fields}: {text}"
        );
        let is_told = ["this machine has none", "hint: ", "danger_without_any"]
            .iter()
            .all(|it| text.contains(it));
        assert_eq!(is_told, !expect, "{text}");
    }
}

#[tokio::test]
async fn program_ends_at_a_limit_and_its_result_names_it() {
    let mut limits = CommandLimits::default();
    limits.set("cpu=1s").expect("a limit");
    for sandbox in sandboxes() {
        let sandbox = sandbox.limits(limits);
        for (script, expect) in [
            ("echo fine", "fine\n"),
            ("while :; do :; done", "--limit cpu=2s"),
        ] {
            let stage = Stage::new(calls("tool", json!({})));
            let (text, is_ok) = called(&stage, script, json!({}), sandbox.clone()).await;
            assert_eq!(is_ok, script == "echo fine", "{sandbox:?}: {text}");
            assert!(text.contains(expect), "{sandbox:?}: {text}");
        }
    }
}

#[tokio::test]
async fn nothing_of_a_program_outlives_its_call_whatever_it_does_to_be_forgotten() {
    // Its number in a line of its own is found from outside, whatever number it has inside.
    let lives = |line: &str| {
        let all = fs::read_dir("/proc")
            .expect("there are processes")
            .flatten();
        all.filter_map(|it| fs::read(it.path().join("cmdline")).ok())
            .any(|it| it == line.as_bytes())
    };
    for (at, sandbox) in (0..).zip(sandboxes().chain([Sandbox::danger_without_any()])) {
        let time = format!("6172.{}{at}", std::process::id());
        let stage = Stage::new(calls("tool", json!({})));
        let script = format!(
            "setsid env -i PATH=\"$PATH\" sh -c 'touch up; exec sleep {time}' >/dev/null 2>&1 </dev/null &\n\
             while [ ! -e up ]; do sleep 0.01; done; echo done"
        );
        assert_eq!(
            called(&stage, &script, json!({}), sandbox.clone()).await,
            ("done\n".to_owned(), true)
        );
        assert!(!lives(&format!("sleep\0{time}\0")), "{sandbox:?}");
    }
}
