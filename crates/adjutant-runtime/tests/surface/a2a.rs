//! The agent for callers that speak A2A: the card before the token, everything else behind it.

use adjutant_llm::Script;
use adjutant_runtime::prompt::{ForkRequest, PausesRequest, SessionState};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::{
    raw::{Asked, ask},
    stage::{self, Over, Stage, stage},
};

fn asked(method: &str, params: Value) -> Asked<'static> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    Asked::new("POST", "/a2a?A2A-Version=1.0").json(body)
}

fn said(id: &str, text: &str, more: &Value) -> Value {
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
    message
        .as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    json!({"message": message})
}

async fn result(stage: &Stage, method: &str, params: Value) -> Value {
    let answer = ask(stage, asked(method, params)).await;
    let mut told: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(
        (answer.status, told.get("error")),
        (200, None),
        "{}",
        answer.body
    );
    told["result"].take()
}

#[tokio::test]
async fn agent_answers_over_a2a_behind_its_token_and_shows_its_card_to_everybody() {
    let delete = || Script::new().call("delete", json!({"what": "all"}));
    let linger = Script::new().call("linger", json!({}));
    let stage = stage(
        Over::Http,
        [delete(), Script::new().text("Kept it."), linger, delete()],
    )
    .await;
    let card = || Asked {
        token: None,
        ..Asked::new("GET", "/.well-known/agent-card.json")
    };
    let told: Value = serde_json::from_str(&ask(&stage, card()).await.body).expect("JSON");
    let url = format!("http://{}/a2a", stage.client.address());
    assert_eq!(
        (&told["name"], &told["supportedInterfaces"][0]["url"]),
        (&json!("tester"), &json!(url))
    );
    assert_eq!(
        told["securityRequirements"][0]["schemes"]["bearer"],
        json!({"list": []})
    );
    let elsewhere = Asked {
        host: Some("example.org".to_owned()),
        ..card()
    };
    assert_eq!(ask(&stage, elsewhere).await.status, 403);
    let stranger = Asked {
        token: None,
        ..asked("GetTask", json!({"id": "1.a"}))
    };
    assert_eq!(ask(&stage, stranger).await.status, 401);
    let text = Asked {
        media: "text/plain",
        ..asked("GetTask", json!({"id": "1.a"}))
    };
    assert_eq!(ask(&stage, text).await.status, 415);

    let go = said("m1", "Go.", &json!({"contextId": "a"}));
    let stream = ask(&stage, asked("SendStreamingMessage", go.clone())).await;
    let last = stream
        .body
        .trim_end()
        .rsplit("data: ")
        .next()
        .expect("a frame");
    assert!(
        stream.head.contains("text/event-stream") && last.contains("TASK_STATE_INPUT_REQUIRED"),
        "{stream:?}"
    );
    // It is the same run as for everybody else.
    let page = stage
        .prompter
        .pauses(PausesRequest::new().session("a"))
        .await
        .expect("it waits");
    assert!(last.contains(&page.pauses[0].digest.to_string()), "{last}");
    let ended = result(
        &stage,
        "SendMessage",
        said("m2", "No.", &json!({"taskId": "1.a"})),
    )
    .await;
    assert_eq!(ended["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(
        ended["task"]["artifacts"][0]["parts"][0]["text"],
        "Kept it."
    );
    assert_eq!(
        result(&stage, "SendMessage", go).await,
        ended,
        "it was heard before"
    );

    let mut next = said("m3", "Go on.", &json!({"contextId": "a"}));
    next["configuration"] = json!({"returnImmediately": true});
    assert_eq!(
        result(&stage, "SendMessage", next).await["task"]["status"]["state"],
        "TASK_STATE_WORKING"
    );
    let cancels = (0..8).map(|_| result(&stage, "CancelTask", json!({"id": "2.a"})));
    for cancelled in join_all(cancels).await {
        assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    }
    // One that waits ends as well, whoever is first.
    result(
        &stage,
        "SendMessage",
        said("m4", "Delete it.", &json!({"contextId": "b"})),
    )
    .await;
    let cancels = (0..8).map(|_| result(&stage, "CancelTask", json!({"id": "1.b"})));
    for cancelled in join_all(cancels).await {
        assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    }
    stage.server.abort();
}

#[tokio::test]
async fn fork_of_a_run_that_waits_is_answered_and_one_of_its_middle_is_over() {
    let asks = Script::new().call("delete", json!({"what": "it"}));
    let kept = || Script::new().text("Kept it.");
    let stage = stage(
        Over::Http,
        [asks, kept(), kept(), Script::new().text("Fine.")],
    )
    .await;
    let events = stage::all(stage.stream("talk", "Delete it.").await.expect("it begins")).await;
    let opened = events
        .iter()
        .find(|it| stage::name(it) == "turn_started")
        .expect("a turn")
        .seq;
    // In its log, it has asked there and does not wait yet.
    let asked = events
        .iter()
        .find(|it| stage::name(it) == "paused")
        .expect("a pause")
        .seq;
    for (to, at) in [
        ("waits", None),
        ("asks", Some(asked.0)),
        ("cut", Some(opened.0)),
    ] {
        let mut fork = ForkRequest::new(to);
        fork.at = at;
        let made = stage
            .prompter
            .fork(Some("talk"), fork)
            .await
            .expect("it is made");
        let stands = if to == "cut" {
            SessionState::Open
        } else {
            SessionState::Waiting
        };
        assert_eq!(made.state, stands, "{to}");
    }
    let page = stage
        .prompter
        .pauses(PausesRequest::new())
        .await
        .expect("a page");
    assert_eq!(
        page.pauses
            .iter()
            .map(|it| &*it.session)
            .collect::<Vec<_>>(),
        ["asks", "talk", "waits"]
    );
    for to in ["waits", "asks"] {
        let kept = result(
            &stage,
            "SendMessage",
            said("m1", "No.", &json!({"taskId": format!("1.{to}")})),
        )
        .await;
        assert_eq!(
            kept["task"]["artifacts"][0]["parts"][0]["text"], "Kept it.",
            "{to}"
        );
    }

    for method in ["GetTask", "CancelTask"] {
        let told = result(&stage, method, json!({"id": "1.cut"})).await;
        assert_eq!(told["status"]["state"], "TASK_STATE_CANCELED", "{method}");
    }
    let next = result(
        &stage,
        "SendMessage",
        said("m2", "Rather tell me.", &json!({"contextId": "cut"})),
    )
    .await;
    assert_eq!(
        (&next["task"]["id"], &next["task"]["status"]["state"]),
        (&json!("2.cut"), &json!("TASK_STATE_COMPLETED"))
    );
    assert_eq!(next["task"]["artifacts"][0]["parts"][0]["text"], "Fine.");
    stage.server.abort();
}
