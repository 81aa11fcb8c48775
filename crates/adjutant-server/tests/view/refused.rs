//! Who may not ask: a table of requests and what becomes of each.

use adjutant::{llm::Script, runtime::http::OPENAPI};
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::stage::{Stage, stage};

/// What a request shows of itself.
#[derive(Clone, Copy)]
enum Shown {
    Nothing,
    Token,
    WrongToken,
    Cookie,
}
use Shown::{Cookie, Nothing, Token, WrongToken};

const SESSIONS: &str = "/v1/agents/store/sessions";
const CONTROL: &str = "/v1/agents/store/control?session=talk";

/// Opens the page as a browser does: the cookie, as it is given.
async fn opened(stage: &Stage) -> String {
    let answer = stage.ask(Method::POST, "/v1/session", None).await;
    assert_eq!(answer.status(), 204);
    answer.headers()[header::SET_COOKIE]
        .to_str()
        .expect("it is text")
        .to_owned()
}

#[tokio::test]
async fn requests_are_refused_that_are_not_from_the_page_or_without_its_keys() {
    let stage = stage([], []).await;
    let cookie = opened(&stage).await;
    let (pair, kept) = cookie.split_once(';').expect("it has attributes");
    assert_eq!(kept, " HttpOnly; SameSite=Strict; Path=/");
    let port = stage.base.rsplit_once(':').expect("a port").1.to_owned();
    let with_token = format!("{SESSIONS}?token={}", stage.token);
    let localhost = format!("localhost:{port}");
    let origin = format!("http://127.0.0.1:{port}");
    for (method, path, shown, more, status) in [
        ("GET", "/", Nothing, None, 200),
        ("GET", "/app/app.js", Nothing, None, 200),
        ("GET", "/app/nothing.js", Nothing, None, 404),
        ("GET", "/app/..%2Findex.html", Nothing, None, 404),
        ("GET", "/", Nothing, Some(("host", "evil.example")), 403),
        ("GET", SESSIONS, Nothing, None, 401),
        ("GET", SESSIONS, WrongToken, None, 401),
        ("GET", &with_token, Nothing, None, 401),
        ("GET", SESSIONS, Token, None, 200),
        ("GET", SESSIONS, Token, Some(("host", "evil.example")), 403),
        ("GET", SESSIONS, Token, Some(("host", "127.0.0.1:1")), 403),
        ("GET", SESSIONS, Token, Some(("host", &localhost)), 200),
        (
            "GET",
            SESSIONS,
            Token,
            Some(("origin", "http://evil.example")),
            403,
        ),
        ("GET", SESSIONS, Token, Some(("origin", "null")), 403),
        ("GET", SESSIONS, Token, Some(("origin", &origin)), 200),
        ("GET", SESSIONS, Cookie, None, 200),
        (
            "GET",
            SESSIONS,
            Cookie,
            Some(("origin", "http://127.0.0.1:1")),
            403,
        ),
        (
            "GET",
            SESSIONS,
            Cookie,
            Some(("sec-fetch-site", "same-origin")),
            200,
        ),
        (
            "GET",
            SESSIONS,
            Cookie,
            Some(("sec-fetch-site", "same-site")),
            403,
        ),
        (
            "GET",
            SESSIONS,
            Cookie,
            Some(("sec-fetch-site", "cross-site")),
            403,
        ),
        (
            "GET",
            SESSIONS,
            Nothing,
            Some(("cookie", "adjutant=x")),
            401,
        ),
        ("POST", "/v1/session", Nothing, None, 401),
        ("POST", "/v1/session", WrongToken, None, 401),
        ("POST", CONTROL, Nothing, Some(("x-adjutant", "1")), 401),
        ("POST", CONTROL, Cookie, None, 403),
        ("POST", CONTROL, Cookie, Some(("x-adjutant", "0")), 403),
        ("POST", CONTROL, Cookie, Some(("x-adjutant", "1")), 202),
        ("POST", CONTROL, Token, None, 202),
        (
            "DELETE",
            "/v1/agents/store/sessions?session=none",
            Cookie,
            None,
            403,
        ),
        (
            "DELETE",
            "/v1/agents/store/sessions?session=none",
            Cookie,
            Some(("x-adjutant", "1")),
            404,
        ),
        ("PUT", SESSIONS, Token, None, 405),
        ("GET", "/v1/agents/nobody/sessions", Token, None, 404),
    ] {
        let method: Method = method.parse().expect("a method");
        let mut asked = stage
            .http
            .request(method.clone(), format!("{}{path}", stage.base));
        asked = match shown {
            Nothing => asked,
            Token => asked.bearer_auth(&stage.token),
            WrongToken => asked.bearer_auth("wrong"),
            Cookie => asked.header("cookie", format!("other=1; {pair}")),
        };
        if path == CONTROL {
            asked = asked.json(&json!({"control": "steer", "text": "Be brief."}));
        }
        let asked = more
            .into_iter()
            .fold(asked, |asked, (name, value)| asked.header(name, value));
        let answer = asked.send().await.expect("it answers");
        assert_eq!(answer.status(), status, "{method} {path} {more:?}");
        for (name, begins) in [
            ("content-security-policy", "default-src 'self'; "),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ] {
            let told = answer
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default();
            assert!(told.starts_with(begins), "{method} {path}: {name}: {told}");
        }
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .expect("it is text");
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
    }
}

#[tokio::test]
async fn every_route_that_is_described_is_refused_without_its_keys_or_from_elsewhere() {
    let stage = stage([], []).await;
    let cookie = opened(&stage).await;
    let cookie = cookie.split(';').next().expect("it has a value");
    let document: Value = serde_json::from_str(OPENAPI).expect("it is JSON");
    let mut count = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        let same = item["$ref"]
            .as_str()
            .and_then(|it| document.pointer(it.trim_start_matches('#')));
        let is_open = ["/", "/app/{name}", "/v1/ready"].contains(&path.as_str());
        let path = path.replace("{agent}", "store").replace("{name}", "talk");
        for method in ["GET", "POST", "DELETE"] {
            if same.unwrap_or(item).get(method.to_lowercase()).is_none() {
                continue;
            }
            count += 1;
            let is_safe = method == "GET";
            for (header, value, status) in [
                ("accept", "*/*", if is_open { None } else { Some(401) }),
                (
                    "authorization",
                    "Bearer wrong",
                    if is_open { None } else { Some(401) },
                ),
                ("cookie", cookie, if is_safe { None } else { Some(403) }),
                ("host", "evil.example", Some(403)),
                ("origin", "http://evil.example", Some(403)),
            ] {
                let Some(status) = status else { continue };
                let asked = stage.http.request(
                    method.parse().expect("a method"),
                    format!("{}{path}", stage.base),
                );
                let asked = if status == 403 && header != "cookie" {
                    asked.bearer_auth(&stage.token)
                } else {
                    asked
                };
                let answer = asked
                    .header(header, value)
                    .json(&json!({}))
                    .send()
                    .await
                    .expect("it answers");
                assert_eq!(answer.status(), status, "{method} {path} {header}");
            }
        }
    }
    assert!(count >= 50, "{count} routes");
}

#[tokio::test]
async fn export_holds_hostile_text_as_data_alone() {
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}<!--\u{1}";
    let stage = stage([], [Script::new().text(hostile)]).await;
    let name = "</script><img src=x onerror=alert(1)>\u{202e}";
    stage
        .worker
        .session(name.into())
        .run(hostile)
        .await
        .expect("it ends");
    let path = "/v1/agents/store/export?session=%3C/script%3E%3Cimg%20src=x%20onerror=alert(1)%3E%E2%80%AE";
    let page = stage.ask(Method::GET, path, None).await;
    let page = page.text().await.expect("it is text");
    assert!(
        !page.contains("<img") && !page.contains("alert(1)</script>"),
        "a text got out of its script"
    );
    let (_, rest) = page
        .split_once(r#"id="exported">"#)
        .expect("the events are there");
    let (data, rest) = rest.split_once("</script>").expect("they end");
    let data: serde_json::Value = serde_json::from_str(data).expect("they are JSON");
    let names: Vec<_> = data["events"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["event"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "run_started",
            "entry_added",
            "turn_started",
            "reply_finished",
            "turn_finished",
            "run_finished"
        ]
    );
    assert_eq!(
        data.pointer("/events/1/content/content/0/text"),
        Some(&json!(hostile))
    );
    assert_eq!(
        (&data["session"], data.pointer("/context/0/turn")),
        (&json!(name), Some(&json!(1)))
    );
    assert!(
        rest.contains(r#"import "page/app.js""#) && !page.contains("/app/"),
        "the page needs a server"
    );
}
