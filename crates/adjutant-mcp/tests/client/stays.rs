//! The set of tools: when it is the same, when it is another one, and what is there while the server is not.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use adjutant_tool::Toolset;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use super::script::{
    Act, BOTH, Heard, Speaks, answer, call, configured, names, notify, resolve, server, text, tool,
    usual, warnings,
};

fn is_same(one: &Toolset, other: &Toolset) -> bool {
    Arc::ptr_eq(one.decls(), other.decls())
}

#[tokio::test(start_paused = true)]
async fn tools_are_listed_and_called_in_both_revisions() {
    for speaks in BOTH {
        let server = server(move |_, message: &Value| match message["method"].as_str() {
            Some("tools/call") => vec![answer(
                message,
                text(&format!("{}", message["params"]["arguments"])),
            )],
            _ => usual(speaks, message, &[tool("echo"), tool("other")]),
        });
        let set = resolve(&server).await;
        assert_eq!(
            (names(&set), warnings(&set)),
            (vec!["s_echo", "s_other"], vec![]),
            "{speaks:?}"
        );
        let spec = set.get("s_echo").expect("it is there").spec();
        assert_eq!(
            (&*spec.decl.description, spec.decl.schema.to_string()),
            ("Does echo.", r#"{"type":"object"}"#.into())
        );
        assert_eq!(
            call(&set, "s_echo", json!({"a": 1}))
                .await
                .expect("it answers")
                .text(),
            r#"{"a":1}"#
        );
        assert!(is_same(&set, &resolve(&server).await), "{speaks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_resolvers_share_one_start() {
    let heard = Heard::default();
    let server = {
        let heard = heard.clone();
        server(move |_, message: &Value| {
            heard.note(message);
            usual(Speaks::New, message, &[tool("a")])
        })
    };
    let sets = futures_util::future::join_all((0..50).map(|_| resolve(&server))).await;
    assert!(
        sets.iter()
            .all(|set| is_same(set, &sets[0]) && names(set) == ["s_a"])
    );
    assert_eq!(
        (heard.of("server/discover"), heard.of("tools/list")),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn set_changes_only_when_the_list_does() {
    for speaks in BOTH {
        let (round, heard, listens) = (
            AtomicUsize::new(0),
            Heard::default(),
            Mutex::new(Value::Null),
        );
        let server = {
            let heard = heard.clone();
            server(move |_, message: &Value| {
                heard.note(message);
                let tools = if round.load(Ordering::Relaxed) < 2 {
                    vec![tool("a")]
                } else {
                    vec![tool("a"), tool("b")]
                };
                let mut acts = usual(speaks, message, &tools);
                match message["method"].as_str() {
                    Some("subscriptions/listen") => {
                        *listens.lock().expect("nobody panicked") = message["id"].clone()
                    }
                    Some("tools/call") => {
                        round.fetch_add(1, Ordering::Relaxed);
                        let id = listens.lock().expect("nobody panicked").clone();
                        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                        let params = if speaks == Speaks::New {
                            json!({"_meta": meta})
                        } else {
                            json!({})
                        };
                        acts.push(notify("notifications/tools/list_changed", params));
                        acts.push(answer(message, text("done")));
                    }
                    _ => {}
                }
                acts
            })
        };
        let first = resolve(&server).await;
        call(&first, "s_a", json!({})).await.expect("it answers");
        sleep(Duration::from_millis(1)).await;
        let second = resolve(&server).await;
        assert!(is_same(&first, &second), "{speaks:?}: the same content");
        call(&first, "s_a", json!({})).await.expect("it answers");
        sleep(Duration::from_millis(1)).await;
        let third = resolve(&server).await;
        assert_eq!(names(&third), ["s_a", "s_b"], "{speaks:?}");
        assert_eq!(heard.of("tools/list"), 3, "{speaks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn list_is_asked_for_again_when_its_time_is_over() {
    let heard = Heard::default();
    let server = {
        let heard = heard.clone();
        server(move |_, message: &Value| {
            heard.note(message);
            match message["method"].as_str() {
                Some("tools/list") => {
                    let tools = [tool("a")];
                    vec![answer(
                        message,
                        json!({"resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "public"}),
                    )]
                }
                _ => usual(Speaks::New, message, &[]),
            }
        })
    };
    let first = resolve(&server).await;
    sleep(Duration::from_secs(59)).await;
    let second = resolve(&server).await;
    assert_eq!(heard.of("tools/list"), 1);
    sleep(Duration::from_secs(2)).await;
    let third = resolve(&server).await;
    assert_eq!(heard.of("tools/list"), 2);
    assert!(is_same(&first, &second) && is_same(&second, &third));
}

#[tokio::test(start_paused = true)]
async fn list_that_changes_all_the_time_is_waited_for_once() {
    let server = server(|_, message: &Value| {
        let mut acts = usual(Speaks::Old, message, &[tool("a")]);
        if message["method"] == "tools/list" {
            acts.insert(0, notify("notifications/tools/list_changed", json!({})));
            acts.push(notify("notifications/tools/list_changed", json!({})));
        }
        acts
    });
    let began = Instant::now();
    for _ in 0..3 {
        assert_eq!(names(&resolve(&server).await), ["s_a"]);
    }
    assert!(
        began.elapsed() <= Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn tools_stay_listed_and_calls_wait_while_the_server_is_down() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let server = {
        let is_broken = Arc::clone(&is_broken);
        configured(
            move |connection, message: &Value| match message["method"].as_str() {
                Some("tools/call") if connection == 0 => vec![Act::Die],
                Some("tools/call") => {
                    vec![answer(message, text(&format!("connection {connection}")))]
                }
                _ if is_broken.load(Ordering::Relaxed) => vec![Act::Die],
                _ => usual(Speaks::Old, message, &[tool("a")]),
            },
            |config| config.start_limit = Duration::from_secs(5),
        )
    };
    let set = resolve(&server).await;
    let error = call(&set, "s_a", json!({})).await.expect_err("it dies");
    let expect =
        "MCP server \"s\": it closed the connection; whether the call took effect is not known";
    assert_eq!(
        (error.kind, &*error.message),
        (adjutant_tool::ToolErrorKind::OutcomeUnknown, expect)
    );
    assert!(
        is_same(&set, &resolve(&server).await),
        "the tools stay listed"
    );
    // Waits for the second beginning, a second later.
    assert_eq!(
        call(&set, "s_a", json!({}))
            .await
            .expect("it is there again")
            .text(),
        "connection 1"
    );
    is_broken.store(true, Ordering::Relaxed);
}

#[tokio::test(start_paused = true)]
async fn server_that_never_came_up_is_a_warning_and_is_tried_again() {
    let tries = Arc::new(AtomicUsize::new(0));
    let begins_after = |starts: usize| {
        let tries = Arc::clone(&tries);
        server(move |connection, message: &Value| {
            tries.store(connection + 1, Ordering::Relaxed);
            if connection < starts {
                vec![Act::Die]
            } else {
                usual(Speaks::Old, message, &[tool("a")])
            }
        })
    };
    let server = begins_after(3);
    let set = resolve(&server).await;
    let expect = "MCP server \"s\": it closed the connection before it said which revision it speaks; it is tried again";
    assert_eq!((names(&set), warnings(&set)), (vec![], vec![expect]));
    assert!(is_same(&set, &resolve(&server).await), "it does not wait");
    server.ready().await.expect("it comes up within 30 s");
    assert_eq!(
        (
            names(&resolve(&server).await),
            tries.load(Ordering::Relaxed)
        ),
        (vec!["s_a"], 4)
    );
    // Whoever only looks is told soon.
    let (dead, began) = (begins_after(usize::MAX), Instant::now());
    let error = dead.about().await.expect_err("it never comes up");
    assert!(
        error.message.contains("it closed the connection before")
            && began.elapsed() < Duration::from_secs(2)
    );
    // One that is just being begun again is waited for.
    let soon = begins_after(2);
    assert_eq!(
        (
            names(&resolve(&soon).await),
            warnings(&resolve(&soon).await)
        ),
        (vec!["s_a"], vec![])
    );
}
