//! The JSON Schema of a manifest file, for editors and programs that write manifests.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    AgentSpec, Manifest,
    shape::{AGENT_FIELDS, FILE_FIELDS},
};

/// The title of the schema.
const TITLE: &str = "Adjutant manifest";
/// The pattern of a variable, for fields that are not texts.
const VARIABLE: &str = r"\$\{";

/// Returns the JSON Schema of `adjutant.yaml`, in both forms: with `agents`, and with the fields of one agent.
///
/// It describes the structure. [`Manifest::load`](super::Manifest::load) checks references.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut root = generator.into_root_schema_for::<File>().to_value();
    if let Some(definitions) = root.get_mut("$defs").and_then(Value::as_object_mut) {
        definitions.values_mut().for_each(loosen);
    }
    loosen(&mut root);
    root
}

/// Both forms of a file.
struct File;

impl JsonSchema for File {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        TITLE.into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> Schema {
        let mut file = Manifest::json_schema(generator).to_value();
        let agent = AgentSpec::json_schema(generator).to_value();
        let mut properties = take(&mut file, "properties");
        let of_agent = agent.get("properties").and_then(Value::as_object);
        for field in AGENT_FIELDS {
            if let Some(schema) = of_agent.and_then(|it| it.get(field)) {
                properties.insert(field.to_owned(), schema.clone());
            }
        }
        let extends = json!({
            "description": "Another manifest that this one takes over, relative to its folder.",
            "type": "string",
        });
        let include = json!({
            "description": "Agents in files of Markdown: files, or all of a folder, as `.adjutant/agents/*.md`.",
            "type": "array",
            "items": { "type": "string" },
        });
        for (field, schema) in FILE_FIELDS.into_iter().zip([extends, include]) {
            properties.insert(field.to_owned(), schema);
        }
        let text =
            "A manifest: what an operator writes down about an agent, and the agents under it.";
        let own: Vec<Value> = AGENT_FIELDS
            .iter()
            .map(|field| json!({ "required": [field] }))
            .collect();
        let schema = json!({
            "title": TITLE,
            "description": text,
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
            "not": { "required": ["agents"], "anyOf": own },
        });
        Schema::try_from(schema).unwrap_or_default()
    }
}

fn take(schema: &mut Value, key: &str) -> Map<String, Value> {
    match schema.get_mut(key).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Permits `null` for every field, to remove it, and a variable for every number or Boolean.
///
/// Required fields become optional in a file: a parent can have them.
fn loosen(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    map.remove("required");
    map.remove("default");
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut() {
            loosen(property);
            nullable(property);
        }
    }
    for key in ["items", "additionalProperties"] {
        map.get_mut(key).into_iter().for_each(loosen);
    }
    map.get_mut("additionalProperties")
        .into_iter()
        .for_each(nullable);
    for key in ["anyOf", "oneOf"] {
        map.get_mut(key)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .for_each(loosen);
    }
    let kinds: Vec<String> = match map.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    };
    if kinds
        .iter()
        .any(|kind| matches!(kind.as_str(), "integer" | "number" | "boolean"))
    {
        map.insert(
            "type".to_owned(),
            kinds.into_iter().chain(["string".to_owned()]).collect(),
        );
        map.insert("pattern".to_owned(), VARIABLE.into());
    }
}

fn nullable(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    match map.get_mut("type") {
        Some(Value::String(kind)) => {
            let kinds = json!([kind, "null"]);
            map.insert("type".to_owned(), kinds);
        }
        Some(Value::Array(kinds)) if !kinds.contains(&"null".into()) => kinds.push("null".into()),
        Some(_) => {}
        None => {
            if let Some(reference) = map.remove("$ref") {
                map.insert(
                    "anyOf".to_owned(),
                    json!([{ "$ref": reference }, { "type": "null" }]),
                );
            } else if let Some(any) = map.get_mut("anyOf").and_then(Value::as_array_mut)
                && !any.contains(&json!({ "type": "null" }))
            {
                any.push(json!({ "type": "null" }));
            }
        }
    }
}
