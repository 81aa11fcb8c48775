//! What a page asks for with a request: to run on a prompt, or to go on with answers.

use adjutant_agent::{Agent, Running};
use adjutant_core::Answered;
use adjutant_llm::UserMessage;

use crate::error::Error;

/// What a page asks for with a request.
#[derive(Debug, Clone, PartialEq)]
pub enum PageWish {
    /// To run on these messages.
    Prompt(Vec<UserMessage>),
    /// To go on with these answers.
    Answers(Vec<Answered>),
}

impl PageWish {
    /// Begins the run, or goes on with it.
    ///
    /// Cancel: dropping the run cancels it, as when its page goes away.
    ///
    /// # Errors
    /// `Agent`, if the agent does not begin: its session is busy, it waits for answers, or for other ones.
    pub fn begin(self, agent: &Agent) -> Result<Running, Error> {
        let builder = match self {
            Self::Prompt(messages) => agent.run(messages),
            Self::Answers(answers) => agent.resume(answers),
        };
        builder.stream().map_err(Error::agent)
    }
}
