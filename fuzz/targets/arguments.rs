//! Raw arguments of a call: repaired, coerced and checked, whatever the model wrote.
#![no_main]

use std::sync::{Arc, LazyLock};

use adjutant_llm::CallResult;
use adjutant_tool::{Bound, ToolSpec, tool_fn};
use serde_json::json;

static TOOL: LazyLock<Bound> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "maxLength": 40},
            "count": {"type": "integer", "minimum": 0},
            "ratio": {"type": ["number", "null"]},
            "flags": {"type": "array", "items": {"type": "boolean"}},
            "inner": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}
        },
        "required": ["path"],
        "additionalProperties": false
    });
    let spec = ToolSpec::new("fuzz", "Fuzz.", Arc::new(schema));
    Bound::new(tool_fn(spec, |_, _| async { Ok(CallResult::ok("")) }))
});

libfuzzer_sys::fuzz_target!(|raw: &str| {
    let Ok(admitted) = TOOL.admit(raw) else { return };
    let schema = TOOL.schema().expect("the schema compiles");
    assert!(schema.validate(&admitted.value).is_ok(), "what was admitted fits the schema");
});
