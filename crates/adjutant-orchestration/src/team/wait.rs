//! Waiting within a team: for a message, or for members to end. No agent waits if nothing can arrive.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use adjutant_tool::Cancel;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use super::{
    LEAD, Message, MessageKind, Pick,
    member::GRACE,
    post::unknown,
    roster::{Member, Roster, Waiter, Wants},
    texts,
};
use crate::Error;

/// The outcome of waiting for a message.
#[derive(Debug)]
pub(super) enum Heard {
    /// These were read.
    Messages(Vec<Message>),
    /// Nothing will come, for this reason.
    InVain(String),
    /// Nothing came in time.
    Late,
}

/// The outcome of waiting for members.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// The condition was met.
    Done,
    /// A message came first.
    Mail,
    /// Nothing will change, for this reason.
    InVain(String),
    /// The time limit was exceeded.
    Late,
}

/// The members that are waited for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Until {
    /// One of the running members.
    Any,
    /// All that work now.
    #[default]
    All,
}

/// A waiting agent, until this is dropped.
struct MemberWait<'a> {
    roster: &'a Roster,
    number: u64,
}

impl Roster {
    /// Waits for a message and reads it.
    ///
    /// Cancel: nothing is lost.
    pub(super) async fn hear(
        &self,
        who: &str,
        from: Option<&Arc<str>>,
        time: Duration,
        cancel: &Cancel,
    ) -> Result<Heard, Error> {
        if let Some(from) = from.filter(|from| &***from != LEAD) {
            let state = self.state();
            if !state.members.contains_key(from) {
                return Err(unknown(&state, from));
            }
        }
        let mut changes = self.changes();
        let until = Instant::now().checked_add(time);
        let waiting = self.waiting(who, Wants::Message(from.cloned()));
        let (to, mut pick) = (self.address_of(&self.state(), who), Pick::new(1, 0));
        pick.from = from.cloned();
        loop {
            changes.mark_unchanged();
            let messages = self.read(who, from).await?;
            if !messages.is_empty() {
                return Ok(Heard::Messages(messages));
            }
            if let Some(why) = self.in_vain(&waiting, from) {
                return Ok(Heard::InVain(why));
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(Heard::InVain("the call was stopped".to_owned())),
                arrived = self.plan.mailbox.wait(&to, &pick) => arrived?,
                _ = changes.changed() => {}
                () = at(until) => return Ok(Heard::Late),
            }
        }
    }

    /// Waits until members that work now have ended; a message to the lead comes first.
    ///
    /// Cancel: nothing is lost.
    pub(super) async fn watch(&self, until: Until, time: Duration, cancel: &Cancel) -> Watched {
        let mut changes = self.changes();
        let deadline = Instant::now().checked_add(time);
        let at_work: BTreeSet<u64> = self
            .state()
            .members
            .values()
            .filter(|it| it.is_at_work())
            .map(|it| it.work)
            .collect();
        let waiting = self.waiting(LEAD, Wants::Work);
        loop {
            changes.mark_unchanged();
            {
                let state = self.state();
                let goes_on =
                    |member: &&Member| member.is_at_work() && at_work.contains(&member.work);
                let left = state.members.values().filter(goes_on).count();
                if state.closed || left == 0 || (until == Until::Any && left < at_work.len()) {
                    return Watched::Done;
                }
                if state
                    .unread_of(LEAD)
                    .any(|header| header.kind == MessageKind::Said)
                {
                    return Watched::Mail;
                }
            }
            if let Some(why) = self.in_vain(&waiting, None) {
                return Watched::InVain(why);
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Watched::InVain("the call was stopped".to_owned()),
                _ = changes.changed() => {}
                () = at(deadline) => return Watched::Late,
            }
        }
    }

    /// Waits with a timeout until a member has stopped working.
    pub(super) async fn rests(&self, name: &str, work: u64, time: Duration) {
        let mut changes = self.changes();
        let rested = async {
            loop {
                changes.mark_unchanged();
                if self
                    .state()
                    .members
                    .get(name)
                    .is_none_or(|it| it.work != work || !it.is_at_work())
                {
                    return;
                }
                // The sender lives in the roster, so waiting cannot fail.
                let _ = changes.changed().await;
            }
        };
        // After that, it ends in the background.
        let _ = tokio::time::timeout(time, rested).await;
    }

    /// If a member has just ended, waits until its end is published.
    pub(super) async fn settles(&self, name: &str) {
        let ending = self
            .state()
            .members
            .get(name)
            .filter(|member| member.ending)
            .map(|member| member.work);
        if let Some(work) = ending {
            self.rests(name, work, GRACE).await;
        }
    }

    fn waiting(&self, who: &str, what: Wants) -> MemberWait<'_> {
        let mut state = self.state();
        state.waited += 1;
        let number = state.waited;
        state.waits.insert(
            number,
            Waiter {
                who: who.into(),
                what,
                in_vain: false,
            },
        );
        state.look_for_standstill();
        drop(state);
        self.bump();
        MemberWait {
            roster: self,
            number,
        }
    }

    /// Returns the reason why nothing will come, if nothing will.
    fn in_vain(&self, waiting: &MemberWait<'_>, from: Option<&Arc<str>>) -> Option<String> {
        let mut state = self.state();
        if state.closed {
            return Some("the team's run has ended".to_owned());
        }
        // A message that was read may have been what another one waited for.
        state.look_for_standstill();
        let gone = from.filter(|from| &***from != LEAD && !state.is_active(from));
        if let Some(member) = gone.and_then(|from| state.members.get(from)) {
            let from = from.map_or("", |from| from);
            return Some(format!(
                "no message of {from:?} is unread, and it is not at work: {}",
                member.status.words()
            ));
        }
        let told = state
            .waits
            .get(&waiting.number)
            .is_some_and(|wait| wait.in_vain);
        told.then(|| {
            let lead = Arc::from(LEAD);
            let all = texts::names(state.active().map(|(name, _)| name).chain([&lead]));
            format!(
                "everyone at work waits and nothing that they wait for is unread: {all}; hint: send a message, or finish"
            )
        })
    }
}

impl Drop for MemberWait<'_> {
    fn drop(&mut self) {
        self.roster.state().waits.remove(&self.number);
    }
}

async fn at(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
