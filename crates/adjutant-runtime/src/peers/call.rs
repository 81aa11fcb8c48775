//! The tool `peer`: calls another agent once, even if its call is entered again, and waits for its answer.

use std::{fmt::Write, sync::Arc, time::Duration};

use adjutant_agent::{CancelBy, Caps, Limit, Outcome, RunLine};
use adjutant_llm::{CallResult, NanoUsd, World};
use adjutant_tool::{
    CallContext, Cancel, Identity, Noted, Replay, Tool, ToolError, ToolErrorKind, ToolSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

#[cfg(feature = "http")]
use super::a2a as far;
use super::door::{Door, Peer};
use crate::{
    Error, ErrorKind,
    prompt::{CALLED, Control, MAX_PEER_DEPTH, PeerCall, PromptReply, PromptRequest},
};

/// The default timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// The time to wait for a peer that was lost during its work, because it may be restarted.
pub(super) const RESTART: Duration = Duration::from_secs(60);
/// The first and the maximum pause between two attempts to reach it.
pub(super) const LOOK: Duration = Duration::from_millis(50);
pub(super) const PAUSE: Duration = Duration::from_secs(2);
/// The time for a peer to stop: less than the grace period of a cancelled call.
pub(super) const STOP: Duration = Duration::from_millis(1_500);
/// The prefix of the names of call sessions.
const SESSION: &str = "peer-";

/// Calls other agents.
pub(super) struct PeerTool {
    /// The name of the calling agent.
    own: Arc<str>,
    peers: Vec<Arc<Peer>>,
    world: Arc<dyn World>,
    spec: ToolSpec,
}

#[derive(Deserialize)]
pub(super) struct Args {
    peer: String,
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    session: Option<String>,
}

/// The answer of a peer, in the log of the caller.
#[derive(Serialize, Deserialize)]
struct Told {
    text: String,
    is_error: bool,
}

impl PeerTool {
    pub(super) fn new(
        own: Arc<str>,
        peers: Vec<Peer>,
        is_limited: bool,
        world: Arc<dyn World>,
    ) -> Self {
        let names: Vec<&str> = peers.iter().map(|peer| &*peer.name).collect();
        let schema = json!({
            "type": "object",
            "properties": {
                "peer": { "type": "string", "enum": names },
                "prompt": {
                    "type": "string",
                    "description": "The whole question: it sees nothing of this conversation or of earlier calls.",
                },
                "session": {
                    "type": "string",
                    "description": "The session of an earlier call that had no answer yet: what came of it is told, and \
                        nothing is asked anew.",
                },
            },
            "required": ["peer"],
            "additionalProperties": false,
        });
        let mut text =
            "Asks another agent, which works by itself, and gives its answer. The agents are:"
                .to_owned();
        for peer in &peers {
            // Writing to a string does not fail.
            let _ = write!(text, "\n- {}: {}", peer.name, peer.description);
        }
        let spec = ToolSpec {
            replay: Replay::Resumable,
            timeout: Some(TIMEOUT),
            sequential: is_limited,
            ..ToolSpec::new("peer", text, schema)
        };
        Self {
            own,
            peers: peers.into_iter().map(Arc::new).collect(),
            world,
            spec,
        }
    }

    /// Returns the names of the agents that led to this one, and its own.
    fn path(&self, who: &Identity) -> Vec<Arc<str>> {
        let above = who
            .path
            .rsplit_once(CALLED)
            .map(|(above, _)| above.split(CALLED));
        above
            .into_iter()
            .flatten()
            .map(Arc::from)
            .chain([Arc::clone(&self.own)])
            .collect()
    }
}

impl Tool for PeerTool {
    type Args = Args;
    type Output = CallResult;

    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn rewrites(&self) -> bool {
        false
    }

    async fn call(&self, args: Args, cx: CallContext) -> Result<CallResult, ToolError> {
        let Some(peer) = self.peers.iter().find(|peer| *peer.name == *args.peer) else {
            return Err(wrong(format!("there is no peer {:?}", args.peer)));
        };
        let line = RunLine::from_context(&cx)?;
        let (path, left) = (self.path(&cx.who), line.remaining());
        if let Door::A2a { url, token } = &peer.door {
            if args.session.is_some() || args.prompt.trim().is_empty() {
                return Err(wrong(format!("{} is asked with a prompt alone", peer.name)));
            }
            let admitted = admit(peer, &path, &left).map(|()| format!("{:032x}", self.world.id()));
            return far::call(
                &peer.name,
                (url, token.as_deref()),
                &args.prompt,
                admitted,
                &cx,
            )
            .await;
        }
        let mut is_new = false;
        let session = match args.session {
            Some(session) if session.starts_with(SESSION) => session,
            Some(session) => return Err(wrong(format!("no call has the session {session:?}"))),
            None if args.prompt.trim().is_empty() => {
                return Err(wrong("the prompt is empty".to_owned()));
            }
            None => {
                let (id, is_new) = (self.world.id(), &mut is_new);
                cx.once("session", || {
                    *is_new = true;
                    let admitted = admit(peer, &path, &left);
                    async move { admitted.map(|()| format!("{SESSION}{id:032x}")) }
                })
                .await?
            }
        };
        // An unknown outcome is handled like a new call: the same session returns the same result.
        if let Noted::Done(told) = cx.backend.begin("answer").await? {
            let told = serde_json::from_value::<Told>(told);
            return told
                .map_err(|error| ToolError::failed("the answer cannot be read").with_source(error))?
                .result();
        }
        let call = PeerCall {
            caps: below(left),
            again: !is_new,
            ..PeerCall::new(path)
        };
        let time = left
            .wall_ms
            .map_or(TIMEOUT, |left| TIMEOUT.min(Duration::from_millis(left)));
        let request = PromptRequest::new(args.prompt)
            .session(session)
            .timeout(time)
            .call(call);
        let reply = answer(peer, request, is_new, &cx.cancel).await?;
        let told = Told::from_reply(&peer.name, &reply);
        // A waiting call is requested again, and counted when it has ended.
        if let Some(used) = reply
            .used
            .filter(|_| !matches!(reply.result.outcome, Outcome::Paused { .. }))
        {
            line.spent(used);
        }
        cx.backend.finish("answer", json!(told)).await?;
        told.result()
    }
}

/// Refuses a call that the peer would refuse, or for which no budget is left.
fn admit(peer: &Peer, path: &[Arc<str>], left: &Caps) -> Result<(), ToolError> {
    let refuse = |why: String| {
        Err(ToolError::new(
            ToolErrorKind::Denied,
            format!("{} is not asked: {why}", peer.name),
        ))
    };
    if path.len() > MAX_PEER_DEPTH {
        return refuse(format!(
            "{MAX_PEER_DEPTH} agents have called one another: {}",
            path.join(" > ")
        ));
    }
    let over = [
        (left.tokens == Some(0), Limit::Tokens),
        (left.cost == Some(NanoUsd(0)), Limit::Money),
        (left.requests == Some(0), Limit::Requests),
        (left.wall_ms == Some(0), Limit::Time),
        (left.depth == Some(0), Limit::Depth),
    ];
    match over.into_iter().find(|(is_over, _)| *is_over) {
        Some((_, limit)) => refuse(format!("nothing is left of the limit of {limit}")),
        None => Ok(()),
    }
}

/// Returns the caps of an agent one level below; each process counts concurrent agents separately.
fn below(left: Caps) -> Caps {
    let depth = left.depth.map(|depth| depth.saturating_sub(1));
    Caps {
        depth,
        wall_ms: None,
        agents: None,
        ..left
    }
}

/// Sends the request until there is an answer; cancelling the call stops the peer's run.
async fn answer(
    peer: &Arc<Peer>,
    request: PromptRequest,
    is_new: bool,
    cancel: &Cancel,
) -> Result<PromptReply, ToolError> {
    let mut left = LeftCall {
        peer: Arc::clone(peer),
        request: Some(request.clone()),
        cancel: cancel.clone(),
    };
    let reply = tokio::select! {
        biased;
        reply = insist(peer, request, is_new) => reply,
        () = cancel.cancelled() => {
            let stopped = match left.stop() {
                Some(stop) => timeout(STOP, stop).await.ok(),
                None => None,
            };
            stopped.ok_or_else(|| {
                let message = format!("the call was cancelled; {} was told to stop and has not said that it did", peer.name);
                ToolError::new(ToolErrorKind::Cancelled, message)
            })
        }
    };
    left.request = None;
    reply
}

/// If the call is cancelled, the peer's run is stopped. If it is dropped for another reason, the run continues, because
/// the call is entered again, here or elsewhere.
struct LeftCall {
    peer: Arc<Peer>,
    request: Option<PromptRequest>,
    cancel: Cancel,
}

impl LeftCall {
    /// Stops the run, and waits for its end: once, until the request was received.
    fn stop(&mut self) -> Option<impl Future<Output = PromptReply> + Send + 'static> {
        let (peer, request) = (Arc::clone(&self.peer), again(self.request.take()?));
        Some(async move {
            loop {
                if let Ok(found) = peer.find(false).await {
                    let stopped = found
                        .control(request.session.as_deref(), Control::Stop {})
                        .await;
                    // It may have ended, or is about to start; then the next attempt stops it.
                    let is_there = matches!(
                        stopped.map_err(|error| error.kind()),
                        Ok(()) | Err(ErrorKind::Conflict)
                    );
                    if is_there
                        && let Ok(Ok(reply)) =
                            timeout(LOOK * 4, found.prompt(request.clone())).await
                    {
                        return reply;
                    }
                }
                sleep(LOOK).await;
            }
        })
    }
}

impl Drop for LeftCall {
    fn drop(&mut self) {
        let stop = if self.cancel.is_cancelled() {
            self.stop()
        } else {
            None
        };
        if let (Some(stop), Ok(runtime)) = (stop, tokio::runtime::Handle::try_current()) {
            runtime.spawn(timeout(STOP, stop));
        }
    }
}

/// Marks a request as possibly received before.
fn again(mut request: PromptRequest) -> PromptRequest {
    request.call = request.call.map(|call| PeerCall {
        again: true,
        ..call
    });
    request
}

/// Sends the request, and repeats it if the peer was lost in the meantime: it may be restarted, and has recorded its
/// result.
async fn insist(
    peer: &Peer,
    mut request: PromptRequest,
    mut is_new: bool,
) -> Result<PromptReply, ToolError> {
    let (mut since, mut pause) = (Instant::now(), LOOK);
    loop {
        let asked_at = Instant::now();
        let error = match peer.find(is_new).await {
            Ok(found) => match found.prompt(request.clone()).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            },
            Err(error) if is_new => {
                let message = format!(
                    "{} cannot be reached, and was not called: {}",
                    peer.name,
                    error.message()
                );
                return Err(ToolError::failed(message).with_source(error));
            }
            Err(error) => error,
        };
        if !matches!(
            error.kind(),
            ErrorKind::Connection | ErrorKind::Closed | ErrorKind::Busy
        ) {
            return Err(told(peer, &request, error));
        }
        if asked_at.elapsed() > PAUSE {
            // It was reachable until now.
            (since, pause) = (Instant::now(), LOOK);
        }
        if since.elapsed() > RESTART {
            let why = format!("was lost, and did not come back in {} s", RESTART.as_secs());
            return Err(unknown(peer, &request, &why));
        }
        is_new = false;
        if error.kind() != ErrorKind::Busy {
            request = again(request);
        }
        sleep(pause).await;
        pause = PAUSE.min(pause * 2);
    }
}

fn unknown(peer: &Peer, request: &PromptRequest, why: &str) -> ToolError {
    let session = request.session.as_deref().unwrap_or_default();
    let message = format!(
        "outcome unknown: {} was asked, and {why}; to hear later what came of it, call `peer` again with the session \
         {session:?}",
        peer.name
    );
    ToolError::new(ToolErrorKind::OutcomeUnknown, message)
}

/// Returns the error for an invalid answer.
fn told(peer: &Peer, request: &PromptRequest, error: Error) -> ToolError {
    let (name, why) = (&peer.name, error.message());
    let (kind, message) = match error.kind() {
        ErrorKind::Denied => (
            ToolErrorKind::Denied,
            format!("{name} was not asked, because it refused the token: {why}"),
        ),
        ErrorKind::Invalid => (
            ToolErrorKind::Denied,
            format!("{name} refuses the call: {why}"),
        ),
        ErrorKind::Conflict => return unknown(peer, request, why),
        ErrorKind::Missing => (
            ToolErrorKind::OutcomeUnknown,
            format!("outcome unknown: {name} lost the call: {why}"),
        ),
        _ => (
            ToolErrorKind::Failed,
            format!("{name} could not answer: {why}"),
        ),
    };
    ToolError::new(kind, message).with_source(error)
}

fn wrong(why: String) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidArguments, why)
}

impl Told {
    fn from_reply(peer: &str, reply: &PromptReply) -> Self {
        let said = if reply.text.is_empty() {
            String::new()
        } else {
            format!(" Its output: {}", reply.text)
        };
        let (text, is_error) = match &reply.result.outcome {
            Outcome::Finished { .. } => (reply.text.clone(), false),
            Outcome::Limit { limit } => (
                format!("{peer} reached its limit of {limit} and did not finish.{said}"),
                true,
            ),
            Outcome::Failed { failure } => (format!("{peer} failed: {failure}.{said}"), true),
            Outcome::Cancelled {
                by: CancelBy::Shutdown,
            } => (
                format!(
                    "{peer} was stopped by its operator while it worked, and did not finish.{said}"
                ),
                true,
            ),
            Outcome::Cancelled { by } => (
                format!("the run of {peer} was cancelled by {by}.{said}"),
                true,
            ),
            Outcome::Paused { pauses } => {
                let asks = pauses
                    .iter()
                    .map(|pause| format!("{} asks: {}", pause.path, pause.ask.prompt));
                let asks = asks.collect::<Vec<_>>().join("; ");
                let text = format!(
                    "{peer} has no answer yet, because it waits for somebody: {asks}. It is answered where {peer} runs, as by `adjutant agent approve`. \
                     Then call `peer` again with the session {:?} to hear what came of it.",
                    reply.session
                );
                (text, false)
            }
        };
        Self { text, is_error }
    }

    fn result(self) -> Result<CallResult, ToolError> {
        if self.is_error {
            Err(ToolError::failed(self.text))
        } else {
            Ok(CallResult::ok(self.text))
        }
    }
}

/// Without the HTTP feature, there are no remote peers.
#[cfg(not(feature = "http"))]
mod far {
    use super::*;

    pub(super) async fn call(
        name: &str,
        _: (&str, Option<&str>),
        _: &str,
        _: Result<String, ToolError>,
        _: &CallContext,
    ) -> Result<CallResult, ToolError> {
        Err(ToolError::failed(format!(
            "{name} is reached with the feature `http` alone"
        )))
    }
}
