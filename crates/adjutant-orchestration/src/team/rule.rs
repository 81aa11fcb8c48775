//! The rule for the end: a lead that would leave an unfinished team is reminded once; then it can leave.

use std::{future::ready, sync::Arc};

use adjutant_agent::{
    Completion, HookContext, Outcome, Verdict,
    points::{AfterAgent, AfterTurn},
};
use adjutant_llm::{CallResult, FinishReason, Origin, Reply, Terminate, UserMessage};
use serde_json::json;

use super::roster::{Roster, State};
use super::{LEAD, texts};

/// The largest number of reminders of a lead in one run.
const MAX_TOLD: usize = 32;

/// The next step after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Another turn.
    On,
    /// The end, unless a message is placed.
    Stops,
    /// The end.
    Ends,
}

/// A turn of a lead is closed. Other agents are ignored.
pub(super) fn after_turn(
    roster: Option<Arc<Roster>>,
    cx: HookContext,
    point: AfterTurn,
) -> impl Future<Output = Verdict<AfterTurn>> + Send {
    if let Some(roster) = roster.filter(|roster| roster.lead == cx.who.thread) {
        roster.record_turn(way(&point), &point.reply);
    }
    ready(Verdict::Pass(point))
}

/// The run of a lead has ended: its answer from before a reminder is not lost.
pub(super) fn after_agent(
    roster: Option<Arc<Roster>>,
    cx: HookContext,
    mut point: AfterAgent,
) -> impl Future<Output = Verdict<AfterAgent>> + Send {
    if let Some(roster) = roster.filter(|roster| roster.lead == cx.who.thread) {
        roster.keep_answer(&mut point);
    }
    ready(Verdict::Pass(point))
}

impl Roster {
    fn record_turn(&self, way: Way, reply: &Arc<Reply>) {
        let mut state = self.state();
        let reminded = std::mem::take(&mut state.rule.reminded);
        if state
            .rule
            .reminder
            .as_ref()
            .is_some_and(|it| it.is_queued())
            && way == Way::Stops
        {
            // Another message came first: the reminder is still pending.
            state.rule.reminded = reminded;
            return;
        }
        match way {
            Way::On => {
                if let Some((_, acted)) = &mut state.rule.answer {
                    *acted = true;
                }
            }
            Way::Stops if self.is_told(&mut state, reminded, reply) => {}
            Way::Stops | Way::Ends => {
                if !reply.text().trim().is_empty() {
                    state.rule.answer = None;
                }
                self.report_end(&mut state);
            }
        }
    }

    /// Reminds the lead that its team is not done, unless it was reminded already, or there is nothing to report.
    fn is_told(&self, state: &mut State, reminded: bool, reply: &Arc<Reply>) -> bool {
        let at_work: Vec<String> = state
            .active()
            .map(|(_, member)| member.work.to_string())
            .collect();
        let unread = state.unread_of(LEAD).count() > 0;
        if reminded || (at_work.is_empty() && !unread) || state.rule.told.len() >= MAX_TOLD {
            return false;
        }
        let Some(line) = state.line.clone() else {
            return false;
        };
        if !state
            .rule
            .told
            .insert(format!("{} {unread}", at_work.join(" ")))
        {
            return false;
        }
        let origin = Origin::Reminder { by: "team".into() };
        let Ok(reminder) = line.steer(UserMessage {
            origin,
            ..UserMessage::text(texts::not_done(state))
        }) else {
            return false;
        };
        (state.rule.reminded, state.rule.reminder) = (true, Some(reminder));
        if !reply.text().trim().is_empty() {
            state.rule.answer = Some((Arc::clone(reply), false));
        }
        true
    }

    /// Writes the report on the team into the log.
    fn report_end(&self, state: &mut State) {
        if state.members.values().all(|member| member.earlier)
            || std::mem::replace(&mut state.rule.reported, true)
        {
            return;
        }
        if let Some(line) = &state.line {
            line.app(
                "team.ended",
                1,
                json!(self.report_of(state, |member| !member.earlier)),
            );
        }
    }

    fn keep_answer(&self, point: &mut AfterAgent) {
        let mut state = self.state();
        if let Some(reminder) = state.rule.reminder.take() {
            // It may have been placed.
            let _ = reminder.withdraw();
        }
        let Some((answer, acted)) = state.rule.answer.take() else {
            return;
        };
        match &point.outcome {
            Outcome::Finished { reply, .. } if reply.text().trim().is_empty() => {
                point.reply = Some(answer)
            }
            Outcome::Limit { .. } => {
                point.outcome = Outcome::Finished {
                    reply: answer,
                    why: Completion::Answer,
                }
            }
            Outcome::Failed { .. } if !acted => {
                point.outcome = Outcome::Finished {
                    reply: answer,
                    why: Completion::Answer,
                };
            }
            _ => {}
        }
    }
}

fn way(point: &AfterTurn) -> Way {
    let all = |terminate| {
        point
            .results
            .iter()
            .all(|result: &Arc<CallResult>| result.terminate == terminate)
    };
    if point.stop
        || point
            .results
            .iter()
            .any(|result| result.terminate == Terminate::Now)
    {
        return Way::Ends;
    }
    let answered = point.results.is_empty()
        && !matches!(
            point.reply.stop,
            FinishReason::Paused | FinishReason::Interrupted
        );
    let hinted = !point.results.is_empty() && all(Terminate::IfAll);
    if answered || hinted {
        Way::Stops
    } else {
        Way::On
    }
}
