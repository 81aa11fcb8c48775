//! Tests of models that the catalogue does not list, with servers that report what they can.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use adjutant_llm::{Effort, RequestOption, Structured};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::Chooser;

/// A server that answers paths with bodies; other paths are answered with 404, and `hang` never.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answers: &[(&str, String)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: BTreeMap<String, String> = answers
            .iter()
            .map(|(path, body)| ((*path).to_owned(), body.clone()))
            .collect();
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut request = vec![0; 8_192];
                let read = socket.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                log.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(request);
                let (status, body) = match answers.get(&path).map(String::as_str) {
                    Some("hang") => {
                        tokio::spawn(async move {
                            let _open = socket;
                            std::future::pending::<()>().await;
                        });
                        continue;
                    }
                    Some(body) => ("200 OK", body),
                    None => ("404 Not Found", "{}"),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let _gone = socket.write_all((head + body).as_bytes()).await;
            }
        });
        Self { url, asked }
    }

    fn requests(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }
}

fn chooser(vars: Vec<(&'static str, String)>) -> Chooser {
    let vars: BTreeMap<&str, String> = vars.into_iter().collect();
    Chooser::new(move |name| vars.get(name).cloned())
}

async fn info_of(name: &str, variable: &'static str, base_url: String) -> ModelInfo {
    let keys = [
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "GROQ_API_KEY",
        "MISTRAL_API_KEY",
        "TOGETHER_API_KEY",
        "XAI_API_KEY",
    ];
    let keys = keys.map(|name| (name, "sk-secret".to_owned()));
    let vars = keys.into_iter().chain([(variable, base_url)]).collect();
    let model = chooser(vars).resolve(name).await.expect("it is accepted");
    model.info().clone()
}

fn list(entry: serde_json::Value) -> String {
    json!({"object": "list", "data": [{"id": "other", "context_length": 1}, entry]}).to_string()
}

#[tokio::test]
async fn limits_are_those_that_the_server_reports() {
    type Row<'a> = (&'a str, &'static str, &'a str, &'a str, String, (u64, u64));
    let rows: [Row<'_>; 17] = [
        (
            "vllm/qwen3",
            "VLLM_BASE_URL",
            "",
            "/v1/models",
            list(json!({"id": "qwen3", "max_model_len": 32_768})),
            (32_768, 0),
        ),
        (
            "vllm/qwen3",
            "VLLM_BASE_URL",
            "/",
            "/v1/models",
            list(json!({"id": "qwen3", "max_model_len": 32_768})),
            (32_768, 0),
        ),
        (
            "vllm/qwen3",
            "VLLM_BASE_URL",
            "/v1",
            "/v1/models",
            list(json!({"id": "qwen3", "max_model_len": 32_768})),
            (32_768, 0),
        ),
        (
            "llama-server/any",
            "LLAMA_SERVER_BASE_URL",
            "/v1",
            "/props",
            json!({"default_generation_settings": {"n_ctx": 8_192}}).to_string(),
            (8_192, 0),
        ),
        (
            "llama-server/one",
            "LLAMA_SERVER_BASE_URL",
            "/v1/",
            "/props?model=one&autoload=false",
            json!({"default_generation_settings": {"n_ctx": 4_096}}).to_string(),
            (4_096, 0),
        ),
        (
            "lmstudio/qwen3",
            "LMSTUDIO_BASE_URL",
            "/v1",
            "/api/v0/models",
            list(json!({"id": "qwen3", "loaded_context_length": 6_000, "max_context_length": 40_960})),
            (6_000, 0),
        ),
        (
            "lmstudio/qwen3",
            "LMSTUDIO_BASE_URL",
            "/v1",
            "/api/v1/models",
            json!({"models": [{"key": "qwen3", "max_context_length": 40_960,
                               "loaded_instances": [{"id": "qwen3", "config": {"context_length": 9_000}}]}]})
            .to_string(),
            (9_000, 0),
        ),
        (
            "lmstudio/qwen3",
            "LMSTUDIO_BASE_URL",
            "/v1",
            "/api/v1/models",
            json!({"models": [{"key": "qwen3", "max_context_length": 40_960, "loaded_instances": []}]}).to_string(),
            (0, 0),
        ),
        (
            "ollama/qwen3",
            "OLLAMA_BASE_URL",
            "/v1",
            "/api/ps",
            json!({"models": [{"name": "qwen3:latest", "model": "qwen3:latest", "context_length": 16_384}]}).to_string(),
            (16_384, 0),
        ),
        (
            "ollama/qwen3:8b",
            "OLLAMA_BASE_URL",
            "",
            "/api/ps",
            json!({"models": []}).to_string(),
            (4_096, 0),
        ),
        (
            "openrouter/a/b",
            "OPENROUTER_BASE_URL",
            "/v1",
            "/v1/models",
            list(json!({"id": "a/b", "context_length": 200_000,
                        "top_provider": {"context_length": 131_072, "max_completion_tokens": 16_384}})),
            (131_072, 16_384),
        ),
        (
            "groq/new",
            "GROQ_BASE_URL",
            "/v1",
            "/v1/models",
            list(json!({"id": "new", "context_window": 131_072, "max_completion_tokens": 32_768})),
            (131_072, 32_768),
        ),
        (
            "mistral/new",
            "MISTRAL_BASE_URL",
            "/v1",
            "/v1/models",
            list(json!({"id": "new", "max_context_length": 262_144})),
            (262_144, 0),
        ),
        (
            "together/a/b",
            "TOGETHER_BASE_URL",
            "/v1",
            "/v1/models",
            json!([{"id": "a/b", "context_length": 65_536}]).to_string(),
            (65_536, 0),
        ),
        (
            "anthropic/claude-sonnet-9",
            "ANTHROPIC_BASE_URL",
            "",
            "/v1/models/claude-sonnet-9",
            json!({"id": "claude-sonnet-9", "max_input_tokens": 2_000_000, "max_tokens": 256_000}).to_string(),
            (2_000_000, 256_000),
        ),
        (
            "gemini/gemini-9",
            "GEMINI_BASE_URL",
            "",
            "/v1beta/models/gemini-9",
            json!({"name": "models/gemini-9", "inputTokenLimit": 3_000_000, "outputTokenLimit": 100_000}).to_string(),
            (3_000_000, 100_000),
        ),
        (
            "openai/gpt-9",
            "OPENAI_BASE_URL",
            "/v1",
            "/v1/models",
            list(json!({"id": "gpt-9"})),
            (0, 0),
        ),
    ];
    for (name, variable, added, path, body, expect) in rows {
        let server = Server::start(&[(path, body)]).await;
        let info = info_of(name, variable, server.url.clone() + added).await;
        let limits = (info.context_window, info.max_output_tokens);
        assert_eq!(limits, expect, "{name} {path}");
        let is_known = expect.0 > 0 && expect.0 != OLLAMA_WINDOW || name.starts_with("llama");
        let source = if is_known {
            LimitSource::Server
        } else {
            LimitSource::Assumed
        };
        assert_eq!(info.limits, source, "{name} {path}");
    }
}

#[tokio::test]
async fn limits_stay_unknown_when_the_server_gives_no_useful_answer() {
    let huge = list(json!({"id": "m", "max_model_len": 4_096, "x": "y".repeat(9 << 20)}));
    let rows = [
        ("no answer", None),
        ("HTML", Some("<html>not here</html>".to_owned())),
        ("another shape", Some(r#"{"data": "none"}"#.to_owned())),
        (
            "a list of others",
            Some(list(json!({"id": "n", "max_model_len": 4_096}))),
        ),
        ("too much", Some(huge)),
        (
            "a wrong type",
            Some(list(json!({"id": "m", "max_model_len": "4096"}))),
        ),
        (
            "nothing",
            Some(list(json!({"id": "m", "max_model_len": 0}))),
        ),
        (
            "less than nothing",
            Some(list(json!({"id": "m", "max_model_len": -1}))),
        ),
        (
            "absurd",
            Some(list(json!({"id": "m", "max_model_len": u64::MAX}))),
        ),
        ("null", Some("null".to_owned())),
    ];
    for (what, body) in rows {
        let answers: Vec<_> = body.map(|body| ("/v1/models", body)).into_iter().collect();
        let server = Server::start(&answers).await;
        let info = info_of("vllm/m", "VLLM_BASE_URL", server.url.clone() + "/v1").await;
        assert_eq!(info, ModelInfo::unknown("vllm/m"), "{what}");
    }
}

#[tokio::test]
async fn server_that_hangs_is_waited_for_two_seconds() {
    let server = Server::start(&[("/v1/models", "hang".to_owned())]).await;
    let started = Instant::now();
    let info = info_of("vllm/m", "VLLM_BASE_URL", server.url.clone() + "/v1").await;
    assert_eq!(info, ModelInfo::unknown("vllm/m"));
    assert!(started.elapsed() < Duration::from_secs(4), "{started:?}");
}

#[tokio::test]
async fn key_of_the_model_is_sent_with_the_question() {
    let rows = [
        (
            "anthropic/x",
            "ANTHROPIC_BASE_URL",
            "",
            "x-api-key: sk-secret",
        ),
        (
            "gemini/x",
            "GEMINI_BASE_URL",
            "",
            "x-goog-api-key: sk-secret",
        ),
        (
            "openai/x",
            "OPENAI_BASE_URL",
            "/v1",
            "authorization: Bearer sk-secret",
        ),
    ];
    for (name, variable, added, header) in rows {
        let server = Server::start(&[]).await;
        info_of(name, variable, server.url.clone() + added).await;
        let requests = server.requests();
        assert_eq!(requests.len(), 1, "{name}");
        assert!(requests[0].starts_with("GET "), "{name}: {}", requests[0]);
        assert!(requests[0].contains(header), "{name}: {}", requests[0]);
    }
}

#[tokio::test]
async fn server_is_not_asked_when_the_catalogue_lists_the_model() {
    let server = Server::start(&[]).await;
    let url = || server.url.clone();
    info_of("anthropic/claude-sonnet-5", "ANTHROPIC_BASE_URL", url()).await;
    info_of("openai/gpt-5", "OPENAI_BASE_URL", url()).await;
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

#[tokio::test]
async fn abilities_are_those_of_openrouters_list() {
    let entry = json!({
        "id": "a/b", "context_length": 100_000,
        "architecture": {"input_modalities": ["text", "image", "file"]},
        "supported_parameters": ["tools", "tool_choice", "structured_outputs", "reasoning", "temperature", "stop"],
    });
    let server = Server::start(&[("/v1/models", list(entry))]).await;
    let info = info_of(
        "openrouter/a/b",
        "OPENROUTER_BASE_URL",
        server.url.clone() + "/v1",
    )
    .await;
    assert_eq!(
        (info.inputs.images, info.inputs.documents, info.inputs.audio),
        (true, true, false)
    );
    assert_eq!(info.refuses, [RequestOption::TopP, RequestOption::Seed]);
    assert_eq!(info.structured, Structured::Native);
    assert_eq!(info.efforts, [Effort::Low, Effort::Medium, Effort::High]);
}

#[test]
fn abilities_are_those_of_the_closest_relative_when_they_are_assumed() {
    let catalogue = Catalogue::builtin();
    let of = |name: &str| {
        let (provider, name) = name.split_once('/').expect("a whole name");
        let provider = Provider::all().find(|it| it.name == provider);
        assume_info(&provider.expect("it is known"), name, &catalogue)
    };
    let sonnet = catalogue
        .find("anthropic/claude-sonnet-5")
        .expect("it is listed");
    let unknown = of("anthropic/claude-sonnet-9");
    assert_eq!(
        (
            unknown.context_window,
            unknown.max_output_tokens,
            unknown.inputs
        ),
        (0, sonnet.max_output_tokens, sonnet.inputs)
    );
    assert_eq!(
        (unknown.price, unknown.limits),
        (None, LimitSource::Assumed)
    );
    let unknown = of("openai/gpt-9");
    assert_eq!(
        (unknown.max_output_tokens, unknown.inputs.images),
        (0, true)
    );
    assert!(!unknown.efforts.is_empty());
    assert_eq!(
        of("anthropic/kimi-k9"),
        ModelInfo::unknown("anthropic/kimi-k9")
    );
    assert_eq!(of("groq/llama-9").max_tools, Some(128));
    assert_eq!(of("gemini/gemini-9").max_tools, Some(512));
    assert_eq!(of("vertex/gemini-9").max_tools, Some(512));
    assert_eq!(of("vertex/claude-9").max_tools, None);
    assert_eq!(of("ollama/gpt-oss:120b-cloud").context_window, 0);
}

#[tokio::test]
async fn report_is_stored_for_a_day_when_the_provider_is_hosted() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Some(directory.path().join("models"));
    let place = |provider: &str, url: &str| Place {
        provider: Provider::all()
            .find(|it| it.name == provider)
            .expect("it is known"),
        key: Key::none(),
        base_url: url.to_owned() + "/v1",
    };
    let window =
        |body: u64| list(json!({"id": "m", "context_length": body, "max_model_len": body}));
    for (provider, expect) in [("openrouter", 1), ("vllm", 2)] {
        let server = Server::start(&[("/v1/models", window(8_192))]).await;
        let model = || {
            let info = ModelInfo::unknown(format!("{provider}/m"));
            let place = place(provider, &server.url);
            Unlisted::new(place, info, String::new(), cache.clone()).expect("it is made")
        };
        for _ in 0..2 {
            let model = model();
            model.ask().await;
            assert_eq!(model.info().context_window, 8_192, "{provider}");
        }
        assert_eq!(server.requests().len(), expect, "{provider}");
        let Some(file) = model().shared.file() else {
            continue;
        };
        // A report that is a day old is not used, nor is one that cannot be read.
        let old = SystemTime::now() - MAX_AGE;
        let open = fs::File::options()
            .write(true)
            .open(&file)
            .expect("it is there");
        open.set_modified(old).expect("it is set");
        model().ask().await;
        assert_eq!(server.requests().len(), 2);
        fs::write(&file, "{").expect("it is written");
        model().ask().await;
        assert_eq!(server.requests().len(), 3);
    }
}
