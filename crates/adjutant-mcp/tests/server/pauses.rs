//! What a call waits for: asked of the client, answered by it, in this process or another one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{Journal, LogQuery, MemoryJournal};
use adjutant_llm::FixedWorld;
use adjutant_mcp::{ErrorKind, McpHost};
use serde_json::{Value, json};

use crate::client::{Client, Rev, text, tools};

const KEY: [u8; 32] = [7; 32];

/// A host on a journal that others share.
fn host(journal: &Arc<MemoryJournal>, done: &Arc<AtomicU32>) -> McpHost {
    McpHost::new("test")
        .tools(tools(done))
        .journal(Arc::clone(journal))
        .key(KEY)
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[tokio::test]
async fn a_call_goes_on_with_the_answer_when_another_host_gets_it() {
    let (journal, done) = (Arc::default(), Arc::default());
    let pay = json!({ "price": 3 });
    let mut first = Client::open(&host(&journal, &done), Rev::New).await;
    let asked = first.call("pay", pay.clone()).await["result"].take();
    let request = json!({ "method": "elicitation/create", "params": {
        "mode": "form",
        "message": "Run \"pay\" (titled \"Pay\") with these arguments?\n\npay {\"price\":3}",
        "requestedSchema": { "type": "object", "properties": {} },
    }});
    assert_eq!(
        (&asked["resultType"], &asked["inputRequests"]),
        (&json!("input_required"), &json!({ "approval": request }))
    );
    let named = first.call("name", json!({})).await["result"].take();
    assert_eq!(
        done.load(Ordering::SeqCst),
        1,
        "the step before the question, and no payment"
    );
    drop(first);

    let other = host(&journal, &done);
    let mut second = Client::open(&other, Rev::New).await;
    let approve = json!({ "approval": accept(json!({})), "unknown": 1 });
    for _ in 0..2 {
        let paid = second
            .retry("pay", pay.clone(), &asked["requestState"], approve.clone())
            .await;
        assert_eq!(
            (text(&paid), done.load(Ordering::SeqCst)),
            ("paid 3", 2),
            "once, however often it is said"
        );
    }
    // An answer that does not fit is no answer: it is asked again, and the first state still counts.
    let state = &named["requestState"];
    for wrong in [
        json!({}),
        json!({ "who": 5 }),
        json!({ "who": accept(json!({ "name": "x" })) }),
        json!({ "who": accept(json!({})) }),
    ] {
        let again = second.retry("name", json!({}), state, wrong.clone()).await;
        assert_eq!(
            again["result"]["resultType"], "input_required",
            "{wrong}: {again}"
        );
    }
    let answered = second
        .retry(
            "name",
            json!({}),
            state,
            json!({ "who": accept(json!({ "name": "Ada" })) }),
        )
        .await;
    assert_eq!(
        (text(&answered), done.load(Ordering::SeqCst)),
        ("hello \"Ada\"", 2),
        "the step is not done again"
    );
}

#[tokio::test]
async fn a_log_is_let_go_of_when_nobody_had_to_answer() {
    let journal = Arc::<MemoryJournal>::default();
    let mut client = Client::open(&host(&journal, &Arc::default()), Rev::New).await;
    let rows = [
        ("echo", json!({}), 0),
        ("broken", json!({}), 0),
        ("pay", json!({ "price": 3 }), 1),
        ("echo", json!({}), 1),
    ];
    for (name, args, expect) in rows {
        client.call(name, args).await;
        let logs = journal.list(&LogQuery::default()).await.unwrap().logs;
        assert_eq!(logs.len(), expect, "{name}");
    }
}

#[tokio::test]
async fn a_call_does_nothing_when_the_user_says_no() {
    let rows = [
        (
            "pay",
            json!({ "price": 3 }),
            "approval",
            "decline",
            "the user declined",
        ),
        (
            "pay",
            json!({ "price": 3 }),
            "approval",
            "cancel",
            "the user dismissed the question",
        ),
        (
            "name",
            json!({}),
            "who",
            "decline",
            "no name: Decline { message: None }",
        ),
    ];
    for (name, args, key, action, expect) in rows {
        let (journal, done) = (Arc::default(), Arc::<AtomicU32>::default());
        let host = host(&journal, &done);
        let mut client = Client::open(&host, Rev::New).await;
        let asked = client.call(name, args.clone()).await["result"].take();
        let steps = done.load(Ordering::SeqCst);
        let said = client
            .retry(
                name,
                args.clone(),
                &asked["requestState"],
                json!({ key: { "action": action } }),
            )
            .await;
        assert!(text(&said).contains(expect), "{said}");

        let mut client = Client::open(&host, Rev::Old).await;
        client
            .begin("tools/call", json!({ "name": name, "arguments": args }))
            .await;
        let asked = client.next().await.unwrap();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        client
            .send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": action } }))
            .await;
        let said = client.next().await.unwrap();
        assert!(text(&said).contains(expect), "{said}");
        assert_eq!(done.load(Ordering::SeqCst), 2 * steps, "{name} {action}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_before_2026_is_asked_in_place_when_a_call_waits() {
    let (journal, done) = (Arc::default(), Arc::<AtomicU32>::default());
    let host = host(&journal, &done);
    let mut client = Client::open(&host, Rev::Old).await;
    client
        .begin(
            "tools/call",
            json!({ "name": "pay", "arguments": { "price": 4 } }),
        )
        .await;
    let asked = client.next().await.unwrap();
    client
        .send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": accept(json!({})) }))
        .await;
    assert_eq!(text(&client.next().await.unwrap()), "paid 4");

    // Nobody answers for ten minutes: it is not approved.
    client
        .begin(
            "tools/call",
            json!({ "name": "pay", "arguments": { "price": 5 } }),
        )
        .await;
    let asked = client.next().await.unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    let mut ended = client.next().await.unwrap();
    if ended["method"] == "notifications/cancelled" {
        ended = client.next().await.unwrap();
    }
    assert!(
        text(&ended).contains("nobody approved it in time") || text(&ended).contains("in time"),
        "{ended}"
    );
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_ends_when_the_client_cannot_be_asked() {
    let (journal, done) = (Arc::default(), Arc::<AtomicU32>::default());
    let host = host(&journal, &done);
    let url_alone = json!({ "elicitation": { "url": {} } });
    for can in [json!({}), url_alone] {
        let mut client = Client::able(&host, Rev::New, can.clone()).await;
        let error = client.call("pay", json!({ "price": 3 })).await["error"].take();
        assert_eq!(
            (&error["code"], &error["data"]),
            (
                &json!(-32021),
                &json!({ "requiredCapabilities": { "elicitation": {} } })
            )
        );
        let mut client = Client::able(&host, Rev::Old, can).await;
        let ended = client.call("pay", json!({ "price": 3 })).await;
        assert!(
            text(&ended).contains("this client does not support"),
            "{ended}"
        );
    }
    assert_eq!(done.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_state_counts_when_it_was_given_out_here_for_this_call_and_in_time() {
    let (journal, done) = (Arc::default(), Arc::<AtomicU32>::default());
    let world = Arc::new(FixedWorld::at_ms(1_000));
    let at = |key| {
        host(&journal, &done)
            .key(key)
            .world(Arc::clone(&world))
            .answer_within(Duration::from_secs(60))
    };
    let mut client = Client::open(&at(KEY), Rev::New).await;
    let (args, yes) = (
        json!({ "price": 3 }),
        json!({ "approval": accept(json!({})) }),
    );
    let state = client.call("pay", args.clone()).await["result"]["requestState"].take();
    let of_name = client.call("name", json!({})).await["result"]["requestState"].take();
    let good = state.as_str().unwrap();
    let mut flipped = good.as_bytes().to_vec();
    let middle = flipped.len() / 2;
    flipped[middle] = if flipped[middle] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let foreign = [
        json!(""),
        json!("rs1.e30.e30"),
        json!(format!("{good}x")),
        json!(good[..good.len() - 1]),
        json!(flipped),
        json!("x".repeat(1 << 20)),
        of_name,
    ];
    for forged in foreign {
        let said = client
            .retry("pay", args.clone(), &forged, yes.clone())
            .await;
        assert_eq!(said["error"]["code"], -32602, "{forged}: {said}");
    }
    // Consent to what was not shown yet is none.
    let unasked = client
        .ask(
            "tools/call",
            json!({ "name": "pay", "arguments": args, "inputResponses": yes }),
        )
        .await;
    assert_eq!(
        unasked["result"]["resultType"], "input_required",
        "{unasked}"
    );
    let mut stranger = Client::open(&at([8; 32]), Rev::New).await;
    assert_eq!(
        stranger
            .retry("pay", args.clone(), &state, yes.clone())
            .await["error"]["code"],
        -32602
    );
    let elsewhere = McpHost::new("test")
        .tools(tools(&done))
        .key(KEY)
        .world(Arc::clone(&world));
    let mut elsewhere = Client::open(&elsewhere, Rev::New).await;
    let said = elsewhere
        .retry("pay", args.clone(), &state, yes.clone())
        .await;
    assert!(
        said["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no longer exists here"),
        "{said}"
    );
    world.advance_ms(60_000);
    let said = client.retry("pay", args, &state, yes).await;
    assert!(
        said["error"]["message"]
            .as_str()
            .unwrap()
            .contains("time for an answer is over"),
        "{said}"
    );
    assert_eq!(done.load(Ordering::SeqCst), 1, "nothing was paid");
}

#[test]
fn a_key_is_made_once_and_kept_from_others_when_it_is_in_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("adjutant-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("key");
    let take = || {
        McpHost::new("test")
            .key_file(&path)
            .map(|_| std::fs::read(&path).unwrap())
    };
    let made = take().unwrap();
    assert_eq!((made.len(), take().unwrap()), (32, made.clone()));
    let mode =
        |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    mode(0o640);
    assert_eq!(take().unwrap_err().kind, ErrorKind::Invalid);
    mode(0o600);
    for wrong in [&made[..31], &[&made[..], &[1]].concat()] {
        std::fs::write(&path, wrong).unwrap();
        assert_eq!(take().unwrap_err().kind, ErrorKind::Invalid);
    }
    let missing = McpHost::new("test")
        .key_file(folder.join("none/key"))
        .unwrap_err();
    assert_eq!(missing.kind, ErrorKind::Unavailable);
    std::fs::remove_dir_all(&folder).unwrap();
}
