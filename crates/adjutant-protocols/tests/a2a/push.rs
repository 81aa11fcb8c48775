//! Updates that are pushed: what is sent where, with which secrets, and what is refused.

use adjutant_agent::MemoryJournal;
use adjutant_llm::Script;
use adjutant_protocols::a2a::{AgentCard, Handler, PushTargets, SendMessage};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
};

use super::{ask, handler_of, json_of, message, pays, send};

/// A message whose updates are pushed too.
pub(crate) fn wanting(mut said: Value, config: Value) -> Value {
    said["configuration"] = json!({"taskPushNotificationConfig": config});
    said
}

/// An agent that pushes, also to this machine.
fn pushing(scripts: impl IntoIterator<Item = Script>) -> Handler {
    let mut card = AgentCard::new("payer", "Pays.", "http://127.0.0.1/a2a");
    let mut targets = PushTargets::default();
    targets.private_hosts = vec!["127.0.0.1".to_owned()];
    card.pushes = Some(targets);
    handler_of(&card, &MemoryJournal::default(), scripts)
}

/// An address that answers with these heads, then with 204; and what it hears: the head and the body.
async fn hook(
    answers: impl IntoIterator<Item = String>,
) -> (String, UnboundedReceiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!(
        "http://{}/hook?key=1",
        listener.local_addr().expect("an address")
    );
    let (tell, heard) = unbounded_channel();
    let mut answers: Vec<String> = answers.into_iter().collect();
    answers.reverse();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tell.send(request(&mut stream).await)
                .expect("somebody hears");
            let head = answers.pop().unwrap_or_else(|| "204 No Content".to_owned());
            let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n");
            stream
                .write_all(answer.as_bytes())
                .await
                .expect("it is there");
        }
    });
    (url, heard)
}

async fn request(stream: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    loop {
        stream.read_buf(&mut bytes).await.expect("it is there");
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return (head.to_ascii_lowercase(), body);
        }
    }
}

/// What was pushed until a task was in this state: the names of the updates with their states.
async fn until(heard: &mut UnboundedReceiver<(String, Value)>, state: &str) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let (head, body) = heard.recv().await.expect("more comes");
        for line in [
            "x-a2a-notification-token: t0ken",
            "authorization: bearer s3cret",
            "content-type: application/json",
            "post /hook?key=1 ",
        ] {
            assert!(head.contains(line), "{head}");
        }
        let (name, update) = body
            .as_object()
            .and_then(|body| body.iter().next())
            .expect("one");
        let is = update["status"]["state"].as_str().unwrap_or_default();
        told.push(
            format!("{name} {}", is.trim_start_matches("TASK_STATE_"))
                .trim()
                .to_owned(),
        );
        if told.last().is_some_and(|last| last.ends_with(state)) {
            return told;
        }
    }
}

#[tokio::test]
async fn updates_are_pushed_in_order_until_the_task_is_over() {
    let handler = pushing([pays(1), Script::new().text("Done.")]);
    assert_eq!(handler.card()["capabilities"]["pushNotifications"], true);
    let (url, mut heard) = hook(["503 Not now".to_owned()]).await;
    let login = json!({"scheme": "Bearer", "credentials": "S3cret"});
    let config = json!({"url": url, "token": "t0ken", "authentication": login});
    let go = wanting(
        message("m1", json!({"text": "Go."}), json!({"contextId": "c"})),
        config,
    );
    let read: SendMessage = serde_json::from_value(go.clone()).expect("a message");
    for secret in ["S3cret", "t0ken", "key=1"] {
        assert!(!format!("{read:?}").contains(secret), "{read:?}");
    }
    let task = send(&handler, go.clone()).await.expect("a task");
    let told = until(&mut heard, "INPUT_REQUIRED").await;
    assert_eq!(told[0], "task WORKING");
    assert_eq!(
        told[1], told[0],
        "what did not arrive is sent again: {told:?}"
    );

    // Sent again it is pushed once; secrets are not told, and nobody is redirected.
    send(&handler, go).await.expect("a task");
    until(&mut heard, "INPUT_REQUIRED").await;
    let (other, mut elsewhere) = hook([format!("307 Elsewhere\r\nlocation: {url}")]).await;
    let of = json!({"taskId": task["id"]});
    let create = json!({"taskId": task["id"], "id": "other", "url": other});
    let made = ask(&handler, "CreateTaskPushNotificationConfig", create.clone()).await;
    assert_eq!(made, Ok(create.clone()));
    let first = json!({"id": task["id"], "taskId": task["id"], "url": url, "authentication": {"scheme": "Bearer"}});
    let listed = ask(&handler, "ListTaskPushNotificationConfigs", of).await;
    assert_eq!(
        listed,
        Ok(json!({"configs": [first, create.clone()], "nextPageToken": ""}))
    );
    assert_eq!(
        ask(&handler, "GetTaskPushNotificationConfig", create.clone()).await,
        Ok(create)
    );
    assert_eq!(
        elsewhere
            .recv()
            .await
            .map(|(_, body)| body["task"]["id"].clone()),
        Some(task["id"].clone())
    );

    send(
        &handler,
        message("m2", json!({"text": "Yes"}), json!({"taskId": task["id"]})),
    )
    .await
    .expect("a task");
    let told = until(&mut heard, "COMPLETED").await;
    assert!(
        told.starts_with(&["statusUpdate WORKING".to_owned()])
            && told.contains(&"artifactUpdate".to_owned()),
        "{told:?}"
    );
    assert!(heard.try_recv().is_err() && elsewhere.try_recv().is_err());
}

#[tokio::test]
async fn address_is_refused_when_it_is_not_public_or_there_is_no_place_for_it() {
    let handler = pushing([Script::new().text("Done.")]);
    let task = send(
        &handler,
        message("m1", json!({"text": "Go."}), json!({"contextId": "c"})),
    )
    .await
    .expect("a task");
    let (id, url) = (&task["id"], "https://hook.example/?S3cret");
    let ok = json!({"taskId": id, "id": "0", "url": "http://127.0.0.1:9/"});
    let with = |name: &str, value: Value| {
        let mut config = ok.clone();
        config[name] = value;
        config
    };
    let wrong = [
        with("url", json!("ftp://hook.example/S3cret")),
        with("url", json!("https://a:S3cret@hook.example")),
        with("url", json!("http://10.0.0.1/S3cret")),
        with("url", json!("http://[::1]/S3cret")),
        with("url", json!("http://0x7f000002/S3cret")),
        with("url", json!(format!("{url}{}", "a".repeat(2_048)))),
        with("url", json!(7)),
        with("token", json!("S3cret\r\nx: y")),
        with("token", json!(["S3cret"])),
        with("authentication", json!("S3cret")),
        with(
            "authentication",
            json!({"scheme": "Bearer", "credentials": "S3cret\n"}),
        ),
    ];
    for config in wrong {
        let message = wanting(
            message("m2", json!({"text": "Go."}), json!({"contextId": "d"})),
            config.clone(),
        );
        for (method, params) in [
            ("CreateTaskPushNotificationConfig", config),
            ("SendMessage", message),
        ] {
            let body =
                json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
            let told = json_of(handler.handle(Some("1.0"), body.as_bytes()).await);
            assert_eq!(told["error"]["code"], -32602, "{body}: {told}");
            assert!(!told.to_string().contains("S3cret"), "{told}");
        }
    }
    let create = async |config| ask(&handler, "CreateTaskPushNotificationConfig", config).await;
    assert_eq!(create(with("taskId", json!("9.c"))).await, Err(-32001));
    for n in 0..8 {
        let config = with("id", json!(n.to_string()));
        assert_eq!(create(config.clone()).await, Ok(config));
    }
    assert_eq!(
        create(with("id", json!("8"))).await,
        Err(-32004),
        "there are eight"
    );
    assert_eq!(
        create(ok.clone()).await,
        Ok(ok.clone()),
        "it is the first one again"
    );
    for _ in 0..2 {
        assert_eq!(
            ask(&handler, "DeleteTaskPushNotificationConfig", ok.clone()).await,
            Ok(json!({}))
        );
    }
    assert_eq!(
        ask(&handler, "GetTaskPushNotificationConfig", ok.clone()).await,
        Err(-32001)
    );
    assert_eq!(
        create(with("id", json!("8"))).await,
        Ok(with("id", json!("8")))
    );
    let listed = ask(&handler, "ListTasks", json!({"contextId": "d"}))
        .await
        .expect("they are listed");
    assert_eq!(listed["totalSize"], 0, "nothing was begun");
}
