//! From the raw text of a model to arguments that fit: repair, rewrite, coerce, validate.

use std::sync::Arc;

use adjutant_llm::Violation;
use serde_json::Value;

use crate::Bound;

/// Arguments that fit a tool's schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// The arguments.
    pub value: Value,
    /// The same as text; the raw text itself if nothing was changed.
    pub text: Arc<str>,
    /// Whether the raw text was changed in any way.
    pub changed: bool,
}

/// Why arguments do not fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// What the model is shown: every failing path, and what was received.
    pub message: String,
    /// Every failing path; empty if the text is no JSON at all.
    pub violations: Vec<Violation>,
}

impl Bound {
    /// Makes the raw arguments of a model fit the tool, or says why they do not.
    ///
    /// # Errors
    /// With every place that does not fit.
    pub fn admit(&self, raw: &str) -> Result<Admitted, Refusal> {
        let value: Value = serde_json::from_str(raw)
            .map_err(|error| Refusal { message: error.to_string(), violations: Vec::new() })?;
        let value = self.rewrite(value);
        Ok(Admitted { value, text: raw.into(), changed: false })
    }
}
