//! `models`: makes the published part of the catalogue of the prices and windows that come with `litellm`.
//!
//! Manual entries are in another file and take precedence over these; differences are printed.

use std::error::Error;

use serde_json::{Map, Value, json};

use crate::{Failure, cargo};

const FOLDER: &str = "crates/adjutant-providers/src/catalogue";
/// The generated file and the manual one have the same fields; their formatting differs.
const PUBLISHED: &str = "published.json";
const BY_HAND: &str = "models.json";
/// Providers: the file's name, our name, and the prefix of the models' names.
const PROVIDERS: [(&str, &str, &str); 18] = [
    ("anthropic", "anthropic", ""),
    ("azure", "azure", "azure/"),
    ("bedrock_mantle", "bedrock-mantle", "bedrock_mantle/"),
    ("cerebras", "cerebras", "cerebras/"),
    ("dashscope", "qwen", "dashscope/"),
    ("deepseek", "deepseek", "deepseek/"),
    ("fireworks_ai", "fireworks", "fireworks_ai/"),
    ("gemini", "gemini", "gemini/"),
    ("groq", "groq", "groq/"),
    ("mistral", "mistral", "mistral/"),
    ("moonshot", "moonshot", "moonshot/"),
    ("openai", "openai", ""),
    ("perplexity", "perplexity", "perplexity/"),
    ("together_ai", "together", "together_ai/"),
    ("vertex_ai-anthropic_models", "vertex", "vertex_ai/"),
    ("vertex_ai-language-models", "vertex", ""),
    ("xai", "xai", "xai/"),
    ("zai", "zai", "zai/"),
];
/// Parts of names that are not chat models on our wires, or are other names of such models.
const OTHERS: [&str; 12] = [
    "@default",
    "audio",
    "deep-research",
    "ft:",
    "image",
    "live",
    "pplx-",
    "realtime",
    "search",
    "together-ai-",
    "tts",
    "us-gov-",
];

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let [file, version, date] = arguments else {
        let usage = "which file, of which version of litellm, as of when? `models <file.json> <version> <YYYY-MM-DD>`";
        return Err(Failure::Usage(usage.into()));
    };
    rewrite(file, version, date).map_err(|why| Failure::Step(format!("models {file}: {why}")))
}

fn rewrite(file: &str, version: &str, date: &str) -> Result<(), Box<dyn Error>> {
    let folder = cargo::root().join(FOLDER);
    let published: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let by_hand: Value = serde_json::from_slice(&std::fs::read(folder.join(BY_HAND))?)?;
    let models = catalogue(&published, date);
    differences(&by_hand, &models)
        .iter()
        .for_each(|it| println!("{it}"));
    std::fs::write(folder.join(PUBLISHED), render(&models, version, date))?;
    println!(
        "{} models of litellm {version} in {FOLDER}/{PUBLISHED}",
        models.len()
    );
    Ok(())
}

/// The models of our providers, by name.
fn catalogue(published: &Value, date: &str) -> Vec<Value> {
    let mut models: Vec<Value> = Vec::new();
    for (name, row) in published.as_object().into_iter().flatten() {
        let Some(id) = id(name, row, date) else {
            continue;
        };
        if let Some(model) = model(&id, row).filter(|_| models.iter().all(|it| it["id"] != *id)) {
            models.push(model);
        }
    }
    models.sort_by_cached_key(|it| it["id"].as_str().unwrap_or_default().to_owned());
    models
}

/// Our name of a model that is a language model, and still there on this day.
fn id(name: &str, row: &Value, date: &str) -> Option<String> {
    let (_, ours, prefix) = PROVIDERS
        .iter()
        .find(|(theirs, ..)| row["litellm_provider"] == *theirs)?;
    let name = name.strip_prefix(prefix).unwrap_or(name);
    let is_talk = row["mode"] == "chat" || row["mode"] == "responses";
    let is_gone = row["deprecation_date"]
        .as_str()
        .is_some_and(|it| it <= date);
    let speaks = row["supported_output_modalities"]
        .as_array()
        .is_none_or(|it| it.iter().all(|it| it == "text"));
    let is_other =
        OTHERS.iter().any(|part| name.contains(part)) || name.contains(char::is_whitespace);
    // On each of these hosts, all names have one form.
    let is_full = *ours != "fireworks" || name.starts_with("accounts/");
    let is_own = *ours != "perplexity" || name.starts_with("sonar");
    // Rows of single regions repeat the model.
    let is_once = *ours != "azure" || !name.contains('/');
    (is_talk && !is_gone && speaks && !is_other && is_full && is_own && is_once)
        .then(|| format!("{ours}/{name}"))
}

fn model(id: &str, row: &Value) -> Option<Value> {
    let (window, output) = (
        row["max_input_tokens"].as_u64()?,
        row["max_output_tokens"].as_u64()?,
    );
    let can = |ability: &str| row[format!("supports_{ability}")] == true;
    let cannot = |ability: &str| row[format!("supports_{ability}")] == false;
    let always = row["thinking_always_on"] == true;
    let mut model =
        json!({ "id": id, "context_window": window, "max_output_tokens": output.min(window) });
    let chosen = |all: &[(bool, &'static str)]| -> Vec<&str> {
        all.iter().filter(|it| it.0).map(|it| it.1).collect()
    };
    let claude = id.contains("claude");
    let structured = can(if claude {
        "native_structured_output"
    } else {
        "response_schema"
    });
    let members = [
        (
            "inputs",
            chosen(&[
                (can("vision"), "image"),
                (can("pdf_input"), "document"),
                (can("audio_input"), "audio"),
            ]),
        ),
        ("efforts", efforts(id, row, always)),
        (
            "refuses",
            chosen(&[
                (cannot("sampling_params"), "temperature"),
                (cannot("sampling_params"), "top_p"),
                (
                    always || cannot("forced_tool_use") || cannot("tool_choice"),
                    "forced_calls",
                ),
            ]),
        ),
    ];
    for (name, values) in members.into_iter().filter(|(_, values)| !values.is_empty()) {
        model[name] = values.into();
    }
    if structured {
        model["structured"] = "native".into();
    }
    if is_openai(id) {
        let is_alone = row["mode"] == "responses"
            || can("xhigh_reasoning_effort") && cannot("none_reasoning_effort");
        if is_alone {
            model["tools_need_responses"] = true.into();
        }
        if let Some(cache) = prompt_cache(id, row) {
            model["prompt_cache"] = cache.into();
        }
    }
    if let Some(price) = price(row) {
        model["price"] = price;
    }
    (window > 0 && output > 0).then_some(model)
}

/// True for models of OpenAI, whichever provider serves them.
fn is_openai(id: &str) -> bool {
    ["openai/", "azure/"].iter().any(|it| id.starts_with(it)) || id.contains("/openai.gpt-")
}

/// Returns the parameter that controls the prompt cache of a model of OpenAI. Writes cost money since GPT-5.6, which takes
/// `prompt_cache_options`.
///
/// Source: "Prompt caching", developers.openai.com, and OpenHands/software-agent-sdk 2295 on Azure, 2026-03 to 2026-11.
fn prompt_cache(id: &str, row: &Value) -> Option<&'static str> {
    let name = id.split_once('/')?.1;
    let is_long = name.starts_with("gpt-5") || id.starts_with("openai/gpt-4.1");
    let is_small = name.contains("mini") || name.contains("nano") || name.contains("chat");
    if row["cache_creation_input_token_cost"].is_number() {
        Some("options")
    } else {
        (is_long && !is_small).then_some("retention")
    }
}

/// The effort values of a model, if the file has them; none are guessed.
fn efforts(id: &str, row: &Value, always: bool) -> Vec<&'static str> {
    let levels = row["reasoning_effort_levels"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let has = |level: &str| levels.iter().any(|it| it == level);
    let can = |ability: &str| row[format!("supports_{ability}")] == true;
    // These two vendors have the usual three, and flags for additional ones.
    let openai = can("reasoning") && is_openai(id) && levels.is_empty();
    let claude = id.contains("claude") && can("adaptive_thinking");
    let usual = openai || claude;
    let off = has("none") || openai && can("none_reasoning_effort") || claude && !always;
    // Missing in the source for GPT-5.6: "Reasoning", developers.openai.com, 2026-10.
    let is_newer = id.starts_with("openai/gpt-5.6");
    let all = [
        (off, "off"),
        (
            has("minimal") || openai && can("minimal_reasoning_effort"),
            "minimal",
        ),
        (has("low") || usual, "low"),
        (has("medium") || usual, "medium"),
        (has("high") || usual, "high"),
        (
            has("xhigh") || usual && can("xhigh_reasoning_effort"),
            "xhigh",
        ),
        (
            has("max") || usual && (can("max_reasoning_effort") || is_newer),
            "max",
        ),
    ];
    all.into_iter().filter(|it| it.0).map(|it| it.1).collect()
}

/// The price of a million tokens; a class that contradicts another one is omitted.
fn price(row: &Value) -> Option<Value> {
    // The digits of a price per token, moved by six; binary numbers would add some.
    let class = |name: &str| row[name].as_f64().map(|it| (it * 1e15).round() / 1e9);
    let (input, output) = (
        class("input_cost_per_token")?,
        class("output_cost_per_token")?,
    );
    let mut price = json!({ "input": input, "output": output });
    let write = class("cache_creation_input_token_cost");
    let hour = class("cache_creation_input_token_cost_above_1hr")
        .or_else(|| class("cache_creation_input_token_cost_above_12hr"))
        .filter(|it| *it >= write.unwrap_or(input));
    let read = class("cache_read_input_token_cost").filter(|it| *it <= input);
    for (name, cost) in [
        ("cache_read", read),
        ("cache_write", write),
        ("cache_write_1h", hour),
    ] {
        if let Some(cost) = cost {
            price[name] = cost.into();
        }
    }
    let long = |thousands: &u64| {
        let above =
            |class: &str| row[format!("{class}_cost_per_token_above_{thousands}k_tokens")].as_f64();
        let percent = |above: f64, usual: f64| (above * 1e8 / usual).round() as u64;
        let (input, output) = (
            percent(above("input")?, input),
            percent(above("output")?, output),
        );
        (input >= 100 && output >= 100)
            .then(|| json!({ "above": thousands * 1_000, "input_percent": input, "output_percent": output }))
    };
    if let Some(long) = [128, 200, 256, 272].iter().find_map(long) {
        price["long"] = long;
    }
    Some(price)
}

/// Where the published data differs from the manual entries.
fn differences(by_hand: &Value, models: &[Value]) -> Vec<String> {
    let mut all = Vec::new();
    for ours in by_hand["models"].as_array().into_iter().flatten() {
        let Some(theirs) = models.iter().find(|it| it["id"] == ours["id"]) else {
            continue;
        };
        let none = Map::new();
        let prices = |it: &Value| it["price"].as_object().unwrap_or(&none).clone();
        let told = prices(theirs).into_iter().filter(|(name, cost)| {
            prices(ours)
                .get(name)
                .is_some_and(|it| it != cost && it.as_f64() != cost.as_f64())
        });
        all.extend(told.map(|(name, cost)| {
            format!(
                "{}: {name}: {}, published: {cost}",
                ours["id"], ours["price"][&name]
            )
        }));
    }
    all
}

/// One line for each model, so that a change is a line.
fn render(models: &[Value], version: &str, date: &str) -> String {
    let source =
        format!("litellm {version} on PyPI (MIT): model_prices_and_context_window_backup.json");
    let lines: Vec<String> = models.iter().map(|it| format!("    {it}")).collect();
    let (date, source) = (json!(date), json!([source]));
    format!(
        "{{\n  \"date\": {date},\n  \"sources\": {source},\n  \"models\": [\n{}\n  ]\n}}\n",
        lines.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Value {
        let row = |provider: &str, more: Value| {
            let mut row = json!({
                "litellm_provider": provider, "mode": "chat", "max_input_tokens": 200, "max_output_tokens": 300,
                "input_cost_per_token": 1.25e-6, "output_cost_per_token": 1e-5,
            });
            row.as_object_mut()
                .expect("an object")
                .extend(more.as_object().expect("an object").clone());
            row
        };
        let claude = json!({
            "supports_vision": true, "supports_adaptive_thinking": true, "supports_max_reasoning_effort": true,
            "supports_sampling_params": false, "thinking_always_on": true, "supports_native_structured_output": true,
            "cache_read_input_token_cost": 1.25e-7, "cache_creation_input_token_cost_above_1hr": 2.5e-6,
        });
        let long = json!({
            "input_cost_per_token_above_200k_tokens": 2.5e-6, "output_cost_per_token_above_200k_tokens": 1.5e-5,
        });
        json!({
            "claude-9": row("anthropic", claude),
            "gemini/gemini-9": row("gemini", long),
            "xai/grok-gone": row("xai", json!({"deprecation_date": "2026-01-01"})),
            "xai/grok-audio": row("xai", json!({})),
            "xai/grok-paints": row("xai", json!({"supported_output_modalities": ["text", "image"]})),
            "azure/gpt-9": row("azure", json!({
                "mode": "responses", "supports_reasoning": true, "supports_xhigh_reasoning_effort": true,
                "cache_creation_input_token_cost": 1.5e-6, "cache_creation_input_token_cost_above_12hr": 3e-6,
            })),
            "azure/eu/gpt-9": row("azure", json!({})),
            "xai/grok-9": row("xai", json!({"reasoning_effort_levels": ["none", "high"], "cache_read_input_token_cost": 1})),
            "someone/else": row("someone", json!({})),
            "text-embedding": row("openai", json!({"mode": "embedding"})),
        })
    }

    #[test]
    fn catalogue_has_what_our_providers_can_be_asked_for() {
        let expect = [
            json!({
                "id": "anthropic/claude-9", "context_window": 200, "max_output_tokens": 200, "inputs": ["image"],
                "efforts": ["low", "medium", "high", "max"], "refuses": ["temperature", "top_p", "forced_calls"],
                "structured": "native",
                "price": {"input": 1.25, "output": 10.0, "cache_read": 0.125, "cache_write_1h": 2.5},
            }),
            json!({
                "id": "azure/gpt-9", "context_window": 200, "max_output_tokens": 200,
                "efforts": ["low", "medium", "high", "xhigh"], "tools_need_responses": true, "prompt_cache": "options",
                "price": {"input": 1.25, "output": 10.0, "cache_write": 1.5, "cache_write_1h": 3.0},
            }),
            json!({
                "id": "gemini/gemini-9", "context_window": 200, "max_output_tokens": 200,
                "price": {
                    "input": 1.25, "output": 10.0,
                    "long": {"above": 200_000, "input_percent": 200, "output_percent": 150},
                },
            }),
            json!({
                "id": "xai/grok-9", "context_window": 200, "max_output_tokens": 200, "efforts": ["off", "high"],
                "price": {"input": 1.25, "output": 10.0},
            }),
        ];
        let models = catalogue(&published(), "2026-11-25");
        assert_eq!(models, expect);
        let by_hand =
            json!({"models": [{"id": "xai/grok-9", "price": {"input": 1, "output": 10}}]});
        assert_eq!(
            differences(&by_hand, &models),
            ["\"xai/grok-9\": input: 1, published: 1.25"]
        );
        let text = render(&models[3..], "1.2.3", "2026-11-25");
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            (&read["date"], &read["models"][0]),
            (&json!("2026-11-25"), &expect[3])
        );
        assert!(
            read["sources"][0]
                .as_str()
                .is_some_and(|it| it.starts_with("litellm 1.2.3 on PyPI (MIT)")),
            "{text}"
        );
    }
}
