//! Answers that fit a schema: requested in the mode of the model, validated, and returned for repair.

mod ask;
mod form;
mod partial;
mod read;

use std::{fmt, marker::PhantomData, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::{
    ask::{Mode, StructuredExchange},
    form::Form,
};
use crate::{
    Error, ErrorKind, FinishReason, Format, Model, ModelInfo, NanoUsd, Options, Reply, Request,
    ToolChoice, Usage, UserMessage,
};

pub use self::partial::PartialAnswer;

/// The number of times that a model may repair its answer, unless it is set.
const REPAIRS: u32 = 2;
/// The number of times that a model may pause within one answer.
const MAX_PAUSES: u32 = 8;

/// The form that an answer must have: a schema, compiled once, and the type that is read from it. Cheap to clone.
///
/// The mode of the request is data of the model ([`ModelInfo::structured`](crate::ModelInfo::structured)): the wire's
/// own mode, a forced call, or an instruction. The answer is validated in every mode. An invalid answer is returned
/// to the model with every wrong place, twice by default.
///
/// A schema whose type is not an object is wrapped in an object with the single field `value`, because wires require
/// objects; answers are unwrapped.
pub struct Shape<T> {
    form: Arc<Form>,
    /// The number of times that the model may repair its answer; 2 by default.
    pub repairs: u32,
    reads: PhantomData<fn() -> T>,
}

/// An answer that fits its shape.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Shaped<T> {
    /// The answer.
    pub value: T,
    /// The reply that holds it.
    pub reply: Arc<Reply>,
    /// The usage of all attempts together, retracted ones included.
    pub usage: Usage,
    /// The cost of all attempts together, if the price is known.
    pub cost: Option<NanoUsd>,
    /// The number of replies that it took: 1, and one for each repair or pause.
    pub attempts: u32,
}

impl<T: DeserializeOwned + JsonSchema> Shape<T> {
    /// The shape of a Rust type, named after it.
    ///
    /// # Errors
    /// `Invalid` if the type's schema is not valid.
    pub fn new() -> Result<Self, Error> {
        Self::from_format(form::format_of::<T>())
    }
}

impl<T: DeserializeOwned> Shape<T> {
    /// The shape of a schema that is only known at run time; `T` is what fits it, for example `serde_json::Value`.
    ///
    /// # Errors
    /// `Invalid` if it is not a JSON schema, or if its name is not 1 to 64 letters, digits, `_` and `-`.
    pub fn from_format(format: Format) -> Result<Self, Error> {
        Ok(Self {
            form: Arc::new(Form::compile(format)?),
            repairs: REPAIRS,
            reads: PhantomData,
        })
    }

    /// Returns the name and the schema that models receive.
    pub fn format(&self) -> &Format {
        self.form.format()
    }

    /// Requests an answer of this shape. The tools of the request are declared, but must not be called.
    ///
    /// Cancel: dropping the future ends the request; the partial answer is lost.
    ///
    /// # Errors
    /// The error of a stream. `Refused` if the model refused or a filter stopped it; `Invalid` if the output limit
    /// cut the answer off, or a tool of the request has the name of the shape; `Protocol` if the model called a tool
    /// of the request, or if its answer is still invalid after all repairs.
    pub async fn ask(
        &self,
        model: &(impl Model + ?Sized),
        request: Request,
    ) -> Result<Shaped<T>, Error> {
        let info = model.info();
        let mode = Mode::for_model(info, &request.options);
        let mut asked = StructuredExchange::new(ask::prepare(request, info, mode, &self.form)?);
        let (mut repairs, mut pauses) = (0, 0);
        loop {
            let reply = asked.gather(model).await?;
            if reply.stop == FinishReason::Paused && pauses < MAX_PAUSES {
                pauses += 1;
                asked.go_on(&reply)?;
                continue;
            }
            let wrong = match read::answer(&reply, mode, &self.form)? {
                Ok(value) => match serde_json::from_value::<T>(value) {
                    Ok(value) => return Ok(asked.finish(value, reply)),
                    Err(error) => vec![read::whole(error.to_string())],
                },
                Err(wrong) => wrong,
            };
            if repairs == self.repairs {
                return Err(self.hopeless(asked.attempts(), &wrong));
            }
            repairs += 1;
            asked.repair(&reply, mode, &self.form, &wrong)?;
        }
    }

    /// The name and the original schema, from which [`from_format`](Self::from_format) creates the same shape.
    pub fn original_format(&self) -> Format {
        self.form.original_format()
    }

    /// Returns the request of an agent that works with its tools until it answers in this shape, in the mode of the
    /// model. The conversation must contain [`words`](Self::words).
    ///
    /// If tool calls are disabled (`ToolChoice::None`), the request requires the answer now.
    ///
    /// # Errors
    /// `Invalid` if a tool of the request has the name of the shape.
    pub fn within(&self, request: Request, info: &ModelInfo) -> Result<Request, Error> {
        let mode = Mode::for_model(info, &request.options);
        match request.options.tool_choice {
            ToolChoice::None if mode.calls() => ask::prepare(request, info, mode, &self.form),
            _ => ask::beside(request, mode, &self.form),
        }
    }

    /// Returns the text that requests the answer, for the end of the conversation; `None` if the model needs none.
    /// `has_tools` is true if the model may call tools before.
    ///
    /// It is not part of the system prompt, so that a conversation which only grows keeps its prompt cache.
    pub fn words(&self, info: &ModelInfo, options: &Options, has_tools: bool) -> Option<String> {
        ask::words(Mode::for_model(info, options), &self.form, has_tools)
    }

    /// Returns the answer in a reply to such a request, or its errors as a text for the model; `None` if the reply
    /// contains no answer and the work continues.
    pub fn read(&self, reply: &Reply) -> Option<Result<Value, String>> {
        Some(read::within(reply, &self.form)?.map_err(|wrong| read::misfit(&wrong)))
    }

    /// Returns the message for a value that fits the schema but cannot be read as an answer.
    pub fn misfit(error: &serde_json::Error) -> String {
        read::misfit(&[read::whole(error.to_string())])
    }

    /// Returns the message that lists the errors of an answer and requests it again in the mode of the model.
    pub fn again(&self, info: &ModelInfo, options: &Options, wrong: &str) -> UserMessage {
        ask::again(Mode::for_model(info, options), &self.form, wrong)
    }

    /// Reads the answer while it comes.
    pub fn partial(&self) -> PartialAnswer {
        PartialAnswer::new(Arc::clone(&self.form))
    }

    fn hopeless(&self, attempts: u32, wrong: &[crate::Violation]) -> Error {
        let name = &self.form.format().name;
        let wrong = read::list(wrong);
        Error::new(
            ErrorKind::Protocol,
            format!("no answer fits the schema `{name}` ({attempts} asked for): {wrong}"),
        )
    }
}

/// Requests an answer of a Rust type; see [`Shape`], which compiles the type's schema only once.
///
/// # Errors
/// The errors of [`Shape::new`] and [`Shape::ask`].
pub async fn complete_as<T: DeserializeOwned + JsonSchema>(
    model: &(impl Model + ?Sized),
    request: Request,
) -> Result<Shaped<T>, Error> {
    Shape::new()?.ask(model, request).await
}

/// Requests JSON that fits a schema; see [`Shape`], which compiles it only once.
///
/// # Errors
/// The errors of [`Shape::from_format`] and [`Shape::ask`].
pub async fn complete_json(
    model: &(impl Model + ?Sized),
    request: Request,
    format: Format,
) -> Result<Shaped<Value>, Error> {
    Shape::from_format(format)?.ask(model, request).await
}

impl<T> Clone for Shape<T> {
    fn clone(&self) -> Self {
        Self {
            form: Arc::clone(&self.form),
            repairs: self.repairs,
            reads: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Shape<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shape")
            .field("format", self.form.format())
            .field("repairs", &self.repairs)
            .finish()
    }
}
