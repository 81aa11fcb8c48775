//! Takes out of a text what must not be written: named values, and whatever looks like a secret.

use std::{fmt, sync::Arc};

use super::secrets;

/// The replacement of a secret.
pub(super) const REDACTED: &str = "[redacted]";
/// The smallest number of bytes in a named value: a shorter one would take out parts of words.
const MIN_VALUE_BYTES: usize = 3;

/// Takes secrets out of texts: keys, tokens, passwords and private keys by their shapes, and named values.
///
/// It prefers to remove too much, but leaves prose and code unchanged. It cannot prove that a text contains no
/// secret: a password without a name next to it looks like any word.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first: one may be the beginning of another.
    values: Arc<Vec<Arc<str>>>,
}

impl Redactor {
    /// Takes out whatever looks like a secret.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds texts to remove everywhere, also in escapes and base64; texts of fewer than 3 bytes are ignored.
    #[must_use]
    pub fn values(self, values: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        let more = values
            .into_iter()
            .map(Into::into)
            .filter(|value: &Arc<str>| value.len() >= MIN_VALUE_BYTES);
        let more = more
            .flat_map(|value| adjutant_llm::secret::forms(&value))
            .map(Arc::from);
        let more = more.filter(|form: &Arc<str>| form.len() >= MIN_VALUE_BYTES);
        let mut values: Vec<Arc<str>> = self.values.iter().cloned().chain(more).collect();
        values.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        values.dedup();
        Self {
            values: Arc::new(values),
        }
    }

    /// The text with `[redacted]` in place of secrets.
    pub fn redact(&self, text: &str) -> String {
        let named = self.values.iter().fold(text.to_owned(), |text, value| {
            text.replace(&**value, REDACTED)
        });
        secrets::redact_secrets(named)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("values", &self.values.len())
            .finish()
    }
}
