//! The requests of a structured answer: the first one, the repairs, and their usage.

use std::sync::Arc;

use super::{Shaped, form::Form, read};
use crate::{
    CallResult, Chunk, Collector, Effort, Entry, Error, ErrorKind, Format, Model, ModelId,
    ModelInfo, NanoUsd, Options, Origin, Reply, Request, RequestOption, Status, Structured,
    ToolChoice, ToolDecl, ToolName, Turn, Usage, UserMessage, Violation,
};

/// The origin of the instructions that are added to a conversation.
const SPEAKER: &str = "structured_output";

/// The way in which the answer is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// By the wire's own mode.
    Native,
    /// By a call that the model is forced to make.
    Forced,
    /// By a call that the prompt requests.
    Called,
    /// By words.
    Prompt,
}

impl Mode {
    /// Source: Anthropic, "Extended thinking" (2025): a request with thinking cannot force a call.
    pub(super) fn for_model(info: &ModelInfo, options: &Options) -> Self {
        let thinks = options.thinking.is_some_and(|it| it != Effort::Off);
        match info.structured {
            Structured::Native => Mode::Native,
            // The tools may not change, and the words of a prompt are appended.
            Structured::Tool if info.thinking_binding => Mode::Prompt,
            Structured::Tool if thinks || info.refuses.contains(&RequestOption::ForcedCalls) => {
                Mode::Called
            }
            Structured::Tool => Mode::Forced,
            Structured::Prompt => Mode::Prompt,
        }
    }

    /// True if the answer is the arguments of a call.
    pub(super) fn calls(self) -> bool {
        matches!(self, Mode::Forced | Mode::Called)
    }
}

/// The request, with what the way of asking adds to it.
pub(super) fn prepare(
    mut request: Request,
    info: &ModelInfo,
    mode: Mode,
    form: &Form,
) -> Result<Request, Error> {
    let format = form.format();
    let mut options = Options::clone(&request.options);
    options.format = None;
    if mode.calls() {
        is_free(&request, format)?;
        let declared = request.tools.iter().cloned().chain([tool(form)]);
        request.tools = declared.collect();
        options.sequential_calls = !info.refuses.contains(&RequestOption::SequentialCalls);
        options.tool_choice = if mode == Mode::Forced {
            ToolChoice::Named(ToolName(Arc::clone(&format.name)))
        } else {
            ToolChoice::Auto
        };
    } else if !request.tools.is_empty() && options.server_tools.is_empty() {
        options.tool_choice = ToolChoice::None;
    }
    match mode {
        Mode::Native => options.format = Some(format.clone()),
        Mode::Forced => {}
        Mode::Called => add(
            &mut request,
            format!(
                "Give your answer by calling the tool `{}` exactly once. Write nothing else.",
                format.name
            ),
        ),
        Mode::Prompt => add(
            &mut request,
            format!(
                "Answer with one JSON object and nothing else: no explanation, no code fence. It must fit this JSON \
                 schema, which is named `{}`:\n{}",
                format.name, format.schema
            ),
        ),
    }
    request.options = Arc::new(options);
    Ok(request)
}

/// The request of an agent, which can call tools before its answer. [`words`] are already part of its conversation.
pub(super) fn beside(mut request: Request, mode: Mode, form: &Form) -> Result<Request, Error> {
    let format = form.format();
    is_free(&request, format)?;
    let has_tools = !request.tools.is_empty();
    let mut options = Options::clone(&request.options);
    options.format = (mode == Mode::Native).then(|| format.clone());
    if mode == Mode::Forced {
        let answer = ToolChoice::Named(ToolName(Arc::clone(&format.name)));
        options.tool_choice = if has_tools {
            ToolChoice::Required
        } else {
            answer
        };
    }
    if mode.calls() {
        request.tools = request.tools.iter().cloned().chain([tool(form)]).collect();
    }
    request.options = Arc::new(options);
    Ok(request)
}

/// Returns the text that requests the answer of an agent, for the conversation; `None` if the options do so.
pub(super) fn words(mode: Mode, form: &Form, has_tools: bool) -> Option<String> {
    let format = form.format();
    let words = match mode {
        Mode::Forced => return None,
        Mode::Called => format!(
            "give your answer by calling the tool `{}` exactly once",
            format.name
        ),
        // Together with tools, some models and servers ignore a format, and others answer without using the tools.
        Mode::Native if !has_tools => return None,
        Mode::Native | Mode::Prompt => format!(
            "answer with one JSON object and nothing else: no explanation, no code fence. It must fit this JSON schema, \
             which is named `{}`:\n{}",
            format.name, format.schema
        ),
    };
    Some(format!("When your work on this request is done, {words}"))
}

fn is_free(request: &Request, format: &Format) -> Result<(), Error> {
    if request
        .tools
        .iter()
        .all(|tool| *tool.name.0 != *format.name)
    {
        return Ok(());
    }
    let message = format!(
        "a tool of the request has the name of the answer: {}",
        format.name
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

fn tool(form: &Form) -> ToolDecl {
    let format = form.format();
    let about = format
        .schema
        .get("description")
        .and_then(|it| it.as_str())
        .map(|it| format!(" {it}"));
    let description = format!(
        "Takes the whole answer; call it exactly once.{}",
        about.unwrap_or_default()
    );
    ToolDecl {
        name: ToolName(Arc::clone(&format.name)),
        description: description.into(),
        schema: Arc::clone(&format.schema),
    }
}

/// Adds an instruction at the end of a conversation, which goes its own way from here.
fn add(request: &mut Request, text: String) {
    request.entries = request.entries.fork();
    request.entries.push(Entry::User(reminder_message(text)));
}

fn reminder_message(text: String) -> UserMessage {
    UserMessage {
        origin: Origin::Reminder { by: SPEAKER.into() },
        ..UserMessage::text(text)
    }
}

/// Returns the message that lists the errors of an answer and requests it again.
pub(super) fn again(mode: Mode, form: &Form, wrong: &str) -> UserMessage {
    let again = match mode {
        Mode::Native | Mode::Prompt => {
            "Answer again with the whole corrected JSON object and nothing else.".into()
        }
        Mode::Forced | Mode::Called => {
            format!(
                "Call `{}` again with the whole corrected answer.",
                form.format().name
            )
        }
    };
    reminder_message(format!("{wrong}\n{again}"))
}

/// A conversation about one answer, and its usage.
pub(super) struct StructuredExchange {
    request: Request,
    usage: Usage,
    cost: Option<NanoUsd>,
    attempts: u32,
}

impl StructuredExchange {
    pub(super) fn new(request: Request) -> Self {
        Self {
            request,
            usage: Usage::default(),
            cost: Some(NanoUsd::default()),
            attempts: 0,
        }
    }

    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Waits for the next reply, and adds its usage and the usage of earlier attempts.
    pub(super) async fn gather(
        &mut self,
        model: &(impl Model + ?Sized),
    ) -> Result<Arc<Reply>, Error> {
        self.attempts += 1;
        let mut stream = model.stream(self.request.clone());
        let mut collector = Collector::default();
        let mut answering = model.info().id.clone();
        while let Some(chunk) = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
            let chunk = chunk?;
            match &chunk {
                Chunk::Start { attempt, model, .. } => {
                    answering = model.clone();
                    // The calls of the next reply must have different ids.
                    self.request.attempt = attempt.saturating_add(1);
                }
                Chunk::Retracted { usage, .. } => self.spend(model, &answering, usage),
                Chunk::Open { .. }
                | Chunk::Delta { .. }
                | Chunk::Close { .. }
                | Chunk::Usage { .. }
                | Chunk::Warned { .. }
                | Chunk::Pending { .. }
                | Chunk::Done(_) => {}
            }
            if let Some(reply) = collector.push(&chunk)? {
                self.spend(model, &reply.model, &reply.usage);
                return Ok(reply);
            }
        }
        Err(Error::new(
            ErrorKind::Protocol,
            "the stream of the model ended without a reply",
        ))
    }

    fn spend(&mut self, model: &(impl Model + ?Sized), answering: &ModelId, usage: &Usage) {
        let cost = model.info_of(answering).cost(usage);
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
        self.usage += *usage;
    }

    /// Sends a paused reply back, so that the model continues it.
    pub(super) fn go_on(&mut self, reply: &Arc<Reply>) -> Result<(), Error> {
        self.push_turn(reply, "not run")
    }

    /// Sends a reply back with its errors.
    pub(super) fn repair(
        &mut self,
        reply: &Arc<Reply>,
        mode: Mode,
        form: &Form,
        wrong: &[Violation],
    ) -> Result<(), Error> {
        self.push_turn(reply, "not accepted: see the next message")?;
        let text = again(mode, form, &read::misfit(wrong));
        self.request.entries = self.request.entries.fork();
        self.request.entries.push(Entry::User(text));
        Ok(())
    }

    /// Puts a reply at the end of the conversation; each of its calls gets this result.
    fn push_turn(&mut self, reply: &Arc<Reply>, result: &str) -> Result<(), Error> {
        let mut open = Turn::open(Arc::clone(reply));
        let result = Arc::new(CallResult::new(Status::InvalidArguments, result));
        for call in reply.calls() {
            // A call that has its result already has an id that is used twice, which `close` finds.
            let _ = open.put(call.id, Arc::clone(&result));
        }
        let unpaired = |_| Error::new(ErrorKind::Protocol, "two calls of a reply have one id");
        let turn = open.close().map_err(unpaired)?;
        self.request.entries = self.request.entries.fork();
        self.request.entries.push(Entry::Turn(turn));
        Ok(())
    }

    pub(super) fn finish<T>(self, value: T, reply: Arc<Reply>) -> Shaped<T> {
        Shaped {
            value,
            reply,
            usage: self.usage,
            cost: self.cost,
            attempts: self.attempts,
        }
    }
}
