//! A tool of a server: each request of a call is a step in the log of the run, and input for the server is a pause.

use std::{
    collections::BTreeMap,
    iter::successors,
    sync::{Arc, Weak},
};

use adjutant_llm::{CallResult, Schema, Status};
use adjutant_tool::{
    Answer, Ask, AskKind, CallContext, ErasedTool, Progress, Replay, ToolError, ToolErrorKind,
    ToolSpec,
};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use rmcp::{
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelTaskParams,
        CancelTaskRequest, ClientRequest, GetTaskParams, GetTaskRequest, InputRequests,
        InputResponses, ServerResult, TaskPayload, UpdateTaskParams, UpdateTaskRequest,
    },
    service::ServiceError,
    transport::streamable_http_client::StreamableHttpError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep, timeout};

use crate::{
    config::Transport,
    connection::{Connect, Connection, chain, short},
    content,
    error::{ErrorKind, login_hint},
    http, input,
    plan::Plan,
    step::{Again, step},
};

/// The most rounds of input of a call.
const MAX_ROUNDS: usize = 8;
/// The largest number of input requests in a round, and the largest number of bytes of all of them with the state.
const MAX_REQUESTS: usize = 16;
const MAX_INPUT: usize = 1 << 20;
/// The largest number of sign-in questions before a request.
const MAX_LOGINS: usize = 3;
/// The largest number of bytes of the id of a task.
const MAX_TASK_ID: usize = 1_024;
/// The shortest, the default and the longest interval of polling a task.
const POLL: (Duration, Duration, Duration) = (
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(60),
);
/// The largest number of consecutive failed polls of a task.
const MAX_MISSED: u32 = 5;
/// The timeout for cancelling a task on the server.
const CANCEL: Duration = Duration::from_secs(2);

/// A tool of a server.
pub(crate) struct McpTool {
    /// Not a handle: a stored set of tools must not keep the server alive.
    pub(crate) server: Weak<dyn Connect>,
    /// The name that the server has for it.
    pub(crate) name: String,
    pub(crate) spec: ToolSpec,
    pub(crate) output_schema: Option<Schema>,
}

/// The result of a request, as recorded in the log.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sent {
    /// The call is over.
    Done(CallResult),
    /// The server needs something first.
    Input {
        requests: InputRequests,
        state: Option<String>,
    },
    /// The call continues as a task.
    Task { id: String, poll_ms: Option<u64> },
    /// It was refused, and so not executed: a sign-in is required first.
    Unauthorised { message: String },
}

/// The state or result of a task.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskNews {
    Done(CallResult),
    Input(InputRequests),
}

#[async_trait]
impl ErasedTool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn rewrites(&self) -> bool {
        false
    }

    async fn call(&self, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
        let server = self
            .server
            .upgrade()
            .ok_or_else(|| ToolError::failed("the server of this tool was let go of"))?;
        Box::pin(
            ToolCall {
                tool: self,
                server,
                cx,
            }
            .run(args),
        )
        .await
    }
}

/// A call of a tool.
struct ToolCall<'a> {
    tool: &'a McpTool,
    server: Arc<dyn Connect>,
    cx: CallContext,
}

impl ToolCall<'_> {
    async fn run(&self, args: Value) -> Result<CallResult, ToolError> {
        let Value::Object(args) = args else {
            return Err(ToolError::new(
                ToolErrorKind::InvalidArguments,
                "the arguments are no object",
            ));
        };
        let mut params = CallToolRequestParams::new(self.tool.name.clone()).with_arguments(args);
        let mut rests = 0;
        for round in 0..=MAX_ROUNDS {
            match self.send(round, &params).await? {
                Sent::Done(result) => return Ok(result),
                Sent::Task { id, poll_ms } => return self.follow(&id, poll_ms).await,
                Sent::Unauthorised { message } => return Ok(self.failure_result(&message)),
                Sent::Input { requests, .. } if round == MAX_ROUNDS && requests.is_empty() => {
                    let what =
                        "it asked for nothing and wanted the call to be sent again more than";
                    return Err(self.tool_error(&format!("{what} {MAX_ROUNDS} times")));
                }
                Sent::Input { .. } if round == MAX_ROUNDS => {}
                Sent::Input { requests, state } => {
                    let answers = self.answers(&format!("ask-{round}"), &requests).await?;
                    if answers.is_empty() {
                        self.rest(round, rests).await?;
                        rests += 1;
                    }
                    params.input_responses = Some(answers).filter(|answers| !answers.is_empty());
                    params.request_state = state;
                }
            }
        }
        Err(self.tool_error(&format!("it asked for input more than {MAX_ROUNDS} times")))
    }

    /// Waits before the call is sent again, for a server that requests it without a question: longer each time, and
    /// once over all entries into the call.
    async fn rest(&self, round: usize, rests: u32) -> Result<(), ToolError> {
        let wait = (POLL.1 * 2_u32.pow(rests)).min(POLL.2);
        let rest = async {
            self.cx.progress(Progress::text(format!(
                "the server is not ready: the call is sent again in {wait:?}"
            )));
            tokio::select! {
                () = sleep(wait) => Ok(()),
                () = self.cx.cancel.cancelled() => Err(ToolError::new(ToolErrorKind::Cancelled, "the call was stopped")),
            }
        };
        step(&self.cx, &format!("rest-{round}"), Again::Harmless, rest).await
    }

    /// Sends the request of a round, and again after each sign-in that follows a refusal.
    async fn send(&self, round: usize, params: &CallToolRequestParams) -> Result<Sent, ToolError> {
        let mut sent = self.send_once(&format!("send-{round}"), params).await?;
        for login in 0..MAX_LOGINS {
            match &sent {
                Sent::Unauthorised { message }
                    if self
                        .signs_in(&format!("login-{round}-{login}"), message)
                        .await? =>
                {
                    sent = self
                        .send_once(&format!("send-{round}-{login}"), params)
                        .await?;
                }
                _ => break,
            }
        }
        Ok(sent)
    }

    /// True if a person confirms the sign-in.
    async fn signs_in(&self, key: &str, message: &str) -> Result<bool, ToolError> {
        match &self.plan().config.transport {
            Transport::Http(config)
                if config.tokens.folder().is_some() && !config.has_own_token() => {}
            _ => return Ok(false),
        }
        let name = &*self.plan().name;
        let data = json!({"mcp": {"server": name, "mode": "login", "command": login_hint(name)}});
        let ask = Ask {
            data,
            ..Ask::new(
                AskKind::Authorisation,
                format!("{message}; approve it then"),
            )
        };
        match self.cx.pause(key, ask).await {
            Ok(Answer::Approve { .. }) => Ok(true),
            Ok(_) => Ok(false),
            Err(error) if error.kind == ToolErrorKind::Unattended => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends a request, once over all entries into the call.
    async fn send_once(
        &self,
        key: &str,
        params: &CallToolRequestParams,
    ) -> Result<Sent, ToolError> {
        // Before the step begins: a server that is not there is sent nothing.
        let connection = Arc::clone(&self.server).connection().await;
        let work = async {
            let connection = connection
                .map_err(|error| ToolError::failed(error.message.clone()).with_source(error))?;
            let answer = tokio::select! {
                answer = self.ask(params, &connection) => answer,
                () = self.cx.cancel.cancelled() => {
                    return Err(ToolError::new(ToolErrorKind::Cancelled, "the call was stopped, and the server was notified"));
                }
            };
            self.read(answer, &connection)
        };
        step(&self.cx, key, Again::Never, work).await
    }

    /// Sends a request once; to a server that is not there as soon as it is, within the time that it has to start.
    async fn ask(
        &self,
        params: &CallToolRequestParams,
        to: &Connection,
    ) -> Result<ServerResult, ServiceError> {
        let began = Instant::now();
        loop {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            match to.request_for(&self.cx, request).await {
                Err(error)
                    if is_unsent(&error) && began.elapsed() < self.plan().config.start_limit =>
                {
                    sleep(POLL.0).await
                }
                answer => return answer,
            }
        }
    }

    /// The meaning of an answer.
    fn read(
        &self,
        answer: Result<ServerResult, ServiceError>,
        connection: &Connection,
    ) -> Result<Sent, ToolError> {
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(Sent::Done(self.result(result))),
            Ok(ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_)) => {
                Ok(Sent::Done(self.result(CallToolResult::success(Vec::new()))))
            }
            Ok(ServerResult::InputRequiredResult(required)) => {
                let requests = required.input_requests.unwrap_or_default();
                if requests.is_empty() && required.request_state.is_none() {
                    return Ok(Sent::Done(
                        self.failure_result("it needs something first and does not say what"),
                    ));
                }
                self.check_requests(&requests, required.request_state.as_deref())?;
                Ok(Sent::Input {
                    requests,
                    state: required.request_state,
                })
            }
            Ok(ServerResult::CreateTaskResult(created))
                if created.task.task_id.len() <= MAX_TASK_ID =>
            {
                Ok(Sent::Task {
                    id: created.task.task_id,
                    poll_ms: created.task.poll_interval_ms,
                })
            }
            Ok(_) | Err(ServiceError::UnexpectedResponse) => Ok(Sent::Done(
                self.failure_result("it answered with something that is no result of a tool"),
            )),
            Err(ServiceError::McpError(error)) => Ok(Sent::Done(self.failure_result(&format!(
                "it refused the call: {} ({})",
                short(&error.message),
                error.code.0
            )))),
            Err(error) => match http::refusal_of(&self.plan().name, &error) {
                Some(refusal) if refusal.kind == ErrorKind::Unauthorised => {
                    Ok(Sent::Unauthorised {
                        message: refusal.message.to_string(),
                    })
                }
                Some(refusal) => Ok(Sent::Done(self.failure_result(&refusal.message))),
                None => Err(self.no_answer_error(&error, connection)),
            },
        }
    }

    /// Answers all questions of a round concurrently.
    async fn answers(
        &self,
        key: &str,
        requests: &InputRequests,
    ) -> Result<InputResponses, ToolError> {
        let answers = requests
            .iter()
            .enumerate()
            .map(|(at, (name, request))| async move {
                let key = format!("{key}-{at}");
                let answer = input::answer(&self.cx, &key, request, self.plan(), None).await?;
                Ok::<_, ToolError>((name.clone(), answer))
            });
        Ok(BTreeMap::from_iter(try_join_all(answers).await?))
    }

    /// Follows a task to its end. Polling can be repeated, so only the result is recorded.
    async fn follow(&self, id: &str, poll_ms: Option<u64>) -> Result<CallResult, ToolError> {
        let mut wait = interval(poll_ms);
        for round in 0..=MAX_ROUNDS {
            let seen: TaskNews = step(
                &self.cx,
                &format!("task-{round}"),
                Again::Harmless,
                self.look(id, &mut wait),
            )
            .await?;
            let requests = match seen {
                TaskNews::Done(result) => return Ok(result),
                TaskNews::Input(requests) => requests,
            };
            let answers = self
                .answers(&format!("task-ask-{round}"), &requests)
                .await?;
            let _: () = step(
                &self.cx,
                &format!("task-told-{round}"),
                Again::Harmless,
                self.tell(id, answers),
            )
            .await?;
        }
        Err(self.tool_error(&format!("it asked for input more than {MAX_ROUNDS} times")))
    }

    /// Polls a task until it has ended or needs input.
    async fn look(&self, id: &str, wait: &mut Duration) -> Result<TaskNews, ToolError> {
        let mut missed = 0;
        loop {
            tokio::select! {
                () = sleep(*wait) => {}
                () = self.cx.cancel.cancelled() => return Err(self.give_up(id).await),
            }
            let answer = match Arc::clone(&self.server).connection().await {
                Ok(connection) => {
                    let request =
                        ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(id)));
                    timeout(self.plan().config.start_limit, connection.request(request)).await
                }
                Err(error) if missed >= MAX_MISSED => {
                    return Err(ToolError::failed(error.message.clone()).with_source(error));
                }
                Err(_) => Ok(Err(ServiceError::TransportClosed)),
            };
            let task = match answer {
                Ok(Ok(ServerResult::GetTaskResult(result))) => result.task,
                Ok(Ok(_)) => {
                    return Ok(TaskNews::Done(
                        self.failure_result("it answered with something that is no task"),
                    ));
                }
                Ok(Err(ServiceError::McpError(error))) => {
                    let what = format!(
                        "it knows nothing of the task any more: {}",
                        short(&error.message)
                    );
                    return Ok(TaskNews::Done(self.failure_result(&what)));
                }
                _ if missed >= MAX_MISSED => {
                    return Err(self.tool_error("it did not say what became of the task"));
                }
                _ => {
                    missed += 1;
                    continue;
                }
            };
            missed = 0;
            *wait = task
                .task
                .poll_interval_ms
                .map_or(*wait, |poll| interval(Some(poll)));
            match task.payload {
                TaskPayload::Working => {
                    if let Some(message) = &task.task.status_message {
                        self.cx.progress(Progress::text(short(message)));
                    }
                }
                TaskPayload::InputRequired { input_requests } => {
                    self.check_requests(&input_requests, None)?;
                    return Ok(TaskNews::Input(input_requests));
                }
                TaskPayload::Completed { result } => {
                    let result = serde_json::from_value(Value::Object(result));
                    let result = result.map(|result| self.result(result));
                    return Ok(TaskNews::Done(result.unwrap_or_else(|_| {
                        self.failure_result("it ended the task with no result of a tool")
                    })));
                }
                TaskPayload::Failed { error } => {
                    let message = error
                        .get("message")
                        .and_then(Value::as_str)
                        .unwrap_or("it does not say why");
                    return Ok(TaskNews::Done(self.failure_result(&format!(
                        "it failed in the task: {}",
                        short(message)
                    ))));
                }
                _ => {
                    return Ok(TaskNews::Done(CallResult::new(
                        Status::Cancelled,
                        "the server stopped the task",
                    )));
                }
            }
        }
    }

    /// Sends answers to a task. A task that already has them refuses them: the next poll shows how it continues.
    async fn tell(&self, id: &str, answers: InputResponses) -> Result<(), ToolError> {
        let connection = Arc::clone(&self.server).connection().await;
        let connection = connection
            .map_err(|error| ToolError::failed(error.message.clone()).with_source(error))?;
        let params = UpdateTaskParams::new(id, answers);
        match connection
            .request(ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(
                params,
            )))
            .await
        {
            Ok(_) | Err(ServiceError::McpError(_)) => Ok(()),
            Err(error) => Err(self.tool_error(&format!(
                "the answers could not be sent: {}",
                short(&chain(&error))
            ))),
        }
    }

    /// Cancels a task on the server.
    async fn give_up(&self, id: &str) -> ToolError {
        let tell = async {
            let connection = Arc::clone(&self.server).connection().await.ok()?;
            let request =
                ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id)));
            connection.request(request).await.ok()
        };
        let how = match timeout(CANCEL, tell).await {
            Ok(Some(_)) => "the task was stopped",
            _ => "the task could not be cancelled on the server",
        };
        ToolError::new(ToolErrorKind::Cancelled, how)
    }

    fn check_requests(
        &self,
        requests: &InputRequests,
        state: Option<&str>,
    ) -> Result<(), ToolError> {
        let size = serde_json::to_string(requests).map_or(usize::MAX, |text| text.len());
        if requests.len() > MAX_REQUESTS
            || size.saturating_add(state.map_or(0, str::len)) > MAX_INPUT
        {
            return Err(self.tool_error(&format!(
                "it asks for more than {MAX_REQUESTS} things at once, or in more than {MAX_INPUT} bytes"
            )));
        }
        Ok(())
    }

    fn result(&self, result: CallToolResult) -> CallResult {
        let result = content::result(result, self.tool.output_schema.as_ref());
        self.plan().redact_result(result)
    }

    fn plan(&self) -> &Plan {
        self.server.plan()
    }

    /// An unsuccessful answer.
    fn failure_result(&self, what: &str) -> CallResult {
        CallResult::new(Status::Failed, self.format_message(what))
    }

    fn tool_error(&self, what: &str) -> ToolError {
        self.plan().fault(what)
    }

    fn format_message(&self, what: &str) -> String {
        self.plan().says(what)
    }

    /// A request that was sent without receiving an answer.
    fn no_answer_error(&self, error: &ServiceError, connection: &Connection) -> ToolError {
        if is_unsent(error) {
            return self.tool_error(&format!("it cannot be reached: {}", short(&chain(error))));
        }
        let what = match error {
            ServiceError::Timeout { timeout } => format!("it said nothing for {timeout:?}"),
            ServiceError::TransportClosed => connection.reason().to_owned(),
            ServiceError::TransportSend(error) => {
                format!(
                    "the request could not be sent: {}",
                    short(&chain(&*error.error))
                )
            }
            error => short(&chain(error)).to_owned(),
        };
        let message = self.format_message(&format!(
            "{what}; whether the call took effect is not known"
        ));
        let kind = match self.tool.spec.replay {
            Replay::Pure | Replay::Idempotent => ToolErrorKind::Failed,
            _ => ToolErrorKind::OutcomeUnknown,
        };
        ToolError::new(kind, message)
    }
}

/// True if a request cannot have reached the server: there was no connection.
fn is_unsent(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else {
        return false;
    };
    let mut causes = successors(
        Some(&*error.error as &(dyn std::error::Error + 'static)),
        |error| error.source(),
    );
    causes.any(|cause| match cause.downcast_ref() {
        Some(StreamableHttpError::Client(error)) => reqwest::Error::is_connect(error),
        _ => false,
    })
}

/// The requested time between two polls of a task.
fn interval(poll_ms: Option<u64>) -> Duration {
    poll_ms.map_or(POLL.1, |poll| {
        Duration::from_millis(poll).clamp(POLL.0, POLL.2)
    })
}
