//! `models`: brings limits, inputs and prices of the catalogue up to date from a file in the shape of models.dev.
//!
//! What that file does not know (efforts, structured modes, refused options, hour writes, long prices) stays.

use std::error::Error;

use serde_json::{Value, json};

use crate::{Failure, cargo};

const CATALOGUE: &str = "crates/adjutant-providers/src/catalogue/models.json";
/// Providers that the file calls otherwise: our name, its name.
const NAMES: &str = "gemini:google moonshot:moonshotai qwen:alibaba together:togetherai fireworks:fireworks-ai";

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let (file, add) = match arguments {
        [file] => (*file, None),
        [file, "--add", id] => (*file, Some(*id)),
        _ => return Err(Failure::Usage("which file? `models <file.json> [--add provider/name]`".into())),
    };
    rewrite(file, add).map_err(|why| Failure::Step(format!("models {file}: {why}")))
}

fn rewrite(file: &str, add: Option<&str>) -> Result<(), Box<dyn Error>> {
    let path = cargo::root().join(CATALOGUE);
    let mut catalogue = serde_json::from_slice(&std::fs::read(&path)?)?;
    let report = update(&mut catalogue, &serde_json::from_slice(&std::fs::read(file)?)?, add);
    std::fs::write(&path, render(&catalogue, 0) + "\n")?;
    println!("{}\nSet `date` and `sources` of {CATALOGUE} by hand.", report.join("\n"));
    Ok(())
}

/// Updates every model that is listed; tells what changed and what was not found.
fn update(catalogue: &mut Value, source: &Value, add: Option<&str>) -> Vec<String> {
    let (mut report, mut none) = (Vec::new(), Vec::new());
    let models = catalogue["models"].as_array_mut().unwrap_or(&mut none);
    if let Some(id) = add.filter(|id| models.iter().all(|model| model["id"] != *id)) {
        let at = models.iter().position(|it| provider(it["id"].as_str().unwrap_or_default()).0 > provider(id).0);
        let new = json!({ "id": id, "context_window": 0, "max_output_tokens": 0, "source": "models.dev" });
        models.insert(at.unwrap_or(models.len()), new);
    }
    models.retain_mut(|model| {
        let id = model["id"].as_str().unwrap_or_default().to_owned();
        let (ours, name) = provider(&id);
        let theirs = NAMES.split(' ').find_map(|it| it.strip_prefix(ours)?.strip_prefix(':')).unwrap_or(ours);
        match &source[theirs]["models"][name] {
            Value::Null => report.push(format!("{id}: not found")),
            found => merge(model, found, &mut |change| report.push(format!("{id}: {change}"))),
        }
        model["context_window"] != 0
    });
    report
}

/// The name of the provider, and that of the model.
fn provider(id: &str) -> (&str, &str) {
    id.split_once('/').unwrap_or((id, ""))
}

fn merge(model: &mut Value, found: &Value, report: &mut dyn FnMut(String)) {
    let mut set = |object: &mut Value, name: &str, value: &Value| {
        if !value.is_null() && object[name] != *value {
            report(format!("{name}: {} -> {value}", object[name]));
            object[name] = value.clone();
        }
    };
    let (window, output) = (&found["limit"]["context"], &found["limit"]["output"]);
    set(model, "context_window", window);
    set(model, "max_output_tokens", if output.as_u64() > window.as_u64() { window } else { output });
    if let Some(inputs) = found["modalities"]["input"].as_array() {
        let kinds = [("image", "image"), ("pdf", "document")].into_iter().filter(|it| inputs.contains(&it.0.into()));
        set(model, "inputs", &kinds.map(|it| it.1).collect());
    }
    for class in ["input", "output", "cache_read", "cache_write"] {
        if !found["cost"][class].is_null() {
            set(&mut model["price"], class, &found["cost"][class]);
        }
    }
}

/// One line for each member of a model, so that a change is a line.
fn render(value: &Value, depth: usize) -> String {
    let (open, items, close): (_, Vec<_>, _) = match value {
        Value::Object(map) if depth < 3 => {
            ('{', map.iter().map(|(name, it)| format!("{}: {}", json!(name), render(it, depth + 1))).collect(), '}')
        }
        Value::Array(list) if depth < 2 => ('[', list.iter().map(|it| render(it, depth + 1)).collect(), ']'),
        _ => return value.to_string(),
    };
    let pad = "  ".repeat(depth);
    format!("{open}\n{pad}  {}\n{pad}{close}", items.join(&format!(",\n{pad}  ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Value {
        json!({
            "google": { "id": "google", "models": { "small": {
                "id": "small", "reasoning": true, "modalities": { "input": ["text", "image", "pdf"] },
                "limit": { "context": 200, "output": 300 },
                "cost": { "input": 0.3, "output": 2, "cache_read": 0.03, "input_audio": 1 }
            } } },
            "xai": { "id": "xai", "models": { "a/b": {
                "id": "a/b", "modalities": { "input": ["text"] }, "limit": { "context": 9, "output": 8 }
            } } }
        })
    }

    fn catalogue() -> Value {
        json!({ "date": "2026-11-22", "sources": ["s"], "models": [
            { "id": "gemini/small", "context_window": 100, "max_output_tokens": 50, "inputs": ["image"],
              "efforts": ["low"], "price": { "input": 0.25, "output": 2, "cache_write_1h": 4 }, "source": "s" },
            { "id": "zai/gone", "context_window": 7, "max_output_tokens": 7, "inputs": [] }
        ] })
    }

    #[test]
    fn update_keeps_what_the_source_does_not_know() {
        let mut updated = catalogue();
        let expect = [
            "gemini/small: context_window: 100 -> 200",
            "gemini/small: max_output_tokens: 50 -> 200",
            "gemini/small: inputs: [\"image\"] -> [\"image\",\"document\"]",
            "gemini/small: input: 0.25 -> 0.3",
            "gemini/small: cache_read: null -> 0.03",
            "zai/gone: not found",
        ];
        assert_eq!(update(&mut updated, &source(), None), expect);
        let mut whole = catalogue();
        whole["models"][0] = json!({
            "id": "gemini/small", "context_window": 200, "max_output_tokens": 200, "inputs": ["image", "document"],
            "efforts": ["low"], "price": { "input": 0.3, "output": 2, "cache_write_1h": 4, "cache_read": 0.03 },
            "source": "s"
        });
        assert_eq!(render(&updated, 0), render(&whole, 0));
        assert_eq!(update(&mut updated, &source(), None), ["zai/gone: not found"]);
        assert_eq!(updated, whole);
    }

    #[test]
    fn update_adds_a_model_when_it_is_asked_for() {
        let mut updated = catalogue();
        update(&mut updated, &source(), Some("xai/a/b"));
        let added = json!({
            "id": "xai/a/b", "context_window": 9, "max_output_tokens": 8, "source": "models.dev", "inputs": []
        });
        assert_eq!((&updated["models"][1], &updated["models"][2]["id"]), (&added, &json!("zai/gone")));
        let report = update(&mut updated, &source(), Some("xai/none"));
        assert_eq!(report, ["xai/none: not found", "zai/gone: not found"]);
        assert_eq!(updated["models"].as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn render_gives_the_catalogue_back_when_nothing_changed() {
        let text = include_str!("../../crates/adjutant-providers/src/catalogue/models.json");
        let value: Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(render(&value, 0) + "\n", text);
    }
}
