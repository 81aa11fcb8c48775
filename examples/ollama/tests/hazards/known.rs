//! A wire that was registered is known wherever models are named: in code, in a manifest, to the command.

use std::process::Command;

use adjutant::{
    llm::{Script, ScriptedModel},
    providers::{Provider, WireKind},
    runtime::{Engine, Manifest, Prompter, Resolved, prompt::PromptRequest},
};
use adjutant_testing::Loopback;
use serde_json::json;

use super::server::OllamaServer;

/// One process registers once, whichever test is first.
fn register() {
    let known = || Provider::all().any(|it| it.name == "ollama-native");
    if let Err(error) = adjutant_example_ollama::register() {
        assert!(known(), "{error}");
        assert_eq!(
            error.message(),
            r#"a provider is called "ollama-native" already"#
        );
    }
    assert!(known());
}

#[test]
fn wire_is_known_by_its_name_when_it_is_registered() {
    let json = r#"{"name":"box","wire":"ollama-chat","base_url":"http://box:11434"}"#;
    register();
    let provider: Provider = serde_json::from_str(json).expect("the wire is known");
    assert!(matches!(&provider.wire, WireKind::Foreign(it) if it.name() == "ollama-chat"));
    assert_eq!(
        serde_json::to_value(&provider).expect("JSON")["wire"],
        "ollama-chat"
    );
    assert_eq!(
        adjutant::model("ollama-native/qwen3")
            .expect("it is known")
            .info()
            .name(),
        "qwen3"
    );
    let error = serde_json::from_str::<Provider>(&json.replace("ollama-chat", "ollama-chatt"))
        .expect_err("it is none");
    let names = "unknown variant `ollama-chatt`, expected one of `messages`, `responses`, `gemini`, `chat`, `ollama-chat`";
    assert!(error.to_string().starts_with(names), "{error}");
    let taken = Provider::new("groq", "http://127.0.0.1:1")
        .register()
        .expect_err("it is taken");
    assert_eq!(taken.message(), r#"a provider is called "groq" already"#);
}

#[tokio::test]
async fn manifest_names_the_wire_when_it_is_registered() {
    register();
    let server =
        Loopback::setup(ScriptedModel::new([Script::new().text("Bamako.")])).oracle(OllamaServer);
    let server = server.start().await.expect("a port");
    let manifest = json!({
        "name": "crew", "entry_agent": "solo",
        "providers": [{ "name": "box", "wire": "ollama-chat", "base_url": server.base_url() }],
        "agents": [{ "name": "solo", "model": "box/qwen3" }],
    });
    let parsed = Manifest::parse(&manifest.to_string(), "adjutant.yaml", |_| None);
    assert!(parsed.is_ok(), "{:?}", parsed.err());
    let resolved: Resolved =
        serde_json::from_value(json!({ "manifest": manifest, "sources": [] })).expect("a manifest");
    let engine = Engine::builder(resolved)
        .build()
        .await
        .expect("the manifest is right");
    let reply = engine
        .prompt(PromptRequest::new("What is the capital of Mali?"))
        .await
        .expect("an answer");
    assert_eq!(reply.text, "Bamako.");
    assert_eq!(server.requests()[0].path, "/api/chat");
}

#[test]
fn command_knows_the_wire_when_it_is_built_with_it() {
    let command = Command::new(env!("CARGO_BIN_EXE_adjutant-ollama"))
        .args(["models", "--provider", "ollama-native"])
        .output();
    let text = String::from_utf8(command.expect("it runs").stdout).expect("text");
    assert!(
        text.contains("wire      ollama-chat, of this program's own"),
        "{text}"
    );
    assert!(text.contains("OLLAMA_API_KEY"), "{text}");
}
