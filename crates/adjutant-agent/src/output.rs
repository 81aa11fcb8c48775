//! Answers of runs as values of a type: the requested output, and its validation.

use std::{fmt, marker::PhantomData, pin::Pin, sync::Arc};

use adjutant_core::{Error, OutputVerdict, OutputWish};
use adjutant_llm::{
    self as llm, Estimate, Format, Model, Options, Reply, Request, Shape, UserMessage,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The maximum number of bytes of an application's reason in a message to the model.
const MAX_REASON: usize = 4 * 1024;
/// The maximum number of tokens of the instruction that requests an answer, without its schema.
const WORDS: u64 = 128;

/// The requested answer of an agent's runs: a type, or a JSON schema.
///
/// The request uses the mode of the model, in addition to the agent's tools. An invalid answer is returned with its
/// errors, twice by default, within the same run, log, limits and budget; then the run fails.
pub struct Output<T> {
    goal: Goal,
    reads: PhantomData<fn() -> T>,
}

/// The requested answer of a run.
#[derive(Clone)]
pub(crate) struct Goal {
    pub(crate) shape: Shape<Value>,
    /// Reads a value as the requested type; errors are written for the model.
    reads: fn(&Value) -> Result<(), String>,
    check: Option<Arc<Check>>,
    /// The most tokens that asking for it adds to a request.
    tokens: u64,
}

type Check =
    dyn Fn(Value) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync;

impl<T: DeserializeOwned + JsonSchema> Output<T> {
    /// Values of this type.
    ///
    /// # Errors
    /// `Prompt` if the type's schema is not valid.
    pub fn new() -> Result<Self, Error> {
        Self::from_format(Shape::<T>::new().map_err(Error::Output)?.original_format())
    }
}

impl<T: DeserializeOwned> Output<T> {
    /// Creates an output with a schema known at run time; `T` reads it, for example `serde_json::Value`.
    ///
    /// # Errors
    /// `Prompt` if it is not a JSON schema, or if its name is not 1 to 64 letters, digits, `_` and `-`.
    pub fn from_format(format: Format) -> Result<Self, Error> {
        let shape = Shape::from_format(format).map_err(Error::Output)?;
        let reads = |value: &Value| {
            T::deserialize(value)
                .map(drop)
                .map_err(|error| Shape::<Value>::misfit(&error))
        };
        Ok(Self {
            goal: Goal::new(shape, reads, None),
            reads: PhantomData,
        })
    }

    /// Sets how often the model may be sent back; 2 without it.
    #[must_use]
    pub fn repairs(mut self, times: u32) -> Self {
        self.goal.shape.repairs = times;
        self
    }

    /// Sets a validator for values that match the schema; it refuses one with a reason for the model.
    ///
    /// It is called once for each answer, and its verdict is in the log.
    #[must_use]
    pub fn validate<F, Fut>(mut self, validator: F) -> Self
    where
        F: Fn(T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.goal.check = Some(Arc::new(move |value| match serde_json::from_value(value) {
            Ok(value) => Box::pin(validator(value)),
            Err(error) => Box::pin(std::future::ready(Err(error.to_string()))),
        }));
        self
    }

    pub(crate) fn goal(self) -> Arc<Goal> {
        Arc::new(self.goal)
    }
}

impl Goal {
    fn new(
        shape: Shape<Value>,
        reads: fn(&Value) -> Result<(), String>,
        check: Option<Arc<Check>>,
    ) -> Self {
        // The words that some models need are part of the conversation.
        let tokens = Estimate.count(&shape.format().schema.to_string()) + WORDS;
        Self {
            shape,
            reads,
            check,
            tokens,
        }
    }

    /// The most tokens that asking for the answer adds to a request.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the requested output as the log stores it.
    pub(crate) fn wish(&self) -> OutputWish {
        let is_checked = self.check.is_some();
        OutputWish {
            format: self.shape.original_format(),
            repairs: self.shape.repairs,
            is_checked,
        }
    }

    /// Returns the request with the parts that request the answer, in the mode of the model.
    pub(crate) fn dress(&self, request: Request, model: &dyn Model) -> Result<Request, llm::Error> {
        self.shape.within(request, model.info())
    }

    /// Returns the text for the conversation that requests the answer, if this model needs it.
    pub(crate) fn words(
        &self,
        model: &dyn Model,
        options: &Options,
        has_tools: bool,
    ) -> Option<String> {
        self.shape.words(model.info(), options, has_tools)
    }

    /// Returns the output that a run was started with, checked with local knowledge, and the warnings about it.
    pub(crate) fn resume(
        known: Option<&Arc<Self>>,
        wish: Option<&OutputWish>,
    ) -> (Option<Arc<Self>>, Option<&'static str>) {
        let Some(wish) = wish else {
            return (
                None,
                known.map(
                    |_| "the run was started without a requested answer, and continues without one",
                ),
            );
        };
        let unchecked = wish.is_checked && known.is_none_or(|known| known.check.is_none());
        let warning = unchecked.then_some(
            "the validator of the run is not available here: only the schema is checked",
        );
        if known.is_some_and(|known| {
            known.shape.original_format() == wish.format && known.shape.repairs == wish.repairs
        }) {
            return (known.cloned(), warning);
        }
        let Ok(mut shape) = Shape::<Value>::from_format(wish.format.clone()) else {
            return (
                None,
                Some(
                    "the requested answer in the log is invalid, and the run continues without it",
                ),
            );
        };
        shape.repairs = wish.repairs;
        let (reads, check) = known.map_or((Self::any as _, None), |known| {
            (known.reads, known.check.clone())
        });
        (Some(Arc::new(Self::new(shape, reads, check))), warning)
    }

    fn any(_: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// An answer during its validation.
pub(crate) struct Judging {
    goal: Arc<Goal>,
    read: Result<Value, String>,
    left: u32,
    model: Arc<dyn Model>,
    options: Arc<Options>,
}

/// The judgement about an answer, and the request for another one.
pub(crate) struct Judged {
    pub(crate) verdict: OutputVerdict,
    pub(crate) again: Option<UserMessage>,
}

impl Judging {
    /// The answer in a reply, if there is one, after `refused` earlier ones. The texts for the model depend on it.
    pub(crate) fn new(
        goal: &Arc<Goal>,
        reply: &Reply,
        refused: u32,
        (model, options): (Arc<dyn Model>, Arc<Options>),
    ) -> Option<Self> {
        let read = goal.shape.read(reply)?;
        Some(Self {
            read,
            left: goal.shape.repairs.saturating_sub(refused),
            goal: Arc::clone(goal),
            model,
            options,
        })
    }

    /// Judges the answer: the schema, the type, and then the application.
    pub(crate) async fn judge(self) -> Judged {
        let Self {
            goal,
            read,
            left,
            model,
            options,
        } = self;
        let read = read.and_then(|value| (goal.reads)(&value).map(|()| value));
        let judged = match (read, &goal.check) {
            (Ok(value), Some(check)) => {
                let checked = check(value.clone()).await;
                checked
                    .map(|()| value)
                    .map_err(|reason| format!("The answer is not accepted: {}", short(&reason)))
            }
            (read, _) => read,
        };
        match judged {
            Ok(value) => Judged {
                verdict: OutputVerdict::Accepted {
                    value: Arc::new(value),
                },
                again: None,
            },
            Err(reason) => {
                let again = Some(goal.shape.again(model.info(), &options, &reason));
                Judged {
                    verdict: OutputVerdict::Refused {
                        reason: reason.into(),
                        left,
                    },
                    again,
                }
            }
        }
    }
}

fn short(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(MAX_REASON)]
}

impl<T> Clone for Output<T> {
    fn clone(&self) -> Self {
        Self {
            goal: self.goal.clone(),
            reads: PhantomData,
        }
    }
}

impl fmt::Debug for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Goal")
            .field("shape", &self.shape)
            .field("is_checked", &self.check.is_some())
            .finish()
    }
}

impl<T> fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Output").field(&self.goal).finish()
    }
}
