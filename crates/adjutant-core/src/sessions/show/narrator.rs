//! Converts a log to a timeline record by record; it tracks agents and open work.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use adjutant_llm::{Block, CallId, CallResult, Edit, Entry, Origin, Reply, ThreadId, ToolName};
use adjutant_tool::Answer;

use super::{
    super::{chain, short, words},
    ShownKind, TimelineItem,
};
use crate::{
    journal::Stamped,
    number::Seq,
    pause::{Answered, Pause, PauseId},
    record::{AcknowledgedPart, Admission, OutputVerdict, Record, Revised, RunChange},
};

/// The maximum number of characters of arguments.
const MAX_ARGS: usize = 400;
/// The maximum number of characters of a result, and of an incomplete reply.
const MAX_TEXT: usize = 1_000;

/// Converts a log to a timeline record by record.
pub(super) struct Narrator {
    /// The first agent's name.
    name: Arc<str>,
    voices: BTreeMap<ThreadId, Voice>,
    /// The pauses that were added and not answered.
    open: BTreeSet<PauseId>,
    at: (Seq, u64),
    out: Vec<TimelineItem>,
}

/// The facts that are known about a thread.
#[derive(Default)]
struct Voice {
    who: Arc<str>,
    depth: u16,
    queued: BTreeMap<u64, Entry>,
    /// The attempt whose parts were received.
    attempt: u32,
    heard: Vec<AcknowledgedPart>,
    /// The tools of the calls of the turn.
    tools: BTreeMap<CallId, ToolName>,
}

impl Narrator {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            voices: BTreeMap::new(),
            open: BTreeSet::new(),
            at: (Seq(0), 0),
            out: Vec::new(),
        }
    }

    /// Returns the items of a record.
    pub(super) fn tell(&mut self, stamped: &Stamped) -> Vec<TimelineItem> {
        self.at = (stamped.seq, stamped.at_ms);
        let name = &self.name;
        let voice = || Voice {
            who: Arc::clone(name),
            ..Voice::default()
        };
        let mut voice = self.voices.remove(&stamped.thread).unwrap_or_else(voice);
        self.record(&mut voice, &stamped.record);
        self.voices.insert(stamped.thread.clone(), voice);
        if let Record::Returned { call, .. } = &stamped.record {
            chain::forget(&mut self.voices, &stamped.thread, *call);
        }
        std::mem::take(&mut self.out)
    }

    /// Returns the remaining items at the end of the log.
    pub(super) fn rest(&mut self) -> Vec<TimelineItem> {
        for voice in std::mem::take(&mut self.voices).values_mut() {
            self.narrate_partial(voice, ShownKind::Heard);
        }
        std::mem::take(&mut self.out)
    }

    fn record(&mut self, voice: &mut Voice, record: &Record) {
        match record {
            Record::Seeded { entries } | Record::Appended { entries } => {
                self.entries(voice, entries)
            }
            Record::Began { prompts, .. } => self.entries(voice, prompts),
            Record::Queued { item, content, .. } => {
                voice.queued.insert(*item, content.clone());
            }
            Record::Withdrawn { item } => {
                voice.queued.remove(item);
            }
            Record::Placed { items, revised } => self.narrate_placement(voice, items, revised),
            Record::ChildOpened { thread, who, .. } => {
                let task = who
                    .task
                    .as_ref()
                    .map(|task| format!(": {task}"))
                    .unwrap_or_default();
                self.say(voice, ShownKind::Agent, format!("opens {}{task}", who.name));
                let (who, depth) = (Arc::clone(&who.name), who.depth);
                self.voices.insert(
                    thread.clone(),
                    Voice {
                        who,
                        depth,
                        ..Voice::default()
                    },
                );
            }
            Record::App { kind, data, .. } => {
                self.say(
                    voice,
                    ShownKind::Note,
                    format!("{kind}: {}", short::text(&data.to_string(), MAX_ARGS)),
                );
            }
            Record::Configured { .. }
            | Record::Declared { .. }
            | Record::Launched { .. }
            | Record::Begun { .. }
            | Record::Noted { .. }
            | Record::Spent { .. }
            | Record::ChildEnded { .. }
            | Record::Billed { .. }
            | Record::Heeded { .. }
            | Record::Unanswered { .. } => {}
            Record::Opened { .. }
            | Record::Prepared { .. }
            | Record::Overflowed { .. }
            | Record::Refused { .. }
            | Record::Heard { .. }
            | Record::Retracted { .. }
            | Record::Replied { .. }
            | Record::Settled { .. } => self.turn(voice, record),
            Record::Admitted { call, admission } => self.narrate_admission(voice, *call, admission),
            Record::Returned { call, result, .. } => self.result(voice, *call, result),
            Record::Paused { pause } => self.pause(voice, pause),
            Record::Suspended { pauses, .. } => {
                pauses.iter().for_each(|pause| self.pause(voice, pause))
            }
            Record::Answered { pause, answer } => self.answer(voice, pause, answer),
            Record::Resumed { answers, .. } => {
                answers
                    .iter()
                    .for_each(|Answered { pause, answer, .. }| self.answer(voice, pause, answer));
            }
            Record::Denied { .. }
            | Record::OutputChecked { .. }
            | Record::Exhausted { .. }
            | Record::Broke { .. }
            | Record::CancelAsked { .. }
            | Record::Ended { .. }
            | Record::Overruled { .. } => self.end(voice, record),
        }
    }

    fn turn(&mut self, voice: &mut Voice, record: &Record) {
        match record {
            Record::Opened { last, .. } => {
                voice.tools.clear();
                voice.attempt = 0;
                if let Some(limit) = last {
                    self.say(
                        voice,
                        ShownKind::Limit,
                        format!("{limit}: one last turn, without tools"),
                    );
                }
            }
            Record::Prepared { edits, stop, .. } => {
                self.edits(voice, edits);
                if let Some(limit) = stop {
                    self.say(voice, ShownKind::Limit, limit.to_string());
                }
            }
            Record::Overflowed { .. } => {
                voice.heard.clear();
                self.say(voice, ShownKind::Note, "the request did not fit".to_owned());
            }
            Record::Refused { reason, .. } => {
                voice.heard.clear();
                let text = format!("the provider refused media: {reason}");
                self.say(voice, ShownKind::Note, text);
            }
            Record::Heard { attempt, parts, .. } => {
                if *attempt > voice.attempt {
                    self.narrate_partial(voice, ShownKind::Void);
                }
                voice.attempt = *attempt;
                AcknowledgedPart::join(&mut voice.heard, parts);
            }
            Record::Retracted { .. } => self.narrate_partial(voice, ShownKind::Void),
            Record::Replied {
                reply, recovered, ..
            } => {
                voice.heard.clear();
                if let Some(error) = recovered {
                    self.say(
                        voice,
                        ShownKind::Failure,
                        format!("a hook answered for the model: {error}"),
                    );
                }
                self.reply(voice, reply);
            }
            Record::Settled { change, .. } => self.change(voice, change),
            _ => {}
        }
    }

    fn end(&mut self, voice: &Voice, record: &Record) {
        let (kind, text) = match record {
            Record::Denied { point, reason, .. } => {
                (ShownKind::Denied, format!("{point}: {reason}"))
            }
            Record::OutputChecked {
                verdict: OutputVerdict::Refused { reason, .. },
                ..
            } => (
                ShownKind::Denied,
                format!("the answer is refused: {reason}"),
            ),
            Record::Exhausted { limit } => (ShownKind::Limit, limit.to_string()),
            Record::Broke { failure, .. } => (ShownKind::Failure, failure.to_string()),
            Record::CancelAsked { by } => (ShownKind::Cancel, format!("asked by {by}")),
            Record::Ended { outcome, .. } => (ShownKind::End, words::outcome(outcome)),
            Record::Overruled { outcome, by, .. } => (
                ShownKind::End,
                format!("counts for {by} as {}", words::outcome(outcome)),
            ),
            _ => return,
        };
        self.say(voice, kind, text);
    }

    fn entries(&mut self, voice: &mut Voice, entries: &[Entry]) {
        entries.iter().for_each(|entry| self.entry(voice, entry));
    }

    fn entry(&mut self, voice: &mut Voice, entry: &Entry) {
        match entry {
            Entry::User(message) => {
                let kind = match &message.origin {
                    Origin::Steering => ShownKind::Steering,
                    Origin::FollowUp => ShownKind::FollowUp,
                    Origin::Reminder { .. } => ShownKind::Reminder,
                    Origin::Task { .. } => ShownKind::Task,
                    Origin::Peer { .. } => ShownKind::Peer,
                    _ => ShownKind::Prompt,
                };
                self.push(
                    voice,
                    words::origin(&message.origin),
                    kind,
                    words::user(message),
                );
            }
            Entry::Turn(turn) => {
                self.reply(voice, turn.reply());
                turn.pairs()
                    .for_each(|(call, result)| self.result(voice, call.id, result));
            }
            Entry::Summary(summary) => {
                self.say(voice, ShownKind::Summary, summary.text.to_string())
            }
            Entry::Custom(custom) => {
                let text = format!(
                    "{}: {}",
                    custom.kind,
                    short::text(&custom.value.to_string(), MAX_ARGS)
                );
                self.say(voice, ShownKind::Custom, text);
            }
            _ => {}
        }
    }

    fn narrate_placement(&mut self, voice: &mut Voice, items: &[u64], revised: &[Revised]) {
        for item in items {
            let queued = voice.queued.remove(item);
            let revised = revised
                .iter()
                .find(|revised| revised.item == *item)
                .map(|revised| revised.content.clone());
            if let Some(entry) = revised.or(queued) {
                self.entry(voice, &entry);
            }
        }
    }

    fn edits(&mut self, voice: &mut Voice, edits: &[Edit]) {
        for edit in edits {
            match edit {
                Edit::Append { entry } => self.entry(voice, entry),
                Edit::Fold { into, .. } => {
                    let text = format!("{} entries became: {}", into.covers, into.text);
                    self.say(voice, ShownKind::Summary, text);
                }
                _ => {}
            }
        }
    }

    fn change(&mut self, voice: &mut Voice, change: &RunChange) {
        self.edits(voice, &change.edits);
        if let Some(model) = &change.model {
            self.say(voice, ShownKind::Note, format!("goes on with {model}"));
        }
    }

    fn reply(&mut self, voice: &mut Voice, reply: &Reply) {
        for block in &reply.blocks {
            let text = words::block(block)
                .filter(|text| !text.is_empty())
                .map(str::to_owned);
            match (&**block, text) {
                (Block::Text(_), Some(text)) => self.say(voice, ShownKind::Reply, text),
                (Block::Thinking(_), Some(text)) => self.say(voice, ShownKind::Thinking, text),
                (Block::Call(call), _) => {
                    voice.tools.insert(call.id, call.name.clone());
                    let text = format!("{}({})", call.name, short::text(&call.args, MAX_ARGS));
                    self.say(voice, ShownKind::Call, text);
                }
                _ => {}
            }
        }
        if let Some(how) = words::cut(reply.stop) {
            self.say(voice, ShownKind::Note, format!("the reply was {how}"));
        }
    }

    fn narrate_admission(&mut self, voice: &mut Voice, call: CallId, admission: &Admission) {
        match admission {
            Admission::Allow {
                args,
                changed: true,
                ..
            } => {
                let text = format!(
                    "{} runs with {}",
                    voice.tool(call),
                    short::text(args, MAX_ARGS)
                );
                self.say(voice, ShownKind::Note, text);
            }
            Admission::Allow { .. } => {}
            Admission::Refuse { result } | Admission::Supplied { result, .. } => {
                self.result(voice, call, result)
            }
            Admission::Ask { pause, .. } => self.pause(voice, pause),
        }
    }

    fn result(&mut self, voice: &mut Voice, call: CallId, result: &CallResult) {
        let text = short::text(&words::contents(&result.content), MAX_TEXT);
        let text = if result.is_error() {
            format!("({}) {text}", words::status(result.status))
        } else {
            text
        };
        let who = voice.tool(call);
        self.push(voice, who, ShownKind::Result, text);
    }

    /// Adds a pause; the threads above repeat it, which is ignored.
    fn pause(&mut self, voice: &Voice, pause: &Pause) {
        if self.open.insert(pause.id.clone()) {
            let mut text = format!(
                "{}: {} ({})",
                words::ask(pause.ask.kind),
                pause.ask.prompt,
                pause.id
            );
            if let Some(call) = &pause.call {
                // Complete: a hidden part would be approved unseen.
                text += &format!(" {} {}", call.name, call.args);
            }
            self.say(voice, ShownKind::Pause, text);
        }
    }

    fn answer(&mut self, voice: &Voice, pause: &PauseId, answer: &Answer) {
        if self.open.remove(pause) {
            let text = format!("{} ({pause})", words::answer(answer));
            self.push(voice, "user", ShownKind::Answer, text);
        }
    }

    fn narrate_partial(&mut self, voice: &mut Voice, kind: ShownKind) {
        let heard = words::join_parts(&std::mem::take(&mut voice.heard));
        if !heard.is_empty() {
            self.say(voice, kind, short::text(&heard, MAX_TEXT));
        }
    }

    fn say(&mut self, voice: &Voice, kind: ShownKind, text: String) {
        self.push(voice, Arc::clone(&voice.who), kind, text);
    }

    fn push(&mut self, voice: &Voice, who: impl Into<Arc<str>>, kind: ShownKind, text: String) {
        let (seq, at_ms) = self.at;
        self.out.push(TimelineItem {
            seq,
            at_ms,
            depth: voice.depth,
            who: who.into(),
            kind,
            text,
        });
    }
}

impl Voice {
    /// The name of the tool that a call is for.
    fn tool(&self, call: CallId) -> String {
        self.tools
            .get(&call)
            .map_or_else(|| call.to_string(), ToString::to_string)
    }
}
