//! Rules of a manifest: which calls run, which wait for a word, and which never run, by tool and arguments.

use adjutant_agent::Outcome;
use adjutant_llm::Status;
use adjutant_runtime::{Engine, ErrorKind};
use adjutant_tool::Answer;
use adjutant_toolkit::{Sandbox, Shell};
use serde_json::{Value, json};

use crate::{
    programs::program,
    stage::{Stage, calls, lead, one, result, run, with},
    stubborn::{at_work, until},
};

/// An engine of one agent with these rules, that has files, commands, and a program.
async fn ruled(stage: &Stage, rules: &Value) -> Engine {
    let mut manifest = program(stage, "touch ran", json!({}));
    let fields = json!({ "rules": rules, "toolboxes": ["files", "shell"] });
    manifest["agents"][0] = with(manifest["agents"][0].clone(), fields);
    stage.file("agent/work/secret/key", "hidden");
    let shell = Shell::new(stage.workspace().work(), Sandbox::danger_without_any())
        .expect("a folder")
        .toolbox();
    stage
        .builder(manifest)
        .toolbox("shell", shell)
        .build()
        .await
        .expect("the rules are right")
}

/// What becomes of a call: `ran`, `waits` or `denied`, and its words.
async fn becomes(rules: &Value, tool: &str, args: Value) -> (&'static str, String) {
    let stage = Stage::new(calls(tool, args));
    let ran = run(&ruled(&stage, rules).await).await;
    let has_run = stage.work("ran").exists();
    match &ran.outcome {
        Outcome::Paused { pauses } if !has_run => ("waits", pauses[0].ask.prompt.to_string()),
        _ if ran.calls[0].result.status == Status::Ok => ("ran", result(&ran, 0)),
        _ if !has_run => ("denied", result(&ran, 0)),
        _ => ("ran and failed", result(&ran, 0)),
    }
}

#[tokio::test]
async fn calls_run_wait_or_are_denied_by_what_they_do() {
    let line = |command: &str| json!({ "command": command });
    let key = json!({ "path": "secret/key" });
    let table = [
        (json!({}), "list_files", json!({}), "ran", ""),
        (json!({}), "tool", json!({}), "waits", "mode `ask` asks"),
        (
            json!({}),
            "run_command",
            line("mkdir a"),
            "waits",
            "run: mkdir a; no rule allows the command `mkdir a`",
        ),
        (
            json!({ "mode": "plan" }),
            "list_files",
            json!({}),
            "ran",
            "",
        ),
        (
            json!({ "mode": "plan", "allow": ["tool"] }),
            "tool",
            json!({}),
            "denied",
            "in mode `plan`",
        ),
        (json!({ "mode": "all" }), "tool", json!({}), "ran", ""),
        (json!({ "allow": ["tool"] }), "tool", json!({}), "ran", ""),
        (
            json!({ "mode": "all", "ask": ["tool"] }),
            "tool",
            json!({}),
            "waits",
            "rule `ask tool` of the manifest",
        ),
        (
            json!({ "mode": "all", "deny": ["tool"], "allow": ["tool"] }),
            "tool",
            json!({}),
            "denied",
            "rule `deny tool`",
        ),
        (
            json!({ "allow": ["shell(echo *)"] }),
            "run_command",
            line("echo a"),
            "ran",
            "a\n[exit code 0]",
        ),
        (
            json!({ "allow": ["shell(echo *)"] }),
            "run_command",
            line("echo a; touch ran"),
            "waits",
            "`touch ran`",
        ),
        (
            json!({ "mode": "all", "deny": ["shell(touch *)"] }),
            "run_command",
            line("true; touch ran"),
            "denied",
            "touch",
        ),
        (
            json!({ "deny": ["read(secret)"] }),
            "read_file",
            key.clone(),
            "denied",
            "`deny read(secret)` of the manifest",
        ),
        (
            json!({ "deny": ["read(other)"] }),
            "read_file",
            key,
            "ran",
            "hidden",
        ),
    ];
    for (rules, tool, args, expect, words) in table {
        let (found, text) = becomes(&rules, tool, args.clone()).await;
        assert_eq!(found, expect, "{tool} {args} with {rules}: {text}");
        assert!(text.contains(words), "{tool} {args} with {rules}: {text}");
    }
}

#[tokio::test]
async fn hands_of_a_manifest_ask_before_they_act_and_act_in_the_working_folder() {
    let boxes = json!([
        "files", "edits", "shell", "git", "fetch", "plan", "ask_user"
    ]);
    let new = json!({ "path": "new.txt", "content": "made" });
    let steps = json!({ "steps": [{ "text": "Look.", "status": "done" }] });
    let line = json!({ "command": "cp given.txt copied; (setsid sleep 600 &) ; ls" });
    let table = [
        (json!(null), "write_file", new.clone(), "waits", ""),
        (
            json!({ "mode": "edits" }),
            "write_file",
            new,
            "ran",
            "new.txt",
        ),
        (
            json!({ "mode": "plan" }),
            "run_command",
            line.clone(),
            "denied",
            "",
        ),
        (json!(null), "run_command", line.clone(), "waits", ""),
        (
            json!({ "mode": "all" }),
            "run_command",
            line,
            "ran",
            "copied",
        ),
        (json!(null), "git_status", json!({}), "ran and failed", ""),
        (
            json!(null),
            "fetch",
            json!({ "url": "http://127.0.0.1/" }),
            "waits",
            "",
        ),
        (
            json!({ "mode": "all" }),
            "fetch",
            json!({ "url": "http://127.0.0.1/" }),
            "denied",
            "",
        ),
        (json!(null), "update_plan", steps, "ran", ""),
        (
            json!(null),
            "ask_user",
            json!({ "question": "Which?" }),
            "waits",
            "",
        ),
    ];
    if let Some(why) = Sandbox::new().refuses() {
        return println!("SKIPPED: {why}");
    }
    for (rules, tool, args, expect, file) in table {
        let stage = Stage::new(calls(tool, args.clone()));
        stage.file("agent/work/given.txt", "given");
        let mut fields = json!({ "toolboxes": boxes });
        if !rules.is_null() {
            fields["rules"] = rules.clone();
        }
        let ran = run(&stage.engine(one(fields)).await).await;
        let found = match &ran.outcome {
            Outcome::Paused { .. } => "waits",
            _ => match ran.calls[0].result.status {
                Status::Ok => "ran",
                Status::Denied => "denied",
                _ => "ran and failed",
            },
        };
        assert_eq!(found, expect, "{tool} {args} with {rules}: {:?}", ran.calls);
        assert!(
            file.is_empty() || stage.work(file).exists(),
            "{tool} made {file}"
        );
    }
}

#[tokio::test]
async fn command_in_the_background_ends_with_the_run() {
    if let Some(why) = Sandbox::new().refuses() {
        return println!("SKIPPED: {why}");
    }
    let background = json!({ "command": "sleep 600", "background": true });
    let stage = Stage::new(calls("run_command", background));
    let engine = stage
        .engine(one(
            json!({ "toolboxes": ["shell"], "rules": { "mode": "all" } }),
        ))
        .await;
    let begun = run(&engine).await;
    assert_eq!(
        begun.calls[0].result.status,
        Status::Ok,
        "{}",
        result(&begun, 0)
    );
    let work = stage.workspace().work();
    until("the end of the command", || at_work(&work).is_empty()).await;
}

#[tokio::test]
async fn call_that_waits_runs_with_the_word_and_is_denied_with_other_arguments() {
    let rules = json!({ "deny": ["shell(touch *)"] });
    for (args, expect) in [
        (None, Some(Status::Ok)),
        (Some(json!({ "command": "touch ran" })), None),
    ] {
        let stage = Stage::new(calls("run_command", json!({ "command": "mkdir -p a" })));
        let engine = ruled(&stage, &rules).await;
        let Outcome::Paused { pauses } = run(&engine).await.outcome else {
            panic!("it waits")
        };
        let args = args.map(|it: Value| it.to_string().into());
        let word = Answer::Approve {
            args,
            for_run: false,
        };
        let ran = lead(&engine)
            .resume(vec![pauses[0].with_answer(word)])
            .await
            .expect("it goes on");
        let status = ran.calls.first().map(|call| call.result.status);
        assert_eq!(
            (status, stage.work("ran").exists()),
            (expect, false),
            "{:?}",
            ran.outcome
        );
    }
}

#[tokio::test]
async fn rules_that_are_none_or_that_tools_would_escape_are_refused() {
    let stage = Stage::new([]);
    let prefixed = json!([{ "name": "files", "prefix": "my_" }]);
    for (rules, toolboxes, why) in [
        (
            json!({ "deny": ["shell(rm"] }),
            json!([]),
            "its bracket is not closed",
        ),
        (
            json!({ "deny": ["read(secret)"] }),
            prefixed,
            "a toolbox with a `prefix` would escape them",
        ),
    ] {
        let wrong = stage
            .wrong(crate::stage::one(
                json!({ "rules": rules, "toolboxes": toolboxes }),
            ))
            .await;
        assert_eq!(wrong.kind(), ErrorKind::Config);
        assert!(
            wrong.message().contains(why) && wrong.message().contains("the agent solo"),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn approval_for_good_is_a_rule_for_just_that_call() {
    use adjutant_llm::Script;
    use adjutant_runtime::{
        Prompter,
        prompt::{PausesRequest, PromptRequest, ResumeRequest},
    };
    let command = |line: &str| Script::new().call("run_command", json!({ "command": line }));
    let done = || Script::new().text("Done.");
    let scripts = [
        command("mkdir -p a"),
        done(),
        command("mkdir -p a"),
        done(),
        command("touch ran"),
        done(),
    ];
    let stage = Stage::new(scripts);
    let engine = ruled(&stage, &json!({})).await;
    let waiting = async || {
        engine
            .pauses(PausesRequest::new())
            .await
            .expect("they are listed")
            .pauses
    };
    let prompt = async || {
        engine
            .prompt(PromptRequest::new("Go."))
            .await
            .expect("it ends or waits")
    };
    prompt().await;
    let [asked] = &waiting().await[..] else {
        panic!("it waits")
    };
    let always = asked.pause.with_answer(Answer::Approve {
        args: None,
        for_run: true,
    });
    let events = engine
        .resume(ResumeRequest::new(vec![always]))
        .await
        .expect("it goes on");
    futures_util::StreamExt::for_each(events, |_| async {}).await;
    assert_eq!(
        prompt().await.text,
        "Done.",
        "the same is allowed from now on"
    );
    prompt().await;
    assert_eq!(
        waiting().await.len(),
        1,
        "another command of the same tool is not"
    );
    assert!(!stage.work("ran").exists());
}
