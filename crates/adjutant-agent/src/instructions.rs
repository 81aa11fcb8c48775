//! The instructions of an agent: a text, a template, or the text that a source gives when a run starts.

mod error;
#[cfg(feature = "template")]
mod filters;
#[cfg(feature = "template")]
mod template;

use std::{error::Error as StdError, fmt, pin::Pin, sync::Arc};

use adjutant_tool::Identity;
use serde_json::{Map, Value};

pub use error::{InstructionError, InstructionErrorKind};
#[cfg(feature = "template")]
pub use template::Template;

use adjutant_core::RunNo;

/// The instructions of an agent: a text, a template, or the text that a source gives.
///
/// Resolved once when a run starts, and constant within it. A source takes precedence over text and template, in any
/// order of the setters. Without any of them, and for a blank text, there is no system prompt.
#[derive(Clone, Default)]
pub struct Instructions {
    text: InstructionText,
    source: Option<Arc<Make>>,
}

#[derive(Clone)]
enum InstructionText {
    Plain(Arc<str>),
    #[cfg(feature = "template")]
    Template(Template),
}

/// The data that a source of instructions sees.
#[derive(Debug, Clone, PartialEq)]
pub struct InstructionContext {
    /// The identity of the agent that is to run.
    pub who: Arc<Identity>,
    /// The values that the agent and the run know by name.
    pub state: Arc<Map<String, Value>>,
    /// The number of the run.
    pub run: RunNo,
}

/// Makes the instructions of a run.
type Make = dyn Fn(
        InstructionContext,
    ) -> Pin<Box<dyn Future<Output = Result<Arc<str>, InstructionError>> + Send>>
    + Send
    + Sync;

impl Instructions {
    /// Sets the text, in place of a text or template before: exactly this one.
    #[must_use]
    pub fn text(self, text: impl Into<Arc<str>>) -> Self {
        Self {
            text: InstructionText::Plain(text.into()),
            ..self
        }
    }

    /// Sets the template, in place of a text or template before.
    #[cfg(feature = "template")]
    #[must_use]
    pub fn template(self, template: Template) -> Self {
        Self {
            text: InstructionText::Template(template),
            ..self
        }
    }

    /// Sets a function that is called once for each run, when it starts; it overrides text and template.
    ///
    /// Its text is used unchanged: it is not a template. The run fails with its error. A panic is passed to the
    /// caller of [`resolve`](Self::resolve). A closure that captures variables returns an `async move` block.
    ///
    /// # Example
    /// ```
    /// use adjutant_agent::instructions::Instructions;
    ///
    /// let instructions = Instructions::default().source(|cx| async move { Ok(format!("You are {}.", cx.who.name)) });
    /// ```
    #[must_use]
    pub fn source<F, Fut, T>(self, make: F) -> Self
    where
        F: Fn(InstructionContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Box<dyn StdError + Send + Sync>>> + Send + 'static,
        T: Into<Arc<str>>,
    {
        let source: Arc<Make> = Arc::new(move |cx| {
            let made = make(cx);
            Box::pin(async move { made.await.map(Into::into).map_err(InstructionError::from) })
        });
        Self {
            source: Some(source),
            ..self
        }
    }

    /// Returns the text, if it needs no call and no rendering; `None` if it is blank.
    pub(crate) fn static_text(&self) -> Option<Arc<str>> {
        match (&self.source, &self.text) {
            (None, InstructionText::Plain(text)) if text.trim().is_empty() => Some("".into()),
            (None, InstructionText::Plain(text)) => Some(Arc::clone(text)),
            _ => None,
        }
    }

    /// The text of this run.
    ///
    /// # Errors
    /// `Failed` if the source failed; `Missing`, `Template` and `Limit` if the template could not be rendered.
    ///
    /// # Panics
    /// If the source panics.
    pub async fn resolve(&self, cx: InstructionContext) -> Result<Arc<str>, InstructionError> {
        if let Some(source) = &self.source {
            let made = source(cx).await;
            return made.map_err(|error| {
                InstructionError::from_cause("the source of instructions failed", error.into())
            });
        }
        match &self.text {
            InstructionText::Plain(text) => Ok(Arc::clone(text)),
            #[cfg(feature = "template")]
            InstructionText::Template(template) => template.render(&cx.state),
        }
    }
}

impl Default for InstructionText {
    fn default() -> Self {
        InstructionText::Plain("".into())
    }
}

impl From<&str> for Instructions {
    fn from(text: &str) -> Self {
        Self::default().text(text)
    }
}

impl From<String> for Instructions {
    fn from(text: String) -> Self {
        Self::default().text(text)
    }
}

impl From<Arc<str>> for Instructions {
    fn from(text: Arc<str>) -> Self {
        Self::default().text(text)
    }
}

#[cfg(feature = "template")]
impl From<Template> for Instructions {
    fn from(template: Template) -> Self {
        Self::default().template(template)
    }
}

impl fmt::Debug for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Instructions");
        match &self.text {
            InstructionText::Plain(text) => shown.field("bytes", &text.len()),
            #[cfg(feature = "template")]
            InstructionText::Template(template) => shown.field("template", template),
        };
        shown.field("has_source", &self.source.is_some()).finish()
    }
}
