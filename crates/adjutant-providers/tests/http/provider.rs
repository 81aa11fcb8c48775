//! Providers as data: stored, printed, and made into models.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_llm::{Effort, ErrorKind, ModelInfo, Request, complete};
use adjutant_providers::{
    Anthropic, Chat, DialectPatch, Gemini, OpenAi, Provider, WireKind, catalogue::builtin_models,
};
use serde_json::json;

use crate::server::{events, fixture, serve};

/// The cells of the rows of a table in the guide, without their backticks, by prefix.
fn rows(guide: &str, head: &str) -> BTreeMap<String, Vec<String>> {
    let (_, table) = guide.split_once(head).expect("the table is there");
    let lines = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut rows = BTreeMap::new();
    for line in lines {
        let cells: Vec<String> = line
            .split('|')
            .map(|it| it.trim().replace('`', ""))
            .collect();
        for name in cells[1].split(", ") {
            rows.insert(name.to_owned(), cells[2..].to_vec());
        }
    }
    rows
}

#[test]
fn guide_lists_every_provider_as_it_is() {
    let path = format!("{}/../../docs/providers.md", env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(path).expect("the guide is there");
    let wires = rows(&guide, "| prefix | wire |");
    let efforts = rows(&guide, "| prefix | effort values |");
    for provider in Provider::all() {
        let name = &*provider.name;
        let row = wires
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not in the guide"));
        assert!(
            row[0].to_lowercase().starts_with(provider.wire.name()),
            "{name}: {}",
            row[0]
        );
        for key in &provider.key_variables {
            assert!(row[1].contains(key.as_str()), "{name}: {key}");
        }
        assert_eq!(row[2], provider.base_url_variable, "{name}");
        assert!(row[3].contains(&provider.base_url), "{name}: {}", row[3]);
        let listed = builtin_models().filter(|info| info.provider() == name);
        let listed: BTreeSet<_> = listed.flat_map(|info| info.efforts).collect();
        let listed: Vec<_> = listed.into_iter().map(Effort::name).collect();
        let expect = match (&*listed.join(", "), name.strip_suffix("-chat")) {
            ("", Some(vendor)) => format!("as {vendor}"),
            ("", None) => "none in the catalogue".to_owned(),
            (listed, _) => listed.to_owned(),
        };
        assert_eq!(efforts[name][0], expect, "{name}");
    }
}

#[test]
fn provider_is_the_same_when_it_was_stored() {
    let patch: DialectPatch =
        serde_json::from_value(json!({"system": "developer"})).expect("a patch");
    let full = Provider::new("acme", "https://llm.acme.example/v1")
        .wire(WireKind::Responses)
        .key_variable("ACME_KEY")
        .key_variable("ACME_TOKEN")
        .like("vllm")
        .dialect(patch)
        .header("x-team", "7");
    for provider in Provider::all().chain([full, Provider::new("bare", "")]) {
        let text = serde_json::to_string(&provider).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Provider>(&text).ok().as_ref(),
            Some(&provider),
            "{text}"
        );
    }
    let least = serde_json::from_value::<Provider>(json!({"name": "acme", "base_url": "http://a"}));
    assert_eq!(least.ok(), Some(Provider::new("acme", "http://a")));
    let wrong = serde_json::from_value::<Provider>(json!({"name": "acme", "base_uri": "http://a"}));
    assert!(wrong.is_err_and(|error| error.to_string().contains("base_uri")));
}

#[test]
fn models_of_the_catalogue_are_of_providers_that_are_known() {
    let known: Vec<String> = Provider::all().map(|it| it.name).collect();
    for info in adjutant_providers::catalogue::builtin_models() {
        assert!(known.iter().any(|it| it == info.provider()), "{}", info.id);
    }
}

#[test]
fn debug_prints_names_of_headers_when_their_values_may_be_secret() {
    let provider = Provider::new("acme", "https://me:pa55word@a.example")
        .header("x-team-key", "hunter22hunter");
    let printed = format!("{provider:?}");
    assert!(
        printed.contains("x-team-key") && !printed.contains("hunter22"),
        "{printed}"
    );
    assert!(!printed.contains("pa55word"), "{printed}");
    let headers = BTreeMap::from([("x-team-key".to_owned(), "hunter22hunter".to_owned())]);
    let info = || ModelInfo::new("acme/large");
    for printed in [
        format!(
            "{:?}",
            Anthropic::new(info(), "sk-secret").headers(headers.clone())
        ),
        format!(
            "{:?}",
            OpenAi::new(info(), "sk-secret").headers(headers.clone())
        ),
        format!(
            "{:?}",
            Gemini::new(info(), "sk-secret").headers(headers.clone())
        ),
        format!(
            "{:?}",
            Chat::new(info(), "sk-secret").headers(headers.clone())
        ),
    ] {
        assert!(
            !printed.contains("hunter22") && !printed.contains("sk-secret"),
            "{printed}"
        );
    }
}

#[test]
fn model_is_refused_when_its_provider_is_incomplete() {
    let error = |provider: Provider| {
        let error = provider
            .model(ModelInfo::new("acme/large"), "", " ")
            .expect_err("it is incomplete");
        assert_eq!(error.kind(), ErrorKind::Config);
        error.message().to_owned()
    };
    assert_eq!(
        error(Provider::new("acme", "")),
        "acme has no address of its own"
    );
    let unlike = Provider::new("acme", "http://a").like("nobody");
    assert_eq!(
        error(unlike),
        "provider acme: like: no known dialect is called \"nobody\""
    );
}

#[tokio::test]
async fn model_speaks_the_wire_and_dialect_when_a_provider_makes_it() {
    let wires = [
        (WireKind::Messages, "anthropic", "", "/v1/messages"),
        (WireKind::Responses, "openai", "/v1", "/v1/responses"),
        (
            WireKind::Gemini,
            "gemini",
            "",
            "/v1beta/models/large:streamGenerateContent?alt=sse",
        ),
        (WireKind::Chat, "chat", "/v1", "/v1/chat/completions"),
    ];
    for (wire, name, base, path) in wires {
        let mut server = serve(vec![events(&fixture(name, "text"))]).await;
        let provider = Provider::new("acme", format!("{}{base}", server.base_url))
            .wire(wire)
            .like("openai");
        let model =
            provider
                .header("x-team", "7")
                .model(ModelInfo::new("acme/large"), "sk-secret", "");
        let request = Request::new().system("Be brief.").user("hi");
        let reply = complete(&model.expect("a model"), request)
            .await
            .expect("a reply");
        assert_eq!(reply.model.as_str(), "acme/large");
        let seen = server.next().await;
        assert_eq!(
            seen.head.lines().next(),
            Some(&*format!("POST {path} HTTP/1.1"))
        );
        assert_eq!(seen.header("x-team"), Some("7"), "{name}");
        // Only the dialect of OpenAI calls the limit so.
        assert_eq!(
            seen.body.contains(r#""max_completion_tokens":"#),
            name == "chat",
            "{}",
            seen.body
        );
    }
}
