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
    /// The text that the model is shown: every failing path, and what was received.
    pub message: String,
    /// Every failing path; empty if the text is no JSON at all.
    pub violations: Vec<Violation>,
}

impl Bound {
    /// Makes the raw arguments of a model fit the tool, or says why they do not.
    ///
    /// Blank text and `null` are `{}`. Raw control characters in strings, invalid escapes, trailing commas and a code
    /// fence are repaired; text that ends too early is not, nor is an object that names a key twice. The tool's own rewrite comes next. Scalars become the type
    /// that the schema asks for where nothing is lost, arrays and objects that were sent as text are read, and a `null`
    /// for a property that need not be there is dropped. Integers of 64 bits stay exact. At most 4 MiB of text, nested
    /// 127 deep, are taken.
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

    /// Coerces the value if it does not fit, or if it may hold whole numbers written as fractions, which a schema takes
    /// for integers and Rust does not. Says whether it was changed.
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
        message: "the key stands twice, and nobody knows which value is meant: send it once"
            .to_owned(),
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
