//! One request as a run: it starts or resumes, waits for the client, and ends with a result.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    Offer,
    input::Question,
    state::{Parked, ShownPause},
    told::Told,
};
use adjutant_agent::{
    Agent, Answered, Error as RunError, LogId, Outcome, Pause, RunResult, Running,
};
use adjutant_llm::{
    Block, CallResult, Entry, Error, ErrorKind, ModelInfo, Reply, Script, ScriptedModel,
};
use adjutant_tool::{Answer, AskKind, Bound, Toolset, toolbox_fn};
use rmcp::{
    ErrorData, RoleServer, ServiceError,
    model::{
        ClientCapabilities, ClientResult, InputRequest, InputRequiredResult, InputResponses,
        LoggingLevel, ProtocolVersion, ServerRequest,
    },
    service::{OriginatingRequestId, PeerRequestOptions, RequestContext},
};

/// The model that makes the client's call; the logs of calls contain its name.
const CALLER: &str = "mcp/client";
/// The time that a client has for an answer during its call.
const ANSWER_IN_PLACE: Duration = Duration::from_secs(600);

/// A request that becomes a run.
pub(super) struct Call<'a> {
    pub(super) host: &'a Arc<Offer>,
    pub(super) cx: &'a RequestContext<RoleServer>,
    /// The called method and name, as in its signed states.
    pub(super) what: String,
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
    pub(super) level: Option<LoggingLevel>,
}

/// The outcome of a request.
pub(super) enum Came {
    /// The run is over.
    Over(Over),
    /// The client gets questions, and repeats the request.
    Asks(InputRequiredResult),
}

/// A run that is over.
pub(super) struct Over {
    pub(super) session: LogId,
    /// The result of its newest call.
    pub(super) call: Option<Arc<CallResult>>,
    pub(super) text: String,
    /// The reason why there is no answer.
    pub(super) failure: Option<String>,
}

enum Stand {
    Goes(Box<Running>),
    Waits(Vec<Arc<Pause>>),
    Over(Over),
}

impl Call<'_> {
    /// Calls a tool, in a run that does nothing else.
    pub(super) async fn tool(self, tool: &Bound, args: String) -> Result<Came, ErrorData> {
        let call = Script::new().call_raw(tool.spec().name().as_str(), args);
        let none = Script::new().fail(Error::new(
            ErrorKind::Invalid,
            "a tool that is served has no model to ask",
        ));
        // A resumed call was made before.
        let scripts = if self.state.is_none() {
            vec![call, none]
        } else {
            vec![none]
        };
        let info = ModelInfo {
            context_window: u64::MAX,
            ..ModelInfo::new(CALLER)
        };
        let set = Toolset::new([tool.clone()]);
        // The limit is reached with the result of the call: no model comments on it.
        let agent = Agent::new(ScriptedModel::new(scripts).info(info))
            .name(Arc::clone(&self.host.name))
            .toolbox(toolbox_fn("mcp", move |_| {
                std::future::ready(Ok(set.clone()))
            }))
            .max_turns(1);
        self.perform(agent, None, "call".to_owned(), false).await
    }

    /// Sends a prompt to an agent, in an existing session or a new one.
    pub(super) async fn agent(
        self,
        agent: Agent,
        session: Option<LogId>,
        prompt: String,
    ) -> Result<Came, ErrorData> {
        self.perform(agent, session, prompt, true).await
    }

    async fn perform(
        mut self,
        agent: Agent,
        session: Option<LogId>,
        prompt: String,
        is_agent: bool,
    ) -> Result<Came, ErrorData> {
        let host = Arc::clone(self.host);
        let parked = self
            .state
            .take()
            .map(|state| host.seal.open(&self.what, &state, host.world.now_ms()));
        let parked = parked
            .transpose()
            .map_err(|why| ErrorData::invalid_params(why, None))?;
        let known = parked
            .as_ref()
            .map(|parked| parked.session.clone())
            .or(session);
        let is_new = known.is_none();
        let log = known.unwrap_or_else(|| LogId(format!("mcp-{:032x}", host.world.id()).into()));
        let Some(_in_use) = host.kept.take(&log) else {
            return Err(ErrorData::invalid_request(
                "another request continues this call or session",
                None,
            ));
        };
        let agent = agent
            .world(Arc::clone(&host.world))
            .journal(Arc::clone(&host.kept.journal))
            .session(log.clone());
        if !is_new {
            agent
                .log()
                .open()
                .await
                .map_err(|error| call_error(&error))?;
            if agent.log().transcript().is_empty() && !agent.log().has_open_run() {
                return Err(ErrorData::invalid_params(
                    "this call or session no longer exists here",
                    None,
                ));
            }
        }
        let stand = match &parked {
            Some(parked) => stand(&agent, parked)?,
            None => goes(agent.run(prompt).stream())?,
        };
        let came = self.go_on(&agent, stand, parked.as_ref(), is_agent).await;
        drop(agent);
        match is_agent || !is_new || matches!(came, Ok(Came::Asks(_))) {
            true => host.kept.keep(&log).await,
            false => host.kept.forget(&log).await,
        }
        came
    }

    /// Continues until the run is over, or the client must repeat the request.
    async fn go_on(
        &mut self,
        agent: &Agent,
        mut stand: Stand,
        parked: Option<&Parked>,
        is_agent: bool,
    ) -> Result<Came, ErrorData> {
        let can = self.cx.client_capabilities().unwrap_or_default();
        let is_modern = self
            .cx
            .protocol_version()
            .is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let mut told = Told::new(self.cx, self.level, is_agent);
        loop {
            let pauses = match stand {
                Stand::Over(over) => return Ok(Came::Over(over)),
                Stand::Goes(running) => {
                    stand = self.drive(*running, agent.session_id(), &mut told).await?;
                    continue;
                }
                Stand::Waits(pauses) => pauses,
            };
            let questions = Question::from_pauses(&pauses);
            let (asked, unasked): (Vec<_>, Vec<_>) =
                questions.iter().partition(|it| it.lacks(&can).is_none());
            if asked.is_empty() {
                return self
                    .give_up(agent, &unasked, is_modern.then_some(&can))
                    .await;
            }
            let answers = if is_modern {
                self.take_answers(&asked, parked)
            } else {
                self.ask_in_place(agent, &asked).await?
            };
            let Some(mut answers) = answers else {
                return Ok(Came::Asks(self.ask(agent, &asked)));
            };
            answers.extend(
                unasked
                    .iter()
                    .map(|it| it.pause.with_answer(it.default_answer())),
            );
            stand = goes(agent.resume(answers).stream())?;
        }
    }

    /// Drives a run until it is over or waits; it is cancelled with its request.
    async fn drive(
        &self,
        mut running: Running,
        session: &LogId,
        told: &mut Told<'_>,
    ) -> Result<Stand, ErrorData> {
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                event = running.next() => match event {
                    Some(event) => told.tell(&event).await,
                    None => break,
                },
                () = self.cx.ct.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    running.cancel();
                }
            }
        }
        match running.result() {
            Some(Ok(result)) => Ok(match &result.outcome {
                Outcome::Paused { pauses } => Stand::Waits(pauses.clone()),
                _ => Stand::Over(over(session.clone(), result)),
            }),
            Some(Err(error)) => Err(call_error(error)),
            None => Err(call_error(&RunError::Stuck)),
        }
    }

    /// The client's answers, if they are complete and match the open questions.
    ///
    /// Without a state the client has seen no question: it can fill in a form in advance, but not consent.
    fn take_answers(
        &mut self,
        asked: &[&Question],
        parked: Option<&Parked>,
    ) -> Option<Vec<Answered>> {
        let responses = self.responses.take()?;
        let answered = |question: &&Question| {
            let pause = &question.pause;
            let shown = match parked {
                Some(parked) => parked.asked.get(&question.key) == Some(&snapshot_pause(pause)),
                None => pause.ask.kind == AskKind::Question,
            };
            shown
                .then(|| Some(pause.with_answer(question.read(responses.get(&question.key)?)?)))
                .flatten()
        };
        asked.iter().map(answered).collect()
    }

    /// The result with questions, after which the client repeats the request with answers.
    fn ask(&self, agent: &Agent, asked: &[&Question]) -> InputRequiredResult {
        let host = self.host;
        let within = u64::try_from(host.answer_within.as_millis()).unwrap_or(u64::MAX);
        let parked = Parked {
            session: agent.session_id().clone(),
            from: agent.log().transcript().len(),
            asked: asked
                .iter()
                .map(|it| (it.key.clone(), snapshot_pause(&it.pause)))
                .collect(),
            until_ms: host.world.now_ms().saturating_add(within),
        };
        let requests: BTreeMap<_, _> = asked
            .iter()
            .filter_map(|it| Some((it.key.clone(), it.request.clone()?)))
            .collect();
        InputRequiredResult::new(Some(requests), Some(host.seal.close(&self.what, &parked)))
    }

    /// Sends questions to a client of an older revision during its call; a question without an answer in time is unanswered.
    async fn ask_in_place(
        &self,
        agent: &Agent,
        asked: &[&Question],
    ) -> Result<Option<Vec<Answered>>, ErrorData> {
        let mut answers = Vec::new();
        for question in asked {
            let answer = tokio::select! {
                answer = self.request(question) => answer,
                () = self.cx.ct.cancelled() => None,
            };
            let Some(answer) = answer else {
                // The client is gone, or has cancelled the request.
                agent
                    .cancel_paused()
                    .await
                    .map_err(|error| call_error(&error))?;
                return Err(ErrorData::internal_error(
                    "the client did not answer; the call was cancelled",
                    None,
                ));
            };
            answers.push(question.pause.with_answer(answer));
        }
        Ok(Some(answers))
    }

    /// The client's answer to a request; `None` if it is gone.
    async fn request(&self, question: &Question) -> Option<Answer> {
        let origin = OriginatingRequestId(self.cx.id.clone());
        let mut request = match question.request.clone()? {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return None,
        };
        rmcp::model::GetExtensions::extensions_mut(&mut request).insert(origin);
        let options = PeerRequestOptions::with_timeout(ANSWER_IN_PLACE);
        let sent = self
            .cx
            .peer
            .send_request_with_option(request, options)
            .await
            .ok()?;
        let said = match sent.await_response().await {
            Ok(ClientResult::CreateMessageResult(said)) => serde_json::to_value(said).ok(),
            Ok(ClientResult::ElicitResult(said)) => serde_json::to_value(said).ok(),
            Ok(ClientResult::ListRootsResult(said)) => serde_json::to_value(said).ok(),
            Ok(_) | Err(ServiceError::McpError(_)) => None,
            Err(ServiceError::Timeout { .. }) => return Some(Answer::Expired),
            Err(_) => return None,
        };
        Some(
            said.and_then(|said| question.read(&said))
                .unwrap_or_else(|| question.default_answer()),
        )
    }

    /// Ends a run that waits for input which this client does not support.
    async fn give_up(
        &self,
        agent: &Agent,
        unasked: &[&Question],
        can: Option<&ClientCapabilities>,
    ) -> Result<Came, ErrorData> {
        let result = agent
            .cancel_paused()
            .await
            .map_err(|error| call_error(&error))?;
        let lacks = can.map(|can| {
            unasked
                .iter()
                .filter_map(|it| it.lacks(can))
                .fold(Default::default(), both)
        });
        if let Some(lacks) = lacks.filter(|lacks| *lacks != ClientCapabilities::default()) {
            return Err(ErrorData::missing_required_client_capability(lacks));
        }
        let prompts: Vec<_> = unasked.iter().map(|it| &*it.pause.ask.prompt).collect();
        let failure = format!(
            "it waits for input that this client does not support: {}",
            prompts.join("; ")
        );
        Ok(Came::Over(Over {
            failure: Some(failure),
            call: None,
            ..over(agent.session_id().clone(), &result)
        }))
    }
}

/// The state of a run that was parked before.
fn stand(agent: &Agent, parked: &Parked) -> Result<Stand, ErrorData> {
    let log = agent.log();
    if log.has_open_run() {
        let pauses = log.pauses();
        return if pauses.is_empty() {
            goes(agent.resume(Vec::new()).stream())
        } else {
            Ok(Stand::Waits(pauses))
        };
    }
    // It was answered before: its outcome is sent again.
    let transcript = log.transcript();
    let mut turns = transcript
        .iter()
        .skip(parked.from)
        .filter_map(|stored| match &stored.entry {
            Entry::Turn(turn) => Some(turn),
            _ => None,
        });
    let (mut call, mut reply) = (None, None);
    for turn in turns.by_ref() {
        call = turn.results().last().cloned().or(call);
        reply = Some(turn.reply());
        if turn.results().is_empty() {
            break;
        }
    }
    let text = reply.map(|reply| reply_text(reply)).unwrap_or_default();
    Ok(Stand::Over(Over {
        session: agent.session_id().clone(),
        call,
        text,
        failure: None,
    }))
}

fn over(session: LogId, result: &RunResult) -> Over {
    let failure = match &result.outcome {
        Outcome::Finished { .. } => None,
        Outcome::Limit { limit } => Some(format!("it reached its limit of {limit}")),
        Outcome::Cancelled { by } => Some(format!("it was stopped by {by}")),
        Outcome::Failed { failure } => Some(format!("it failed: {failure}")),
        Outcome::Paused { .. } => Some("it waits for the outside".to_owned()),
    };
    let call = result.calls.last().map(|report| Arc::clone(&report.result));
    let text = match &result.output {
        Some(output) => output.to_string(),
        None => result.reply.as_deref().map(reply_text).unwrap_or_default(),
    };
    Over {
        session,
        call,
        text,
        failure,
    }
}

fn reply_text(reply: &Reply) -> String {
    let texts = reply.blocks.iter().filter_map(|block| match &**block {
        Block::Text(said) if !said.text.is_empty() => Some(&*said.text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn goes(running: Result<Running, RunError>) -> Result<Stand, ErrorData> {
    running
        .map(|running| Stand::Goes(Box::new(running)))
        .map_err(|error| call_error(&error))
}

fn snapshot_pause(pause: &Pause) -> ShownPause {
    ShownPause {
        pause: pause.id.clone(),
        digest: pause.digest(),
    }
}

fn both(mut one: ClientCapabilities, other: ClientCapabilities) -> ClientCapabilities {
    one.sampling = one.sampling.or(other.sampling);
    one.roots = one.roots.or(other.roots);
    one.elicitation = one.elicitation.or(other.elicitation);
    one
}

fn call_error(error: &RunError) -> ErrorData {
    ErrorData::internal_error(format!("the call could not be performed: {error}"), None)
}
