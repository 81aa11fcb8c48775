//! The questions of a call to the world outside its run, and their answers.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{CallResult, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ToolError, ToolErrorKind, violations};

/// The kind of an [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AskKind {
    /// Permission to do something.
    Approval,
    /// A value that a person or a program knows.
    Question,
    /// The result of a call that is run elsewhere.
    External,
    /// More of something that is used up.
    Limit,
    /// Access that is given elsewhere, by signing in for example.
    Authorisation,
}

/// A question to the world outside a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The kind of the question.
    pub kind: AskKind,
    /// The text for the person who answers.
    pub prompt: Arc<str>,
    /// The JSON schema that a given value must fit; `null` for any value.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub schema: Value,
    /// Data for the application that answers; `null` by default.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// The longest time that it may wait, in milliseconds; as long as the run allows if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
}

/// The answer to an [`Ask`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// It may be done, or access was given. Fits `Approval` and `Authorisation`.
    Approve {
        /// Only for an `Approval`: the arguments to use instead, as JSON text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Arc<str>>,
        /// True if the answer also covers the same question later in this run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        for_run: bool,
    },
    /// It may not be done. Fits `Approval` and `Authorisation`.
    Deny {
        /// The reason, for the model; may be empty.
        reason: Arc<str>,
    },
    /// A value. Fits `Question` and `Authorisation`, if the value fits the schema.
    Give {
        /// The value.
        value: Value,
    },
    /// The result of a call. Fits `External`.
    Return {
        /// The result.
        result: Arc<CallResult>,
    },
    /// An additional amount of the exhausted resource. Fits `Limit`, if it is more than zero.
    Extend {
        /// The amount that is added, in the unit of the limit.
        by: u64,
        /// The text that the model receives with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
    },
    /// Nothing is given. Fits everything but `Approval`, which is denied.
    Decline {
        /// The text that the model receives with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
    },
    /// No answer arrived in time. Fits every kind.
    Expired,
}

impl Ask {
    /// Creates a question of this kind, without a timeout, for any value.
    pub fn new(kind: AskKind, prompt: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            prompt: prompt.into(),
            schema: Value::Null,
            data: Value::Null,
            within_ms: None,
        }
    }

    /// Creates a question for a value.
    pub fn question(prompt: impl Into<Arc<str>>) -> Self {
        Self::new(AskKind::Question, prompt)
    }

    /// Creates a request for an approval.
    pub fn approval(prompt: impl Into<Arc<str>>) -> Self {
        Self::new(AskKind::Approval, prompt)
    }

    /// Sets how long it may wait; whole milliseconds count.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.within_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }
}

impl Answer {
    /// Approves the request unchanged.
    pub fn approve() -> Self {
        Self::Approve {
            args: None,
            for_run: false,
        }
    }

    /// It may be done, with these arguments instead, as JSON text.
    pub fn approve_with(args: impl Into<Arc<str>>) -> Self {
        Self::Approve {
            args: Some(args.into()),
            for_run: false,
        }
    }

    /// It may not be done.
    pub fn deny(reason: impl Into<Arc<str>>) -> Self {
        Self::Deny {
            reason: reason.into(),
        }
    }

    /// A value.
    pub fn give(value: impl Into<Value>) -> Self {
        Self::Give {
            value: value.into(),
        }
    }

    /// Checks that this answer fits the question.
    ///
    /// # Errors
    /// `InvalidArguments` if a question of this kind has no such answer, if the value does not fit the schema, with
    /// every place, or if that schema is invalid.
    pub fn fits(&self, ask: &Ask) -> Result<(), ToolError> {
        use AskKind::{Approval, Authorisation, External, Limit, Question};
        let kinds: &[AskKind] = match self {
            Self::Approve { args: None, .. } | Self::Deny { .. } => &[Approval, Authorisation],
            Self::Approve { args: Some(_), .. } => &[Approval],
            Self::Give { .. } => &[Question, Authorisation],
            Self::Return { .. } => &[External],
            Self::Extend { by: 0, .. } => {
                return Err(unfit("a limit is extended by at least one".to_owned()));
            }
            Self::Extend { .. } => &[Limit],
            Self::Decline { .. } => &[Question, External, Limit, Authorisation],
            Self::Expired => return Ok(()),
        };
        if !kinds.contains(&ask.kind) {
            return Err(unfit(format!(
                "{} does not answer {}",
                self.noun(),
                ask.kind.noun()
            )));
        }
        match self {
            Self::Give { value } => ask.takes(value),
            _ => Ok(()),
        }
    }

    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Approve { args: None, .. } => "an approval",
            Self::Approve { args: Some(_), .. } => "an approval with arguments",
            Self::Deny { .. } => "a denial",
            Self::Give { .. } => "a value",
            Self::Return { .. } => "a result",
            Self::Extend { .. } => "an extension",
            Self::Decline { .. } => "a refusal to give anything",
            Self::Expired => "an expiry",
        }
    }
}

impl AskKind {
    fn noun(self) -> &'static str {
        match self {
            Self::Approval => "a wish for approval",
            Self::Question => "a question",
            Self::External => "a call that is run elsewhere",
            Self::Limit => "a limit",
            Self::Authorisation => "a wish for authorisation",
        }
    }
}

impl Ask {
    fn takes(&self, value: &Value) -> Result<(), ToolError> {
        if self.schema.is_null() {
            return Ok(());
        }
        let schema = Schema::compile(Arc::new(self.schema.clone())).map_err(|error| {
            unfit("no value can be given, the schema of what was asked is broken".to_owned())
                .with_source(error)
        })?;
        schema.validate(value).map_err(|it| {
            unfit(format!(
                "the value does not fit:\n{}",
                violations::list(&it)
            ))
        })
    }
}

fn unfit(message: String) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidArguments, message)
}
