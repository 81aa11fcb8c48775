//! Every hazard of the conformance suite, played by a server that speaks `/api/chat` by an encoding of its own.

mod known;
mod server;

use std::sync::Arc;

use adjutant_example_ollama::Ollama;
use adjutant_llm::{
    Effort, Entry, FinishReason, Inputs, Model, ModelInfo, Request, Script, ScriptedModel, complete,
};
use adjutant_providers::{Key, Timeouts, wire::WireModel};
use adjutant_testing::{
    Loopback,
    conformance::{self, Limits, Matrix},
};
use server::OllamaServer;

fn info(efforts: Vec<Effort>) -> ModelInfo {
    let inputs = Inputs {
        images: true,
        ..Inputs::default()
    };
    ModelInfo {
        efforts,
        inputs,
        ..ModelInfo::new("ollama-native/qwen3")
    }
}

fn at(server: &Loopback, limits: Limits) -> Arc<dyn Model> {
    let info = info(vec![Effort::Off, Effort::High]);
    let model = WireModel::new(
        info.clone(),
        Ollama::new(&info),
        server.base_url(),
        Key::none(),
    );
    Arc::new(
        model.timeouts(
            Timeouts::new()
                .first_byte(limits.answer)
                .idle(limits.silence),
        ),
    )
}

#[tokio::test]
async fn ollama_bears_every_hazard() {
    let subject = conformance::subject_fn("ollama", at).oracle(OllamaServer);
    let matrix = Matrix::new([conformance::run(&subject).await]);
    println!("{matrix}");
    assert!(
        matrix.missing().is_empty() && matrix.failures().is_empty(),
        "{:#?}",
        matrix.failures()
    );
}

#[tokio::test]
async fn body_begins_with_the_one_before_when_the_history_grows() {
    let script = ScriptedModel::new([Script::new().text("One."), Script::new().text("Two.")]);
    let server = Loopback::setup(script)
        .oracle(OllamaServer)
        .start()
        .await
        .expect("a port");
    let info = info(vec![Effort::Low, Effort::High]);
    let model = WireModel::new(
        info.clone(),
        Ollama::new(&info),
        server.base_url(),
        "sk-of-the-proxy",
    );
    let mut request = Request::new().system("Be brief.").user("First?");
    let reply = complete(&model, request.clone()).await.expect("a reply");
    assert_eq!(
        (reply.text().as_str(), reply.stop),
        ("One.", FinishReason::End)
    );
    let turn = adjutant_llm::Turn::open(reply).close().expect("no calls");
    request.entries.push(Entry::Turn(turn));
    complete(&model, request.user("Second?"))
        .await
        .expect("a reply");
    let sent = server.requests();
    let [first, second] = [0, 1].map(|n| String::from_utf8(sent[n].body.to_vec()).expect("text"));
    assert!(
        second.starts_with(first.trim_end_matches("]}")),
        "{first}\n{second}"
    );
    assert_eq!(
        sent[1].header("authorization"),
        Some("Bearer sk-of-the-proxy")
    );
    assert_eq!(sent[0].json()["options"]["num_ctx"], 128_000);
}
