//! Tests of the catalogue: the list itself, files of users, and what replies cost by it.

use adjutant_llm::{
    Effort, Inputs, LongPrice, NanoUsd, Price, RequestOption, Structured, ThinkingControl, Usage,
};

use super::*;

/// The providers that a listed model may be of.
const LISTED: [&str; 10] = [
    "anthropic",
    "deepseek",
    "gemini",
    "groq",
    "mistral",
    "moonshot",
    "openai",
    "qwen",
    "xai",
    "zai",
];

#[test]
fn list_is_in_order_when_read() {
    let read = Catalogue::read(BY_HAND).expect("the list can be read");
    let mut providers: Vec<_> = read.models().map(ModelInfo::provider).collect();
    assert!(providers.is_sorted(), "{providers:?}");
    providers.dedup();
    assert_eq!(providers, LISTED);
    for provider in providers {
        let default = read
            .default_model(provider)
            .expect("each provider has a default");
        assert_eq!(default.provider(), provider);
    }
}

#[test]
fn published_models_stand_behind_those_of_their_provider_when_both_are_read() {
    let (by_hand, published) = (
        Catalogue::read(BY_HAND).expect("a list"),
        Catalogue::read(PUBLISHED).expect("a list"),
    );
    let all: Vec<ModelInfo> = builtin_models().collect();
    let named = |catalogue: &Catalogue| {
        catalogue
            .models()
            .map(|it| it.id.clone())
            .collect::<HashSet<ModelId>>()
    };
    assert_eq!(all.len(), named(&by_hand).union(&named(&published)).count());
    assert!(all.len() > 400, "{}", all.len());
    for info in &all {
        // What was looked up counts.
        let expect = by_hand
            .find(info.id.as_str())
            .or_else(|| published.find(info.id.as_str()));
        assert_eq!(Some(info), expect);
        assert_eq!(
            is_published(info.id.as_str()),
            by_hand.find(info.id.as_str()).is_none()
        );
    }
    let mut providers: Vec<_> = all.iter().map(ModelInfo::provider).collect();
    providers.dedup();
    assert_eq!(
        providers.len(),
        providers.iter().collect::<HashSet<_>>().len(),
        "each stands together"
    );
    assert!(published.models().filter(|it| it.price.is_some()).count() > 400);
    assert!(
        published.models().any(|it| it.inputs.audio)
            && published.models().any(|it| !it.efforts.is_empty())
    );
}

#[test]
fn list_says_when_and_where_it_was_looked_up() {
    let file: serde_json::Value = serde_json::from_str(BY_HAND).expect("it is JSON");
    let published: serde_json::Value = serde_json::from_str(PUBLISHED).expect("it is JSON");
    let filled = |value: &serde_json::Value| value.as_str().is_some_and(|it| !it.is_empty());
    for file in [&file, &published] {
        assert!(filled(&file["date"]));
        assert!(
            file["sources"]
                .as_array()
                .is_some_and(|it| !it.is_empty() && it.iter().all(filled))
        );
    }
    for model in file["models"].as_array().expect("models are a list") {
        assert!(filled(&model["source"]), "{}", model["id"]);
    }
}

#[test]
fn list_has_the_defaults_of_providers_with_keys() {
    let catalogue = Catalogue::builtin();
    let default = |provider| {
        catalogue
            .default_model(provider)
            .map(|info| info.id.to_string())
    };
    assert_eq!(
        default("anthropic").as_deref(),
        Some("anthropic/claude-sonnet-5")
    );
    assert_eq!(default("openai").as_deref(), Some("openai/gpt-5.4"));
}

/// One model with all fields; these members are added or, as `null`, removed.
fn file(changes: &serde_json::Value) -> String {
    let mut model = serde_json::json!({
        "id": "mine/one", "context_window": 1000, "max_output_tokens": 100, "inputs": ["image", "document"],
        "efforts": ["high", "off"], "thinking": "budget", "structured": "prompt", "refuses": ["stop", "forced_calls"],
        "price": {
            "input": 0.1, "output": 0.3, "cache_read": 0.01, "cache_write": 0.125, "cache_write_1h": 0.2,
            "long": { "above": 500, "input_percent": 200, "output_percent": 150 }
        },
        "source": "a page, 2026-11", "default": true
    });
    let members = model.as_object_mut().expect("it is an object");
    for (name, value) in changes.as_object().expect("changes are an object") {
        members.insert(name.clone(), value.clone());
        members.retain(|_, value| !value.is_null());
    }
    serde_json::json!({ "date": "2026-11-22", "sources": ["a page"], "models": [model] })
        .to_string()
}

#[test]
fn read_takes_every_field_when_it_is_there() {
    let catalogue = Catalogue::read(&file(&serde_json::json!({}))).expect("it can be read");
    let price = Price {
        input: NanoUsd(100_000_000),
        output: NanoUsd(300_000_000),
        cache_read: NanoUsd(10_000_000),
        cache_write: NanoUsd(125_000_000),
        cache_write_1h: NanoUsd(200_000_000),
        long: Some(LongPrice {
            above: 500,
            input_percent: 200,
            output_percent: 150,
        }),
    };
    let expect = ModelInfo {
        structured: Structured::Prompt,
        refuses: vec![RequestOption::Stop, RequestOption::ForcedCalls],
        price: Some(price),
        ..ModelInfo {
            context_window: 1_000,
            max_output_tokens: 100,
            inputs: Inputs {
                images: true,
                documents: true,
                audio: false,
            },
            efforts: vec![Effort::Off, Effort::High],
            thinking: ThinkingControl::Budget,
            ..ModelInfo::new("mine/one")
        }
    };
    assert_eq!(catalogue.models().collect::<Vec<_>>(), [&expect]);
    assert_eq!(catalogue.default_model("mine"), Some(&expect));
}

#[test]
fn read_takes_the_usual_when_fields_are_missing() {
    let json = r#"{"models":[{"id":"a/b/c","context_window":9,"max_output_tokens":9,"price":{"input":2,"output":3}}]}"#;
    let catalogue = Catalogue::read(json).expect("it can be read");
    let two = NanoUsd(2_000_000_000);
    let price = Price {
        input: two,
        output: NanoUsd(3_000_000_000),
        cache_read: two,
        cache_write: two,
        cache_write_1h: two,
        long: None,
    };
    let expect = ModelInfo {
        context_window: 9,
        max_output_tokens: 9,
        price: Some(price),
        ..ModelInfo::new("a/b/c")
    };
    assert_eq!(catalogue.find("a/b/c"), Some(&expect));
    assert_eq!(catalogue.default_model("a"), None);
}

#[test]
fn read_names_model_and_field_when_they_contradict() {
    let price = |name: &str, value: serde_json::Value| {
        let mut price = serde_json::json!({ "input": 1, "output": 2 });
        price[name] = value;
        serde_json::json!({ "price": price })
    };
    let long = serde_json::json!({ "above": 1, "input_percent": 99, "output_percent": 100 });
    let cases = [
        (
            serde_json::json!({ "id": "one" }),
            "model one: id: it is not of the form provider/name",
        ),
        (
            serde_json::json!({ "id": "mine/" }),
            "model mine/: id: it is not of the form provider/name",
        ),
        (
            serde_json::json!({ "context_window": 0 }),
            "model mine/one: context_window: it is 0",
        ),
        (
            serde_json::json!({ "max_output_tokens": 1001 }),
            "model mine/one: max_output_tokens: it is not from 1 to the window: 1001",
        ),
        (
            serde_json::json!({ "efforts": [] }),
            "model mine/one: thinking: it is a budget, and there are no efforts",
        ),
        (
            price("output", (-1).into()),
            "model mine/one: price.output: it is less than nothing: -1",
        ),
        (
            price("input", 0.000_000_000_1.into()),
            "model mine/one: price.input: it has more than nine decimals: 0.0000000001",
        ),
        (
            price("cache_read", 1.5.into()),
            "model mine/one: price.cache_read: it is more than that of the input",
        ),
        (
            price("cache_write_1h", 0.5.into()),
            "model mine/one: price.cache_write_1h: it is less than that of the shorter time",
        ),
        (
            price("long", long),
            "model mine/one: price.long: a percentage is below 100",
        ),
    ];
    for (changes, expect) in cases {
        let error = Catalogue::read(&file(&changes)).expect_err(expect);
        assert_eq!((error.kind(), error.message()), (ErrorKind::Config, expect));
    }
    let one = r#"{"id":"a/b","context_window":9,"max_output_tokens":9}"#;
    let error =
        Catalogue::read(&format!(r#"{{"models":[{one},{one}]}}"#)).expect_err("it is listed twice");
    assert_eq!(error.message(), "model a/b: id: it is listed twice");
    let default = |name: &str| {
        format!(r#"{{"id":"a/{name}","context_window":9,"max_output_tokens":9,"default":true}}"#)
    };
    let json = format!(r#"{{"models":[{},{}]}}"#, default("b"), default("c"));
    let error = Catalogue::read(&json).expect_err("two are default");
    assert_eq!(
        error.message(),
        "model a/c: default: its provider has one already"
    );
}

#[test]
fn read_names_line_and_column_when_the_shape_is_wrong() {
    let cases = [
        (
            "",
            "no catalogue: EOF while parsing a value at line 1 column 0",
        ),
        (
            r#"{"models":[],"prices":1}"#,
            "no catalogue: unknown field `prices`, expected one of `date`, `sources`, \
            `models` at line 1 column 21",
        ),
        (
            "{\n\"models\":[{\"id\":1}]}",
            "no catalogue: invalid type: integer `1`, expected a string at line 2 column 17",
        ),
    ];
    for (json, expect) in cases {
        let error = Catalogue::read(json).expect_err(expect);
        assert_eq!((error.kind(), error.message()), (ErrorKind::Config, expect));
    }
    for (field, value) in [
        ("inputs", "sound"),
        ("efforts", "ultra"),
        ("refuses", "all"),
        ("structured", "json"),
    ] {
        let value = if field == "structured" {
            value.into()
        } else {
            serde_json::json!([value])
        };
        let error = Catalogue::read(&file(&serde_json::json!({ field: value }))).expect_err(field);
        assert!(
            error.message().starts_with("no catalogue: unknown variant"),
            "{error}"
        );
        assert!(error.message().contains("at line 1 column"), "{error}");
    }
}

#[test]
fn with_replaces_a_model_when_the_name_is_taken() {
    let catalogue = Catalogue::empty()
        .with(ModelInfo::new("a/b"))
        .with(ModelInfo::new("a/c"));
    let larger = ModelInfo {
        context_window: 9,
        ..ModelInfo::new("a/b")
    };
    let catalogue = catalogue.with(larger.clone());
    assert_eq!(
        catalogue.models().collect::<Vec<_>>(),
        [&larger, &ModelInfo::new("a/c")]
    );
}

#[test]
fn merge_takes_the_others_when_both_have_a_model() {
    let mine = Catalogue::read(&file(
        &serde_json::json!({ "id": "openai/gpt-5", "price": null }),
    ))
    .expect("it is read");
    let merged = Catalogue::builtin().merge(mine.clone());
    assert_eq!(
        merged.models().count(),
        Catalogue::builtin().models().count()
    );
    assert_eq!(merged.find("openai/gpt-5"), mine.find("openai/gpt-5"));
    assert_eq!(merged.default_model("openai"), mine.find("openai/gpt-5"));
    assert_eq!(
        merged.default_model("xai"),
        Catalogue::builtin().default_model("xai")
    );
}

#[test]
fn model_names_the_nearest_when_there_is_none() {
    let catalogue = Catalogue::empty()
        .with(ModelInfo::new("a/large"))
        .with(ModelInfo::new("b/small"));
    assert_eq!(catalogue.near("smal"), ["b/small"]);
    assert_eq!(catalogue.near("enormous"), [""; 0]);
    let error = catalogue
        .model("b/smal")
        .expect_err("there is no such model");
    let expect = "no model is called \"b/smal\"; hint: the nearest are b/small";
    assert_eq!((error.kind(), error.message()), (ErrorKind::Config, expect));
    let error = Catalogue::empty()
        .model("x")
        .expect_err("there is none at all");
    assert_eq!(error.message(), "no model is called \"x\"");
    assert!(catalogue.find("B/small").is_none(), "lookups are exact");
}

/// Uncached, read, written, of these for an hour, output, of these reasoning.
type Tokens = (u64, u64, u64, u64, u64, u64);

#[track_caller]
fn check_cost(
    id: &str,
    (input_uncached, cache_read, cache_write, cache_write_1h, output, reasoning): Tokens,
    nano: u64,
) {
    let usage = Usage {
        input_uncached,
        cache_read,
        cache_write,
        cache_write_1h,
        output,
        reasoning,
    };
    assert_eq!(
        builtin().find(id).expect(id).cost(&usage),
        Some(NanoUsd(nano)),
        "{id} {usage:?}"
    );
}

#[test]
fn cost_is_by_class_when_anthropic_caches() {
    // 1,000 at $4 + 50,000 at $0.20 + 9,000 at $5 + 2,000 at $20, for a million:
    // $0.004 + $0.010 + $0.045 + $0.040 = $0.099. Reasoning is output already.
    check_cost(
        "anthropic/claude-opus-5-5",
        (1_000, 50_000, 9_000, 0, 2_000, 1_500),
        99_000_000,
    );
    // Of the 9,000, 4,000 are for an hour: 5,000 at $5 + 4,000 at $8 = $0.025 + $0.032 instead of $0.045: $0.111.
    check_cost(
        "anthropic/claude-opus-5-5",
        (1_000, 50_000, 9_000, 4_000, 2_000, 1_500),
        111_000_000,
    );
    // 100,000 in all is not long: 40,000 at $0.10 + 50,000 at $0.01 + 10,000 at $0.125 + 1,000 at $0.50
    // = $0.004 + $0.0005 + $0.00125 + $0.0005 = $0.00625.
    check_cost(
        "anthropic/claude-haiku-5-5",
        (40_000, 50_000, 10_000, 0, 1_000, 0),
        6_250_000,
    );
    // One token more is: all of it at five times the price. (40,001 × $0.10 + … ) × 5 = $0.00625010 × 5 = $0.0312505.
    check_cost(
        "anthropic/claude-haiku-5-5",
        (40_001, 50_000, 10_000, 0, 1_000, 0),
        31_250_500,
    );
}

#[test]
fn cost_is_by_class_when_openai_caches() {
    // 10,000 at $2 + 90,000 at $0.10 + 20,000 at $2.50 + 5,000 at $10
    // = $0.020 + $0.009 + $0.050 + $0.050 = $0.129.
    check_cost(
        "openai/gpt-6.2-sol",
        (10_000, 90_000, 20_000, 0, 5_000, 4_000),
        129_000_000,
    );
    // All 20,000 kept for long, at $5: $0.179.
    check_cost(
        "openai/gpt-6.2-sol",
        (10_000, 90_000, 20_000, 20_000, 5_000, 4_000),
        179_000_000,
    );
    // 300,000 in all is long: (100,000 at $2 + 200,000 at $0.10) × 2 + 10,000 at $10 × 1.5
    // = ($0.20 + $0.02) × 2 + $0.10 × 1.5 = $0.44 + $0.15 = $0.59.
    check_cost(
        "openai/gpt-6.2-sol",
        (100_000, 200_000, 0, 0, 10_000, 0),
        590_000_000,
    );
    // Writing costs what input costs where no price is named: 8,000 at $1.25 + 2,000 at $1.25 + 1,000 at $10
    // = $0.0125 + $0.010 = $0.0225.
    check_cost("openai/gpt-5", (8_000, 0, 2_000, 0, 1_000, 0), 22_500_000);
}

#[test]
fn cost_is_by_class_when_gemini_caches() {
    // 150,000 at $1.25 + 50,000 at $0.125 + 1,000 at $10 = $0.1875 + $0.00625 + $0.010 = $0.20375.
    check_cost(
        "gemini/gemini-2.5-pro",
        (150_000, 50_000, 0, 0, 1_000, 600),
        203_750_000,
    );
    // Above 200,000: 150,001 at $2.50 + 50,000 at $0.25 + 1,000 at $15
    // = $0.3750025 + $0.0125 + $0.015 = $0.4025025.
    check_cost(
        "gemini/gemini-2.5-pro",
        (150_001, 50_000, 0, 0, 1_000, 600),
        402_502_500,
    );
    // Three tokens at $0.10, $0.01 and $0.40 for a million: 100 + 10 + 400 billionths.
    check_cost("gemini/gemini-2.5-flash-lite", (1, 1, 0, 0, 1, 0), 510);
}

#[test]
fn cost_is_by_class_when_compatible_servers_cache() {
    // 20,000 at $0.30 + 80,000 at $0.006 + 3,000 at $1.20 = $0.006 + $0.00048 + $0.0036 = $0.01008.
    check_cost(
        "deepseek/deepseek-flash",
        (20_000, 80_000, 0, 0, 3_000, 2_000),
        10_080_000,
    );
    // 100,000 at $2 + 150,000 at $0.50 + 10,000 at $6 = $0.335, twice as much above 200,000: $0.67.
    check_cost(
        "xai/grok-4.7",
        (100_000, 150_000, 0, 0, 10_000, 0),
        670_000_000,
    );
    let unpriced = builtin().find("qwen/qwen3.8-max").expect("it is listed");
    assert_eq!(
        unpriced.cost(&Usage {
            output: 1,
            ..Usage::default()
        }),
        None
    );
}

/// Source: "Prefix checks on thinking blocks", platform.claude.com, 2026-11.
#[test]
fn thinking_is_bound_when_a_claude_model_checks_the_conversation_before_it() {
    let cases = [
        ("anthropic/claude-fable-5-1", true),
        ("anthropic/claude-opus-5-5", true),
        ("anthropic/claude-haiku-5-5-20261001", true),
        ("anthropic/claude-fable-5-2", true),
        ("anthropic/claude-opus-6", true),
        ("bedrock-mantle/anthropic.claude-sonnet-5-5", true),
        ("bedrock-mantle/us.anthropic.claude-opus-7-v1:0", true),
        ("vertex/claude-sonnet-5-5@20260928", true),
        ("openrouter/anthropic/claude-fable-5.1", true),
        ("anthropic/claude-fable-5", false),
        ("anthropic/claude-sonnet-5@20260630", false),
        ("anthropic/claude-opus-4-8", false),
        ("anthropic/claude-3-7-sonnet-20250219", false),
        ("anthropic/claude-latest", false),
        ("anthropic/claude-", false),
        ("openai/gpt-6.2", false),
    ];
    for (id, expect) in cases {
        assert_eq!(info_from_name(id).thinking_binding, expect, "{id}");
        if let Some(listed) = builtin().find(id) {
            assert_eq!(listed.thinking_binding, expect, "{id}");
        }
    }
    let read = |binding: &str| {
        let json = format!(
            r#"{{"models":[{{"id":"a/claude-opus-9","context_window":9,"max_output_tokens":9{binding}}}]}}"#
        );
        let catalogue = Catalogue::read(&json).expect("it can be read");
        catalogue.models().all(|it| it.thinking_binding)
    };
    assert!(read(""));
    assert!(!read(r#","thinking_binding":false"#));
}
