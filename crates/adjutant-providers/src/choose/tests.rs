//! Tests of the choice, with variables and ports of their own.

use std::collections::BTreeMap;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// A chooser with these variables, and no server on this machine.
fn chooser(vars: &[(&str, &str)]) -> Chooser {
    let vars: BTreeMap<String, String> = vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    // Nothing listens on port 1.
    let chooser = Chooser::new(move |name| vars.get(name).cloned());
    chooser.port("ollama", 1).port("llama-server", 1).port("lmstudio", 1)
}

#[track_caller]
fn check(vars: &[(&str, &str)], name: &str, expect: Result<&str, &str>) {
    let got = chooser(vars).model(name);
    let got = got.map(|model| model.info().id.to_string()).map_err(|error| {
        assert_eq!(error.kind(), ErrorKind::Config);
        error.message().to_owned()
    });
    assert_eq!(got.as_deref().map_err(String::as_str), expect);
}

const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-a");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "sk-o");

#[test]
fn model_is_made_when_the_name_is_known() {
    check(&[ANTHROPIC], " anthropic/claude-sonnet-5 ", Ok("anthropic/claude-sonnet-5"));
    check(&[OPENAI], "openai/gpt-5.4", Ok("openai/gpt-5.4"));
    check(&[], "offline/planner", Ok("offline/planner"));
    check(&[], "ollama/qwen3:8b", Ok("ollama/qwen3:8b"));
    check(&[], "lmstudio/org/name", Ok("lmstudio/org/name"));
    check(&[OPENAI, ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], "openai/my-own", Ok("openai/my-own"));
}

#[test]
fn model_names_what_is_near_when_the_name_is_unknown() {
    check(
        &[ANTHROPIC],
        "antropic/claude-sonnet-5",
        Err("no provider is called \"antropic\"; hint: the nearest are anthropic, openai, lmstudio, ollama, offline, \
             llama-server"),
    );
    check(
        &[ANTHROPIC, ("ANTHROPIC_BASE_URL", " ")],
        "anthropic/claude-sonet-5",
        Err("no model is called \"anthropic/claude-sonet-5\"; hint: the nearest are anthropic/claude-sonnet-5, \
             anthropic/claude-sonnet-5-5, anthropic/claude-opus-5, anthropic/claude-opus-5-5"),
    );
    check(
        &[],
        "gpt-5",
        Err(
            "a model is named provider/model, which is not the form of \"gpt-5\"; hint: the nearest are openai/gpt-5, \
             openai/gpt-5.5, openai/gpt-5.4, openai/gpt-4.1",
        ),
    );
    check(&[], "offline/x", Err("no model is called \"offline/x\"; hint: the nearest are offline/planner"));
}

#[test]
fn model_says_what_would_work_when_the_key_is_missing() {
    check(
        &[("OPENAI_API_KEY", "  ")],
        "openai/gpt-5",
        Err("no key for openai/gpt-5: OPENAI_API_KEY is not set; hint: set it, take a model of a server on this \
             machine (for example ollama/<model>), or use --model offline/planner"),
    );
}

/// What is chosen, and how.
async fn chosen(chooser: &Chooser, requested: Option<&str>) -> (String, How) {
    let chosen = chooser.choose(requested).await.expect("something is chosen");
    (chosen.model.info().id.to_string(), chosen.how)
}

#[tokio::test]
async fn choose_takes_the_first_that_is_there_when_several_are() {
    let named = ("ADJUTANT_MODEL", "openai/gpt-4.1");
    let all = chooser(&[named, ANTHROPIC, OPENAI]);
    assert_eq!(chosen(&all, Some("openai/gpt-5")).await, ("openai/gpt-5".into(), How::Asked));
    assert_eq!(chosen(&all, Some(" ")).await, ("openai/gpt-4.1".into(), How::Variable));
    let keys = chooser(&[("ADJUTANT_MODEL", " "), OPENAI, ANTHROPIC]);
    assert_eq!(chosen(&keys, None).await, ("anthropic/claude-sonnet-5".into(), How::Credential("ANTHROPIC_API_KEY")));
    let blank = chooser(&[("ANTHROPIC_API_KEY", ""), OPENAI]);
    assert_eq!(chosen(&blank, None).await, ("openai/gpt-5.4".into(), How::Credential("OPENAI_API_KEY")));
    assert_eq!(chosen(&chooser(&[]), None).await, ("offline/planner".into(), How::Offline));
    let error = chooser(&[("ADJUTANT_MODEL", "x/y")]).choose(None).await.expect_err("there is no x");
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn choose_asks_servers_of_this_machine_when_there_is_no_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a caller");
        let mut asked = vec![0; 1_024];
        let read = socket.read(&mut asked).await.expect("a request");
        let list = r#"{"object":"list","data":[{"id":"qwen3"},{"id":"other"}]}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{list}", list.len());
        socket.write_all(answer.as_bytes()).await.expect("it is sent");
        String::from_utf8_lossy(&asked[..read]).lines().next().unwrap_or_default().to_owned()
    });
    let chooser = chooser(&[]).port("lmstudio", port);
    let base_url = format!("http://127.0.0.1:{port}/v1");
    assert_eq!(chosen(&chooser, None).await, ("lmstudio/qwen3".into(), How::Loopback { server: "lmstudio", base_url }));
    assert_eq!(server.await.expect("the server ends"), "GET /v1/models HTTP/1.1");
}

#[test]
fn credentials_say_what_is_there_when_asked() {
    let credentials = chooser(&[OPENAI, ("ANTHROPIC_API_KEY", " ")]).credentials();
    let got: Vec<_> = credentials.iter().map(|it| (it.provider, it.variable, it.present)).collect();
    assert_eq!(got, [("anthropic", "ANTHROPIC_API_KEY", false), ("openai", "OPENAI_API_KEY", true)]);
}
