//! OpenRouter's reasoning details, assembled from their deltas so that they can be sent back unchanged.
//!
//! Source: "Reasoning tokens", the shape of `reasoning_details`, openrouter.ai/docs, 2026.

use serde_json::Value;

/// The member of an extra that holds them.
pub(super) const MEMBER: &str = "reasoning_details";

/// The members that come in pieces.
const GROWING: [&str; 3] = ["text", "summary", "data"];

/// Adds a piece: to the detail that it continues, or as the next one.
pub(super) fn add(details: &mut Vec<Value>, piece: Value) {
    let before = details.iter_mut().rev().find(|it| continues(it, &piece));
    let (Some(Value::Object(before)), Value::Object(members)) = (before, &piece) else {
        details.push(piece);
        return;
    };
    for (name, value) in members {
        match (before.get_mut(name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if GROWING.contains(&name.as_str()) =>
            {
                text.push_str(more)
            }
            _ => {
                before.insert(name.clone(), value.clone());
            }
        }
    }
}

/// True if a piece belongs to a detail: of the same type and index, and not of another id.
fn continues(detail: &Value, piece: &Value) -> bool {
    let same = |name: &str| detail.get(name) == piece.get(name);
    let other_id = match (detail.get("id"), piece.get("id")) {
        (Some(Value::String(one)), Some(Value::String(other))) => one != other,
        _ => false,
    };
    detail.get("index").is_some_and(Value::is_number) && same("type") && same("index") && !other_id
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn add_grows_a_detail_when_a_piece_continues_it() {
        let mut details = Vec::new();
        for piece in [
            json!({"type": "reasoning.text", "text": "a", "index": 0, "format": "anthropic-claude-v1", "signature": null}),
            json!({"type": "reasoning.text", "text": "b", "index": 0}),
            json!({"type": "reasoning.encrypted", "data": "x", "index": 1, "id": "call_1"}),
            json!({"type": "reasoning.text", "signature": "s", "index": 0}),
            json!({"type": "reasoning.encrypted", "data": "y", "index": 1, "id": "call_2"}),
            json!({"type": "reasoning.text", "text": "c"}),
            json!({"type": "reasoning.text", "text": "d"}),
        ] {
            add(&mut details, piece);
        }
        let expect = json!([
            {"type": "reasoning.text", "text": "ab", "index": 0, "format": "anthropic-claude-v1", "signature": "s"},
            {"type": "reasoning.encrypted", "data": "x", "index": 1, "id": "call_1"},
            {"type": "reasoning.encrypted", "data": "y", "index": 1, "id": "call_2"},
            {"type": "reasoning.text", "text": "c"},
            {"type": "reasoning.text", "text": "d"},
        ]);
        assert_eq!(Value::Array(details), expect);
    }
}
