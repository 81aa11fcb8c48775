//! The tool `ask_user`: a question of the model to the user.

use std::sync::Arc;

use adjutant_llm::CallResult;
use adjutant_tool::{
    Answer, Ask, CallContext, Replay, Tool, ToolError, ToolErrorKind, ToolHints, ToolSpec, Tools,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::{show, work};

/// The maximum number of characters of a question.
const MAX_QUESTION: usize = 4_000;
/// The maximum number of options.
const MAX_OPTIONS: usize = 20;
/// The maximum number of characters of an option.
const MAX_OPTION: usize = 200;
/// The maximum number of characters of an answer.
const MAX_ANSWER: usize = 20_000;
/// The key of the one pause of a call.
const KEY: &str = "answer";

/// The toolbox `ask_user`: a tool of the same name. The tool is resumable: the run may wait for days.
///
/// The answer is a text, or one of the options if the model provides some. The user can also decline with a text.
pub fn ask_user() -> Tools {
    Tools::new("ask_user").tool(AskUser)
}

/// Asks the user a question and waits for the answer.
///
/// Only for what cannot be found out otherwise, and what the user must decide.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The question, with all that is needed to answer it.
    #[schemars(length(min = 1, max = MAX_QUESTION))]
    question: String,
    /// The answers to choose from, each on one line; any text may be the answer if left out.
    #[serde(default)]
    #[schemars(length(max = MAX_OPTIONS), inner(length(min = 1, max = MAX_OPTION)))]
    options: Vec<String>,
}

#[derive(Debug)]
struct AskUser;

impl Tool for AskUser {
    type Args = Args;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        let spec = work::spec::<Args>("ask_user");
        let hints = ToolHints {
            idempotent: None,
            ..work::LOOKS
        };
        ToolSpec {
            title: Some("Ask the user".into()),
            replay: Replay::Resumable,
            hints,
            ..spec
        }
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        args.check()?;
        match cx.pause(KEY, args.ask()).await? {
            Answer::Give {
                value: Value::String(text),
            } => Ok(CallResult::ok(text)),
            Answer::Give { value } => Ok(CallResult::ok(value.to_string())),
            Answer::Expired => Err(ToolError::new(
                ToolErrorKind::TimedOut,
                "the user did not answer in time",
            )),
            Answer::Decline {
                message: Some(words),
            } if !words.trim().is_empty() => Err(ToolError::new(ToolErrorKind::Denied, words)),
            _ => Err(ToolError::new(
                ToolErrorKind::Denied,
                "the user gave no answer",
            )),
        }
    }
}

impl Args {
    fn check(&self) -> Result<(), ToolError> {
        let question = &self.question;
        let broken =
            |text: &str| text.contains(|it: char| it.is_control() && !matches!(it, '\n' | '\t'));
        if question.trim().is_empty() || question.chars().count() > MAX_QUESTION || broken(question)
        {
            let hint = format!("hint: 1 to {MAX_QUESTION} characters, no control characters");
            return Err(refused(format!(
                "invalid question: {}; {hint}",
                show::quoted(question)
            )));
        }
        if self.options.len() > MAX_OPTIONS {
            return Err(refused(format!(
                "a question has {MAX_OPTIONS} options at most, not {}",
                self.options.len()
            )));
        }
        for (at, option) in self.options.iter().enumerate() {
            let long = option.chars().count() > MAX_OPTION;
            if option.trim().is_empty() || long || option.contains(char::is_control) {
                let hint = format!("hint: one line of 1 to {MAX_OPTION} characters");
                return Err(refused(format!(
                    "this is no option: {}; {hint}",
                    show::quoted(option)
                )));
            }
            if self.options[..at].contains(option) {
                return Err(refused(format!(
                    "the option {} appears twice",
                    show::quoted(option)
                )));
            }
        }
        Ok(())
    }

    fn ask(&self) -> Ask {
        let schema = if self.options.is_empty() {
            json!({ "type": "string", "maxLength": MAX_ANSWER })
        } else {
            json!({ "type": "string", "enum": self.options })
        };
        Ask {
            schema,
            ..Ask::question(Arc::from(self.question.as_str()))
        }
    }
}

fn refused(message: String) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidArguments, message)
}
