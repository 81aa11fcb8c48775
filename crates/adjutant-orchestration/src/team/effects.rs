//! The notes that agents of a team get before a request: that messages wait.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
};

use adjutant_agent::{Action, Effect, EffectContext, EffectError, Phase, Spend};
use adjutant_llm::ToolName;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    LEAD, TeamPlan,
    drive::OpenRosters,
    roster::{Roster, State},
    texts,
};

/// The effect that adds the lead's notes, and selects its tools.
pub(super) struct Lead {
    open: Arc<OpenRosters>,
    /// The tools that stay; `None` for all.
    only: Option<BTreeSet<ToolName>>,
}

/// The effect that adds a member's notes, and limits the spending of all members together.
pub(super) struct Mate {
    roster: Weak<Roster>,
    name: Arc<str>,
    id: Arc<str>,
}

/// The record of what the lead was notified of.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct TeamMemo {
    room: Arc<str>,
    /// The newest message of the note.
    message: u64,
}

impl Lead {
    pub(super) fn new(plan: &TeamPlan, open: &Arc<OpenRosters>, tools: BTreeSet<ToolName>) -> Self {
        Self {
            open: Arc::clone(open),
            only: plan.coordinator.then_some(tools),
        }
    }

    fn hide(&self, cx: &EffectContext<'_>) -> Option<Action> {
        let only = self.only.as_ref()?;
        let names = cx.tools.iter().map(|tool| tool.spec().name());
        let hidden: Vec<ToolName> = names
            .filter(|name| !only.contains(*name))
            .cloned()
            .collect();
        (!hidden.is_empty()).then_some(Action::Hide(hidden))
    }

    fn tell(&self, cx: &EffectContext<'_>, actions: &mut Vec<Action>) {
        let Some(roster) = self.open.here() else {
            return;
        };
        let before: TeamMemo = cx.memo().unwrap_or_default();
        let state = roster.state();
        let heard = if before.room == *roster.room() {
            before.message
        } else {
            0
        };
        let (message, note) = news(&state, LEAD, heard);
        actions.extend(note.map(|note| Action::Remind(note.into())));
        let told = match message {
            0 => TeamMemo::default(),
            message => TeamMemo {
                room: Arc::clone(roster.room()),
                message,
            },
        };
        if told != before {
            actions.push(Action::Remember(json!(told)));
        }
    }
}

#[async_trait]
impl Effect for Lead {
    fn kind(&self) -> &str {
        "team_lead"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        if self.open.is_nested() {
            return Ok(Vec::new());
        }
        let mut actions: Vec<Action> = self.hide(&cx).into_iter().collect();
        if cx.phase == Phase::Request {
            self.tell(&cx, &mut actions);
        }
        Ok(actions)
    }
}

impl Mate {
    pub(super) fn new(roster: &Roster, name: &Arc<str>, id: &Arc<str>) -> Self {
        Self {
            roster: roster.me(),
            name: Arc::clone(name),
            id: Arc::clone(id),
        }
    }
}

#[async_trait]
impl Effect for Mate {
    fn kind(&self) -> &str {
        "team_member"
    }

    async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        let Some(roster) = self.roster.upgrade().filter(|_| cx.phase == Phase::Request) else {
            return Ok(Vec::new());
        };
        let mut state = roster.state();
        let Some(member) = state
            .members
            .get(&self.name)
            .filter(|member| member.id == self.id)
        else {
            return Ok(Vec::new());
        };
        let (work, ledger) = (member.work, cx.ledger);
        let tokens = ledger.usage.total().saturating_add(ledger.spent.total());
        state.spent.insert(
            work,
            Spend {
                cost: ledger.cost.unwrap_or_default(),
                tokens,
                ..Spend::default()
            },
        );
        if let Some(limit) = state.find_exhausted(&roster.plan.caps) {
            return Ok(vec![Action::Stop(limit)]);
        }
        state.requests += 1;
        let before: u64 = cx.memo().unwrap_or_default();
        let (message, note) = news(&state, &self.name, before);
        let mut actions: Vec<Action> = note
            .map(|note| Action::Remind(note.into()))
            .into_iter()
            .collect();
        if message != before {
            actions.push(Action::Remember(json!(message)));
        }
        Ok(actions)
    }
}

/// The newest message that an agent knows of, and a note if it is new to it.
fn news(state: &State, name: &str, heard: u64) -> (u64, Option<String>) {
    let newest = state
        .unread_of(name)
        .next_back()
        .map_or(heard, |header| header.number.max(heard));
    let note = texts::unread(state, name).filter(|_| newest > heard);
    (
        newest,
        note.map(|unread| format!("You have {unread}; read_messages gives them.")),
    )
}
