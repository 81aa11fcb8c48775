//! The description of the routes: it names every route, and what is really said fits its schemas.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_llm::{Schema, Script};
use adjutant_runtime::http::OPENAPI;
use serde_json::{Value, json};

use crate::{
    raw::{Asked, ask, frames},
    stage::{Over, Stage, TOKEN, stage},
};

/// The source of the routes: what it holds is what is served.
const ROUTES: &str = include_str!("../../src/http/routes.rs");
/// The source of the routes of the control plane.
const CONTROL: &str = include_str!("../../src/control.rs");
/// The source of those of a page.
const PAGE: &str = include_str!("../../src/http/page.rs");
/// The routes of a page, which an agent itself has not.
const PAGED: [&str; 3] = ["/", "/app/{name}", "/v1/session"];
const METHODS: [&str; 5] = ["get", "post", "put", "delete", "patch"];

struct Described {
    document: Value,
    schema: Schema,
}

fn described() -> Described {
    let document: Value = serde_json::from_str(OPENAPI).expect("it is JSON");
    let schema = Schema::compile(Arc::new(document.clone())).expect("its schemas can be used");
    Described { document, schema }
}

impl Described {
    /// Holds a value against the schema at a place.
    #[track_caller]
    fn fits(&self, pointer: &str, value: &Value) {
        assert!(
            self.document.pointer(pointer).is_some(),
            "nothing is described at {pointer}"
        );
        let schema = self.schema.part(pointer).expect("a schema");
        assert_eq!(schema.validate(value), Ok(()), "{pointer}: {value}");
    }

    /// Asks a route, and holds request and answer against what is said of them.
    async fn exchange(
        &self,
        stage: &Stage,
        method: &str,
        route: &str,
        path: &str,
        body: Option<Value>,
    ) -> Value {
        self.exchange_as(stage, Asked::new(method, path), route, body)
            .await
    }

    async fn exchange_as(
        &self,
        stage: &Stage,
        asked: Asked<'_>,
        route: &str,
        body: Option<Value>,
    ) -> Value {
        let method = asked.method.to_lowercase();
        let place = format!(
            "/paths/{}/{method}",
            route.replace('~', "~0").replace('/', "~1")
        );
        let simple = asked.path.contains("simple");
        let asked = match &body {
            Some(body) => asked.json(body.clone()),
            None => asked,
        };
        let answer = ask(stage, asked).await;
        if answer.status < 300
            && let Some(body) = &body
        {
            self.fits(
                &format!("{place}/requestBody/content/application~1json/schema"),
                body,
            );
        }
        let status = answer.status;
        let said = format!("{place}/responses/{status}/content");
        if answer.head.contains("text/event-stream") {
            if !answer.body.contains("event: ") {
                // The streams of other people's pages have frames without names.
                let data = answer
                    .body
                    .lines()
                    .filter_map(|line| line.strip_prefix("data: "));
                let data = data
                    .filter(|it| *it != "[DONE]")
                    .map(|it| serde_json::from_str(it).expect("it is JSON"));
                let told: Vec<Value> = data.collect();
                told.iter()
                    .for_each(|data| self.fits(&format!("{said}/text~1event-stream/schema"), data));
                return told.last().map(|it| it["type"].clone()).unwrap_or_default();
            }
            let schema = if simple {
                "/components/schemas/SimpleEvent".to_owned()
            } else {
                format!("{said}/text~1event-stream/schema")
            };
            for (name, data) in frames(&answer.body) {
                match name.as_str() {
                    "end" => assert_eq!(data, json!({})),
                    "error" => self.fits("/components/schemas/Error", &data),
                    _ => self.fits(&schema, &data),
                }
            }
            return json!(frames(&answer.body).last().map(|(name, _)| name.clone()));
        }
        let told = answer.json();
        self.fits(&format!("{said}/application~1json/schema"), &told);
        told
    }
}

/// The routes of a source file below a path: `.route("…", get(…))`, or `.route(&at("…"), …)` for those of one agent.
fn served(source: &str, of_agent: &str) -> BTreeSet<String> {
    let mut served = BTreeSet::new();
    let source = source.split_whitespace().collect::<Vec<_>>().join(" ");
    let source = source.replace("( ", "(");
    for route in source.split(".route(").skip(1).map(call) {
        let whole = route.strip_prefix('"').map(|rest| ("", rest));
        let below = route.strip_prefix("&at(\"").map(|rest| (of_agent, rest));
        let Some((below, (path, methods))) = whole
            .or(below)
            .and_then(|(it, rest)| Some((it, rest.split_once('"')?)))
        else {
            continue;
        };
        let named = METHODS.iter().filter(|method| {
            methods.contains(&format!(" {method}(")) || methods.contains(&format!(").{method}("))
        });
        served.extend(named.map(|method| format!("{method} {below}{path}")));
    }
    served
}

/// Returns the arguments of a call whose opening parenthesis was cut off.
fn call(text: &str) -> &str {
    let mut depth = 1;
    let end = text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    &text[..end.unwrap_or(text.len())]
}

/// The methods of a path; the one of an agent of the control plane is that of the agent itself.
fn methods(document: &Value, item: &Value) -> Vec<&'static str> {
    let same = item
        .get("$ref")
        .and_then(Value::as_str)
        .map(|it| it.trim_start_matches('#'));
    let item = same.map_or(item, |same| {
        document.pointer(same).expect("it is described")
    });
    METHODS
        .into_iter()
        .filter(|method| item.get(*method).is_some())
        .collect()
}

#[test]
fn openapi_names_every_route_and_method_and_no_other() {
    let document = described().document;
    let paths = document
        .get("paths")
        .and_then(Value::as_object)
        .expect("paths");
    let described: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, item)| {
            methods(&document, item)
                .into_iter()
                .map(move |method| format!("{method} {path}"))
        })
        .collect();
    let all: BTreeSet<String> = [
        (ROUTES, "/v1"),
        (ROUTES, "/v1/agents/{agent}"),
        (CONTROL, ""),
        (PAGE, ""),
    ]
    .into_iter()
    .flat_map(|(source, below)| served(source, below))
    .collect();
    assert_eq!(described, all);
    assert!(all.len() >= 30, "{all:?}");
}

#[tokio::test]
async fn openapi_is_served_and_every_route_answers_as_it_says() {
    let described = described();
    let stage = stage(Over::Http, []).await;
    let told = ask(&stage, Asked::new("GET", "/v1/openapi.json")).await;
    assert_eq!(told.json(), described.document);
    let paths = described
        .document
        .get("paths")
        .and_then(Value::as_object)
        .expect("paths");
    let is_own = |path: &str| !path.starts_with("/v1/agents") && !PAGED.contains(&path);
    for (path, item) in paths.iter().filter(|(path, _)| is_own(path)) {
        let asked = path.replace("{name}", "nobody");
        for method in METHODS {
            if path == "/v1/stop" && method == "post" {
                continue;
            }
            let answer = ask(
                &stage,
                Asked::new(&method.to_uppercase(), &asked).json(json!({})),
            )
            .await;
            assert_eq!(
                answer.status == 405,
                item.get(method).is_none(),
                "{method} {path}: {}",
                answer.status
            );
        }
    }
}

#[tokio::test]
async fn requests_and_answers_fit_their_schemas() {
    let described = described();
    let scripts = [
        Script::new().call("add", json!({"a": 2, "b": 3})),
        Script::new().text("Five."),
        Script::new().call("add", json!({"a": 2, "b": 3})),
        Script::new().text("Five."),
        Script::new().call("add", json!({"a": 2, "b": 3})),
        Script::new().text("Five."),
        Script::new().call("delete", json!({"what": "it"})),
        Script::new().text("Done."),
        Script::new().text(r#"{"name": "Ada"}"#),
        Script::new().text("Yes."),
        Script::new().text("Yes."),
    ];
    let stage = stage(Over::Http, scripts).await;
    let on = async |method: &str, route: &str, body: Option<Value>| {
        described.exchange(&stage, method, route, route, body).await
    };
    on("GET", "/v1/ready", None).await;
    on("GET", "/v1/status", None).await;
    on(
        "POST",
        "/v1/prompt",
        Some(json!({"prompt": "Go.", "session": "a", "timeout_ms": 60000})),
    )
    .await;
    let all = json!({"prompt": "Go.", "session": "b"});
    assert_eq!(
        on("POST", "/v1/prompt/stream", Some(all)).await,
        json!("end")
    );
    let (route, path) = ("/v1/prompt/stream", "/v1/prompt/stream?events=simple");
    let told = described
        .exchange(
            &stage,
            "POST",
            route,
            path,
            Some(json!({"prompt": "Go.", "session": "c"})),
        )
        .await;
    assert_eq!(told, json!("message.create"));
    let waits = on(
        "POST",
        "/v1/prompt",
        Some(json!({"prompt": "Delete it.", "session": "d"})),
    )
    .await;
    let pause = waits
        .pointer("/result/outcome/pauses/0/id")
        .expect("it waits")
        .clone();
    let waiting = on("GET", "/v1/pauses", None).await;
    assert_eq!(waiting.pointer("/pauses/0/id"), Some(&pause));
    let answers =
        json!({"session": "d", "answers": [{"pause": pause, "answer": {"answer": "approve"}}]});
    assert_eq!(on("POST", "/v1/resume", Some(answers)).await, json!("end"));
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let object = json!({"prompt": "Who?", "schema": schema, "schema_name": "person", "schema_description": "Somebody."});
    on("POST", "/v1/object", Some(object)).await;
    let sessions = on("GET", "/v1/sessions", None).await;
    assert_eq!(
        sessions
            .pointer("/sessions")
            .and_then(Value::as_array)
            .map(Vec::len),
        Some(4)
    );
    let (route, path) = ("/v1/sessions", "/v1/sessions?limit=1");
    assert!(
        described
            .exchange(&stage, "GET", route, path, None)
            .await
            .get("after")
            .is_some()
    );
    let (route, path) = (
        "/v1/sessions/{name}/messages",
        "/v1/sessions/a/messages?limit=2",
    );
    assert!(
        described
            .exchange(&stage, "GET", route, path, None)
            .await
            .get("before")
            .is_some()
    );
    described
        .exchange(
            &stage,
            "GET",
            "/v1/messages",
            "/v1/messages?session=b",
            None,
        )
        .await;
    for said in [
        json!({"control": "steer", "text": "Be brief."}),
        json!({"control": "follow_up", "text": "And?"}),
    ] {
        described
            .exchange(
                &stage,
                "POST",
                "/v1/control",
                "/v1/control?session=a",
                Some(said),
            )
            .await;
    }
    let told = described
        .exchange(
            &stage,
            "GET",
            "/v1/events",
            "/v1/events?session=a&after=0",
            None,
        )
        .await;
    assert_eq!(told, json!("end"));
    let of_a = |route: &'static str, more: &str| (route, format!("{route}?session=a{more}"));
    for (route, path) in [
        of_a("/v1/tree", ""),
        of_a("/v1/diff", "&with=b"),
        of_a("/v1/explain", ""),
        of_a("/v1/run", ""),
        of_a("/v1/request", "&seq=1"),
        of_a("/v1/context", "&limit=1"),
        of_a("/v1/request", "&seq=1000"),
        of_a("/v1/diff", ""),
        of_a("/v1/fleet", ""),
    ] {
        described.exchange(&stage, "GET", route, &path, None).await;
    }
    described
        .exchange(
            &stage,
            "POST",
            "/v1/undo",
            "/v1/undo?session=a",
            Some(json!({"to": 1})),
        )
        .await;
    let fork = Some(json!({"to": "e", "at": 2}));
    described
        .exchange(&stage, "POST", "/v1/fork", "/v1/fork?session=a", fork)
        .await;
    described
        .exchange(
            &stage,
            "DELETE",
            "/v1/sessions",
            "/v1/sessions?session=e",
            None,
        )
        .await;
    let input = json!({"threadId": "f", "runId": "r", "messages": [{"role": "user", "content": "Go."}], "tools": []});
    assert_eq!(
        on("POST", "/v1/ag-ui", Some(input.clone())).await,
        json!("RUN_FINISHED")
    );
    assert_eq!(
        on("POST", "/v1/ag-ui/connect", Some(input)).await,
        json!("RUN_FINISHED")
    );
    let said = json!([{"role": "user", "parts": [{"type": "text", "text": "Go."}]}]);
    assert_eq!(
        on(
            "POST",
            "/v1/ai-sdk",
            Some(json!({"id": "g", "messages": said}))
        )
        .await,
        json!("finish")
    );
    stage.model.assert_done();
}

#[tokio::test]
async fn refusals_fit_their_schemas() {
    let described = described();
    let stage = stage(Over::Http, []).await;
    let bad = Some(json!({}));
    let posts = [
        "prompt",
        "prompt/stream",
        "resume",
        "object",
        "control",
        "fork",
        "ag-ui",
        "ag-ui/connect",
        "ai-sdk",
    ];
    for route in posts.map(|it| format!("/v1/{it}")) {
        let route = &*route;
        described
            .exchange(&stage, "POST", route, route, bad.clone())
            .await;
        let media = Asked {
            media: "text/plain",
            ..Asked::new("POST", route)
        };
        described
            .exchange_as(&stage, media, route, bad.clone())
            .await;
    }
    let none = json!({"answers": []});
    described
        .exchange(&stage, "POST", "/v1/resume", "/v1/resume", Some(none))
        .await;
    described
        .exchange(&stage, "GET", "/v1/messages", "/v1/messages", None)
        .await;
    described
        .exchange(&stage, "GET", "/v1/sessions", "/v1/sessions?limit=0", None)
        .await;
    for route in ["/v1/status", "/v1/sessions", "/v1/openapi.json"] {
        let wrong = Asked {
            token: Some("wrong"),
            ..Asked::new("GET", route)
        };
        assert_ne!(TOKEN, "wrong");
        described.exchange_as(&stage, wrong, route, None).await;
        let host = Asked {
            host: Some("evil.example".into()),
            ..Asked::new("GET", route)
        };
        described.exchange_as(&stage, host, route, None).await;
    }
}

#[tokio::test]
async fn status_and_stop_fit_their_schemas() {
    let described = described();
    let stage = stage(Over::Http, []).await;
    let watch = Asked {
        accept: "text/event-stream",
        ..Asked::new("GET", "/v1/status")
    };
    let stop = described.exchange(&stage, "POST", "/v1/stop", "/v1/stop", None);
    let (told, stopping) = tokio::join!(
        described.exchange_as(&stage, watch, "/v1/status", None),
        stop
    );
    assert_eq!((told, stopping), (json!("end"), json!({"stopping": true})));
    stage.server.await.expect("it ends");
}
