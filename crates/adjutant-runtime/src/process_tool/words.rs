//! Builds the command line of a call from the words of the manifest and the arguments of the call.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_tool::{ToolError, ToolErrorKind};
use serde_json::Value;

/// The words of a manifest.
#[derive(Debug)]
pub(super) struct Words {
    words: Vec<Arc<str>>,
    /// The arguments in the schema; other text in braces is literal.
    known: BTreeSet<String>,
}

impl Words {
    pub(super) fn new(words: &[Arc<str>], parameters: &Value) -> Self {
        let properties = parameters.get("properties").and_then(Value::as_object);
        let known = properties
            .into_iter()
            .flat_map(|it| it.keys().cloned())
            .collect();
        Self {
            words: words.to_vec(),
            known,
        }
    }

    /// Returns the words of a call. A word is omitted if it contains an argument that the call lacks.
    ///
    /// # Errors
    /// `InvalidArguments` if a word would contain a NUL, which ends an argument.
    pub(super) fn with(&self, args: &Value) -> Result<Vec<String>, ToolError> {
        let words: Vec<String> = self
            .words
            .iter()
            .filter_map(|word| self.word(word, args))
            .collect();
        match words.iter().find(|word| word.contains('\0')) {
            Some(_) => {
                let message = "an argument that stands in a command line cannot hold a zero byte";
                Err(ToolError::new(ToolErrorKind::InvalidArguments, message))
            }
            None => Ok(words),
        }
    }

    /// Replaces the arguments of one word; inserted text is not expanded again.
    fn word(&self, word: &str, args: &Value) -> Option<String> {
        let (mut made, mut rest) = (String::new(), word);
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            made.push_str(before);
            let name = from.find('}').and_then(|close| from.get(1..close));
            match name.filter(|name| self.known.contains(*name) || args.get(*name).is_some()) {
                Some(name) => {
                    made.push_str(&shown(args.get(name)?)?);
                    rest = from.get(name.len() + 2..).unwrap_or_default();
                }
                None => {
                    made.push('{');
                    rest = from.get(1..).unwrap_or_default();
                }
            }
        }
        made.push_str(rest);
        Some(made)
    }
}

/// Returns text unchanged, and other values as JSON; `null` counts as missing.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(words: &[&str], args: Value, expect: &[&str]) {
        let words: Vec<Arc<str>> = words.iter().map(|word| Arc::from(*word)).collect();
        let parameters =
            json!({ "type": "object", "properties": { "city": {}, "days": {}, "all": {} } });
        assert_eq!(
            Words::new(&words, &parameters)
                .with(&args)
                .expect("no zero byte"),
            expect
        );
    }

    #[test]
    fn words_hold_arguments_in_their_places() {
        check(
            &["--city={city}", "{days}"],
            json!({"city": "Ulm", "days": 3}),
            &["--city=Ulm", "3"],
        );
        check(
            &["{city}{days}"],
            json!({"city": "a b", "days": [1, "x"]}),
            &[r#"a b[1,"x"]"#],
        );
        check(&["{all}"], json!({"all": true}), &["true"]);
    }

    #[test]
    fn word_is_left_out_when_its_argument_is_missing() {
        check(
            &["-v", "--city={city}", "{days}"],
            json!({"days": 1}),
            &["-v", "1"],
        );
        check(&["{city}"], json!({"city": null}), &[]);
        check(&["{city}"], json!({"city": ""}), &[""]);
    }

    #[test]
    fn argument_is_never_more_than_one_word_and_never_a_place() {
        check(
            &["{city}"],
            json!({"city": "x; rm -rf / $(id) {days}", "days": 1}),
            &["x; rm -rf / $(id) {days}"],
        );
        check(&["{city}"], json!({"city": "-o"}), &["-o"]);
    }

    #[test]
    fn braces_that_name_no_argument_stay() {
        check(
            &["{print $1}", "{", "}{", "{}", "{nobody}"],
            json!({}),
            &["{print $1}", "{", "}{", "{}", "{nobody}"],
        );
    }

    #[test]
    fn zero_byte_is_refused() {
        let words = Words::new(&["{city}".into()], &json!({ "properties": { "city": {} } }));
        let error = words
            .with(&json!({"city": "a\0b"}))
            .expect_err("it ends a word");
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    }
}
