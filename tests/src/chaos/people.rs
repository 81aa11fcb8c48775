//! People while agents are killed: they prompt, ask for what needs an approval, answer what waits, and steer. What was
//! acknowledged is written down.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use adjutant::{
    EventKind, Outcome,
    runtime::{
        Entry, Prompter,
        control::{ControlClient, ControlFile},
        prompt::{Control, PausesRequest, PromptRequest, ResumeRequest, WaitingPause},
    },
    tools::Answer,
};
use futures_util::StreamExt;
use tokio::time::{sleep, timeout};

use super::{
    field::{Field, client, mark},
    roll::{Roll, Said, SaidKind, pick},
};
use crate::kill::Rng;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How long it is between two deeds of one of them, at most.
const PAUSE_MS: u64 = 120;
/// What a steering message begins with.
pub(super) const STEER: &str = "steer";
/// The sessions of each agent: for prompts, and for what needs an approval.
const SESSIONS: [&str; 3] = ["session-0", "session-1", "session-2"];
const ASKS: [&str; 2] = ["ask-0", "ask-1"];

/// What people have in common.
#[derive(Debug)]
pub(super) struct People {
    pub(super) field: Arc<Field>,
    pub(super) roll: Arc<Roll>,
    pub(super) is_over: AtomicBool,
    next: AtomicU64,
}

impl People {
    pub(super) fn new(field: Arc<Field>, roll: Arc<Roll>) -> Self {
        Self {
            field,
            roll,
            is_over: AtomicBool::default(),
            next: AtomicU64::default(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// One of them does one thing after the other until it is over.
    pub(super) async fn go_on(self: Arc<Self>, mut rng: Rng) {
        while !self.is_over() {
            sleep(Duration::from_millis(1 + rng.below(PAUSE_MS))).await;
            let Some(entry) = self.roll.pick(&mut rng, |_| true) else {
                return;
            };
            if !matches!(timeout(WITHIN, self.act(&entry, &mut rng)).await, Ok(true)) {
                self.roll.count(|it| it.refused += 1);
            }
        }
    }

    /// Does something; whether that was acknowledged, if there was anything to do.
    async fn act(&self, entry: &Entry, rng: &mut Rng) -> bool {
        match rng.below(10) {
            0..=3 => self
                .prompt(entry, pick(&SESSIONS, rng).unwrap_or(&SESSIONS[0]))
                .await
                .is_ok(),
            4 | 5 => self
                .ask(entry, pick(&ASKS, rng).unwrap_or(&ASKS[0]))
                .await
                .is_ok(),
            6 | 7 => {
                let Some(waiting) = self.waiting(entry).await else {
                    return false;
                };
                let Some(waiting) = pick(&waiting, rng) else {
                    return true;
                };
                // It is steered while it goes on.
                let (session, mut rng) = (&waiting.session, rng.clone());
                tokio::join!(
                    self.answer(entry, waiting, rng.clone()),
                    self.steer(entry, session, &mut rng)
                )
                .0
            }
            _ => {
                let sessions = [&SESSIONS[..], &ASKS].concat();
                self.steer(entry, pick(&sessions, rng).unwrap_or(&SESSIONS[0]), rng)
                    .await
            }
        }
    }

    /// Prompts; whether that was answered.
    pub(super) async fn prompt(&self, entry: &Entry, session: &str) -> Result<(), String> {
        let text = self.text("prompt");
        self.say(entry, session, (&text, &text)).await
    }

    /// Asks for a call that needs an approval; whether that was heard.
    pub(super) async fn ask(&self, entry: &Entry, session: &str) -> Result<(), String> {
        let text = self.text("call");
        // Where a message is placed behind it, that is answered, and there is no call.
        self.say(entry, session, (&text, &format!("Run `{text}`.")))
            .await
    }

    async fn say(
        &self,
        entry: &Entry,
        session: &str,
        (text, prompt): (&str, &str),
    ) -> Result<(), String> {
        let client = client(entry).ok_or("it has no process")?;
        let reply = client
            .prompt(PromptRequest::new(prompt).session(session))
            .await;
        let reply = reply.map_err(|error| error.to_string())?;
        let kind = match &reply.result.outcome {
            Outcome::Paused { .. } => SaidKind::Ask,
            other if reply.text.is_empty() => return Err(format!("no answer, but {other:?}")),
            _ => SaidKind::Prompt,
        };
        self.note(entry, session, text, kind);
        self.roll.count(|it| it.prompts += 1);
        Ok(())
    }

    /// What waits.
    pub(super) async fn waiting(&self, entry: &Entry) -> Option<Vec<WaitingPause>> {
        Some(
            client(entry)?
                .pauses(PausesRequest::new())
                .await
                .ok()?
                .pauses,
        )
    }

    /// Says yes or no, by a command or over HTTP; whether that was heard.
    pub(super) async fn answer(&self, entry: &Entry, waiting: &WaitingPause, mut rng: Rng) -> bool {
        let (session, pause, text) = (&*waiting.session, &waiting.pause, mark(&waiting.pause));
        let (is_approved, is_cut_off) = (rng.below(3) > 0, text.is_none());
        if let Some(text) = text.as_ref().filter(|_| is_approved) {
            self.roll.note_try(text);
        }
        let is_heard = if rng.below(2) == 0 {
            let (verb, id) = (
                if is_approved { "approve" } else { "deny" },
                format!("{}@{}", pause.id, waiting.digest),
            );
            let args = [
                "agent",
                verb,
                &entry.name,
                &id,
                "--session",
                session,
                "--quiet",
            ];
            self.field
                .command(&args)
                .await
                .is_ok_and(|told| told.is_done)
        } else {
            let answer = if is_approved {
                Answer::approve()
            } else {
                Answer::deny("no")
            };
            let request = ResumeRequest::new(vec![pause.with_answer(answer)]).session(session);
            let Some(client) = client(entry) else {
                return false;
            };
            let Ok(mut events) = client.resume(request).await else {
                return is_cut_off;
            };
            let mut is_heard = false;
            while let Some(Ok(event)) = events.next().await {
                is_heard |= matches!(event.kind, EventKind::Answered { .. });
            }
            is_heard
        };
        if is_heard {
            if let Some(text) = text {
                self.note(
                    entry,
                    session,
                    &text,
                    SaidKind::Answer(entry.id, is_approved),
                );
            }
            self.roll.count(|it| it.answers += 1);
        }
        // A word about a run that was cut off is in no log: if it was not heard, that waits still.
        is_heard || is_cut_off
    }

    /// Says something to a session, directly or by the operator; whether that was heard.
    pub(super) async fn steer(&self, entry: &Entry, session: &str, rng: &mut Rng) -> bool {
        let text = self.text(STEER);
        let control = Control::Steer {
            text: text.as_str().into(),
        };
        let heard = if rng.below(2) == 0 {
            let Some(client) = client(entry) else {
                return false;
            };
            client.control(Some(session), control).await
        } else {
            let plane = ControlFile::read(&self.field.home)
                .and_then(|it| ControlClient::new(it.address, it.token));
            let Ok(agent) = plane.and_then(|it| it.agent(&entry.name)) else {
                return false;
            };
            agent.control(Some(session), control).await
        };
        if heard.is_ok() {
            self.note(entry, session, &text, SaidKind::Steer);
            self.roll.count(|it| it.steers += 1);
        }
        heard.is_ok()
    }

    fn text(&self, what: &str) -> String {
        format!("{what}-{}-end", self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn note(&self, entry: &Entry, session: &str, text: &str, kind: SaidKind) {
        self.roll.note(
            entry.id,
            Said {
                session: session.to_owned(),
                text: text.to_owned(),
                kind,
            },
        );
    }
}
