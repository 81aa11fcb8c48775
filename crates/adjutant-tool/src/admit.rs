//! From the raw text of a model to arguments that fit: repair, rewrite, coerce, validate.
//!
//! Truncated text is never completed, and a value that fits is never changed.

mod coerce;
mod read;
mod refusal;
mod scalar;

use std::sync::Arc;

use adjutant_llm::{Schema, Violation};
use serde_json::Value;

use self::read::Unread;
use crate::Bound;

/// Arguments that fit a tool's schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// The arguments.
    pub value: Value,
    /// The same as text; the raw text itself if nothing was changed.
    pub text: Arc<str>,
    /// True if the raw text was changed in any way.
    pub changed: bool,
}

/// The reason why arguments do not fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The text for the model: every failing path, and the received arguments.
    pub message: String,
    /// Every failing path; empty if the text is not JSON.
    pub violations: Vec<Violation>,
}

impl Bound {
    /// Makes the raw arguments of a model fit the tool, or returns why they do not.
    ///
    /// Blank text and `null` are `{}`. Raw control characters in strings, invalid escapes, trailing commas and a code
    /// fence are repaired; truncated text is not, nor is an object with a duplicate key. The tool's own rewrite comes
    /// next. Scalars are converted to the type of the schema if the conversion is exact, arrays and objects that were
    /// sent as text are parsed, and a `null` for an optional property is dropped. Integers of 64 bits stay exact. The
    /// limits are 4 MiB of text and a depth of 127.
    ///
    /// # Errors
    /// With every place that does not fit.
    pub fn admit(&self, raw: impl Into<Arc<str>>) -> Result<Admitted, Refusal> {
        self.admit_text(&raw.into())
    }

    fn admit_text(&self, raw: &Arc<str>) -> Result<Admitted, Refusal> {
        let name = self.spec().name();
        let schema = self
            .schema()
            .map_err(|error| Refusal::broken(name, error))?;
        let read = read::read(raw, schema.source()).map_err(|unread| match unread {
            Unread::Twice(path) => Refusal::new(name, vec![twice(path)], raw),
            Unread::Not(problem) => Refusal::unreadable(name, &problem, raw),
        })?;
        let (mut value, rewritten) = self.rewritten(read.value);
        let mut changed = read.changed || rewritten;
        changed |= self
            .fit(schema, &mut value, changed || holds_fractions(raw))
            .map_err(|it| Refusal::new(name, it, raw))?;
        let text = if changed {
            value.to_string().into()
        } else {
            Arc::clone(raw)
        };
        Ok(Admitted {
            value,
            text,
            changed,
        })
    }

    fn rewritten(&self, value: Value) -> (Value, bool) {
        if !self.rewrites() {
            return (value, false);
        }
        let before = value.clone();
        let after = self.rewrite(value);
        let changed = before != after;
        (after, changed)
    }

    /// Coerces the value if it does not fit, or if it may contain whole numbers written as fractions, which a schema
    /// accepts as integers and Rust does not. Returns whether it was changed.
    fn fit(
        &self,
        schema: &Schema,
        value: &mut Value,
        fractions: bool,
    ) -> Result<bool, Vec<Violation>> {
        let mut outcome =
            must_be_object(schema.source(), value).and_then(|()| schema.validate(value));
        if outcome.is_ok() && !fractions {
            return Ok(false);
        }
        let changed = coerce::coerce(self, schema.source(), value);
        if changed {
            outcome = must_be_object(schema.source(), value).and_then(|()| schema.validate(value));
        }
        outcome.map(|()| changed)
    }
}

fn twice(path: String) -> Violation {
    Violation {
        path,
        message: "the key appears twice, so its value is ambiguous: send it once".to_owned(),
    }
}

/// Arguments are an object, unless the schema names its type itself.
fn must_be_object(schema: &Value, value: &Value) -> Result<(), Vec<Violation>> {
    if value.is_object() || schema.get("type").is_some() {
        return Ok(());
    }
    let message = format!("want object, but got {}", scalar::type_name(value));
    Err(vec![Violation {
        path: String::new(),
        message,
    }])
}

/// True if a number in the text may have a fraction or an exponent.
fn holds_fractions(raw: &str) -> bool {
    raw.as_bytes()
        .windows(2)
        .any(|pair| pair[0].is_ascii_digit() && matches!(pair[1], b'.' | b'e' | b'E'))
}
