//! A session that an editor has open: one prompt at a time, its run, and the pauses between prompts.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{Agent, Queued, Running};
use adjutant_core::{Answered, Event, EventKind, Failure, Limit, Outcome, Pause, PauseId, Seq};
use adjutant_llm::{FinishReason, UserMessage};
use adjutant_tool::Cancel;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    ask::{self, AskWay, Asker},
    content::text_block,
    encode::Encoder,
    link::{Link, RpcFault},
    open::OpenSession,
};
use crate::answer;

/// The message if a permission or question has no answer.
const WAITS: &str = "[nobody answered, so the run waits: your next message asks again]";

/// The time in which active requests leave a closed session, and the interval of the checks.
const LEFT_WITHIN: Duration = Duration::from_secs(5);
pub(super) const BETWEEN: Duration = Duration::from_millis(10);

/// A session that is open.
pub(super) struct Seat {
    pub(super) id: String,
    pub(super) open: OpenSession,
    root: PathBuf,
    agent: Agent,
    link: Arc<Link>,
    asker: Asker,
    encoder: Mutex<Encoder>,
    /// The pauses that were sent to the editor and are not answered.
    shown: Arc<watch::Sender<HashSet<PauseId>>>,
    /// The active prompt or load.
    turn: Arc<Mutex<Option<Cancel>>>,
    /// Answers of prompts, until all that waits has one.
    given: Mutex<Vec<Answered>>,
    /// Prompts for a run that was left, until they are placed.
    steered: Mutex<Vec<Queued>>,
    /// True after the editor has closed it: no new work starts in it.
    is_closed: AtomicBool,
}

/// The one thing at a time that is done in a session.
pub(super) struct PromptTurn {
    seat: Arc<Seat>,
    cancel: Cancel,
}

impl Drop for PromptTurn {
    fn drop(&mut self) {
        *lock(&self.seat.turn) = None;
        (self.seat.open.rest)();
    }
}

/// A run that is left unchanged when it is no longer followed, so that it can be resumed.
struct Followed(Option<Running>);

impl Drop for Followed {
    fn drop(&mut self) {
        if let Some(running) = self.0.take().filter(|running| running.result().is_none()) {
            running.detach().abort();
        }
    }
}

impl Seat {
    pub(super) fn new(open: OpenSession, root: &Path, link: &Arc<Link>, has_forms: bool) -> Self {
        let asker = Asker::new(link, &open, root, has_forms);
        let (asks, shown) = (asker.clone(), Arc::new(watch::Sender::default()));
        let waits = Arc::clone(&shown);
        let agent = open.agent.clone().responder(move |_, pause| {
            let (asker, shows, mut shown) = (asks.clone(), Arc::clone(&waits), waits.subscribe());
            async move {
                // The editor gets the call before the question about it.
                shown
                    .wait_for(|shown: &HashSet<PauseId>| shown.contains(&pause.id))
                    .await
                    .ok()?;
                let answer = asker.ask(&pause).await?;
                shows.send_if_modified(|shown| shown.remove(&pause.id));
                Some(answer)
            }
        });
        let id = open.agent.session_id().to_string();
        let (encoder, turn, given) = (
            Mutex::new(Encoder::new(root)),
            asker.turn(),
            Mutex::default(),
        );
        let (root, link, steered, is_closed) = (
            root.to_owned(),
            Arc::clone(link),
            Mutex::default(),
            AtomicBool::default(),
        );
        Self {
            id,
            open,
            root,
            agent,
            link,
            asker,
            encoder,
            shown,
            turn,
            given,
            steered,
            is_closed,
        }
    }

    /// Begins to do something in the session.
    pub(super) fn begin(self: &Arc<Self>) -> Result<PromptTurn, RpcFault> {
        let mut turn = lock(&self.turn);
        if turn.is_some() {
            return Err(RpcFault(
                RpcFault::REQUEST,
                "the session is at work; cancel that first".to_owned(),
            ));
        }
        let cancel = Cancel::new();
        *turn = Some(cancel.clone());
        Ok(PromptTurn {
            seat: Arc::clone(self),
            cancel,
        })
    }

    /// Requests active work to stop.
    pub(super) fn cancel(&self) {
        lock(&self.turn).iter().for_each(Cancel::cancel);
    }

    /// Refuses new work in the session, and stops active work.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.cancel();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Waits until a closed session has no other users than this caller and the list, with a timeout.
    pub(super) async fn wait_unused(self: &Arc<Self>) {
        let left = async {
            while Arc::strong_count(self) > 2 {
                sleep(BETWEEN).await;
            }
        };
        let _is_left = timeout(LEFT_WITHIN, left).await;
    }

    /// Sends the updates of an event, and records that it was sent.
    async fn tell(&self, event: &Event, updates: Vec<Value>) {
        for update in updates {
            self.update(update).await;
        }
        match &event.kind {
            EventKind::Paused { pause } => self
                .shown
                .send_modify(|shown| shown.extend([pause.id.clone()])),
            EventKind::Answered { pause, .. } => {
                self.shown.send_if_modified(|shown| shown.remove(pause));
            }
            _ => {}
        }
    }

    async fn update(&self, update: Value) {
        self.link.update(&self.id, update).await;
    }

    async fn say(&self, text: &str) {
        self.update(json!({"sessionUpdate": "agent_message_chunk", "content": text_block(text)}))
            .await;
    }
}

impl PromptTurn {
    /// Takes the log over, so that open pauses are known, and sends its content if requested.
    pub(super) async fn load(self, is_told: bool) -> Result<(), RpcFault> {
        let seat = &self.seat;
        seat.agent
            .log()
            .open()
            .await
            .map_err(|error| RpcFault::internal(&error))?;
        *lock(&seat.encoder) = Encoder::new(&*seat.root);
        let mut past = seat.agent.log().events_after(Seq(0));
        while let Some(event) = past.next().await {
            let event = event.map_err(|error| RpcFault::internal(&error))?;
            let updates = lock(&seat.encoder).recall(&event);
            seat.tell(&event, if is_told { updates } else { Vec::new() })
                .await;
        }
        if seat.agent.log().has_open_run() && !seat.agent.log().pauses().iter().any(is_text) {
            seat.say("[the last run was left in its middle: your next message goes on with it]")
                .await;
        }
        Ok(())
    }

    /// Runs a prompt, or resumes the run that was left; returns the stop reason.
    pub(super) async fn prompt(self, message: UserMessage) -> Result<&'static str, RpcFault> {
        if message.is_empty() {
            return Err(RpcFault::params("the prompt is empty"));
        }
        let log = self.seat.agent.log();
        if !log.has_open_run() {
            let run = self
                .seat
                .agent
                .run(vec![message])
                .cancel(self.cancel.clone());
            return self.follow(run.stream()).await;
        }
        let pauses = log.pauses();
        // A run that was cancelled may have left some.
        lock(&self.seat.given).retain(|given| pauses.iter().any(|pause| pause.id == given.pause));
        let mut texts = pauses
            .iter()
            .filter(|pause| is_text(pause) && !self.is_given(pause));
        if let Some(pause) = texts.next() {
            match words(pause, &message.to_text()) {
                Ok(answered) => lock(&self.seat.given).push(answered),
                Err(why) => {
                    self.seat
                        .say(&format!("{why}\n\n{}", ask::question(pause)))
                        .await;
                    return Ok("end_turn");
                }
            }
            if let Some(next) = texts.next() {
                self.seat.say(&ask::question(next)).await;
                return Ok("end_turn");
            }
        } else {
            // It is part of the next request.
            let queued = self
                .seat
                .agent
                .queue()
                .steer(message)
                .map_err(|error| RpcFault::internal(&error))?;
            lock(&self.seat.steered).push(queued);
        }
        for pause in pauses
            .iter()
            .filter(|pause| !is_text(pause) && !self.is_given(pause))
        {
            let answer = tokio::select! {
                answer = self.seat.asker.ask(pause) => answer,
                () = self.cancel.cancelled() => None,
            };
            let Some(answer) = answer else {
                let ended = self.seat.agent.cancel_paused().await;
                return ended
                    .map(|_| "cancelled")
                    .map_err(|error| RpcFault::internal(&error));
            };
            lock(&self.seat.given).push(pause.with_answer(answer));
        }
        let given = std::mem::take(&mut *lock(&self.seat.given));
        self.seat
            .shown
            .send_modify(|shown| shown.retain(|id| !given.iter().any(|given| given.pause == *id)));
        let run = self.seat.agent.resume(given).cancel(self.cancel.clone());
        self.follow(run.stream()).await
    }

    fn is_given(&self, pause: &Pause) -> bool {
        lock(&self.seat.given)
            .iter()
            .any(|given| given.pause == pause.id)
    }

    async fn follow(
        &self,
        running: Result<Running, adjutant_core::Error>,
    ) -> Result<&'static str, RpcFault> {
        let mut followed = Followed(Some(running.map_err(|error| RpcFault::internal(&error))?));
        let Some(running) = &mut followed.0 else {
            return Ok("end_turn");
        };
        let mut placed = None;
        while let Some(event) = running.next().await {
            let updates = match self.is_ours(&event, &mut placed) {
                true => lock(&self.seat.encoder).tell(&event),
                false => lock(&self.seat.encoder).recall(&event),
            };
            self.seat.tell(&event, updates).await;
        }
        match running.result() {
            Some(Ok(result)) => self.stop(&result.outcome).await,
            Some(Err(error)) => Err(RpcFault::internal(error)),
            None => Ok("end_turn"),
        }
    }

    /// False if an event is a message that a person wrote elsewhere; the editor displays its own messages.
    fn is_ours(&self, event: &Event, placed: &mut Option<u64>) -> bool {
        match &event.kind {
            EventKind::MessagePlaced { item }
                if event.who.thread == self.seat.agent.identity().thread =>
            {
                *placed = Some(*item);
            }
            EventKind::EntryAdded { .. } => {
                let mut steered = lock(&self.seat.steered);
                let Some(item) = placed.take() else {
                    return true;
                };
                return steered
                    .extract_if(.., |queued| queued.item() == Some(item))
                    .count()
                    > 0;
            }
            EventKind::Answered { pause, .. } => return !self.seat.shown.borrow().contains(pause),
            _ => {}
        }
        true
    }

    /// The reason why a prompt is over, as editors know it.
    async fn stop(&self, outcome: &Outcome) -> Result<&'static str, RpcFault> {
        Ok(match outcome {
            Outcome::Finished { reply, .. } => match reply.stop {
                FinishReason::Length => "max_tokens",
                FinishReason::Refused | FinishReason::Filtered => "refusal",
                _ => "end_turn",
            },
            Outcome::Limit {
                limit: Limit::Turns | Limit::Requests,
            } => "max_turn_requests",
            Outcome::Limit { limit } => {
                self.seat
                    .say(&format!("[the run stopped at its limit: {limit}]"))
                    .await;
                if *limit == Limit::Tokens {
                    "max_tokens"
                } else {
                    "max_turn_requests"
                }
            }
            Outcome::Cancelled { .. } => "cancelled",
            Outcome::Failed {
                failure: Failure::Refused { .. } | Failure::Filtered { .. },
            } => "refusal",
            Outcome::Failed { failure } => {
                return Err(RpcFault(RpcFault::INTERNAL, failure.to_string()));
            }
            Outcome::Paused { pauses } => {
                if !pauses.iter().all(is_text) {
                    self.seat.say(WAITS).await;
                }
                "end_turn"
            }
        })
    }
}

fn is_text(pause: &Arc<Pause>) -> bool {
    matches!(AskWay::from_pause(pause), AskWay::Text)
}

/// The answer that the words of a prompt are: a text, or else the JSON that it reads as.
fn words(pause: &Pause, text: &str) -> Result<Answered, crate::Error> {
    let text = text.trim();
    answer::given(pause, &text.into()).or_else(|error| {
        let value = serde_json::from_str::<Value>(text).map_err(|_| error)?;
        answer::given(pause, &value)
    })
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
