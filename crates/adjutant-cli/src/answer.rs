//! An answer by a schema: the file, what the model is told, and what is done with an answer that does not fit.
//!
//! The schema stands in the instructions, and in the requests of the run where the model has a mode for it; so the last
//! reply mostly fits, and takes no further request. If not, the answer is asked for by itself.

use std::{path::Path, sync::Arc};

use adjutant::{
    Model,
    llm::{
        Error, Format, Options, Origin, Request, Schema, Shape, Shaped, Structured, ToolDecl, Transcript, UserMessage,
        Violation,
    },
};
use serde_json::Value;

use crate::{exit::Exit, file, problem::Problem};

/// The name that a model is given for what it makes.
const NAME: &str = "answer";
/// The one field of the object that an answer stands in whose schema is not one of an object.
const FIELD: &str = "value";
/// The largest number of wrong places that a model is shown.
const MAX_LISTED: usize = 20;

/// The form that an answer must have.
#[derive(Debug)]
pub(crate) struct Answer {
    shape: Shape<Value>,
    /// The schema as the user gave it.
    schema: Schema,
}

impl Answer {
    /// Reads the schema of a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Problem> {
        let text = file::text(path, "the schema")?;
        let wrong = |error: &dyn std::error::Error| {
            Problem::new(Exit::Usage, format!("cannot use the schema: {}", path.display())).cause(error)
        };
        let value: Arc<Value> = Arc::new(serde_json::from_str(&text).map_err(|error| wrong(&error))?);
        let schema = Schema::compile(Arc::clone(&value)).map_err(|error| wrong(&error))?;
        let shape = Shape::of(Format::new(NAME, value)).map_err(|error| wrong(&error))?;
        Ok(Self { shape, schema })
    }

    /// Returns the instructions about the answer for the agent.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "When your work is done, answer with one JSON object and nothing else: no explanation, no code fence. It must \
             fit this JSON schema:\n{}",
            self.shape.format().schema
        )
    }

    /// The options of the run, with the schema where the model has a mode for it.
    pub(crate) fn options(&self, options: Options, model: &dyn Model) -> Options {
        match model.info().structured {
            Structured::Native => Options { format: Some(self.shape.format().clone()), ..options },
            _ => options,
        }
    }

    /// The answer that a text is; else, what is wrong with it.
    pub(crate) fn find(&self, text: &str) -> Result<Value, Vec<Violation>> {
        let whole = |message| vec![Violation { path: String::new(), message }];
        let mut value: Value =
            serde_json::from_str(unfenced(text)).map_err(|error| whole(format!("it is not JSON: {error}")))?;
        let Err(wrong) = self.schema.validate(&value) else { return Ok(value) };
        let is_wrapped = !Arc::ptr_eq(&self.shape.format().schema, self.schema.source());
        match value.get_mut(FIELD).map(Value::take).filter(|_| is_wrapped) {
            Some(inner) => self.schema.validate(&inner).map(|()| inner),
            None => Err(wrong),
        }
    }

    /// Asks for the answer by itself, after a conversation whose last reply does not fit.
    ///
    /// # Errors
    /// `Protocol` or `Invalid` if no answer fits; whatever else a stream ended in.
    pub(crate) async fn ask(
        &self,
        model: &dyn Model,
        asked: AnswerRequest,
        wrong: &[Violation],
    ) -> Result<Shaped<Value>, Error> {
        let mut text = "Your answer does not fit its JSON schema:\n".to_owned();
        for Violation { path, message } in wrong.iter().take(MAX_LISTED) {
            let place = if path.is_empty() { "the whole" } else { path };
            text += &format!("- {place}: {message}\n");
        }
        text += "Give it again, whole and corrected. Change nothing about what it says.";
        let message = UserMessage { origin: Origin::Reminder { by: NAME.into() }, ..UserMessage::text(text) };
        let request = Request::of(asked.entries.fork()).system(asked.system).tools(asked.tools).options(asked.options);
        self.shape.ask(model, request.user(message)).await
    }
}

/// The conversation that an answer is asked for in: the one of the run, so that caches serve it.
#[derive(Debug)]
pub(crate) struct AnswerRequest {
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<[ToolDecl]>,
    pub(crate) entries: Transcript,
    pub(crate) options: Options,
}

/// The text without a code fence around all of it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|it| it.strip_suffix("```"));
    inner.and_then(|it| it.split_once('\n')).map_or(text, |(_, body)| body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(schema: Value) -> Answer {
        let schema = Arc::new(schema);
        let shape = Shape::of(Format::new(NAME, Arc::clone(&schema))).expect("a schema");
        Answer { shape, schema: Schema::compile(schema).expect("a schema") }
    }

    #[test]
    fn find_takes_json_when_it_is_all_of_the_text() {
        let object = answer(json!({"type": "object", "required": ["n"]}));
        assert_eq!(object.find(" {\"n\": 1}\n"), Ok(json!({"n": 1})));
        assert_eq!(object.find("```json\n{\"n\": 1}\n```"), Ok(json!({"n": 1})));
        assert_eq!(object.find("{}").expect_err("a field is missing").len(), 1);
        let wrong = object.find("It is {\"n\": 1}").expect_err("it is not JSON");
        assert!(wrong[0].message.starts_with("it is not JSON: "), "{wrong:?}");
    }

    #[test]
    fn find_takes_a_wrapping_off_when_the_schema_is_not_one_of_an_object() {
        let list = answer(json!({"type": "array", "items": {"type": "integer"}}));
        assert_eq!(list.find("{\"value\": [1, 2]}"), Ok(json!([1, 2])));
        assert_eq!(list.find("[1]"), Ok(json!([1])));
        assert_eq!(list.find("{\"value\": [true]}").expect_err("no integer")[0].path, "/0");
        let object = answer(json!({"type": "object", "required": ["value"]}));
        assert_eq!(object.find("{\"value\": 1}"), Ok(json!({"value": 1})));
    }
}
