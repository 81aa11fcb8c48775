//! Members: how they are made, set to work, stopped, and what follows when they end.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{
    Agent, Child, ChildRun, RunLine, Spawn,
    points::{TeammateJoined, TeammateLeft},
};
use adjutant_llm::{CallId, Origin, UserMessage};
use adjutant_tool::{CallContext, ToolError, ToolErrorKind};
use serde_json::json;

use super::{
    MemberStatus, effects,
    past::{AssignedTask, Joined},
    post::{closed, unknown},
    recipe::{NewMember, Recipe, check_name, check_text},
    roster::{Member, Roster, State},
    talk_tools, texts,
};
use crate::{Error, ErrorKind};

/// The largest number of known members in one run, including ended ones.
const MAX_KNOWN: usize = 1_000;
/// The longest time that a stopped member can take to end before the team continues without it.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// The name of a running member, and the number of its task in the team.
#[derive(Clone)]
pub(super) struct MemberJob {
    pub(super) name: Arc<str>,
    pub(super) work: u64,
    /// The line to the run that it is for.
    pub(super) line: Option<RunLine>,
}

/// A member that is to work again.
struct Again {
    job: MemberJob,
    child: Option<Arc<Child>>,
    recipe: Recipe,
    before: Box<Member>,
}

/// A member in the list before its start: if the start fails, the previous state is restored.
struct Enlisted<'a> {
    roster: &'a Roster,
    job: &'a MemberJob,
    before: Option<Member>,
    stays: bool,
}

impl Roster {
    /// Makes a new member and sets it to work.
    pub(super) async fn spawn(
        self: &Arc<Self>,
        cx: &CallContext,
        new: NewMember,
    ) -> Result<Arc<str>, ToolError> {
        check_name(&new.name)?;
        check_text("task", &new.task)?;
        let recipe = Recipe::from_plan(&self.plan, &new)?;
        self.settles(&new.name).await;
        if let Some(id) = self.find_by_call(cx, &new.name) {
            return Ok(id);
        }
        let (id, job, before) = self.enlist(&new, recipe.clone(), cx.who.call)?;
        let mut enlisted = Enlisted {
            roster: self,
            job: &job,
            before,
            stays: false,
        };
        self.set_up(cx, &job, &recipe, &new).await?;
        enlisted.stays = true;
        Ok(id)
    }

    /// Sets a member that has ended to work again, in the conversation that it had.
    pub(super) async fn assign(
        self: &Arc<Self>,
        cx: &CallContext,
        name: &str,
        task: Arc<str>,
    ) -> Result<(), ToolError> {
        check_text("task", &task)?;
        self.settles(name).await;
        if self.find_by_call(cx, name).is_some() {
            return Ok(());
        }
        let Again {
            job,
            child,
            recipe,
            before,
        } = self.enlist_again(name, &task, cx.who.call)?;
        let (thread, heard, id) = (before.thread.clone(), before.works, Arc::clone(&before.id));
        let mut enlisted = Enlisted {
            roster: self,
            job: &job,
            before: Some(*before),
            stays: false,
        };
        let text = format_assignment(&task);
        self.record_task(cx, &job, &task);
        let begun = match child {
            Some(child) => self.start(&job, &child, text.clone(), recipe.timeout),
            None => Err(ToolError::new(ToolErrorKind::Cancelled, "it is not open")),
        };
        let begun = match (begun, thread) {
            // The drive that it belonged to has ended, and with it the member: it is opened again.
            (Err(error), Some(thread))
                if error.kind == ToolErrorKind::Cancelled && !cx.cancel.is_cancelled() =>
            {
                let spawn = cx.get::<dyn Spawn>().ok_or_else(outside)?;
                self.plan.mailbox.open(&self.address(&id));
                let agent = self.agent_of(&job.name, &id, &recipe, &task);
                match spawn.reopen(&thread, agent.into(), heard).await {
                    Ok(child) => self.start(&job, &Arc::new(child), text, recipe.timeout),
                    Err(error) => Err(error),
                }
            }
            (begun, _) => begun,
        };
        enlisted.stays = begun.is_ok();
        if let (Err(error), Some(line)) = (&begun, &job.line) {
            let status = MemberStatus::Failed;
            let left = json!({"team": self.plan.name, "name": job.name, "status": status, "text": error.message});
            line.app("team.left", 1, left);
        }
        begun
    }

    /// Records that a member is given a task, before it can end.
    fn record_task(&self, cx: &CallContext, job: &MemberJob, task: &Arc<str>) {
        let (Some(line), Some(call)) = (&job.line, cx.who.call) else {
            return;
        };
        let mut data = json!(AssignedTask {
            name: Arc::clone(&job.name),
            call,
            given: Arc::clone(task)
        });
        (data["team"], data["task"]) = (json!(self.plan.name), json!(texts::clip_event_text(task)));
        line.app("team.assigned", 1, data);
    }

    /// The member that this very call has given its task, before its result was lost.
    fn find_by_call(&self, cx: &CallContext, name: &str) -> Option<Arc<str>> {
        let state = self.state();
        let member = state
            .members
            .get(name)
            .filter(|member| cx.who.call.is_some() && member.call == cx.who.call)?;
        (!member.earlier).then(|| Arc::clone(&member.id))
    }

    /// Requests a member to stop, and waits briefly until it has.
    pub(super) async fn stop(&self, name: &str) -> Result<MemberStatus, Error> {
        let (child, work) = {
            let mut state = self.state();
            let Some(member) = state.members.get_mut(name) else {
                return Err(unknown(&state, name));
            };
            if member.status != MemberStatus::Active {
                return Ok(member.status);
            }
            member.stopping = true;
            (member.child.clone(), member.work)
        };
        if let Some(child) = child {
            child.cancel();
        }
        self.rests(name, work, GRACE.saturating_mul(2)).await;
        Ok(self
            .state()
            .members
            .get(name)
            .map_or(MemberStatus::Stopped, |member| member.status))
    }

    /// Puts a new member on the list.
    fn enlist(
        &self,
        new: &NewMember,
        recipe: Recipe,
        call: Option<CallId>,
    ) -> Result<(Arc<str>, MemberJob, Option<Member>), Error> {
        let mut state = self.state();
        self.has_room(&state)?;
        if state
            .members
            .get(&new.name)
            .is_some_and(|known| known.is_at_work())
        {
            let message = format!(
                "{:?} is at work in the team already; hint: choose another name",
                &*new.name
            );
            return Err(Error::new(ErrorKind::Exists, message));
        }
        if state.members.len() >= MAX_KNOWN {
            let oldest = state
                .members
                .iter()
                .filter(|(_, member)| member.earlier)
                .min_by_key(|(_, member)| member.work);
            let oldest = oldest.map(|(name, _)| Arc::clone(name));
            oldest.map(|name| state.members.remove(&name));
        }
        if state.members.len() >= MAX_KNOWN {
            return Err(Error::new(
                ErrorKind::Full,
                format!("the team knows {MAX_KNOWN} members already"),
            ));
        }
        state.joined += 1;
        state.begun += 1;
        let (id, work): (Arc<str>, _) = (format!("teammate-{}", state.joined).into(), state.begun);
        // The end of the last member with this name already reported its unread messages.
        state.unread.remove(&new.name);
        let member = Member {
            id: Arc::clone(&id),
            task: Arc::clone(&new.task),
            status: MemberStatus::Active,
            since_ms: self.now_ms(),
            result: Arc::default(),
            child: None,
            work,
            stopping: false,
            ending: false,
            recipe: Some(recipe),
            thread: None,
            works: 1,
            call,
            earlier: false,
        };
        let before = state.members.insert(Arc::clone(&new.name), member);
        let line = state.line.clone();
        drop(state);
        self.plan.mailbox.open(&self.address(&id));
        Ok((
            id,
            MemberJob {
                name: Arc::clone(&new.name),
                work,
                line,
            },
            before,
        ))
    }

    fn enlist_again(
        &self,
        name: &str,
        task: &Arc<str>,
        call: Option<CallId>,
    ) -> Result<Again, Error> {
        let mut state = self.state();
        self.has_room(&state)?;
        state.begun += 1;
        let (work, since_ms) = (state.begun, self.now_ms());
        let Some(member) = state.members.get_mut(name) else {
            return Err(unknown(&state, name));
        };
        if member.is_at_work() {
            let message =
                format!("{name:?} is at work; hint: send it a message, or wait until it is done");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let Some(recipe) = member.recipe.clone() else {
            let message = format!("{name:?} cannot be opened any more: {}", member.result);
            return Err(Error::new(ErrorKind::Missing, message));
        };
        let before = Box::new(member.clone());
        member.status = MemberStatus::Active;
        (member.work, member.since_ms, member.stopping) = (work, since_ms, false);
        (member.task, member.result) = (Arc::clone(task), Arc::default());
        (member.works, member.call, member.earlier) = (member.works + 1, call, false);
        let child = member.child.clone();
        let job = MemberJob {
            name: name.into(),
            work,
            line: state.line.clone(),
        };
        Ok(Again {
            job,
            child,
            recipe,
            before,
        })
    }

    fn has_room(&self, state: &State) -> Result<(), Error> {
        if state.closed {
            return Err(closed());
        }
        match self.plan.max_size {
            Some(max) if state.active().count() >= max => {
                let message = format!(
                    "the team is full: {max} members are at work; hint: wait for one, or stop one"
                );
                Err(Error::new(ErrorKind::Full, message))
            }
            _ => Ok(()),
        }
    }

    /// Opens the agent of a member, and sets it to work.
    async fn set_up(
        self: &Arc<Self>,
        cx: &CallContext,
        job: &MemberJob,
        recipe: &Recipe,
        new: &NewMember,
    ) -> Result<(), ToolError> {
        let (spawn, task) = (cx.get::<dyn Spawn>().ok_or_else(outside)?, &new.task);
        let (id, text) = {
            let state = self.state();
            let id = state
                .members
                .get(&job.name)
                .map(|member| Arc::clone(&member.id))
                .ok_or_else(closed)?;
            (
                id,
                texts::briefing(
                    &self.plan.name,
                    &job.name,
                    recipe.role.as_deref(),
                    &state,
                    task,
                ),
            )
        };
        let agent = self.agent_of(&job.name, &id, recipe, task);
        let child = Arc::new(spawn.keep(&job.name, agent.into()).await?);
        let Some(line) = &job.line else {
            return self.start(job, &child, text, recipe.timeout);
        };
        let (team, who) = (&self.plan.name, Arc::new(child.identity().clone()));
        let mut joined = json!(Joined {
            member_id: Arc::clone(&id),
            name: Arc::clone(&job.name),
            thread: who.thread.clone(),
            call: line.call,
            room: Arc::clone(self.room()),
            given: new.clone(),
        });
        (joined["team"], joined["task"]) = (json!(team), json!(texts::clip_event_text(task)));
        joined["role"] = json!(recipe.role);
        line.app("team.joined", 1, joined);
        // They are only notified.
        let _ = line
            .pass(TeammateJoined::new(Arc::clone(team), Arc::clone(&who)))
            .await;
        let begun = self.start(job, &child, text, recipe.timeout);
        if let Err(error) = &begun {
            let left = json!({
                "team": team, "name": job.name, "status": MemberStatus::Failed, "text": error.message, "begun": false,
            });
            line.app("team.left", 1, left);
            let _ = line
                .pass(TeammateLeft::new(
                    Arc::clone(team),
                    who,
                    Arc::clone(&error.message),
                ))
                .await;
        }
        begun
    }

    /// The agent of a member.
    pub(super) fn agent_of(
        &self,
        name: &Arc<str>,
        id: &Arc<str>,
        recipe: &Recipe,
        task: &Arc<str>,
    ) -> Agent {
        let agent = recipe.agent.clone().identify(|who| {
            (who.name, who.path) = (Arc::clone(name), Arc::clone(name));
            who.config_name = Arc::clone(recipe.role.as_ref().unwrap_or(name));
            who.task = Some(texts::clip(task, texts::MAX_TASK_SHOWN));
        });
        let agent = agent
            .toolbox(talk_tools::member_tools(self, name, id))
            .effect(effects::Mate::new(self, name, id));
        match &self.plan.board {
            Some(board) => agent.toolbox(board.clone()),
            None => agent,
        }
    }

    /// Prompts a member, and looks after it until it ends.
    fn start(
        self: &Arc<Self>,
        job: &MemberJob,
        child: &Arc<Child>,
        text: String,
        limit: Option<Duration>,
    ) -> Result<(), ToolError> {
        let run = self.prompt(job, child, text)?;
        let (roster, job, child) = (Arc::clone(self), job.clone(), Arc::clone(child));
        tokio::spawn(async move { roster.look_after(job, child, run, limit).await });
        Ok(())
    }

    /// Prompts a member.
    pub(super) fn prompt(
        &self,
        job: &MemberJob,
        child: &Arc<Child>,
        text: String,
    ) -> Result<ChildRun, ToolError> {
        let origin = Origin::Task {
            from: self.lead.clone(),
        };
        let run = child.stream(UserMessage {
            origin,
            ..UserMessage::text(text)
        })?;
        if let Some(member) = self.state().members.get_mut(&job.name) {
            (member.child, member.thread) = (
                Some(Arc::clone(child)),
                Some(child.identity().thread.clone()),
            );
            if member.stopping {
                run.cancel();
            }
        }
        Ok(run)
    }
}

/// The message with another task for a member.
pub(super) fn format_assignment(task: &str) -> String {
    format!("Your lead has a new task for you:\n{task}")
}

fn outside() -> ToolError {
    ToolError::failed("members are opened only within a run")
}

impl Drop for Enlisted<'_> {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        let mut state = self.roster.state();
        let name = &self.job.name;
        if state
            .members
            .get(name)
            .is_some_and(|member| member.work == self.job.work)
        {
            state.members.remove(name);
            if let Some(before) = self.before.take() {
                state.members.insert(Arc::clone(name), before);
            }
        }
        drop(state);
        self.roster.bump();
    }
}

impl Member {
    pub(super) fn is_at_work(&self) -> bool {
        self.status == MemberStatus::Active
    }
}
