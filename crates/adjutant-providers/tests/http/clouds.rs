//! Clouds: where each model of theirs is asked, who is said to ask, and tokens that a program prints.

use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_llm::{Error, ErrorKind, Model, ModelInfo, Request, ToolDecl, complete};
use adjutant_providers::{Chooser, Key, KeyCommand, Origin, Provider, Token, TokenSource};

use crate::server::{Nobody, events, fixture, model, serve, status};

fn chooser(vars: &[(&str, &str)]) -> Chooser {
    let vars: BTreeMap<String, String> = vars
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    Chooser::new(move |name| vars.get(name).cloned())
}

fn hi() -> Request {
    Request::new().user("hi")
}

/// A program that prints a token, another one each time.
fn program(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("token");
    std::fs::write(
        &path,
        format!("#!/bin/sh\ncd {}\n{text}\n", folder.display()),
    )
    .expect("a program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    path
}

const COUNTING: &str =
    "n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n >n; echo token-number-$n";

#[tokio::test]
async fn model_of_a_cloud_is_asked_in_its_own_way() {
    const AWS: &str = "AWS_BEARER_TOKEN_BEDROCK";
    const GOOGLE: &str = "CLOUDSDK_AUTH_ACCESS_TOKEN";
    let gemini = "/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse";
    let claude = "/publishers/anthropic/models/claude-sonnet-5%4020260930:streamRawPredict";
    for (name, wire, key, url, path, begin) in [
        (
            "bedrock/openai.gpt-5.5",
            "openai",
            AWS,
            "BEDROCK_BASE_URL",
            "/responses",
            r#"{"model":"openai.gpt-5.5""#,
        ),
        (
            "bedrock-mantle/qwen.qwen3",
            "chat",
            AWS,
            "BEDROCK_MANTLE_BASE_URL",
            "/v1/chat/completions",
            r#"{"model":"qwen.qwen3""#,
        ),
        (
            "bedrock-mantle/anthropic.claude-opus-5",
            "anthropic",
            AWS,
            "BEDROCK_MANTLE_BASE_URL",
            "/anthropic/v1/messages",
            r#"{"model":"anthropic."#,
        ),
        (
            "vertex/gemini-3-pro",
            "gemini",
            GOOGLE,
            "VERTEX_BASE_URL",
            gemini,
            r#"{"#,
        ),
        (
            "vertex/claude-sonnet-5@20260930",
            "anthropic",
            GOOGLE,
            "VERTEX_BASE_URL",
            claude,
            r#"{"anthropic_version":"vertex-2023-10-16","max_tokens""#,
        ),
    ] {
        let mut server = serve(vec![events(&fixture(wire, "text"))]).await;
        let model = chooser(&[(key, "sk-of-the-cloud"), (url, &server.base_url)])
            .model(name)
            .expect("it is known");
        complete(&model, hi()).await.expect("a reply");
        let seen = server.next().await;
        assert_eq!(
            seen.head.lines().next(),
            Some(&*format!("POST {path} HTTP/1.1")),
            "{name}"
        );
        assert_eq!(
            seen.header("authorization"),
            Some("Bearer sk-of-the-cloud"),
            "{name}"
        );
        assert!(
            seen.header("x-api-key").is_none() && seen.header("x-goog-api-key").is_none(),
            "{name}"
        );
        assert!(seen.body.starts_with(begin), "{name}: {}", seen.body);
        // Each marks the prompt cache of its vendor.
        assert_eq!(
            seen.body.contains("cache_control"),
            wire == "anthropic",
            "{name}"
        );
    }
}

/// Where the models of vendors with two wires are asked: name, path, header of the key, and a part of the body.
const TWO_WIRES: [(&str, &str, &str, &str); 8] = [
    (
        "azure/gpt-6-astra",
        "/openai/v1/responses",
        "api-key",
        "prompt_cache_key",
    ),
    (
        "azure/my-deployment",
        "/openai/v1/responses",
        "api-key",
        "input",
    ),
    (
        "azure/DeepSeek-V3.1",
        "/openai/v1/chat/completions",
        "api-key",
        "messages",
    ),
    (
        "azure-chat/gpt-5.5",
        "/openai/v1/chat/completions",
        "api-key",
        "max_completion_tokens",
    ),
    (
        "xai/grok-4.7",
        "/openai/v1/responses",
        "authorization",
        "prompt_cache_key",
    ),
    (
        "xai-chat/grok-4.7",
        "/openai/v1/chat/completions",
        "authorization",
        "messages",
    ),
    (
        "openai-chat/gpt-5.5",
        "/openai/v1/chat/completions",
        "authorization",
        "messages",
    ),
    (
        "bedrock-mantle/openai.gpt-6-astra",
        "/openai/v1/openai/v1/responses",
        "authorization",
        "input",
    ),
];

fn two_wires(base_url: &str) -> Chooser {
    let url = format!("{base_url}/openai/v1");
    let vars =
        ["AZURE_OPENAI", "XAI", "OPENAI", "BEDROCK_MANTLE"].map(|it| format!("{it}_BASE_URL"));
    let keys = [
        "AZURE_OPENAI_API_KEY",
        "XAI_API_KEY",
        "OPENAI_API_KEY",
        "AWS_BEARER_TOKEN_BEDROCK",
    ];
    let vars = vars.iter().map(|it| (&**it, &*url));
    chooser(&Vec::from_iter(
        vars.chain(keys.map(|it| (it, "sk-of-a-vendor"))),
    ))
}

#[tokio::test]
async fn model_is_asked_over_responses_when_its_vendor_has_two_wires() {
    for (name, path, header, part) in TWO_WIRES {
        let wire = if path.ends_with("/responses") {
            "openai"
        } else {
            "chat"
        };
        let mut server = serve(vec![events(&fixture(wire, "text"))]).await;
        let model = two_wires(&server.base_url)
            .model(name)
            .expect("it is known");
        complete(&model, hi()).await.expect("a reply");
        let seen = server.next().await;
        let line = format!("POST {path} HTTP/1.1");
        assert_eq!(seen.head.lines().next(), Some(&*line), "{name}");
        assert!(
            seen.header(header)
                .is_some_and(|it| it.ends_with("sk-of-a-vendor")),
            "{name}"
        );
        assert!(
            seen.body.contains(&format!("\"{part}\":")),
            "{name}: {}",
            seen.body
        );
        let is_plain = name != "azure/DeepSeek-V3.1" || !seen.body.contains("prompt_cache");
        assert!(is_plain, "{}", seen.body);
    }
}

/// Source: docs.apiyi.com on GPT-6 Astra, 2026-09: tools on Chat Completions are refused with any effort.
#[tokio::test]
async fn tools_are_refused_before_the_request_when_they_need_the_responses_api() {
    let tool = ToolDecl {
        name: "read".into(),
        description: "Reads.".into(),
        schema: Arc::new(serde_json::json!({"type": "object"})),
    };
    for (name, hint) in [
        ("openai-chat/gpt-6-astra", "use openai/gpt-6-astra"),
        ("azure-chat/gpt-6.2-sol", "use azure/gpt-6.2-sol"),
        ("azure-chat/gpt-6-astra", "use azure/gpt-6-astra"),
    ] {
        let model = two_wires("http://127.0.0.1:9")
            .model(name)
            .expect("it is known");
        let error = complete(&model, hi().tools([tool.clone()]))
            .await
            .expect_err("it is refused");
        let why = format!("{name} takes tools only on the Responses API; hint: {hint}");
        assert_eq!((error.kind(), error.message()), (ErrorKind::Config, &*why));
    }
}

#[test]
fn deployment_has_the_data_of_its_base_model() {
    let json = r#"{"models":[
        {"id":"azure/prod","base_model":"gpt-6-astra"},
        {"id":"azure/small","base_model":"openai/gpt-5.5","context_window":200000,"efforts":["low"]},
        {"id":"azure/seek","base_model":"deepseek/deepseek-flash"}
    ]}"#;
    let chooser = two_wires("http://127.0.0.1:9")
        .configuration(json)
        .expect("it can be read");
    let info = |name: &str| chooser.model(name).expect("it is known").info().clone();
    let (prod, astra) = (info("azure/prod"), info("openai/gpt-6-astra"));
    assert_eq!(
        (prod.base_name(), &prod.efforts),
        ("gpt-6-astra", &astra.efforts)
    );
    assert_eq!(
        (prod.context_window, prod.price),
        (astra.context_window, astra.price)
    );
    assert_eq!(info("azure/small").context_window, 200_000);
    assert_eq!(info("azure/seek").base_name(), "deepseek-flash");
    assert_eq!(
        info("azure/gpt-5.5").prompt_cache,
        info("openai/gpt-5.5").prompt_cache
    );
    assert_eq!(info("azure/unheard-of").efforts, []);
    let wrong = r#"{"models":[{"id":"azure/prod","base_model":"gpt-6-astr"}]}"#;
    let error = two_wires("http://127.0.0.1:9")
        .configuration(wrong)
        .expect_err("no such model");
    assert!(
        error
            .message()
            .starts_with(r#"model azure/prod: base_model: no model is called "gpt-6-astr""#),
        "{error}"
    );
}

#[test]
fn cloud_is_refused_when_nothing_says_where_it_is() {
    let refused = |vars: &[(&str, &str)], name: &str| {
        chooser(vars).model(name).map(|it| it.info().id.to_string())
    };
    let key = ("AWS_BEARER_TOKEN_BEDROCK", "sk-of-the-cloud");
    let error = refused(&[key], "bedrock/m").expect_err("no region is set");
    assert_eq!(
        error.message(),
        "no address for bedrock/m: AWS_REGION does not say where; hint: set it"
    );
    assert!(
        refused(
            &[key, ("AWS_DEFAULT_REGION", "eu-west-1")],
            "bedrock-mantle/m"
        )
        .is_ok()
    );
    // The key stays at the vendor's own hosts, wherever those are.
    let json = |url: &str| {
        format!(
            r#"{{"providers":[{{"name":"b","base_url":"{url}","key_variables":["{}"]}}]}}"#,
            key.0
        )
    };
    for (url, is_taken) in [
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/x", true),
        ("https://bedrock-runtime.us-east-1.amazonaws.com/x", false),
        ("https://evil.example/x", false),
    ] {
        let chooser =
            chooser(&[key, ("AWS_REGION", "eu-west-1")]).configuration_of(Origin::File, &json(url));
        assert_eq!(
            chooser.expect("it can be read").model("b/m").is_ok(),
            is_taken,
            "{url}"
        );
    }
}

#[tokio::test]
async fn token_of_a_program_is_kept_and_asked_for_again_when_it_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = KeyCommand::new([program(folder.path(), COUNTING).display().to_string()]);
    let text = events(&fixture("azure", "text"));
    let refused = || status("401 Unauthorized", "", r#"{"error":{"message":"expired"}}"#);
    let mut server = serve(vec![
        text.clone(),
        text.clone(),
        refused(),
        text.clone(),
        refused(),
        refused(),
    ])
    .await;
    // Where a key has a header of its own, a token is a bearer.
    let provider = Provider::new("azure", format!("{}/v1", server.base_url)).key_command(command);
    let model = chooser(&[])
        .provider(provider)
        .model("azure/mine")
        .expect("it has a program");
    let mut ends = Vec::new();
    for _ in 0..4 {
        ends.push(
            complete(&model, hi())
                .await
                .map_or_else(|error| Some(error.kind()), |_| None),
        );
    }
    // The last one is refused twice, and no third token is asked for.
    assert_eq!(ends, [None, None, None, Some(ErrorKind::Auth)]);
    for number in [1, 1, 1, 2, 2, 3] {
        let seen = server.next().await;
        assert_eq!(
            seen.header("authorization"),
            Some(&*format!("Bearer token-number-{number}"))
        );
        assert_eq!(seen.header("api-key"), None);
    }
    assert!(server.seen.is_empty() && !format!("{model:?}").contains("token-number"));
}

#[tokio::test]
async fn request_is_not_sent_when_its_program_gives_no_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |text: &str| {
        Key::tokens(KeyCommand::new([program(folder.path(), text)
            .display()
            .to_string()]))
    };
    for (text, why) in [
        (
            "echo sk-secret-of-mine; exit 3",
            "it ended with exit status: 3",
        ),
        ("echo", "there is no token: what was given is blank"),
        (
            "head -c 70000 /dev/zero | tr '\\0' x",
            "it printed more than 64 KiB",
        ),
        ("printf '\\377'", "the command of a key printed no text"),
        ("exec sleep 60", "it took more than 10s"),
    ] {
        // The one that would take too long is waited for in no time.
        if text.contains("sleep") {
            tokio::time::pause();
        }
        let error = complete(
            &model("chat", "http://127.0.0.1:9", run(text), Nobody),
            hi(),
        )
        .await;
        let error = error.expect_err("there is no token");
        assert_eq!(error.kind(), ErrorKind::Auth, "{text}");
        assert!(
            error.message().contains(why) && !error.to_string().contains("sk-secret"),
            "{text}: {error}"
        );
    }
    tokio::time::resume();
    let nowhere = Key::tokens(KeyCommand::new(["/nowhere/at/all"]));
    let error = complete(&model("chat", "http://127.0.0.1:9", nowhere, Nobody), hi())
        .await
        .expect_err("no program");
    assert_eq!(
        (error.kind(), error.message()),
        (
            ErrorKind::Config,
            "the command of a key could not be run: \"/nowhere/at/all\""
        )
    );
}

#[test]
fn program_of_a_key_is_not_run_when_a_file_named_it() {
    let json = r#"{"providers":[{"name":"acme","base_url":"http://a","key_command":{"argv":["print-token"],"ttl":60}}]}"#;
    let made = |origin| {
        chooser(&[])
            .configuration_of(origin, json)
            .expect("it can be read")
            .model("acme/m")
            .map(|_| ())
    };
    assert!(made(Origin::Environment).is_ok());
    let error = made(Origin::File).expect_err("nobody vouches for it");
    let why = "the program that prints the key of acme/m is not run: a file named it; hint: trust that file, or set a variable of `key_variables`";
    assert_eq!(error.message(), why);
}

/// Tokens of one's own.
struct Vault(Arc<AtomicUsize>);

#[async_trait::async_trait]
impl TokenSource for Vault {
    async fn token(&self) -> Result<Token, Error> {
        tokio::task::yield_now().await;
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Token::new(
            format!("token-number-{number}\n"),
            Duration::from_secs(60),
        ))
    }
}

#[tokio::test]
async fn source_is_asked_once_when_many_requests_begin_together() {
    let text = events(&fixture("anthropic", "text"));
    let mut server = serve(vec![text.clone(), text.clone(), text.clone()]).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let model = model(
        "anthropic",
        &server.base_url,
        Key::tokens(Vault(Arc::clone(&asked))),
        Nobody,
    );
    let both = tokio::join!(complete(&model, hi()), complete(&model, hi()));
    assert!(both.0.is_ok() && both.1.is_ok());
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    complete(&model, hi()).await.expect("a reply");
    for number in [0, 0, 1] {
        assert_eq!(
            server.next().await.header("authorization"),
            Some(&*format!("Bearer token-number-{number}"))
        );
    }
}

#[tokio::test]
async fn azure_takes_tokens_of_ones_own_by_name_and_in_code() {
    let text = events(&fixture("openai", "text"));
    let mut server = serve(vec![text.clone(), text]).await;
    let url = format!("{}/v1", server.base_url);
    let tokens = || Key::tokens(Vault(Arc::default()));
    // A variable holds a key too: tokens go before it.
    let vars = [
        ("AZURE_OPENAI_BASE_URL", &*url),
        ("AZURE_OPENAI_API_KEY", "sk-secret-of-azure"),
    ];
    let by_name = chooser(&vars)
        .key("azure", tokens())
        .model("azure/mine")
        .expect("there are tokens");
    let azure = Provider::all()
        .find(|it| it.name == "azure")
        .expect("it is known");
    let in_code = azure
        .model(ModelInfo::new("azure/mine"), tokens(), &url)
        .expect("it has an address");
    for model in [by_name, in_code] {
        complete(&model, hi()).await.expect("a reply");
        let seen = server.next().await;
        assert_eq!(seen.header("authorization"), Some("Bearer token-number-0"));
        assert!(
            seen.header("api-key").is_none() && !seen.head.contains("sk-secret"),
            "{}",
            seen.head
        );
    }
    let json = r#"{"providers":[{"name":"azure","base_url":"http://evil.example"}]}"#;
    let made = chooser(&[])
        .key("azure", tokens())
        .configuration_of(Origin::File, json)
        .expect("it can be read");
    let error = made
        .model("azure/mine")
        .expect_err("a file says where it is");
    let why = "the key of the application is not sent where a file says that azure is: azure/mine; hint: trust that file";
    assert_eq!(error.message(), why);
}

/// Requests are signed as they are sent, and the keys are nowhere.
#[cfg(feature = "sigv4")]
#[tokio::test]
async fn request_is_signed_when_there_are_keys_of_aws() {
    let mut server = serve(vec![events(&fixture("openai", "text"))]).await;
    let vars = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "secret-of-the-account"),
        ("AWS_SESSION_TOKEN", "token-of-the-session"),
        ("AWS_REGION", "eu-west-1"),
        ("BEDROCK_BASE_URL", &server.base_url),
    ];
    let model = chooser(&vars)
        .model("bedrock/openai.gpt-5.5")
        .expect("there are keys");
    complete(&model, hi()).await.expect("a reply");
    let seen = server.next().await;
    let signed = seen.header("authorization").expect("it is signed");
    assert!(
        signed.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"),
        "{signed}"
    );
    let parts = [
        "/eu-west-1/bedrock/aws4_request, ",
        "SignedHeaders=accept;content-type;host;x-amz-date;x-amz-security-token, ",
    ];
    assert!(parts.iter().all(|part| signed.contains(part)), "{signed}");
    assert_eq!(
        seen.header("x-amz-security-token"),
        Some("token-of-the-session")
    );
    assert!(!seen.head.contains("secret-of-the-account"));
    let printed = format!("{model:?}");
    assert!(
        !printed.contains("secret-of") && !printed.contains("token-of"),
        "{printed}"
    );
    assert_eq!(model.info().name(), "openai.gpt-5.5");
}
