//! Finds a team again that another program left: running members continue, and unread messages are restored.

use std::sync::Arc;

use adjutant_agent::{ChildRun, DriveStart};
use adjutant_llm::{Origin, UserMessage};
use adjutant_tool::ToolError;

use super::{
    LEAD, MemberStatus, MessageKind, Pick,
    member::{MemberJob, format_assignment},
    past::{Past, PastMember},
    recipe::Recipe,
    roster::{Member, MessageHeader, Roster},
    texts,
};
use crate::text::chain;

/// The changes of members while no program was running.
#[derive(Default)]
struct MemberNews {
    /// Running again.
    goes_on: Vec<Arc<str>>,
    /// Ended with a run that was not continued.
    cut: Vec<Arc<str>>,
    /// The lead gets a message about their end.
    ended: Vec<Arc<str>>,
}

impl Roster {
    /// A drive of the lead begins: the team is restored from the log, unless this program knows it.
    pub(super) async fn find(self: &Arc<Self>, cx: &DriveStart) {
        let known = {
            let mut state = self.state();
            state.line = Some(cx.line(&self.lead));
            (std::mem::replace(&mut state.known, true) && !cx.is_reopened)
                || (!cx.resumes && cx.run.0 <= 1)
        };
        let past = match known {
            true => Ok(Past::default()),
            false => Past::read(cx, &self.plan.name).await,
        };
        let mut past = past.unwrap_or_else(|error| {
            tracing::warn!(
                "the team {:?} of {} cannot be found again: {error}",
                self.plan.name,
                cx.log
            );
            Past::default()
        });
        if let Some(room) = past.room.take() {
            self.in_room(room);
        }
        self.plan.mailbox.open(&self.address(LEAD));
        if past.members.is_empty() {
            return;
        }
        let members = std::mem::take(&mut past.members);
        let (all, mut news): (Vec<_>, _) = (self.list(members), MemberNews::default());
        self.put_back(&past).await;
        for (name, past) in all {
            self.go_on(cx, &name, &past, &mut news).await;
        }
        if let Some(text) = news.text() {
            let origin = Origin::Reminder { by: "team".into() };
            if let Err(error) = cx.tell(UserMessage {
                origin,
                ..UserMessage::text(text)
            }) {
                tracing::warn!("the lead is not told what became of its team: {error}");
            }
        }
    }

    /// Lists members according to the log.
    fn list(
        &self,
        members: std::collections::BTreeMap<Arc<str>, PastMember>,
    ) -> Vec<(Arc<str>, PastMember)> {
        let mut state = self.state();
        for (name, past) in &members {
            let recipe = Recipe::from_plan(&self.plan, &past.joined.given);
            let member = Member {
                id: Arc::clone(&past.joined.member_id),
                task: Arc::clone(&past.task),
                status: past.status,
                since_ms: past.since_ms,
                result: Arc::clone(&past.result),
                child: None,
                work: past.work,
                stopping: false,
                ending: false,
                recipe: recipe.ok(),
                thread: Some(past.joined.thread.clone()),
                works: past.works,
                call: Some(past.call),
                earlier: past.earlier,
            };
            state.members.insert(Arc::clone(name), member);
        }
        members.into_iter().collect()
    }

    /// Restores unread messages, counts and spending.
    async fn put_back(&self, past: &Past) {
        let open: Vec<_> = {
            let mut state = self.state();
            (state.joined, state.begun, state.sent) = (past.joined, past.begun, past.sent);
            (state.requests, state.spent) = (past.requests, past.spent.clone());
            let at_hand = state.members.iter().filter(|(_, member)| !member.earlier);
            at_hand
                .map(|(name, member)| (Arc::clone(name), self.address(&member.id)))
                .collect()
        };
        for (name, address) in open
            .into_iter()
            .chain([(Arc::from(LEAD), self.address(LEAD))])
        {
            self.plan.mailbox.open(&address);
            // A persistent mailbox may contain them; the log determines which ones were read.
            let _ = self
                .plan
                .mailbox
                .receive(&address, &Pick::new(usize::MAX, usize::MAX))
                .await;
            for number in past.unread.get(&name).into_iter().flatten() {
                let Some(message) = past.messages.get(number) else {
                    continue;
                };
                let header = MessageHeader {
                    number: *number,
                    from: Arc::clone(&message.from),
                    kind: message.kind,
                };
                self.state()
                    .unread
                    .entry(Arc::clone(&name))
                    .or_default()
                    .push_back(header);
                if let Err(error) = self.plan.mailbox.send(&address, message.clone()).await {
                    tracing::warn!(
                        "a message to {name:?} in the team {:?} is lost: {error}",
                        self.plan.name
                    );
                }
            }
        }
    }

    /// Continues a member that was running, or notifies the lead of an end that was not reported.
    async fn go_on(
        self: &Arc<Self>,
        cx: &DriveStart,
        name: &Arc<str>,
        past: &PastMember,
        news: &mut MemberNews,
    ) {
        let is_over = past.earlier || past.noticed;
        match (past.status, past.status.message_kind()) {
            (MemberStatus::Active, _) => {}
            (MemberStatus::Left, _) if past.cut && past.earlier => {
                return news.cut.push(Arc::clone(name));
            }
            (_, Some(kind)) if !is_over => {
                news.ended.push(Arc::clone(name));
                return self
                    .notify(
                        name,
                        kind,
                        &format!("{name:?} {}: {}", past.status.words(), past.result),
                    )
                    .await;
            }
            _ => return,
        }
        let thread = &past.joined.thread;
        let job = MemberJob {
            name: Arc::clone(name),
            work: past.work,
            line: Some(cx.line(thread)),
        };
        let (child, run, limit) = match self.open_again(cx, &job, past).await {
            Ok(opened) => opened,
            Err(error) => {
                news.ended.push(Arc::clone(name));
                return self
                    .lose(&job, &format!("it is lost: {}", chain(&error)))
                    .await;
            }
        };
        let (roster, looked_after) = (Arc::clone(self), Arc::clone(name));
        let looking = async move { roster.look_after(job, child, run, limit).await };
        if cx.is_answered(thread, past.works.saturating_sub(1)) {
            // Its answer is in the log, so nothing is waited for.
            looking.await;
            news.ended.push(looked_after);
        } else {
            tokio::spawn(looking);
            news.goes_on.push(looked_after);
        }
    }

    async fn open_again(
        self: &Arc<Self>,
        cx: &DriveStart,
        job: &MemberJob,
        past: &PastMember,
    ) -> Result<
        (
            Arc<adjutant_agent::Child>,
            ChildRun,
            Option<std::time::Duration>,
        ),
        ToolError,
    > {
        let recipe = Recipe::from_plan(&self.plan, &past.joined.given)?;
        let id = &past.joined.member_id;
        let text = match past.works {
            1 => texts::briefing(
                &self.plan.name,
                &job.name,
                recipe.role.as_deref(),
                &self.state(),
                &past.task,
            ),
            _ => format_assignment(&past.task),
        };
        let agent = self.agent_of(&job.name, id, &recipe, &past.task);
        let child = cx
            .spawn()
            .reopen(
                &past.joined.thread,
                agent.into(),
                past.works.saturating_sub(1),
            )
            .await?;
        let child = Arc::new(child);
        let run = self.prompt(job, &child, text)?;
        Ok((child, run, recipe.timeout))
    }

    /// A member can no longer be opened.
    async fn lose(&self, job: &MemberJob, why: &str) {
        if let Some(member) = self.state().members.get_mut(&job.name) {
            (member.status, member.since_ms, member.result) =
                (MemberStatus::Failed, self.now_ms(), why.into());
        }
        if let Some(line) = &job.line {
            let left = serde_json::json!({
                "team": self.plan.name, "name": job.name, "status": MemberStatus::Failed, "text": why,
            });
            line.app("team.failed", 1, left);
        }
        self.notify(
            &job.name,
            MessageKind::Failed,
            &format!("{:?} failed: {why}", job.name),
        )
        .await;
        self.bump();
    }
}

impl MemberNews {
    /// The text for the lead; `None` if there is no news.
    fn text(&self) -> Option<String> {
        let mut text = String::new();
        let mut say = |what: &str, who: &[Arc<str>], then: &str| {
            if !who.is_empty() {
                text.push_str(&format!(" {what}: {}{then}.", texts::names(who)));
            }
        };
        say(
            "At work in your team again, where they stopped",
            &self.goes_on,
            "",
        );
        say(
            "Ended meanwhile",
            &self.ended,
            " (read_messages gives what came of it)",
        );
        say(
            "Ended with your last run, before they were done",
            &self.cut,
            " (assign_task lets them go on)",
        );
        (!text.is_empty()).then(|| format!("The program was lost and has begun again.{text}"))
    }
}
