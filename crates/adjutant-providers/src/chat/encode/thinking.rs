//! The amount of thinking, in the fields of a dialect.

use adjutant_llm::{Effort, ThinkingControl};
use serde_json::{Value, json};

use super::options::BodyFields;
use crate::dialect::ThinkingFormat;

/// The least that a model is given to think, in tokens.
const LEAST: u64 = 1_024;

/// Writes the effort, which is one of the model's own.
pub(super) fn write(fields: &mut BodyFields<'_>, effort: Effort, limit: Option<u64>) {
    let (format, efforts) = (fields.dialect.thinking, &fields.info.efforts);
    let on = effort != Effort::Off;
    let can_stop = efforts.contains(&Effort::Off);
    let many = efforts.iter().filter(|it| **it != Effort::Off).count() > 1;
    let budget =
        (fields.info.thinking == ThinkingControl::Budget && on).then(|| budget(effort, limit));
    let kind = if on { "enabled" } else { "disabled" };
    match format {
        ThinkingFormat::None => fields.warn_dropped("thinking", "cannot be told how much to think"),
        ThinkingFormat::Effort => level(fields, effort),
        ThinkingFormat::Toggle | ThinkingFormat::ToggleKept => {
            let mut thinking = json!({"type": kind});
            if on && format == ThinkingFormat::ToggleKept {
                thinking["clear_thinking"] = Value::Bool(false);
            }
            fields.add("thinking", &thinking);
            if on {
                level(fields, effort);
            }
        }
        ThinkingFormat::Either => {
            if can_stop {
                fields.add("thinking", &json!({"type": kind}));
            }
            if on && many {
                level(fields, effort);
            }
        }
        ThinkingFormat::Enable => {
            fields.add("enable_thinking", &on);
            match budget {
                Some(tokens) => fields.add("thinking_budget", &tokens),
                None if on && many => level(fields, effort),
                None => {}
            }
        }
        ThinkingFormat::Template => {
            let mut template = json!({"enable_thinking": on});
            if let Some(name) = fields.dialect.efforts.name(effort).filter(|_| on) {
                template["reasoning_effort"] = name.into();
            }
            fields.add("chat_template_kwargs", &template);
        }
        ThinkingFormat::Enabled => {
            if can_stop {
                fields.add("reasoning", &json!({"enabled": on}));
            }
            if on && many {
                level(fields, effort);
            }
        }
        ThinkingFormat::Reasoning => match (budget, find_effort_name(fields, effort)) {
            (Some(tokens), _) => fields.add("reasoning", &json!({"max_tokens": tokens})),
            (None, Some(name)) => fields.add("reasoning", &json!({"effort": name})),
            (None, None) => {}
        },
        ThinkingFormat::Name => {
            if let Some(name) = find_effort_name(fields, effort) {
                fields.add("thinking", &name);
            }
        }
    }
}

fn level(fields: &mut BodyFields<'_>, effort: Effort) {
    if let Some(name) = find_effort_name(fields, effort) {
        fields.add("reasoning_effort", &name);
    }
}

/// Returns the vendor's name of the effort; if it has no name, adds a warning.
fn find_effort_name(fields: &mut BodyFields<'_>, effort: Effort) -> Option<String> {
    let name = fields.dialect.efforts.name(effort).map(str::to_owned);
    if name.is_none() {
        fields.warn_dropped("thinking", &format!("has no word for {effort}"));
    }
    name
}

/// Returns the number of tokens of an effort: less than the reply may have, which thinking is a part of.
fn budget(effort: Effort, limit: Option<u64>) -> u64 {
    let tokens = match effort {
        Effort::Off | Effort::Minimal => LEAST,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Xhigh => 24_576,
        _ => 32_768,
    };
    let most = limit.map_or(tokens, |limit| limit.saturating_sub(LEAST));
    tokens.min(most).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_leaves_room_for_an_answer_when_the_reply_is_short() {
        assert_eq!(budget(Effort::High, None), 16_384);
        assert_eq!(budget(Effort::High, Some(8_192)), 7_168);
        assert_eq!(budget(Effort::Max, Some(100)), 1_024);
    }
}
