//! Agents as tools: their answers, sessions, progress and pauses, and how they are stopped.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use adjutant_agent::{Agent, MemoryJournal};
use adjutant_llm::{Gate, Script, ScriptedModel};
use adjutant_mcp::McpHost;
use serde_json::{Value, json};

use crate::client::{BOTH, Client, Rev, text, tools};

fn host(model: &ScriptedModel, done: &Arc<AtomicU32>, journal: &Arc<MemoryJournal>) -> McpHost {
    let agent = Agent::new(model.clone()).toolbox(tools(done));
    McpHost::new("test")
        .agent("butler", "Does what it is told.", agent)
        .journal(Arc::clone(journal))
        .key([7; 32])
}

fn model(scripts: impl IntoIterator<Item = Script>) -> ScriptedModel {
    ScriptedModel::new(scripts)
}

#[tokio::test]
async fn an_agent_answers_and_goes_on_when_its_session_is_named() {
    for rev in BOTH {
        let model = model([Script::new().text("One."), Script::new().text("Two.")]);
        let mut client = Client::open(&host(&model, &Arc::default(), &Arc::default()), rev).await;
        let listed = client.ask("tools/list", json!({})).await["result"]["tools"].take();
        assert_eq!(
            (&listed[0]["name"], &listed[0]["inputSchema"]["required"]),
            (&json!("butler"), &json!(["prompt"]))
        );
        let first = client.call("butler", json!({ "prompt": "count" })).await;
        let session = &first["result"]["structuredContent"]["session"];
        assert_eq!(
            (
                text(&first),
                &first["result"]["structuredContent"]["answer"]
            ),
            ("One.", &json!("One."))
        );
        let second = client
            .call("butler", json!({ "prompt": "go on", "session": session }))
            .await;
        assert_eq!(
            (
                text(&second),
                &second["result"]["structuredContent"]["session"]
            ),
            ("Two.", session)
        );
        assert_eq!(
            model.requests()[1].entries.iter().count(),
            3,
            "it knows what was said"
        );
    }
}

#[tokio::test]
async fn an_agent_fails_in_words_when_it_cannot_answer() {
    let over = Script::new().fail(adjutant_llm::Error::new(
        adjutant_llm::ErrorKind::Auth,
        "no key",
    ));
    let rows = [
        (json!({ "prompt": "hi" }), "it failed: "),
        (json!({ "prompt": " " }), "`prompt` is blank"),
        (json!({}), "missing field `prompt`"),
        (json!({ "prompt": 3 }), "invalid type"),
        (
            json!({ "prompt": "hi", "session": "other" }),
            "none that was given out here",
        ),
    ];
    let mut client = Client::open(
        &host(&model([over]), &Arc::default(), &Arc::default()),
        Rev::New,
    )
    .await;
    for (args, expect) in rows {
        let said = client.call("butler", args).await;
        assert!(
            said["result"]["isError"] == true && text(&said).contains(expect),
            "{said}"
        );
    }
    let gone = client
        .call("butler", json!({ "prompt": "hi", "session": "mcp-1" }))
        .await;
    assert!(
        gone["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no longer exists here"),
        "{gone}"
    );
}

#[tokio::test]
async fn a_parked_agent_goes_on_when_another_host_gets_the_answer() {
    let (journal, done) = (Arc::default(), Arc::<AtomicU32>::default());
    let args = json!({ "prompt": "pay and ask" });
    let calls = Script::new()
        .call("pay", json!({ "price": 1 }))
        .call("pay", json!({ "price": 2 }));
    let calls = calls.call("name", json!({}));
    let mut first = Client::open(&host(&model([calls]), &done, &journal), Rev::New).await;
    let asked = first.call("butler", args.clone()).await["result"].take();
    let keys: Vec<_> = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(keys, ["approval", "approval#2", "who"]);
    drop(first);

    let mut second = Client::open(
        &host(&model([Script::new().text("All done.")]), &done, &journal),
        Rev::New,
    )
    .await;
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    let answers = json!({ "approval": accept(json!({})), "approval#2": { "action": "decline" }, "who": accept(json!({ "name": "Ada" })) });
    for _ in 0..2 {
        let said = second
            .retry(
                "butler",
                args.clone(),
                &asked["requestState"],
                answers.clone(),
            )
            .await;
        assert_eq!(
            (text(&said), done.load(Ordering::SeqCst)),
            ("All done.", 2),
            "one payment and one step: {said}"
        );
    }
}

#[tokio::test]
async fn an_agent_tells_what_it_does_when_a_token_is_given() {
    let model = model([
        Script::new()
            .call("echo", json!({}))
            .call("pay", json!({ "price": 1 })),
        Script::new().text("Done."),
    ]);
    let mut client = Client::open(&host(&model, &Arc::default(), &Arc::default()), Rev::Old).await;
    client
        .begin(
            "tools/call",
            json!({ "name": "butler", "arguments": { "prompt": "go" }, "_meta": { "progressToken": 5 } }),
        )
        .await;
    let mut told = Vec::new();
    loop {
        let message = client.next().await.unwrap();
        match message["method"].as_str() {
            Some("notifications/progress") => told.push(message["params"]["message"].clone()),
            Some(_) => client
                .send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "action": "accept", "content": {} } }))
                .await,
            None => break assert_eq!(text(&message), "Done."),
        }
    }
    told.sort_by_key(Value::to_string);
    assert_eq!(told, [json!("Pay"), json!("echo")]);
}

#[tokio::test]
async fn a_run_stops_when_its_request_is_cancelled_and_has_one_owner() {
    for rev in BOTH {
        let gate = Gate::default();
        let waits = Script::new().text("Never said.").wait_at(0, &gate);
        let journal = Arc::default();
        let model = model([
            Script::new().text("Hello."),
            waits,
            Script::new().text("Back."),
        ]);
        let mut client = Client::open(&host(&model, &Arc::default(), &journal), rev).await;
        let session =
            client.call("butler", json!({ "prompt": "hello" })).await["result"]["structuredContent"]["session"].take();
        let args = json!({ "prompt": "wait", "session": session });
        let id = client
            .begin(
                "tools/call",
                json!({ "name": "butler", "arguments": args.clone() }),
            )
            .await;
        gate.wait_until_reached().await;
        let busy = client.call("butler", args.clone()).await;
        assert!(
            busy["error"]["message"]
                .as_str()
                .unwrap()
                .contains("another request"),
            "{busy}"
        );
        client
            .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }))
            .await;
        // The session is free again once its run has ended.
        let back = loop {
            let said = client.call("butler", args.clone()).await;
            if said["error"].is_null() {
                break said;
            }
        };
        assert_eq!(text(&back), "Back.");
    }
}
