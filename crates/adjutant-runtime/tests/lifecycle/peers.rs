//! Agents that call one another, in one process and from process to process.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{Answered, CancelBy, Limit, Outcome};
use adjutant_llm::{
    CallResult, Entry, Model as _, ModelInfo, Request, Script, ScriptedModel, Usage, model_fn,
};
use adjutant_runtime::{
    Backend, Credentials, Engine, ErrorKind, Instance, Lead, Parts, Resolved, Status, Workspace,
    backend::{InProcess, InProcessOptions},
    prompt::{
        Control, MAX_PEER_DEPTH, MessagesRequest, PeerCall, PromptReply, PromptRequest,
        ResumeRequest, SessionState, SessionsRequest,
    },
};
use adjutant_tool::{Answer, Approval, CallContext, Replay, ToolSpec, Tools, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::desk::{Manner, Place, kill, options, pid, place, process_with, resolved, until};

/// The parts of the agents here: a model that does what it is told, and tools that wait for a file or for a word.
pub(super) fn parts(workspace: &Workspace) -> Parts {
    let model = model_fn(ModelInfo::new("test/puppet"), |request: Request| {
        ScriptedModel::new([says(&request)])
            .info(ModelInfo::new("test/puppet"))
            .stream(request)
    });
    let schema = || json!({ "type": "object", "properties": {} });
    let work = workspace.work();
    let hold = ToolSpec {
        replay: Replay::Idempotent,
        ..ToolSpec::new("hold", "Waits.", schema())
    };
    let hold = tool_fn(hold, move |_: Value, _: CallContext| {
        let (held, open) = (work.join("held"), work.join("open"));
        async move {
            fs::write(&held, lines(&held) + "held\n").expect("it can be written");
            until("the file is there", || open.exists()).await;
            Ok(CallResult::ok("held"))
        }
    });
    let spec = ToolSpec {
        approval: Approval::Always,
        ..ToolSpec::new("risky", "Dares.", schema())
    };
    let risky = tool_fn(spec, |_: Value, _: CallContext| async {
        Ok(CallResult::ok("dared"))
    });
    let spin = tool_fn(
        ToolSpec::new("spin", "Spins.", schema()),
        |_: Value, _: CallContext| async { Ok(CallResult::ok("spin")) },
    );
    Parts::new().model("test/puppet", model).toolbox(
        "hands",
        Tools::new("hands").tool(hold).tool(risky).tool(spin),
    )
}

/// What the model says: a call if it is told of one, what it heard of a call, or an echo.
fn says(request: &Request) -> Script {
    let usage = Usage {
        input_uncached: 100,
        output: 10,
        ..Usage::default()
    };
    let script = Script::new().usage(usage);
    let mut said = request
        .entries
        .iter()
        .map(|stored| &stored.entry)
        .filter(|entry| !matches!(entry, Entry::Custom(_)));
    let text = match said.next_back() {
        Some(Entry::User(message)) => message.to_text(),
        Some(Entry::Turn(turn)) => match turn.pairs().last().expect("a call").1.text() {
            spun if spun == "spin" => spun,
            dared if dared == "dared" => "ask alice hello".to_owned(),
            heard => return script.text(format!("I heard: {heard}")),
        },
        _ => String::new(),
    };
    let words: Vec<&str> = text.splitn(3, ' ').collect();
    match words[..] {
        ["ask", peer, prompt] => script.call("peer", json!({ "peer": peer, "prompt": prompt })),
        ["hear", peer, session] => script.call("peer", json!({ "peer": peer, "session": session })),
        ["describe"] => script.text(
            request
                .tools
                .iter()
                .map(|tool| &*tool.description)
                .collect::<String>(),
        ),
        ["json", value] => script.text(value),
        [tool @ ("hold" | "risky" | "spin" | "transfer_to_back")] => script.call(tool, json!({})),
        _ => script.text(format!("You said: {text}")),
    }
}

fn lines(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The values of variables, which are found out once an agent listens.
type Tokens = Arc<Mutex<Option<String>>>;

fn here(home: &Path, tokens: &Tokens) -> Arc<dyn Backend> {
    let tokens = Arc::clone(tokens);
    let options = InProcessOptions::new()
        .credentials(move |_| tokens.lock().expect("not poisoned").clone())
        .build(|prepared, workspace, credentials| async move {
            let builder = Engine::builder(prepared.resolved.clone())
                .parts(parts(&workspace))
                .trusted();
            Ok(builder
                .workspace(workspace)
                .credentials(credentials)
                .build()
                .await?
                .prompter())
        });
    Arc::new(InProcess::new(home, options))
}

fn there(tokens: &Tokens) -> (Place, PathBuf, Arc<dyn Backend>) {
    let (folder, host, home) = place(&Manner {
        before: "",
        does: "engine",
    });
    let tokens = Arc::clone(tokens);
    let options = options().credentials(move |_| tokens.lock().expect("not poisoned").clone());
    let backend = Arc::new(process_with(&home, &host, options));
    (folder, home, backend)
}

fn both() -> Vec<(Place, Arc<dyn Backend>)> {
    places()
        .into_iter()
        .map(|(place, _, backend)| (place, backend))
        .collect()
}

/// A backend of each kind, with the folder of its agents.
pub(super) fn places() -> Vec<(Place, PathBuf, Arc<dyn Backend>)> {
    let own = Place::new();
    let home = own.path().join("home");
    let backend = here(&home, &Tokens::default());
    vec![(own, home, backend), there(&Tokens::default())]
}

/// An agent that may ask these, with more fields.
pub(super) fn agent(name: &str, peers: Value, more: Value) -> Resolved {
    let toolboxes = json!(["hands", "peers"]);
    let agent = json!({"name": name, "model": "test/puppet", "toolboxes": toolboxes});
    let mut manifest =
        json!({"name": name, "entry_agent": name, "agents": [agent], "peers": peers});
    manifest
        .as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    resolved(manifest, &[])
}

pub(super) fn peer(name: &str) -> Value {
    json!([{"name": name, "description": "Another one."}])
}

async fn started(backend: &dyn Backend, resolved: Resolved) -> Arc<dyn Instance> {
    let agent = backend
        .create(Uuid::new_v4(), resolved)
        .await
        .expect("it is created");
    agent.start().await.expect("it begins");
    agent
}

/// Alice, who may ask Bob, and Bob, who may ask Alice.
async fn pair(backend: &dyn Backend, more: Value) -> (Arc<dyn Instance>, Arc<dyn Instance>) {
    let bob = started(backend, agent("bob", peer("alice"), json!({}))).await;
    (
        started(backend, agent("alice", peer("bob"), more)).await,
        bob,
    )
}

async fn prompt(agent: &Arc<dyn Instance>, text: &str) -> String {
    asked(agent, PromptRequest::new(text)).await.text
}

async fn asked(agent: &Arc<dyn Instance>, request: PromptRequest) -> PromptReply {
    agent
        .prompter()
        .await
        .expect("it runs")
        .prompt(request)
        .await
        .expect("it answers")
}

/// The sessions of an agent that calls have.
async fn calls(agent: &Arc<dyn Instance>) -> Vec<Arc<str>> {
    let prompter = agent.prompter().await.expect("it runs");
    let page = prompter
        .sessions(SessionsRequest::new())
        .await
        .expect("they are listed");
    page.sessions
        .into_iter()
        .map(|it| it.name)
        .filter(|name| name.starts_with("peer-"))
        .collect()
}

/// Begins an agent again whose process was killed.
async fn again(agent: &Arc<dyn Instance>) {
    agent
        .watch()
        .wait_for(|status| matches!(status, Status::Failed { .. }))
        .await
        .expect("it died");
    agent.stop().await.expect("its end was seen");
    agent.start().await.expect("it begins again");
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in: {text}");
}

#[tokio::test]
async fn agent_asks_another_one_by_its_name() {
    for (_folder, backend) in both() {
        let peers = json!([{"name": "helper", "description": "Knows all.", "agent": "bob"}]);
        let alice = started(&*backend, agent("alice", peers, json!({}))).await;
        let bob = started(&*backend, agent("bob", peer("alice"), json!({}))).await;
        has(&prompt(&alice, "describe").await, "\n- helper: Knows all.");
        let reply = asked(
            &alice,
            PromptRequest::new("ask helper hello").session("other"),
        )
        .await;
        assert_eq!(reply.text, "I heard: You said: hello");
        assert_eq!(
            (reply.result.usage.total(), reply.result.total_usage.total()),
            (220, 330)
        );
        assert_eq!(calls(&bob).await.len(), 1);
        backend.destroy().await.expect("all goes");
    }
}

#[tokio::test]
async fn agent_asks_another_one_at_its_address_with_its_token() {
    let tokens = Tokens::default();
    let (folder, home, process) = there(&tokens);
    let bob = started(&*process, agent("bob", peer("x"), json!({}))).await;
    let host: Value =
        serde_json::from_str(&lines(&bob.workspace().file("host.json"))).expect("JSON");
    for backend in [
        here(&folder.path().join("here"), &tokens),
        Arc::clone(&process),
    ] {
        *tokens.lock().expect("not poisoned") =
            Some(host["token"].as_str().expect("a text").to_owned());
        let peers = json!([{
            "name": "robert", "description": "Bob.", "address": host["address"], "token_variable": "BOB_TOKEN",
        }]);
        let alice = started(&*backend, agent("alice", peers, json!({}))).await;
        assert_eq!(
            prompt(&alice, "ask robert hello").await,
            "I heard: You said: hello"
        );
        alice.stop().await.expect("it ends");
        *tokens.lock().expect("not poisoned") = Some("wrong".to_owned());
        alice.start().await.expect("it begins again");
        has(
            &prompt(&alice, "ask robert hello").await,
            "robert was not asked, because it refused the token",
        );
        alice.stop().await.expect("it ends");
        *tokens.lock().expect("not poisoned") = None;
        let error = alice.start().await.expect_err("there is no token");
        has(
            error.message(),
            "the peer robert cannot be called: the variable BOB_TOKEN is not set",
        );
    }
    process.destroy().await.expect("all goes");
    assert!(home.exists());
}

#[tokio::test]
async fn peer_works_on_when_somebody_else_takes_the_run_that_asked() {
    let (folder, _home, process) = there(&Tokens::default());
    let bob = started(&*process, agent("bob", peer("x"), json!({}))).await;
    let host: Value =
        serde_json::from_str(&lines(&bob.workspace().file("host.json"))).expect("JSON");
    let peers = json!([{
        "name": "robert", "description": "Bob.", "address": host["address"], "token_variable": "BOB_TOKEN",
    }]);
    let sessions = json!({"sessions": {"store": {"kind": "memory"}}});
    let (workspace, token) = (
        Workspace::at(folder.path().join("alice")),
        host["token"].as_str().expect("a text"),
    );
    let alice = Engine::builder(agent("alice", peers, sessions))
        .parts(parts(&workspace))
        .workspace(workspace);
    let alice = alice
        .credentials(Credentials::none().with("BOB_TOKEN", token))
        .build()
        .await
        .expect("it is right");
    let Ok(Lead::Agent(one)) = alice.lead("main") else {
        panic!("it hands nothing over")
    };
    let (other, running) = (
        one.take_over(),
        tokio::spawn(one.run("ask robert hold").into_future()),
    );
    until("the peer works", || {
        bob.workspace().work().join("held").exists()
    })
    .await;
    other.log().open().await.expect("it is taken");
    // What is to be recorded shows the first one that it has lost its log.
    one.queue().steer("And quickly.").expect("it is heard");
    running
        .await
        .expect("no panic")
        .expect_err("its log is another's");
    fs::write(bob.workspace().work().join("open"), "").expect("it can be written");
    let ran = other.resume(Vec::new()).await.expect("it goes on");
    assert_eq!(ran.text(), "I heard: I heard: held");
    process.destroy().await.expect("all goes");
}

#[tokio::test]
async fn peer_that_does_not_run_is_not_asked() {
    for (_folder, backend) in both() {
        let alice = started(&*backend, agent("alice", peer("bob"), json!({}))).await;
        has(
            &prompt(&alice, "ask bob hello").await,
            "bob cannot be reached, and was not called: there is no agent bob in ",
        );
        backend
            .create(Uuid::new_v4(), agent("bob", peer("alice"), json!({})))
            .await
            .expect("it is created");
        has(
            &prompt(&alice, "ask bob hello").await,
            "was not called: the agent bob does not run; hint: adjutant agent start",
        );
        backend.destroy().await.expect("all goes");
    }
}

#[tokio::test]
async fn agent_on_the_path_of_a_call_is_not_called_and_paths_end() {
    for (_folder, backend) in both() {
        let (alice, _bob) = pair(&*backend, json!({})).await;
        let text = prompt(&alice, "ask bob ask alice hello").await;
        has(
            &text,
            "alice refuses the call: the agent alice is on the path of the call already: alice > bob > alice",
        );
        // Agents that hand a conversation over are one name on the path.
        let member = |name: &str, to: Value| {
            let boxes = json!(["peers"]);
            json!({"name": name, "description": "x", "model": "test/puppet", "toolboxes": boxes, "transfers": to})
        };
        let chain = json!({"entry_agent": "desk", "agents": [member("desk", json!(["back"])), member("back", json!([]))]});
        let duo = started(&*backend, agent("duo", peer("alice"), chain)).await;
        let carol = started(&*backend, agent("carol", peer("duo"), json!({}))).await;
        has(
            &prompt(&carol, "ask duo ask alice hello").await,
            "I heard: I heard: You said: hello",
        );
        let call = PromptRequest::new("ask alice hello")
            .session("peer-0")
            .call(PeerCall::new(["alice"]));
        has(
            &asked(&duo, call).await.text,
            "the call already: alice > duo > alice",
        );
        let prompter = alice.prompter().await.expect("it runs");
        let call = |many: usize| PeerCall::new((0..many).map(|n| format!("a{n}")));
        let ask = |text: &str, many, session: &str| {
            prompter.prompt(PromptRequest::new(text).session(session).call(call(many)))
        };
        let text = ask("ask bob hello", MAX_PEER_DEPTH - 1, "peer-1")
            .await
            .expect("it answers")
            .text;
        assert_eq!(text, "I heard: You said: hello");
        let text = ask("ask bob hello", MAX_PEER_DEPTH, "peer-2")
            .await
            .expect("it answers")
            .text;
        has(&text, "bob is not asked: 8 agents have called one another");
        for (many, why) in [
            (
                MAX_PEER_DEPTH + 1,
                "9 agents have called one another, and 8 may",
            ),
            (0, "a call names"),
        ] {
            let error = ask("hello", many, "peer-3")
                .await
                .expect_err("it is refused");
            assert_eq!(error.kind(), ErrorKind::Invalid);
            has(error.message(), why);
        }
        backend.destroy().await.expect("all goes");
    }
}

#[tokio::test]
async fn cancelled_call_stops_the_run_of_the_peer() {
    for (_folder, backend) in both() {
        let (alice, bob) = pair(&*backend, json!({})).await;
        let prompter = alice.prompter().await.expect("it runs");
        let mut events = prompter
            .stream(PromptRequest::new("ask bob hold"))
            .await
            .expect("it begins");
        let held = bob.workspace().work().join("held");
        let listens = tokio::spawn(async move {
            while !held.exists() {
                let _went_on = tokio::time::timeout(Duration::from_millis(5), events.next()).await;
            }
        });
        listens.await.expect("the peer works");
        bob.watch()
            .wait_for(|status| *status == Status::Ready)
            .await
            .expect("it works no more");
        let session = calls(&bob).await.pop().expect("one");
        let call = PromptRequest::new("hold")
            .session(session)
            .call(PeerCall::new(["alice"]));
        let outcome = asked(&bob, call).await.result.outcome.clone();
        assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
        backend.destroy().await.expect("all goes");
    }
}

#[tokio::test]
async fn budget_that_is_left_binds_the_peer_and_what_it_used_counts() {
    for (_folder, backend) in both() {
        let (alice, bob) = pair(&*backend, json!({"budget": {"requests": 4}})).await;
        let result = asked(&alice, PromptRequest::new("ask bob spin"))
            .await
            .result;
        assert_eq!(
            result.outcome,
            Outcome::Limit {
                limit: Limit::Requests
            }
        );
        assert_eq!(
            (result.usage.total(), result.total_usage.total()),
            (110, 440),
            "one request, and three of the peer"
        );
        let call = PromptRequest::new("hold")
            .session("peer-late")
            .call(PeerCall::new(["dora"]));
        let late = asked(&bob, call.clone().timeout(Duration::from_millis(50)))
            .await
            .result
            .outcome
            .clone();
        assert_eq!(
            late,
            Outcome::Cancelled {
                by: CancelBy::Deadline
            }
        );
        assert_eq!(prompt(&bob, "hello").await, "You said: hello");
        let error = bob
            .prompter()
            .await
            .expect("it runs")
            .prompt(call.session("main"))
            .await
            .expect_err("it is none");
        assert_eq!(
            error.message(),
            "the session \"main\" was not begun by a call of another agent"
        );
        let (carol, text) = (
            agent("carol", peer("bob"), json!({"budget": {"depth": 0}})),
            "ask bob hello",
        );
        let carol = started(&*backend, carol).await;
        has(
            &prompt(&carol, text).await,
            "bob is not asked: nothing is left of the limit of depth",
        );
        backend.destroy().await.expect("all goes");
    }
}

#[tokio::test]
async fn peer_that_waits_is_told_of_and_heard_later() {
    for (_folder, backend) in both() {
        let (alice, bob) = pair(&*backend, json!({})).await;
        let text = prompt(&alice, "ask bob risky").await;
        has(
            &text,
            "bob has no answer yet, because it waits for somebody: alice>bob asks: ",
        );
        let session = calls(&bob).await.pop().expect("one");
        has(&text, &session);
        let call = PromptRequest::new("risky")
            .session(Arc::clone(&session))
            .call(PeerCall::new(["alice"]));
        let Outcome::Paused { pauses } = asked(&bob, call).await.result.outcome.clone() else {
            panic!("it waits")
        };
        let answer = Answered {
            pause: pauses[0].id.clone(),
            answer: Answer::Approve {
                args: None,
                for_run: false,
            },
            shown: None,
        };
        let prompter = bob.prompter().await.expect("it runs");
        let request = ResumeRequest::new(vec![answer]).session(Arc::clone(&session));
        let events = prompter.resume(request).await.expect("it goes on");
        events.for_each(|_| async {}).await;
        // It knows still who asked, also when somebody else goes on with it.
        let heard = prompt(&alice, &format!("hear bob {session}")).await;
        has(
            &heard,
            "I heard: I heard: alice refuses the call: the agent alice is on the path of the call already: alice > bob",
        );
        has(
            &prompt(&alice, "hear bob main").await,
            "no call has the session",
        );
        backend.destroy().await.expect("all goes");
    }
}

#[tokio::test]
async fn call_is_made_once_when_the_caller_is_killed() {
    let (_folder, _home, backend) = there(&Tokens::default());
    let (alice, bob) = pair(&*backend, json!({})).await;
    let (prompter, work) = (
        alice.prompter().await.expect("it runs"),
        bob.workspace().work(),
    );
    let lost =
        tokio::spawn(async move { prompter.prompt(PromptRequest::new("ask bob hold")).await });
    until("the peer works", || work.join("held").exists()).await;
    kill(pid(&alice.workspace()));
    assert!(lost.await.expect("it ends").is_err(), "nobody answers");
    again(&alice).await;
    // It goes on by itself.
    fs::write(work.join("open"), "").expect("it can be written");
    let prompter = alice.prompter().await.expect("it runs");
    loop {
        // It may be about to go on: then there is nothing to follow yet.
        prompter
            .attach(None, Some(0))
            .await
            .expect("it is there")
            .for_each(|_| async {})
            .await;
        let page = prompter
            .messages(MessagesRequest::new())
            .await
            .expect("there is a session");
        if page.messages.last().expect("one").text == "I heard: I heard: held" {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(
        (&*lines(&work.join("held")), calls(&bob).await.len()),
        ("held\n", 1)
    );
    backend.destroy().await.expect("all goes");
}

#[tokio::test]
async fn answer_arrives_when_the_peer_is_killed_and_begun_again() {
    for (store, expect) in [
        ("sqlite", "I heard: I heard: held"),
        ("memory", "I heard: outcome unknown: bob lost the call"),
    ] {
        let (_folder, _home, backend) = there(&Tokens::default());
        let sessions = json!({"sessions": {"store": {"kind": store}}});
        let bob = started(&*backend, agent("bob", peer("alice"), sessions)).await;
        let alice = started(&*backend, agent("alice", peer("bob"), json!({}))).await;
        let work = bob.workspace().work();
        let asking = tokio::spawn(async move { prompt(&alice, "ask bob hold").await });
        until("the peer works", || work.join("held").exists()).await;
        kill(pid(&bob.workspace()));
        fs::write(work.join("open"), "").expect("it can be written");
        again(&bob).await;
        has(&asking.await.expect("it ends"), expect);
        backend.destroy().await.expect("all goes");
    }
}

/// An agent as a peer of this name, by its address over A2A.
fn robert(agent: &Arc<dyn Instance>, tokens: &Tokens) -> Value {
    let host: Value =
        serde_json::from_str(&lines(&agent.workspace().file("host.json"))).expect("JSON");
    *tokens.lock().expect("not poisoned") =
        Some(host["token"].as_str().expect("a text").to_owned());
    let url = format!("http://{}", host["address"].as_str().expect("a text"));
    json!([{"name": "robert", "description": "Bob.", "a2a": url, "token_variable": "BOB_TOKEN"}])
}

#[tokio::test]
async fn agents_that_hand_over_are_one_task_when_they_are_asked_over_a2a() {
    let tokens = Tokens::default();
    let (_folder, _home, backend) = there(&tokens);
    let member = |name: &str, to: Value| json!({"name": name, "description": "x", "model": "test/puppet", "transfers": to});
    let members = json!([member("desk", json!(["back"])), member("back", json!([]))]);
    let duo = json!({"entry_agent": "desk", "agents": members, "peers": []});
    let duo = started(&*backend, agent("duo", json!([]), duo)).await;
    let alice = started(&*backend, agent("alice", robert(&duo, &tokens), json!({}))).await;
    // The first one says nothing: what is heard is the answer of the second one.
    has(
        &prompt(&alice, "ask robert transfer_to_back").await,
        "I heard: I heard: ",
    );
    // Nor has the task ended when the first one has: a stream of it goes on.
    let message =
        json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "transfer_to_back"}]});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}});
    let token = tokens
        .lock()
        .expect("not poisoned")
        .clone()
        .expect("it has one");
    let url = format!(
        "{}/a2a?A2A-Version=1.0",
        robert(&duo, &tokens)[0]["a2a"].as_str().expect("a text")
    );
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .build()
        .expect("a client");
    let answer = client
        .post(url)
        .bearer_auth(token)
        .json(&body)
        .send()
        .await
        .expect("it answers");
    let told = answer.text().await.expect("it is told");
    let (heard, ends) = (
        told.rfind("artifactUpdate").expect(&told),
        told.matches("TASK_STATE_COMPLETED").count(),
    );
    assert!(
        ends == 1 && told.find("TASK_STATE_COMPLETED") > Some(heard),
        "{told}"
    );
    backend.destroy().await.expect("all goes");
}

#[tokio::test]
async fn updates_are_pushed_over_a2a_where_the_manifest_says_so() {
    let tokens = Tokens::default();
    let (_folder, _home, backend) = there(&tokens);
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .build()
        .expect("a client");
    for (name, hosts, pushes, code) in [
        ("quiet", Value::Null, false, -32003),
        ("open", json!([]), true, -32602),
        ("near", json!(["127.0.0.1"]), true, -32001),
    ] {
        let it = started(
            &*backend,
            agent(name, peer("x"), json!({"a2a_push": hosts})),
        )
        .await;
        let url = robert(&it, &tokens)[0]["a2a"]
            .as_str()
            .expect("a text")
            .to_owned();
        let token = tokens
            .lock()
            .expect("not poisoned")
            .clone()
            .expect("it has one");
        let text = async |asked: reqwest::RequestBuilder| {
            asked
                .send()
                .await
                .expect("it answers")
                .text()
                .await
                .expect("it ends")
        };
        let card = text(client.get(format!("{url}/.well-known/agent-card.json"))).await;
        assert!(
            card.contains(&format!("\"pushNotifications\":{pushes}")),
            "{card}"
        );
        let config = json!({"taskId": "1.none", "url": "http://127.0.0.1:9/"});
        let message = json!({"messageId": "m", "taskId": "1.none", "role": "ROLE_USER", "parts": [{"text": "Go."}]});
        let params =
            json!({"message": message, "configuration": {"taskPushNotificationConfig": config}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
        let told = text(
            client
                .post(format!("{url}/a2a?A2A-Version=1.0"))
                .bearer_auth(token)
                .json(&body),
        )
        .await;
        assert!(told.contains(&format!("\"code\":{code}")), "{told}");
    }
    backend.destroy().await.expect("all goes");
}

#[tokio::test]
async fn agent_anywhere_is_asked_over_a2a_and_its_questions_are_asked_here() {
    let tokens = Tokens::default();
    let (_folder, _home, backend) = there(&tokens);
    let bob = started(
        &*backend,
        agent("bob", peer("x"), json!({"description": "Helps."})),
    )
    .await;
    let alice = started(&*backend, agent("alice", robert(&bob, &tokens), json!({}))).await;
    assert_eq!(
        prompt(&alice, "ask robert hello").await,
        "I heard: You said: hello"
    );
    has(
        &prompt(&alice, "hear robert peer-1").await,
        "robert is asked with a prompt alone",
    );

    // What he asks waits here, and its answer gets to him.
    let waits = asked(
        &alice,
        PromptRequest::new("ask robert risky").session("risky"),
    )
    .await;
    let pause = &waits.result.pauses()[0];
    has(&pause.ask.prompt, "robert asks: ");
    let answer = Answered {
        answer: Answer::give(json!({"approved": false, "reason": "no"})),
        ..pause.answer("")
    };
    let prompter = alice.prompter().await.expect("it runs");
    let resumed = prompter
        .resume(ResumeRequest::new(vec![answer]).session("risky"))
        .await
        .expect("it goes on");
    resumed
        .for_each(|event| async { drop(event.expect("it is told")) })
        .await;
    let page = prompter
        .messages(MessagesRequest::new().session("risky"))
        .await
        .expect("there is a session");
    has(
        &page.messages.last().expect("one").text,
        "I heard: I heard: ",
    );

    // A caller that is killed hears what came of the one task that there is.
    let work = bob.workspace().work();
    let lost =
        tokio::spawn(async move { prompter.prompt(PromptRequest::new("ask robert hold")).await });
    until("the peer works", || work.join("held").exists()).await;
    kill(pid(&alice.workspace()));
    assert!(lost.await.expect("it ends").is_err(), "nobody answers");
    again(&alice).await;
    fs::write(work.join("open"), "").expect("it can be written");
    let prompter = alice.prompter().await.expect("it runs");
    loop {
        prompter
            .attach(None, Some(0))
            .await
            .expect("it is there")
            .for_each(|_| async {})
            .await;
        let page = prompter
            .messages(MessagesRequest::new())
            .await
            .expect("there is a session");
        if page.messages.last().expect("one").text == "I heard: I heard: held" {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(lines(&work.join("held")), "held\n");

    // A cancel gets to him.
    fs::remove_file(work.join("open")).expect("it is there");
    let (asking, held) = (Arc::clone(&prompter), work.join("held"));
    let cut = tokio::spawn(async move {
        asking
            .prompt(PromptRequest::new("ask robert hold").session("cut"))
            .await
    });
    until("the peer works again", || lines(&held) == "held\nheld\n").await;
    prompter
        .control(Some("cut"), Control::Stop {})
        .await
        .expect("it is heard");
    let cut = cut.await.expect("it ends").expect("it answers");
    assert_eq!(
        cut.result.outcome,
        Outcome::Cancelled { by: CancelBy::User }
    );
    let of_bob = bob.prompter().await.expect("it runs");
    let at_work = SessionsRequest::new().state(SessionState::Working);
    while !of_bob
        .sessions(at_work.clone())
        .await
        .expect("they are listed")
        .sessions
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
    backend.destroy().await.expect("all goes");
}
