//! Prompts while agents are killed: what was answered is written down, and looked for afterwards.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use adjutant::runtime::{
    Entry, Prompter,
    http::Client,
    prompt::{MessagesRequest, PromptRequest},
};

use super::field::host;
use crate::kill::Rng;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How long it is between two prompts of one who prompts, at most.
const PAUSE_MS: u64 = 120;
/// How many sessions each agent has.
const SESSIONS: u64 = 3;

/// What was prompted.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    pub(super) is_over: AtomicBool,
    /// Which prompts were answered, by agent and session.
    answered: Mutex<BTreeMap<(String, String), Vec<String>>>,
    failed: AtomicU64,
    next: AtomicU64,
}

impl Prompts {
    /// Prompts agents, one after the other, until it is over.
    pub(super) async fn go_on(self: Arc<Self>, entries: Arc<[Entry]>, mut rng: Rng) {
        while !self.is_over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(1 + rng.below(PAUSE_MS))).await;
            let Some(entry) = entries.get(usize::try_from(rng.below(entries.len() as u64)).unwrap_or(0)) else {
                return;
            };
            let session = format!("session-{}", rng.below(SESSIONS));
            let text = format!("prompt-{}-end", self.next.fetch_add(1, Ordering::Relaxed));
            match tokio::time::timeout(WITHIN, ask(entry, &session, &text)).await {
                Ok(Some(())) => {
                    let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
                    answered.entry((entry.name.to_string(), session)).or_default().push(text);
                }
                _ => drop(self.failed.fetch_add(1, Ordering::Relaxed)),
            }
        }
    }

    /// How many were answered, and how many were not.
    pub(super) fn counts(&self) -> (usize, u64) {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        (answered.values().map(Vec::len).sum(), self.failed.load(Ordering::Relaxed))
    }

    /// Looks for every prompt that was answered, with an answer after it.
    pub(super) async fn check(&self, entries: &[Entry]) -> Result<(), String> {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for ((agent, session), texts) in answered {
            let entry = entries.iter().find(|entry| *entry.name == *agent).ok_or("an agent is gone")?;
            let messages = messages(entry, &session).await?;
            for text in texts {
                let at = messages.iter().position(|(role, said)| role == "user" && said.contains(&text));
                let at = at.ok_or_else(|| format!("{agent}: {session} does not hold {text}, which was answered"))?;
                let next = messages.iter().skip(at + 1).find(|(role, _)| role != "tool");
                if !next.is_some_and(|(role, said)| role == "assistant" && !said.is_empty()) {
                    return Err(format!("{agent}: {session} does not hold the answer to {text}"));
                }
            }
        }
        Ok(())
    }
}

async fn ask(entry: &Entry, session: &str, text: &str) -> Option<()> {
    let host = host(entry)?;
    let client = Client::new(host.address, host.token).ok()?;
    let reply = client.prompt(PromptRequest::new(text).session(session)).await.ok()?;
    (!reply.text.is_empty()).then_some(())
}

/// All messages of a session: who said what.
async fn messages(entry: &Entry, session: &str) -> Result<Vec<(String, String)>, String> {
    let told = |error: adjutant::runtime::Error| format!("{}: {session}: {error}", entry.name);
    let host = host(entry).ok_or_else(|| format!("{} has no process", entry.name))?;
    let client = Client::new(host.address, host.token).map_err(told)?;
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let mut request = MessagesRequest::default();
        request.session = Some(session.into());
        request.limit = Some(1_000);
        request.before = before;
        let page = client.messages(request).await.map_err(told)?;
        let mut older: Vec<_> = page.messages.into_iter().map(|it| (it.role.to_string(), it.text)).collect();
        older.append(&mut all);
        all = older;
        before = page.before;
        if before.is_none() {
            return Ok(all);
        }
    }
}
