//! Runs that a crash has cut off, and hosts that do not answer.

use std::{fs, path::Path, sync::Arc, time::Duration};

use adjutant_agent::Answered;
use adjutant_runtime::{
    Backend, ErrorKind, Instance, Prompter, Reason, Resolved, Status, Workspace,
    backend::{InProcess, InProcessOptions},
    host::HostFile,
    prompt::{
        Look, MessagesRequest, PausesRequest, PromptRequest, ResumeRequest, WaitingPause,
        waiting_sessions,
    },
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::desk::{GOOD, LONG, Manner, Place, created, kill, pid, place, process, resolved, until};

const PROMPT: &str =
    "Run `echo once >> tries; while [ ! -e open ]; do sleep 0.02; done; echo opened`";

/// An agent that runs what it is told to; a command that was cut off may be run again.
fn worker(on_restart: &str) -> Resolved {
    let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}}});
    let tool = json!({
        "name": "run_command", "description": "Runs a command.", "binary": "/bin/sh", "args": ["-c", "{command}"],
        "parameters": parameters, "repeatable": true,
    });
    let agent = json!({"name": "clerk", "model": "offline/planner", "tools": ["run_command"]});
    let manifest = json!({
        "name": "clerk", "entry_agent": "clerk", "agents": [agent], "process_tools": [tool], "on_restart": on_restart,
    });
    resolved(manifest, &[])
}

fn tries(workspace: &Workspace) -> usize {
    fs::read_to_string(workspace.work().join("tries"))
        .unwrap_or_default()
        .lines()
        .count()
}

fn open(workspace: &Workspace) {
    fs::write(workspace.work().join("open"), "").expect("it can be written");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("it is there").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)
        } else {
            drop(fs::copy(&from, &to))
        }
    }
}

/// An agent whose program was lost while it worked, begun again. What it was before the crash goes with the folder.
struct Crashed {
    agent: Arc<dyn Instance>,
    _folder: Place,
    _backends: Vec<Arc<dyn Backend>>,
    _former: Option<Arc<dyn Instance>>,
}

async fn at_work(backend: &dyn Backend, on_restart: &str) -> Arc<dyn Instance> {
    let agent = backend
        .create(Uuid::new_v4(), worker(on_restart))
        .await
        .expect("it is created");
    agent.start().await.expect("it begins");
    let prompter = agent.prompter().await.expect("it can be asked");
    tokio::spawn(async move { prompter.prompt(PromptRequest::new(PROMPT)).await });
    let workspace = agent.workspace();
    until("the command runs", || tries(&workspace) == 1).await;
    agent
}

async fn crashed(is_process: bool, on_restart: &str) -> Crashed {
    let (folder, host, home) = place(&Manner {
        before: "",
        does: "engine",
    });
    if is_process {
        let backend: Arc<dyn Backend> = Arc::new(process(&home, &host));
        let agent = at_work(&*backend, on_restart).await;
        kill(pid(&agent.workspace()));
        let failed = |status: &Status| status.reason() == Some(Reason::Crashed);
        agent
            .watch()
            .wait_for_within(LONG, failed)
            .await
            .expect("its end is seen");
        agent.start().await.expect("it begins again");
        return Crashed {
            agent,
            _folder: folder,
            _backends: vec![backend],
            _former: None,
        };
    }
    let here: Arc<dyn Backend> = Arc::new(InProcess::new(&home, InProcessOptions::new()));
    let first = at_work(&*here, on_restart).await;
    // What a crash leaves: the folder as it is now.
    let after = folder.path().join("after");
    copy(&home, &after);
    open(&first.workspace());
    let there: Arc<dyn Backend> = Arc::new(InProcess::new(&after, InProcessOptions::new()));
    let agent = Arc::clone(&there.load().await.expect("it is found").instances[0]);
    assert_eq!(agent.status().reason(), Some(Reason::Crashed));
    agent.start().await.expect("it begins again");
    Crashed {
        agent,
        _folder: folder,
        _backends: vec![here, there],
        _former: Some(first),
    }
}

async fn waiting(prompter: &dyn Prompter) -> Vec<WaitingPause> {
    prompter
        .pauses(PausesRequest::new())
        .await
        .expect("they are listed")
        .pauses
}

/// The run goes on, calls the tool once more, and answers.
async fn ends_well(agent: &dyn Instance, prompter: &dyn Prompter) {
    let workspace = agent.workspace();
    until("the command runs again", || tries(&workspace) == 2).await;
    open(&workspace);
    loop {
        let page = prompter
            .messages(MessagesRequest::new())
            .await
            .expect("there is a session");
        let told: Vec<&str> = page.messages.iter().map(|message| &*message.role).collect();
        if told == ["user", "tool", "assistant"] {
            break;
        }
        assert!(told.len() < 3, "{:?}", page.messages);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    agent
        .watch()
        .wait_for_within(LONG, |status| *status == Status::Ready)
        .await
        .expect("it works no more");
}

/// The run does not go on, and the session takes prompts.
async fn ends_there(agent: &dyn Instance, prompter: &dyn Prompter) {
    let mut asked = prompter.prompt(PromptRequest::new("Who are you?")).await;
    while asked
        .as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::Conflict)
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
        asked = prompter.prompt(PromptRequest::new("Who are you?")).await;
    }
    asked.expect("the session is free");
    agent
        .watch()
        .wait_for_within(LONG, |status| *status == Status::Ready)
        .await
        .expect("it works no more");
    assert_eq!(tries(&agent.workspace()), 1);
}

/// Pages are asked as well whether the run goes on, and say so in their way.
async fn answers_as_a_page(host: &HostFile, approves: bool) {
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .build()
        .expect("a client");
    let asked = async |method: reqwest::Method, path: &str, resume: Value| {
        let asked = http
            .request(method, format!("http://{}/v1/{path}", host.address))
            .bearer_auth(&host.token);
        asked
            .json(&json!({"threadId": "main", "runId": "r", "resume": resume}))
            .send()
            .await
            .expect("it answers")
    };
    let told = async |method, path| {
        asked(method, path, json!([]))
            .await
            .text()
            .await
            .expect("it ends")
    };
    let chat = told(reqwest::Method::GET, "ai-sdk/main/stream").await;
    assert!(
        chat.contains("data-pause") && chat.contains("a crash has cut off the run"),
        "{chat}"
    );
    let task = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "1.main"}});
    let task = http
        .post(format!("http://{}/a2a?A2A-Version=1.0", host.address))
        .bearer_auth(&host.token)
        .json(&task);
    let task = task
        .send()
        .await
        .expect("it answers")
        .text()
        .await
        .expect("it ends");
    assert!(
        task.contains("TASK_STATE_INPUT_REQUIRED") && task.contains("crash/main"),
        "{task}"
    );
    let page = told(reqwest::Method::POST, "ag-ui/connect").await;
    let end: Value = serde_json::from_str(page.trim_end().rsplit("data: ").next().expect("an end"))
        .expect("JSON");
    let interrupt = &end["outcome"]["interrupts"][0];
    assert_eq!(
        (
            &interrupt["reason"],
            end["outcome"]["interrupts"].as_array().map(Vec::len)
        ),
        (&json!("confirmation"), Some(1))
    );
    let answer = json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": approves}}]);
    let answered = asked(reqwest::Method::POST, "ag-ui", answer).await;
    assert_eq!(answered.status(), 200, "{:?}", answered.text().await);
}

#[tokio::test]
async fn run_that_a_crash_has_cut_off_goes_on_ends_or_waits_as_the_manifest_says() {
    for (is_process, on_restart, answer) in [
        (false, "resume", None),
        (true, "resume", None),
        (false, "cancel", None),
        (true, "cancel", None),
        (false, "ask", Some(true)),
        (true, "ask", Some(true)),
        (false, "ask", Some(false)),
        (true, "ask", Some(false)),
    ] {
        let crashed = crashed(is_process, on_restart).await;
        let agent = &crashed.agent;
        let prompter = agent.prompter().await.expect("it can be asked");
        if let Some(approves) = answer {
            let [asked] = &waiting(&*prompter).await[..] else {
                panic!("one run is asked about")
            };
            assert_eq!(
                (&*asked.session, &*asked.pause.id.0),
                ("main", "crash/main")
            );
            assert_eq!(
                prompter
                    .look(Some("main"), Look::Run)
                    .await
                    .expect("it is there")["state"],
                "waiting"
            );
            let refused = prompter
                .prompt(PromptRequest::new("And?"))
                .await
                .expect_err("it waits");
            assert_eq!(refused.kind(), ErrorKind::Conflict);
            let wrong = ResumeRequest::new(vec![Answered {
                pause: asked.pause.id.clone(),
                ..asked.pause.answer(5)
            }]);
            assert_eq!(
                prompter.resume(wrong).await.err().map(|error| error.kind()),
                Some(ErrorKind::Invalid)
            );
            if let Ok(host) = HostFile::read(&agent.workspace()) {
                answers_as_a_page(&host, approves).await;
            } else {
                let given = if approves {
                    asked.pause.approve()
                } else {
                    asked.pause.deny("")
                };
                let events = prompter
                    .resume(ResumeRequest::new(vec![given]))
                    .await
                    .expect("it is answered");
                tokio::spawn(events.for_each(|_| async {}));
            }
        }
        if on_restart == "resume" {
            assert_eq!(waiting(&*prompter).await, [], "nobody is asked");
        }
        match (on_restart, answer) {
            ("resume", _) | (_, Some(true)) => ends_well(&**agent, &*prompter).await,
            _ => ends_there(&**agent, &*prompter).await,
        }
        assert_eq!(waiting(&*prompter).await, []);
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn run_at_work_goes_on_after_an_update_and_after_one_that_fails() {
    for (is_process, field, value) in [
        (false, "max_turns", json!(9)),
        (true, "max_turns", json!(9)),
        (false, "model", json!("anthropic/claude-sonnet-5")),
        (true, "model", json!("anthropic/claude-sonnet-5")),
    ] {
        let (_folder, host, home) = place(&Manner {
            before: "",
            does: "engine",
        });
        let backend: Arc<dyn Backend> = match is_process {
            true => Arc::new(process(&home, &host)),
            false => Arc::new(InProcess::new(&home, InProcessOptions::new())),
        };
        let agent = at_work(&*backend, "resume").await;
        let mut new = serde_json::to_value(worker("resume")).expect("it is written");
        new["manifest"]["agents"][0][field] = value;
        let updated = agent
            .update(serde_json::from_value(new).expect("it is a manifest"))
            .await;
        assert_eq!(updated.is_err(), field == "model", "{updated:?}");
        ends_well(&*agent, &*agent.prompter().await.expect("it can be asked")).await;
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn host_that_is_stopped_by_a_signal_has_failed_as_frozen_within_seconds() {
    let (_folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    agent.start().await.expect("it begins");
    let stopped =
        rustix::process::Pid::from_raw(pid(&agent.workspace()).cast_signed()).expect("not 0");
    rustix::process::kill_process(stopped, rustix::process::Signal::STOP).expect("it is there");
    let within = Duration::from_secs(12);
    let status = agent
        .watch()
        .wait_for_within(within, |status| !status.is_up())
        .await
        .expect("it is seen");
    assert_eq!(
        status.to_string(),
        "failed (frozen): its process was stopped by a signal and does not answer"
    );
    agent.start().await.expect("it begins again");
    let reply = agent
        .prompter()
        .await
        .expect("it can be asked")
        .prompt(PromptRequest::new("Is it so?"))
        .await;
    assert_eq!(reply.expect("it answers").text, "Yes.");
    agent.remove().await.expect("it goes");
}

/// Who answers an agent may see its program end at any moment: what was heard goes on.
#[tokio::test]
async fn run_that_was_answered_counts_as_at_work_before_its_log_holds_the_answer() {
    let folder = Place::new();
    let backend = InProcess::new(folder.path().join("home"), InProcessOptions::new());
    let agent = json!({"name": "clerk", "model": "offline/planner", "toolboxes": ["files"], "access": {"default": "ask"}});
    let store = json!({"store": {"kind": "jsonl"}});
    let manifest =
        json!({"name": "clerk", "entry_agent": "clerk", "agents": [agent], "sessions": store});
    let agent = backend
        .create(Uuid::new_v4(), resolved(manifest, &[]))
        .await
        .expect("it is created");
    agent.start().await.expect("it begins");
    let (prompter, workspace) = (
        agent.prompter().await.expect("it can be asked"),
        agent.workspace(),
    );
    prompter
        .prompt(PromptRequest::new("What is in this folder?"))
        .await
        .expect("it waits");
    let is_heard = || {
        let logs = fs::read_dir(workspace.state().join("sessions/logs"))
            .expect("it is there")
            .flatten();
        let texts = logs
            .map(|log| fs::read_to_string(log.path().join("records.jsonl")).unwrap_or_default());
        texts.collect::<String>().contains("not this one")
    };
    let [waits] = &waiting(&*prompter).await[..] else {
        panic!("one thing waits")
    };
    let wrong = Answered {
        pause: adjutant_agent::PauseId("nothing".into()),
        ..waits.pause.approve()
    };
    assert!(
        prompter
            .resume(ResumeRequest::new(vec![wrong]))
            .await
            .is_err()
    );
    assert_eq!(
        waiting_sessions(&workspace).expect("they are read").len(),
        1,
        "it waits still"
    );
    let mut resuming = prompter.resume(ResumeRequest::new(vec![waits.pause.deny("not this one")]));
    while futures_util::poll!(&mut resuming).is_pending() {
        let is_heard = is_heard();
        let waiting = waiting_sessions(&workspace).expect("they are read");
        assert!(
            !is_heard || waiting.is_empty(),
            "{waiting:?} would wait for ever after a crash"
        );
        tokio::task::yield_now().await;
    }
    assert!(is_heard());
}

#[tokio::test]
async fn nobody_is_asked_about_a_run_that_had_ended_when_the_crash_came() {
    let folder = Place::new();
    let backend = InProcess::new(folder.path().join("home"), InProcessOptions::new());
    let agent = backend
        .create(Uuid::new_v4(), worker("ask"))
        .await
        .expect("it is created");
    agent.start().await.expect("it begins");
    let prompter = agent.prompter().await.expect("it can be asked");
    prompter
        .prompt(PromptRequest::new("Who are you?"))
        .await
        .expect("it answers");
    drop(prompter);
    agent.stop().await.expect("it ends");
    // As a crash leaves it that comes between the end of a run and its note.
    let open = json!({"main": {"since_ms": 1, "state": "working"}});
    fs::write(
        agent.workspace().state().join("open.json"),
        open.to_string(),
    )
    .expect("it can be written");
    agent.start().await.expect("it begins again");
    let prompter = agent.prompter().await.expect("it can be asked");
    let free = async {
        while !waiting(&*prompter).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, free)
        .await
        .expect("nobody is asked");
    prompter
        .prompt(PromptRequest::new("And now?"))
        .await
        .expect("the session is free");
}
