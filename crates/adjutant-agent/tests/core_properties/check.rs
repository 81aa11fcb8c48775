//! What must hold of the log of a session, counted anew from its records.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_agent::{Admission, AtLimit, Lane, PauseId, Record, RunNo, Stamped};
use adjutant_llm::{CallId, Edit, Entry, FinishReason, Request, Transcript, Usage, UserMessage};
use adjutant_tool::{Answer, AskKind};

/// What the records of a run say that it used: the agent itself, and everything under it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
    pub(crate) own: Usage,
    pub(crate) under: Usage,
}

/// What became of the queued messages, by number.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) queued: BTreeMap<u64, (Lane, Entry)>,
    pub(crate) placed: Vec<u64>,
    pub(crate) withdrawn: BTreeSet<u64>,
}

pub(crate) fn used(records: &[Stamped]) -> BTreeMap<RunNo, Used> {
    let (mut runs, mut now) = (BTreeMap::<RunNo, Used>::new(), RunNo(0));
    for stamped in records {
        if let Record::Began { run, .. } = &stamped.record {
            now = *run;
        }
        let used = runs.entry(now).or_default();
        match &stamped.record {
            Record::Replied {
                reply, original, ..
            } => used.own += original.as_ref().unwrap_or(reply).usage,
            Record::Retracted { usage, .. } => used.own += *usage,
            Record::Prepared { spent, .. } => used.under += *spent,
            Record::Spent { usage, .. } | Record::ChildEnded { usage, .. } => used.under += *usage,
            _ => {}
        }
    }
    runs
}

/// Turns are counted, limits are asked about and extended, and no run goes beyond.
pub(crate) fn limits(records: &[Stamped]) {
    let (mut limits, mut turns, mut cap, mut last) = (None, 0, None, false);
    let (mut asked, mut open): (BTreeSet<PauseId>, bool) = (BTreeSet::new(), false);
    for stamped in records {
        match &stamped.record {
            Record::Began { limits: began, .. } => {
                (limits, turns, cap, last, open) =
                    (Some(began.clone()), 0_u32, began.max_turns, false, false);
                asked.clear();
            }
            Record::Opened { last: is_last, .. } => {
                assert!(!last, "a turn after the last one");
                let limits = limits.as_ref().expect("a run is open");
                if is_last.is_some() {
                    assert_ne!(
                        limits.at_limit,
                        AtLimit::End,
                        "a last turn that nobody wanted"
                    );
                } else {
                    assert!(
                        cap.is_none_or(|cap| turns < cap),
                        "turn {} of {cap:?}",
                        turns + 1
                    );
                }
                (turns, last, open) = (turns + 1, is_last.is_some(), true);
                asked.clear();
            }
            Record::Replied { .. } | Record::Retracted { .. } => open = false,
            // It never asked a model.
            Record::Settled { .. } => turns -= u32::from(std::mem::take(&mut open)),
            // More of another limit, say of one that an effect named, gives no turn.
            Record::Paused { pause }
                if pause.ask.kind == AskKind::Limit && pause.ask.data["limit"] == "turns" =>
            {
                asked.insert(pause.id.clone());
            }
            Record::Answered { pause, answer } if asked.remove(pause) => {
                extend(answer, turns, &mut cap)
            }
            Record::Resumed { answers, .. } => {
                for answered in answers
                    .iter()
                    .filter(|answered| asked.remove(&answered.pause))
                {
                    extend(&answered.answer, turns, &mut cap);
                }
            }
            _ => {}
        }
    }
}

fn extend(answer: &Answer, turns: u32, cap: &mut Option<u32>) {
    if let Answer::Extend { by, .. } = answer {
        *cap = Some(turns + u32::try_from(*by).expect("a small number"));
    }
}

/// Every message is queued once, ends at most once, and is placed in the order of its lane.
pub(crate) fn queue(records: &[Stamped]) -> Queue {
    let mut queue = Queue::default();
    for stamped in records {
        match &stamped.record {
            Record::Queued {
                item,
                lane,
                content,
            } => {
                assert!(
                    queue
                        .queued
                        .insert(*item, (*lane, content.clone()))
                        .is_none(),
                    "{item} was queued twice"
                );
            }
            Record::Withdrawn { item } => {
                assert!(queue.withdrawn.insert(*item), "{item} was withdrawn twice");
            }
            Record::Placed { items, .. } => queue.placed.extend(items),
            _ => {}
        }
    }
    let placed: BTreeSet<u64> = queue.placed.iter().copied().collect();
    assert_eq!(
        placed.len(),
        queue.placed.len(),
        "a message was placed twice: {:?}",
        queue.placed
    );
    assert!(
        placed.is_disjoint(&queue.withdrawn),
        "a message was withdrawn and placed"
    );
    let ended = placed.union(&queue.withdrawn);
    assert!(
        ended
            .into_iter()
            .all(|item| queue.queued.contains_key(item)),
        "a message that was never queued"
    );
    for lane in [Lane::Steering, Lane::FollowUp] {
        let of_lane: Vec<u64> = queue
            .placed
            .iter()
            .copied()
            .filter(|item| queue.queued[item].0 == lane)
            .collect();
        assert!(
            of_lane.is_sorted(),
            "{lane:?} was placed out of order: {of_lane:?}"
        );
    }
    queue
}

/// What a queued message says.
pub(crate) fn text(entry: &Entry) -> String {
    match entry {
        Entry::User(message) => message.content[0].as_text().unwrap_or_default().to_owned(),
        Entry::Custom(custom) => format!("{custom:?}"),
        other => unreachable!("no such entry is queued: {other:?}"),
    }
}

impl Queue {
    /// The number of the message that says this.
    pub(crate) fn number(&self, says: &str) -> Option<u64> {
        self.queued
            .iter()
            .find(|(_, (_, entry))| text(entry) == says)
            .map(|(item, _)| *item)
    }

    /// Whether the message with this number ended.
    pub(crate) fn has_ended(&self, item: u64) -> bool {
        self.withdrawn.contains(&item) || self.placed.contains(&item)
    }
}

/// What ran was admitted and launched, at most once where it may not be repeated, and is in the transcript.
pub(crate) fn calls(
    records: &[Stamped],
    history: &Transcript,
    ran: &BTreeMap<(CallId, &'static str), u32>,
) {
    let (mut admitted, mut launched, mut returned) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for stamped in records {
        match &stamped.record {
            Record::Admitted {
                call,
                admission: Admission::Allow { .. },
            } => {
                admitted.insert(*call);
            }
            Record::Admitted {
                call,
                admission: Admission::Refuse { .. } | Admission::Supplied { .. },
            } => {
                assert!(
                    !launched.contains(call) && returned.insert(*call),
                    "{call} has two results"
                );
            }
            Record::Launched { calls } => {
                for call in calls {
                    assert!(
                        admitted.contains(call) && launched.insert(*call),
                        "{call} was launched wrongly"
                    );
                }
            }
            Record::Returned { call, .. } => {
                assert!(returned.insert(*call), "{call} has two results")
            }
            _ => {}
        }
    }
    let mut pairs = BTreeMap::new();
    for stored in history.iter() {
        let Entry::Turn(turn) = &stored.entry else {
            continue;
        };
        assert_eq!(turn.reply().calls().count(), turn.results().len());
        for (call, _) in turn.pairs() {
            let may_run = turn.reply().may_run_calls();
            assert!(
                pairs.insert(call.id, may_run).is_none(),
                "{} is used twice",
                call.id
            );
        }
    }
    assert_eq!(
        pairs.keys().copied().collect::<BTreeSet<_>>(),
        returned,
        "the results and the transcript differ"
    );
    for ((call, step), times) in ran {
        let may_run = pairs
            .get(call)
            .expect("a call that ran is in the transcript");
        assert!(
            *step == "again" || *times == 1,
            "{step} of {call} was run {times} times"
        );
        assert!(
            launched.contains(call) && *may_run,
            "{call} ran, and should not have"
        );
    }
}

/// A request ends where a model may answer. What the application keeps for itself no model sees.
pub(crate) fn request(request: &Request) {
    let seen = |entry: &&Entry| !matches!(entry, Entry::Custom(_));
    let last = request
        .entries
        .iter()
        .rev()
        .map(|stored| &stored.entry)
        .find(seen);
    let may_answer = match last {
        Some(Entry::User(_) | Entry::Summary(_)) => true,
        Some(Entry::Turn(turn)) => {
            !turn.results().is_empty()
                || matches!(
                    turn.reply().stop,
                    FinishReason::Paused | FinishReason::Interrupted
                )
        }
        _ => false,
    };
    assert!(may_answer, "nothing to answer in {last:?}");
}

/// The history holds what the records say was said, in their order.
pub(crate) fn history(records: &[Stamped], history: &Transcript) {
    let mut users = Vec::new();
    let appended = |edits: &[Edit], users: &mut Vec<Entry>| {
        let entries = edits.iter().filter_map(|edit| {
            if let Edit::Append { entry } = edit {
                Some(entry)
            } else {
                None
            }
        });
        users.extend(entries.cloned());
    };
    let mut queued = BTreeMap::new();
    for stamped in records {
        match &stamped.record {
            Record::Began { prompts, .. } => users.extend(prompts.iter().cloned()),
            Record::Prepared { edits, .. } => appended(edits, &mut users),
            Record::Settled { change, .. } => appended(&change.edits, &mut users),
            Record::Queued { item, content, .. } => {
                queued.insert(*item, content.clone());
            }
            Record::Placed { items, revised } => users.extend(items.iter().map(|item| {
                let revised = revised.iter().find(|revised| revised.item == *item);
                revised.map_or_else(|| queued[item].clone(), |revised| revised.content.clone())
            })),
            _ => {}
        }
    }
    // What answers to limits say is put in by the fold.
    let said = |entry: &Entry| *entry != Entry::User(hurry());
    let kept: Vec<Entry> = history.iter().map(|stored| stored.entry.clone()).collect();
    let kept: Vec<Entry> = kept
        .into_iter()
        .filter(|it| !matches!(it, Entry::Turn(_)) && said(it))
        .collect();
    assert_eq!(kept, users, "the history is not what was said");
}

fn hurry() -> adjutant_llm::UserMessage {
    UserMessage {
        origin: adjutant_llm::Origin::Steering,
        ..adjutant_llm::UserMessage::text("Hurry up.")
    }
}
