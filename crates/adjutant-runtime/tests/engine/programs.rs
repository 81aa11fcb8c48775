//! Tools that are programs: what they get, what comes back, and which programs are refused.

use adjutant_agent::Outcome;
use adjutant_llm::Status;
use adjutant_runtime::ErrorKind;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::stage::{Stage, calls, one, preview, result, run, text, with};

/// True if there is a sandbox here; otherwise programs run by the word of their manifest alone.
fn is_held() -> bool {
    #[cfg(all(feature = "shell", target_os = "linux"))]
    return adjutant_toolkit::Sandbox::new().refuses().is_none();
    #[cfg(not(all(feature = "shell", target_os = "linux")))]
    false
}

/// A manifest of one agent with one program.
pub(crate) fn program(stage: &Stage, script: &str, fields: Value) -> Value {
    let binary = stage.script("tool.sh", script);
    let fields = if is_held() {
        fields
    } else {
        with(json!({ "sandbox": { "danger_without_any": true } }), fields)
    };
    let tool = with(
        json!({ "name": "tool", "description": "Does it.", "binary": binary }),
        fields,
    );
    with(
        one(json!({ "tools": ["tool"] })),
        json!({ "process_tools": [tool] }),
    )
}

/// The parameters of a tool that takes a text `city` and a number `days`.
fn parameters() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
    })
}

/// What a call of a program comes to: its text, and whether it went well.
async fn called(script: &str, fields: Value, args: Value) -> (String, bool) {
    let stage = Stage::new(calls("tool", args));
    let engine = stage.engine(program(&stage, script, fields)).await;
    let ran = run(&engine).await;
    (result(&ran, 0), ran.calls[0].result.status == Status::Ok)
}

async fn output(script: &str) -> String {
    let (text, is_ok) = called(script, json!({}), json!({})).await;
    assert!(is_ok, "{text}");
    text
}

#[tokio::test]
async fn program_is_refused_with_the_cure_where_there_is_no_sandbox() {
    if is_held() {
        return;
    }
    let stage = Stage::new(calls("tool", json!({})));
    let engine = stage
        .engine(program(&stage, "touch ran", json!({ "sandbox": {} })))
        .await;
    let text = result(&run(&engine).await, 0);
    assert!(
        text.contains("hint: ")
            && text.contains("danger_without_any")
            && !stage.work("ran").exists(),
        "{text}"
    );
}

#[tokio::test]
async fn program_is_shown_as_the_manifest_describes_it() {
    let stage = Stage::new([]);
    let engine = stage
        .engine(program(
            &stage,
            "true",
            json!({ "parameters": parameters() }),
        ))
        .await;
    let request = preview(&engine).await;
    let shown = &request.tools[0];
    assert_eq!(
        (shown.name.as_str(), &*shown.description, &*shown.schema),
        ("tool", "Does it.", &parameters())
    );
}

#[tokio::test]
async fn program_gets_its_arguments_as_a_line_of_json() {
    let (text, _) = called(
        "cat",
        json!({ "parameters": parameters() }),
        json!({ "city": "Ulm; $(id)", "days": 2 }),
    )
    .await;
    assert_eq!(text, "{\"city\":\"Ulm; $(id)\",\"days\":2}\n");
}

#[tokio::test]
async fn program_gets_arguments_in_its_command_line() {
    let script = r#"for word in "$@"; do echo "<$word>"; done"#;
    let args = json!(["-q", "--city={city}", "{days}"]);
    let fields = json!({ "parameters": parameters(), "args": args });
    let (text, _) = called(script, fields.clone(), json!({ "city": "a  b $HOME `id`" })).await;
    assert_eq!(text, "<-q>\n<--city=a  b $HOME `id`>\n");
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_never_start_the_program() {
    let stage = Stage::new(calls(
        "tool",
        json!({ "city": ["no", "text"], "wind": true }),
    ));
    let engine = stage
        .engine(program(
            &stage,
            "touch ran",
            json!({ "parameters": parameters() }),
        ))
        .await;
    let ran = run(&engine).await;
    assert_ne!(ran.calls[0].result.status, Status::Ok);
    assert!(!stage.work("ran").exists());
}

#[tokio::test]
async fn program_without_parameters_takes_none() {
    let (text, is_ok) = called("cat", json!({}), json!({ "city": "Ulm" })).await;
    assert!(!is_ok, "{text}");
    assert_eq!(output("cat").await, "{}\n");
}

#[tokio::test]
async fn program_has_the_environment_of_the_manifest_and_nothing_else() {
    let stage = Stage::new(calls("tool", json!({})));
    let own = json!({ "environment": { "COLOUR": "green", "SHAPE": "round" } });
    let manifest = with(
        program(&stage, "env > seen; pwd", own),
        json!({ "environment": { "COLOUR": "red", "SIZE": "small" } }),
    );
    // The variables of this test's own process are the credentials that must not be seen.
    let credentials = adjutant_runtime::Credentials::none().with("SOME_KEY", "MARKED-KEY");
    let engine = stage
        .builder(manifest)
        .credentials(credentials)
        .build()
        .await
        .expect("it is right");
    let ran = run(&engine).await;
    let work = stage
        .workspace()
        .work()
        .canonicalize()
        .expect("it is there");
    assert_eq!(result(&ran, 0).trim(), work.to_str().expect("it is UTF-8"));
    let seen = text(&stage.work("seen"));
    let mut names: Vec<&str> = seen
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    names.sort_unstable();
    // The shell adds what it needs: `PWD`, and some add `_`, `SHLVL` and `OLDPWD`.
    names.retain(|name| !["PWD", "_", "SHLVL", "OLDPWD"].contains(name));
    assert_eq!(
        names,
        [
            "ADJUTANT_CALL",
            "COLOUR",
            "HOME",
            "LANG",
            "PATH",
            "SHAPE",
            "SIZE",
            "TMPDIR"
        ]
    );
    for line in ["COLOUR=green", "SHAPE=round", "SIZE=small", "LANG=C.UTF-8"] {
        assert!(seen.lines().any(|it| it == line), "{line}: {seen}");
    }
    let root = stage.workspace().root().display().to_string();
    assert!(
        seen.contains(&format!("HOME={root}")) && seen.contains(&format!("TMPDIR={root}")),
        "{seen}"
    );
    assert!(!seen.contains("MARKED"), "{seen}");
}

#[tokio::test]
async fn exit_code_and_standard_error_are_told_when_a_program_fails() {
    let (text, is_ok) = called("echo half; echo why >&2; exit 3", json!({}), json!({})).await;
    assert!(!is_ok);
    assert_eq!(
        text,
        "the program ended with exit code 3\noutput:\nhalf\nstandard error:\nwhy"
    );
    let (text, is_ok) = called("kill -9 $$", json!({}), json!({})).await;
    assert_eq!(
        (text.as_str(), is_ok),
        ("the program was ended by signal 9", false)
    );
    assert_eq!(output("echo fine; echo unimportant >&2").await, "fine\n");
}

#[tokio::test]
async fn output_is_kept_up_to_its_size_and_the_rest_is_told() {
    let script = "i=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done";
    let (text, is_ok) = called(script, json!({ "max_output": "200B" }), json!({})).await;
    assert!(
        is_ok && text.starts_with("line-0\n") && text.ends_with("line-2999\n"),
        "{text}"
    );
    assert!(
        text.contains("bytes left out]") && text.len() < 260,
        "{text}"
    );
}

#[tokio::test]
async fn flood_is_read_to_its_end() {
    let (text, is_ok) = called(
        "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end",
        json!({}),
        json!({}),
    )
    .await;
    assert!(is_ok && text.ends_with("x\nend\n"), "{}", text.len());
    assert!(
        text.contains("[49934469 bytes left out]"),
        "{:?}",
        text.split('[').nth(1).map(|it| &it[..40])
    );
    let (text, is_ok) = called(
        "head -c 5000000 /dev/zero | tr '\\0' x >&2; exit 1",
        json!({}),
        json!({}),
    )
    .await;
    assert!(!is_ok && text.len() < 10_000, "{}", text.len());
}

#[tokio::test]
async fn output_that_is_no_text_is_shown_and_told() {
    let text = output(r"printf 'a\377b'").await;
    assert_eq!(
        text,
        "a\u{fffd}b\n[it was not all UTF-8: \u{fffd} stands for what could not be read]"
    );
    assert_eq!(output("printf ''").await, "");
}

#[tokio::test]
async fn program_that_does_not_read_is_no_error() {
    let big = "x".repeat(2_000_000);
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    for script in ["exec 0<&-; echo closed", "echo closed"] {
        let (text, is_ok) = called(
            script,
            json!({ "parameters": parameters }),
            json!({ "text": big }),
        )
        .await;
        assert_eq!((text.as_str(), is_ok), ("closed\n", true));
    }
}

#[tokio::test]
async fn arguments_that_are_longer_than_a_command_line_are_a_clear_error() {
    let parameters = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let fields = json!({ "parameters": parameters, "args": ["{text}"] });
    let (text, is_ok) = called("true", fields, json!({ "text": "x".repeat(3_000_000) })).await;
    assert!(
        !is_ok && text.contains("longer than a command line can be"),
        "{text}"
    );
}

#[tokio::test]
async fn call_waits_for_a_word_when_the_manifest_says_so() {
    let stage = Stage::new(calls("tool", json!({})));
    let engine = stage
        .engine(program(&stage, "touch ran", json!({ "approval": true })))
        .await;
    let ran = run(&engine).await;
    assert!(
        matches!(ran.outcome, Outcome::Paused { .. }),
        "{:?}",
        ran.outcome
    );
    assert!(!stage.work("ran").exists());
}

#[tokio::test]
async fn call_may_be_made_again_when_the_manifest_says_so() {
    for (repeatable, times) in [(true, 2), (false, 1)] {
        let stage = Stage::new(calls("tool", json!({})));
        let fields = json!({ "repeatable": repeatable });
        let manifest = program(
            &stage,
            "echo once >> times; [ -e again ] || { touch again; sleep 600; }",
            fields,
        );
        let engine = stage.engine(manifest.clone()).await;
        let lead = crate::stage::lead(&engine);
        let mut running = lead.run("Hello.").stream().expect("it begins");
        let began = stage.work("again");
        let watch = async {
            while !began.exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = watch => {}
            () = async { while running.next().await.is_some() {} } => panic!("it hangs"),
        }
        // What a crash leaves: a call that began, and no result. The log is copied as it is now.
        let copy = Stage::new([adjutant_llm::Script::new().text("Done.")]);
        copy_folder(stage.workspace().root(), copy.workspace().root());
        drop(running);
        let later = copy.engine(manifest).await;
        let agent = crate::stage::lead(&later).take_over();
        agent.resume(Vec::new()).await.expect("it goes on");
        assert_eq!(
            text(&copy.work("times")).lines().count(),
            times,
            "{repeatable}"
        );
    }
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

#[tokio::test]
async fn agent_has_the_programs_that_it_names() {
    let stage = Stage::new([]);
    let mut manifest = program(&stage, "true", json!({}));
    manifest["agents"][0]["tools"] = json!([]);
    assert!(
        preview(&stage.engine(manifest).await)
            .await
            .tools
            .is_empty()
    );
}

#[tokio::test]
async fn program_is_found_by_its_bare_name() {
    let stage = Stage::new(calls("tool", json!({})));
    let mut manifest = program(&stage, "true", json!({ "args": ["-c", "echo found"] }));
    manifest["process_tools"][0]["binary"] = json!("sh");
    assert_eq!(
        result(&run(&stage.engine(manifest.clone()).await).await, 0),
        "found\n"
    );
    manifest["process_tools"][0]["binary"] = json!("no-such-program-anywhere");
    let wrong = stage.wrong(manifest).await;
    assert_eq!(wrong.kind(), ErrorKind::Config);
    assert!(wrong.message().contains("no folder of PATH"), "{wrong}");
}

#[tokio::test]
async fn program_that_cannot_run_is_refused_when_the_engine_is_built() {
    let stage = Stage::new([]);
    let good = program(&stage, "true", json!({}));
    let with_binary = |binary: Value| {
        let mut manifest = good.clone();
        manifest["process_tools"][0]["binary"] = binary;
        manifest
    };
    let plain = stage.file("plain.txt", "no program");
    for (binary, why) in [
        (json!(stage.folder.path().join("missing.sh")), "not there"),
        (json!(plain), "may not be executed"),
        (json!(stage.folder.path()), "no file"),
    ] {
        let wrong = stage.wrong(with_binary(binary)).await;
        assert_eq!(wrong.kind(), ErrorKind::Config);
        assert!(
            wrong.message().contains(why) && wrong.message().contains("the tool tool"),
            "{wrong}"
        );
    }
    let mut none = good.clone();
    none["process_tools"][0]["parameters"] = json!({ "type": "shape" });
    let wrong = stage.wrong(none).await;
    assert_eq!(wrong.kind(), ErrorKind::Config);
    assert!(wrong.message().contains("no schema"), "{wrong}");
}

fn sha256(path: &std::path::Path) -> String {
    let bytes = std::fs::read(path).expect("it is there");
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[tokio::test]
async fn program_must_be_the_one_that_was_pinned() {
    let stage = Stage::new(calls("tool", json!({})));
    let manifest = program(&stage, "echo good", json!({}));
    let pinned = |sha256: &str| {
        let mut manifest = manifest.clone();
        manifest["process_tools"][0]["sha256"] = json!(sha256);
        manifest
    };
    let wrong = stage.wrong(pinned(&"0".repeat(64))).await;
    assert_eq!(wrong.kind(), ErrorKind::Config);
    assert!(
        wrong.message().contains("not the one that was pinned"),
        "{wrong}"
    );
    let path = stage.folder.path().join("tool.sh");
    let right = pinned(&sha256(&path).to_uppercase());
    assert_eq!(result(&run(&stage.engine(right).await).await, 0), "good\n");
}

#[tokio::test]
async fn program_that_was_changed_since_is_not_run() {
    let stage = Stage::new(
        calls("tool", json!({}))
            .into_iter()
            .chain(calls("tool", json!({}))),
    );
    let mut manifest = program(&stage, "echo good", json!({}));
    manifest["process_tools"][0]["sha256"] = json!(sha256(&stage.folder.path().join("tool.sh")));
    let engine = stage.engine(manifest).await;
    assert_eq!(result(&run(&engine).await, 0), "good\n");
    stage.script("tool.sh", "echo evil");
    let text = result(&run(&engine).await, 0);
    assert!(
        text.contains("not the one that was pinned") && !text.contains("evil\n"),
        "{text}"
    );
}

#[tokio::test]
async fn program_that_vanished_is_a_clear_error() {
    let stage = Stage::new(calls("tool", json!({})));
    let engine = stage.engine(program(&stage, "true", json!({}))).await;
    std::fs::remove_file(stage.folder.path().join("tool.sh")).expect("it is ours");
    assert!(result(&run(&engine).await, 0).contains("the program is not there"));
}

#[tokio::test]
async fn program_without_its_interpreter_is_a_clear_error() {
    let stage = Stage::new(calls("tool", json!({})));
    let manifest = program(&stage, "true", json!({}));
    std::fs::write(stage.folder.path().join("tool.sh"), "#!/no/such/shell\n").expect("it is ours");
    let text = result(&run(&stage.engine(manifest).await).await, 0);
    assert!(text.contains("interpreter"), "{text}");
}
