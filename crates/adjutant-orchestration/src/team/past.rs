//! The state of a team in the log, read when a program finds a conversation of its lead from another one.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use adjutant_agent::{DriveStart, JournalError, Record, Spend, Stamped};
use adjutant_llm::{CallId, NanoUsd, ThreadId, Usage};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{LEAD, MemberStatus, Message, recipe::NewMember, texts};

/// A team as of its newest record in the log.
#[derive(Default)]
pub(super) struct Past {
    pub(super) room: Option<Arc<str>>,
    pub(super) members: BTreeMap<Arc<str>, PastMember>,
    threads: BTreeMap<ThreadId, Arc<str>>,
    pub(super) joined: u64,
    pub(super) begun: u64,
    pub(super) sent: u64,
    pub(super) messages: BTreeMap<u64, Message>,
    /// The numbers of the messages that each agent has not read.
    pub(super) unread: BTreeMap<Arc<str>, VecDeque<u64>>,
    pub(super) spent: BTreeMap<u64, Spend>,
    pub(super) requests: u64,
    run: u64,
}

/// A member in the log.
pub(super) struct PastMember {
    pub(super) joined: Joined,
    pub(super) task: Arc<str>,
    pub(super) status: MemberStatus,
    pub(super) since_ms: u64,
    pub(super) result: Arc<str>,
    /// The number of its newest task in the team.
    pub(super) work: u64,
    /// The number of tasks that its conversation was given.
    pub(super) works: usize,
    pub(super) call: CallId,
    /// True if the lead was notified of the end of its task.
    pub(super) noticed: bool,
    /// True if its run has ended since.
    pub(super) earlier: bool,
    /// True if that run ended while it was running.
    pub(super) cut: bool,
}

/// The parts of `team.joined` that a member is found again by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Joined {
    pub(super) member_id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) thread: ThreadId,
    pub(super) call: CallId,
    pub(super) room: Arc<str>,
    /// The lead's description of it.
    pub(super) given: NewMember,
}

/// The parts of `team.assigned` that a task is found again by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AssignedTask {
    pub(super) name: Arc<str>,
    pub(super) call: CallId,
    /// The whole task.
    pub(super) given: Arc<str>,
}

/// The parts of the end of a member's task.
#[derive(Debug, Clone, Deserialize)]
struct TaskEnded {
    name: Arc<str>,
    status: MemberStatus,
    text: Arc<str>,
    /// False if it never began.
    #[serde(default = "begun")]
    begun: bool,
}

/// A message that was sent.
#[derive(Debug, Clone, Deserialize)]
struct SentMessage {
    #[serde(flatten)]
    message: Message,
    received_by: Vec<Arc<str>>,
}

impl Past {
    /// Reads the state of a team from the log.
    pub(super) async fn read(cx: &DriveStart, team: &str) -> Result<Self, JournalError> {
        let (mut past, mut records) = (Self::default(), cx.records());
        while let Some(stamped) = records.next().await {
            past.take(&*stamped?, &cx.who.thread, team);
        }
        if past.run < cx.run.0 {
            past.begin_run();
        }
        Ok(past)
    }

    fn take(&mut self, stamped: &Stamped, lead: &ThreadId, team: &str) {
        if stamped.thread == *lead {
            match &stamped.record {
                Record::Began { run, .. } => {
                    self.begin_run();
                    self.run = run.0;
                }
                Record::Ended { .. } => self.end_work(),
                Record::App { kind, data, .. }
                    if kind.starts_with("team.") && data["team"] == team =>
                {
                    // Unreadable records were not written by this program.
                    let _ = self.hear(kind, data, stamped.at_ms);
                }
                Record::Returned { result, .. } => {
                    self.read_by(&LEAD.into(), &result.details, team)
                }
                _ => {}
            }
        } else if let Some(name) = self.threads.get(&stamped.thread).cloned() {
            match &stamped.record {
                Record::Returned { result, .. } => self.read_by(&name, &result.details, team),
                Record::Prepared { spent, cost, .. } => {
                    self.requests += 1;
                    self.spend(&name, *spent, *cost);
                }
                Record::Replied {
                    reply,
                    original,
                    cost,
                    ..
                } => {
                    self.spend(&name, original.as_ref().unwrap_or(reply).usage, *cost);
                }
                Record::Retracted { usage, cost, .. } | Record::ChildEnded { usage, cost, .. } => {
                    self.spend(&name, *usage, *cost);
                }
                _ => {}
            }
        }
    }

    fn hear(&mut self, kind: &str, data: &Value, at_ms: u64) -> Result<(), serde_json::Error> {
        match kind {
            "team.joined" => {
                let joined = Joined::deserialize(data)?;
                (self.joined, self.begun) = (self.joined + 1, self.begun + 1);
                self.room = Some(Arc::clone(&joined.room));
                self.unread.remove(&joined.name);
                self.threads
                    .insert(joined.thread.clone(), Arc::clone(&joined.name));
                let member = PastMember {
                    task: Arc::clone(&joined.given.task),
                    status: MemberStatus::Active,
                    since_ms: at_ms,
                    result: Arc::default(),
                    work: self.begun,
                    works: 1,
                    call: joined.call,
                    noticed: false,
                    earlier: false,
                    cut: false,
                    joined,
                };
                self.members.insert(Arc::clone(&member.joined.name), member);
            }
            "team.assigned" => {
                let assigned = AssignedTask::deserialize(data)?;
                self.begun += 1;
                if let Some(member) = self.members.get_mut(&assigned.name) {
                    (member.status, member.since_ms, member.result) =
                        (MemberStatus::Active, at_ms, Arc::default());
                    (member.work, member.works, member.task) =
                        (self.begun, member.works + 1, assigned.given);
                    (member.noticed, member.earlier, member.cut, member.call) =
                        (false, false, false, assigned.call);
                }
            }
            "team.completed" | "team.failed" | "team.left" => {
                let ended = TaskEnded::deserialize(data)?;
                if !ended.begun {
                    self.members.remove(&ended.name);
                } else if let Some(member) = self.members.get_mut(&ended.name) {
                    (member.status, member.since_ms, member.result) =
                        (ended.status, at_ms, ended.text);
                }
            }
            "team.message" | "team.notice" => {
                let SentMessage {
                    message,
                    received_by,
                } = SentMessage::deserialize(data)?;
                if let Some(member) = self
                    .members
                    .get_mut(&message.from)
                    .filter(|_| kind == "team.notice")
                {
                    member.noticed = true;
                }
                let Some(number) = texts::number_of(&message.id) else {
                    return Ok(());
                };
                self.sent = self.sent.max(number);
                for name in received_by {
                    self.unread.entry(name).or_default().push_back(number);
                }
                self.messages.insert(number, message);
            }
            _ => {}
        }
        Ok(())
    }

    /// A result contains the messages that were read.
    fn read_by(&mut self, name: &Arc<str>, details: &Value, team: &str) {
        let Some(read) = details
            .get("read")
            .and_then(Value::as_array)
            .filter(|_| details["team"] == team)
        else {
            return;
        };
        if let Some(unread) = self.unread.get_mut(name) {
            unread.retain(|number| {
                !read
                    .iter()
                    .any(|id| *id == json!(texts::message_id(*number)))
            });
        }
    }

    fn spend(&mut self, name: &Arc<str>, usage: Usage, cost: Option<NanoUsd>) {
        if let Some(member) = self.members.get(name) {
            let spent = self.spent.entry(member.work).or_default();
            *spent = *spent
                + Spend {
                    tokens: usage.total(),
                    cost: cost.unwrap_or_default(),
                    ..Spend::default()
                };
        }
    }

    /// A run of the lead has ended: running members end with it.
    fn end_work(&mut self) {
        for member in self
            .members
            .values_mut()
            .filter(|member| member.status == MemberStatus::Active)
        {
            (member.status, member.cut) = (MemberStatus::Left, true);
        }
    }

    /// A run of the lead begins: messages of the previous one are dropped.
    fn begin_run(&mut self) {
        self.end_work();
        self.members
            .values_mut()
            .for_each(|member| member.earlier = true);
        (self.room, self.sent, self.requests) = (None, 0, 0);
        self.messages.clear();
        self.unread.clear();
        self.spent.clear();
    }
}

fn begun() -> bool {
    true
}
