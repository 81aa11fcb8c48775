//! Models, options, and who answers.

use std::{sync::Arc, time::Duration};

use adjutant_agent::Outcome;
use adjutant_llm::{Effort, Error, ErrorKind as Kind, ModelInfo, Script, ScriptedModel};
use adjutant_providers::TimeoutsPatch;
use adjutant_runtime::{Credentials, Engine, ErrorKind, manifest::ModelSpec};
use adjutant_testing::Loopback;
use serde_json::json;

use crate::stage::{MODEL, OTHER, Stage, agents, lead, one, preview, resolved, run, still, with};

fn overloaded() -> Script {
    Script::new().fail(Error::new(Kind::Overloaded, "the model is overloaded"))
}

#[tokio::test]
async fn prompts_go_to_the_entry_agent() {
    let stage = Stage::with([], [Script::new().text("I am the second.")]);
    let manifest = agents([
        json!({ "name": "first", "model": MODEL }),
        json!({ "name": "second", "model": OTHER }),
    ]);
    let engine = stage
        .engine(with(manifest, json!({ "entry_agent": "second" })))
        .await;
    assert_eq!(run(&engine).await.text(), "I am the second.");
    assert_eq!(&*lead(&engine).identity().name, "second");
}

#[tokio::test]
async fn model_is_the_one_that_is_named() {
    let stage = Stage::new([Script::new().text("Good morning.")]);
    let engine = stage.engine(one(json!({}))).await;
    assert_eq!(run(&engine).await.text(), "Good morning.");
}

#[tokio::test(start_paused = true)]
async fn fallback_answers_when_the_first_model_fails() {
    let stage = Stage::with([overloaded()], [Script::new().text("The second one.")]);
    let model = json!({ "name": MODEL, "fallbacks": [OTHER], "retries": 0 });
    let engine = stage.engine(still(one(json!({ "model": model })))).await;
    assert_eq!(run(&engine).await.text(), "The second one.");
}

#[tokio::test(start_paused = true)]
async fn failed_call_is_tried_again_as_often_as_the_manifest_says() {
    for (retries, finishes) in [(json!(1), true), (json!(0), false), (json!(null), true)] {
        let stage = Stage::new([overloaded(), Script::new().text("Now.")]);
        let engine = stage
            .engine(still(one(
                json!({ "model": { "name": MODEL, "retries": retries } }),
            )))
            .await;
        assert_eq!(
            lead(&engine).run("Hello.").await.is_ok(),
            finishes,
            "{retries}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_their_turn() {
    let stage = Stage::new([Script::new().text("One."), Script::new().text("Two.")]);
    let engine = stage
        .engine(still(one(
            json!({ "model": { "name": MODEL, "requests_per_minute": 1 } }),
        )))
        .await;
    run(&engine).await;
    let began = tokio::time::Instant::now();
    run(&engine).await;
    assert!(began.elapsed().as_secs() >= 50, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn input_waits_for_its_turn() {
    let stage = Stage::new([Script::new().text("One."), Script::new().text("Two.")]);
    let model = json!({ "name": MODEL, "input_tokens_per_minute": 1 });
    let engine = stage.engine(still(one(json!({ "model": model })))).await;
    run(&engine).await;
    let began = tokio::time::Instant::now();
    run(&engine).await;
    assert!(began.elapsed().as_secs() >= 50, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn reply_that_takes_too_long_fails() {
    let gate = adjutant_llm::Gate::default();
    let stage = Stage::new([Script::new().text("Never whole.").wait_at(1, &gate)]);
    let engine = stage
        .engine(still(one(
            json!({ "model": { "name": MODEL, "retries": 0, "timeout": "3s" } }),
        )))
        .await;
    let began = tokio::time::Instant::now();
    lead(&engine)
        .run("Hello.")
        .await
        .expect_err("it takes too long");
    assert_eq!(began.elapsed().as_secs(), 3);
}

#[test]
fn times_of_a_manifest_are_read() {
    let spec: ModelSpec = serde_json::from_value(
        json!({ "name": MODEL, "timeouts": { "first_byte": "20m", "idle": "90s" } }),
    )
    .expect("it is read");
    let patch = TimeoutsPatch::from(spec.timeouts);
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(
        (patch.first_byte, patch.idle, patch.total),
        (seconds(1_200), seconds(90), None)
    );
}

#[tokio::test]
async fn two_agents_with_one_model_name_share_the_model() {
    let limit = json!({ "name": MODEL, "requests_per_minute": 7 });
    let stage = Stage::new([]);
    let manifest = agents([
        json!({ "name": "lead", "model": limit, "transfers": ["next"] }),
        json!({ "name": "next", "description": "Next.", "model": limit }),
    ]);
    let engine = stage.engine(manifest).await;
    assert_eq!(engine.model().info().id.as_str(), "scripted/model");
    // The models that were made, and nobody else, hold the one that was given: one chain, not two.
    assert_eq!(Arc::strong_count(&stage.model), 2);
}

#[tokio::test]
async fn options_of_the_manifest_are_those_of_the_request() {
    let options = json!({
        "max_output_tokens": 77, "temperature": 0.5, "stop": ["END"], "thinking": "low", "sequential_calls": true,
        "headers": { "x-team": "blue" }, "extra": { "user": 3 }, "top_p": 0.25, "seed": 7,
    });
    let stage = Stage::new([]);
    let engine = stage.engine(one(json!({ "options": options }))).await;
    let asked = preview(&engine).await.options;
    assert_eq!(
        (asked.max_output_tokens, asked.temperature),
        (Some(77), Some(0.5))
    );
    assert_eq!(
        (&asked.stop[..], asked.thinking),
        (&["END".into()][..], Some(Effort::Low))
    );
    assert!(asked.sequential_calls);
    assert_eq!(asked.headers["x-team"], "blue");
    assert_eq!(
        (&asked.extra["user"], asked.top_p, asked.seed),
        (&json!(3), Some(0.25), Some(7))
    );
    assert_eq!(engine.options().max_output_tokens, Some(77));
}

#[tokio::test]
async fn web_is_searched_by_the_provider_of_every_model_or_by_none() {
    let manifest = |model: serde_json::Value| {
        one(json!({ "model": model, "options": { "web_search": true } }))
    };
    let with_keys = |model| {
        let keys = [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "GROQ_API_KEY",
        ];
        let credentials = keys
            .into_iter()
            .fold(Credentials::none(), |known, key| known.with(key, "secret"));
        Engine::builder(resolved(manifest(model)))
            .credentials(credentials)
            .build()
    };
    let table = [
        (
            "anthropic/claude-opus-5",
            json!({ "type": "web_search_20250305", "name": "web_search" }),
        ),
        ("openai/gpt-5", json!({ "type": "web_search" })),
        ("gemini/gemini-2.5-flash", json!({ "googleSearch": {} })),
    ];
    for (model, search) in table {
        let engine = with_keys(json!(model)).await.expect("it has a search");
        assert_eq!(engine.options().server_tools, [search], "{model}");
    }
    let two = json!({ "name": "openai/gpt-5", "fallbacks": ["gemini/gemini-2.5-flash"] });
    for (model, wrong) in [
        (two, "has another search"),
        (json!("groq/llama"), "is not known to have a search"),
    ] {
        let error = with_keys(model).await.expect_err("it has none");
        assert!(
            error.kind() == ErrorKind::Config && error.message().contains(wrong),
            "{error}"
        );
    }
}

#[tokio::test]
async fn provider_of_the_manifest_is_asked_with_its_key() {
    let server = Loopback::start(ScriptedModel::new([Script::new().text("From far away.")]))
        .await
        .expect("a port");
    let manifest = json!({
        "name": "crew", "entry_agent": "solo",
        "agents": [{ "name": "solo", "model": "acme/large" }],
        "providers": [{ "name": "acme", "base_url": server.openai_base_url(), "key_variables": ["ACME_KEY"] }],
        "models": [],
    });
    let credentials = Credentials::none().with("ACME_KEY", "secret-of-acme");
    let engine = Engine::builder(resolved(manifest))
        .credentials(credentials)
        .build()
        .await
        .expect("it is right");
    assert_eq!(run(&engine).await.text(), "From far away.");
}

#[tokio::test]
async fn key_of_a_known_vendor_is_sent_to_an_address_of_the_manifest_only_if_somebody_vouches_for_it()
 {
    let rows = [
        ("acme", "OPENAI_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
    ];
    for (name, variable) in rows {
        let server = Loopback::start(ScriptedModel::new([Script::new().text("Stolen.")]))
            .await
            .expect("a port");
        let manifest = json!({
            "name": "crew", "entry_agent": "solo", "agents": [{ "name": "solo", "model": format!("{name}/m") }],
            "providers": [{ "name": name, "base_url": server.openai_base_url(), "key_variables": [variable] }],
        });
        let credentials = Credentials::none().with(variable, "sk-of-a-known-vendor");
        let builder =
            || Engine::builder(resolved(manifest.clone())).credentials(credentials.clone());
        let error = builder().build().await.expect_err("nobody vouches for it");
        assert_eq!(error.kind(), ErrorKind::Model);
        assert!(
            error
                .to_string()
                .contains(&format!("the key in {variable} is not sent to 127.0.0.1:")),
            "{error}"
        );
        assert_eq!(server.requests().len(), 0);
        let given = adjutant_providers::Provider::new(name, server.openai_base_url())
            .key_variable(variable);
        for builder in [builder().trusted(), builder().provider(given)] {
            assert!(builder.build().await.is_ok());
        }
    }
}

#[tokio::test]
async fn model_of_the_manifest_is_known_by_what_it_says() {
    let model = json!({
        "id": "acme/tiny", "context_window": 4321, "max_output_tokens": 321,
        "inputs": [], "price": { "input": 1.0, "output": 2.0 },
    });
    let manifest = json!({
        "name": "crew", "entry_agent": "solo", "agents": [{ "name": "solo", "model": "acme/tiny" }],
        "providers": [{ "name": "acme", "base_url": "http://127.0.0.1:9/v1" }],
        "models": [model],
    });
    let engine = Engine::builder(resolved(manifest))
        .build()
        .await
        .expect("it is right");
    assert_eq!(engine.model().info().context_window, 4321);
}

#[tokio::test]
async fn missing_model_and_missing_key_are_errors_of_models() {
    let stage = Stage::new([]);
    let unknown = stage.wrong(one(json!({ "model": "nobody/knows" }))).await;
    assert_eq!(unknown.kind(), ErrorKind::Model);
    assert!(unknown.message().contains("nobody/knows"), "{unknown}");
    let keyless = stage
        .wrong(one(json!({ "model": "anthropic/claude-sonnet-5" })))
        .await;
    assert_eq!(keyless.kind(), ErrorKind::Model);
    assert!(keyless.message().contains("ANTHROPIC_API_KEY"), "{keyless}");
    let fallback = stage
        .wrong(one(
            json!({ "model": { "name": MODEL, "fallbacks": ["nobody/knows"] } }),
        ))
        .await;
    assert_eq!(fallback.kind(), ErrorKind::Model);
}

#[tokio::test]
async fn agent_without_a_model_has_the_one_that_the_environment_offers() {
    let manifest = json!({ "name": "crew", "entry_agent": "solo", "agents": [{ "name": "solo" }] });
    let credentials = Credentials::none().with("ADJUTANT_MODEL", "offline/planner");
    let engine = Engine::builder(resolved(manifest))
        .credentials(credentials)
        .build()
        .await
        .expect("it is right");
    assert_eq!(engine.model().info().id.as_str(), "offline/planner");
}

#[tokio::test]
async fn what_an_operator_is_shown_is_kept_as_it_was() {
    let shown = json!({
        "adjutant": 1, "name": "clerk", "description": "Keeps order.", "labels": { "team": "blue" },
    });
    let stage = Stage::new([Script::new().text("Yes.")]);
    let engine = stage.engine(with(one(json!({})), shown)).await;
    let manifest = &engine.resolved().manifest;
    assert_eq!(
        (&*manifest.name, &*manifest.description, manifest.adjutant),
        ("clerk", "Keeps order.", Some(1))
    );
    assert_eq!(manifest.labels["team"], "blue");
    assert!(matches!(
        run(&engine).await.outcome,
        Outcome::Finished { .. }
    ));
}

#[tokio::test]
async fn given_model_tells_about_itself() {
    let stage = Stage::new([]);
    let priced = ScriptedModel::new([]).info(ModelInfo {
        context_window: 99,
        ..ModelInfo::new("mine/own")
    });
    let engine = stage
        .builder(one(json!({})))
        .model(MODEL, priced)
        .build()
        .await
        .expect("it is right");
    assert_eq!(engine.model().info().context_window, 99);
}
