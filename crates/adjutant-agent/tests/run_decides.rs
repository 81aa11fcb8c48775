//! What a run decides, record by record, without an executor.

use std::{collections::BTreeSet, sync::Arc};

use adjutant_agent::{
    Activity, ActivityId, Admission, AtLimit, CancelBy, Completion, Limit, Limits, Next, Outcome,
    Pause, Record, Run, RunNo, Seq, Stamped, TurnNo,
};
use adjutant_llm::{
    Block, Call, CallId, CallResult, Entry, FinishReason, ModelId, Overflow, Reply, Status,
    ThreadId, UserMessage,
};
use adjutant_tool::{Answer, Ask, Identity, Replay};

/// A run, and the number of its newest record.
struct Desk {
    run: Run,
    seq: u64,
}

impl Desk {
    fn began(limits: Limits) -> Self {
        let mut desk = Self {
            run: Run::default(),
            seq: 0,
        };
        let prompts = vec![Entry::User(UserMessage::text("Go."))];
        desk.take([Record::began(RunNo(1), prompts, limits)]);
        desk
    }

    fn take(&mut self, records: impl IntoIterator<Item = Record>) {
        for record in records {
            self.seq += 1;
            let stamped = Stamped::new(Seq(self.seq), self.seq, ThreadId::from("main"), record);
            self.run.apply(&stamped).expect("the record follows");
        }
    }

    fn next(&self) -> Next {
        self.run.next(&BTreeSet::new())
    }

    /// Takes what the run decides until it wants something else.
    fn decide(&mut self) -> Next {
        loop {
            match self.next() {
                Next::Decide(records) => self.take(records),
                other => return other,
            }
        }
    }

    /// Performs the turn up to its reply.
    fn reply(&mut self, turn: u64, stop: FinishReason, calls: u32) {
        let turn = TurnNo(turn);
        assert_eq!(
            self.decide(),
            Next::Start(Activity::Prepare { turn }.into())
        );
        self.take([Record::turn_prepared(
            turn,
            ModelId::from("t/m"),
            Vec::new(),
        )]);
        assert_eq!(
            self.decide(),
            Next::Start(Activity::Ask { turn, attempt: 0 }.into())
        );
        self.take([Record::reply_received(
            turn,
            reply(turn.0, stop, calls),
            None,
        )]);
    }

    fn launch(&mut self, acts: Vec<Activity>) {
        let records = self.run.intent(&acts);
        self.take(records);
    }

    fn results(&self) -> Vec<Status> {
        match self
            .run
            .history()
            .iter()
            .next_back()
            .map(|stored| &stored.entry)
        {
            Some(Entry::Turn(turn)) => turn.results().iter().map(|result| result.status).collect(),
            other => unreachable!("no turn at the end, but {other:?}"),
        }
    }
}

fn reply(turn: u64, stop: FinishReason, calls: u32) -> Arc<Reply> {
    let mut reply = Reply::new(ModelId::from("t/m"), stop);
    reply.blocks = (0..calls)
        .map(|block| Arc::new(Block::Call(Call::new(id(turn, block), "act", "{}"))))
        .collect();
    if calls == 0 {
        reply.blocks.push(Arc::new(Block::text("said")));
    }
    Arc::new(reply)
}

fn id(turn: u64, block: u32) -> CallId {
    CallId {
        turn,
        attempt: 0,
        block,
    }
}

fn allow(call: CallId, replay: Replay, sequential: bool) -> Record {
    let admission = Admission::Allow {
        args: "{}".into(),
        changed: false,
        title: None,
        replay,
        sequential,
    };
    Record::Admitted { call, admission }
}

fn pause(call: CallId, key: Option<&str>) -> Arc<Pause> {
    let call = Call::new(call, "act", "{}");
    Arc::new(Pause::for_call(
        &Identity::root("main".into(), "a", "agent"),
        call,
        key,
        Ask::approval("May it?"),
        0,
    ))
}

fn ask(call: CallId, sequential: bool) -> Record {
    Record::Admitted {
        call,
        admission: Admission::Ask {
            pause: pause(call, None),
            sequential,
        },
    }
}

fn enter(call: CallId, replay: Replay, again: bool) -> Activity {
    Activity::Call {
        call,
        replay,
        again,
    }
}

fn admit(call: CallId) -> Activity {
    Activity::Admit { call }
}

fn answered(pause: &Arc<Pause>, answer: Answer) -> Record {
    Record::Resumed {
        answers: vec![pause.with_answer(answer)],
        limits: None,
        terms: None,
    }
}

#[test]
fn call_is_admitted_again_when_its_approval_came_after_parking() {
    let mut desk = Desk::began(Limits::default());
    desk.reply(1, FinishReason::Calls, 1);
    let (call, waits) = (id(1, 0), pause(id(1, 0), None));
    assert_eq!(desk.decide(), Next::Start(admit(call).into()));
    desk.take([ask(call, false)]);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Answer { pause: 0 }.into())
    );
    desk.take([Record::Unanswered {
        pause: waits.id.clone(),
    }]);
    assert_eq!(desk.decide(), Next::Park(vec![Arc::clone(&waits)]));
    desk.take([answered(&waits, Answer::approve())]);
    assert_eq!(desk.decide(), Next::Start(admit(call).into()));
    desk.take([allow(call, Replay::Once, false)]);
    assert_eq!(
        desk.decide(),
        Next::Start(enter(call, Replay::Once, false).into())
    );
}

#[test]
fn call_that_needs_nothing_runs_when_its_sibling_waits() {
    let mut desk = Desk::began(Limits::default());
    desk.reply(1, FinishReason::Calls, 2);
    desk.take([ask(id(1, 0), false), allow(id(1, 1), Replay::Once, false)]);
    let acts = vec![
        Activity::Answer { pause: 0 },
        enter(id(1, 1), Replay::Once, false),
    ];
    assert_eq!(desk.decide(), Next::Start(acts.iter().copied().collect()));
    desk.launch(acts);
    let busy = BTreeSet::from([ActivityId::Answer(0), ActivityId::Call(id(1, 1))]);
    assert_eq!(
        desk.run.next(&busy),
        Next::Wait {
            until_ms: None,
            stop: Vec::new()
        }
    );
    let waits = pause(id(1, 0), None);
    desk.take([Record::Unanswered {
        pause: waits.id.clone(),
    }]);
    let busy = BTreeSet::from([ActivityId::Call(id(1, 1))]);
    assert_eq!(
        desk.run.next(&busy),
        Next::Wait {
            until_ms: None,
            stop: Vec::new()
        }
    );
    desk.take([Record::call_returned(id(1, 1), CallResult::ok("done"))]);
    assert_eq!(desk.decide(), Next::Park(vec![waits]));
}

#[test]
fn call_waits_for_the_one_before_it_when_the_batch_is_sequential() {
    let mut desk = Desk::began(Limits::default());
    desk.reply(1, FinishReason::Calls, 2);
    desk.take([ask(id(1, 0), true), allow(id(1, 1), Replay::Once, false)]);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Answer { pause: 0 }.into())
    );
    let waits = pause(id(1, 0), None);
    desk.take([Record::Unanswered {
        pause: waits.id.clone(),
    }]);
    assert_eq!(desk.decide(), Next::Park(vec![waits]));
}

#[test]
fn call_that_runs_alone_is_a_barrier_between_earlier_and_later_calls() {
    use Replay::{Once, Pure};
    // (calls in order, and whether each runs alone; the calls that start together)
    let table = [
        (
            vec![(Once, true), (Pure, false), (Once, true), (Once, true)],
            vec![vec![0], vec![1], vec![2], vec![3]],
        ),
        (
            vec![
                (Pure, false),
                (Pure, false),
                (Once, true),
                (Pure, false),
                (Pure, false),
            ],
            vec![vec![0, 1], vec![2], vec![3, 4]],
        ),
        (vec![(Once, false), (Once, false)], vec![vec![0, 1]]),
    ];
    for (calls, batches) in table {
        // With a crash in each batch, and without one.
        for crash in (0..batches.len()).map(Some).chain([None]) {
            let mut desk = Desk::began(Limits::default());
            desk.reply(
                1,
                FinishReason::Calls,
                u32::try_from(calls.len()).expect("few"),
            );
            let admissions = (0..).zip(&calls);
            desk.take(admissions.map(|(at, (replay, alone))| allow(id(1, at), *replay, *alone)));
            for (number, batch) in batches.iter().enumerate() {
                let replay = |at: &u32| calls[*at as usize].0;
                let acts = |again| {
                    let acts = batch.iter().map(|at| enter(id(1, *at), replay(at), again));
                    acts.collect::<Vec<_>>()
                };
                assert_eq!(
                    desk.decide(),
                    Next::Start(acts(false).into_iter().collect())
                );
                desk.launch(acts(false));
                if crash == Some(number) {
                    // Nothing is in flight any more: only calls of this batch are repeated or reported as unknown.
                    match desk.next() {
                        Next::Start(found) => assert_eq!(found, acts(true).into_iter().collect()),
                        Next::Decide(lost) => {
                            assert_eq!(lost.len(), batch.len());
                            desk.take(lost);
                            continue;
                        }
                        other => panic!("{other:?}"),
                    }
                }
                // One result after the other: a barrier waits for the last one.
                for (done, at) in (1..).zip(batch) {
                    desk.take([Record::call_returned(id(1, *at), CallResult::ok("done"))]);
                    let left = batch[done..].iter().map(|at| ActivityId::Call(id(1, *at)));
                    let busy: BTreeSet<_> = left.collect();
                    if !busy.is_empty() {
                        let next = desk.run.next(&busy);
                        assert!(matches!(next, Next::Wait { .. }), "{next:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn body_is_entered_again_when_what_it_waits_for_was_answered() {
    let mut desk = Desk::began(Limits::default());
    desk.reply(1, FinishReason::Calls, 1);
    let (call, waits) = (id(1, 0), pause(id(1, 0), Some("word")));
    desk.take([allow(call, Replay::Resumable, false)]);
    desk.launch(vec![enter(call, Replay::Resumable, false)]);
    desk.take([
        Record::Paused {
            pause: Arc::clone(&waits),
        },
        Record::Unanswered {
            pause: waits.id.clone(),
        },
        Record::Suspended {
            call,
            pauses: vec![Arc::clone(&waits)],
        },
    ]);
    assert_eq!(desk.decide(), Next::Park(vec![Arc::clone(&waits)]));
    desk.take([answered(&waits, Answer::approve())]);
    assert_eq!(
        desk.decide(),
        Next::Start(enter(call, Replay::Resumable, true).into())
    );
}

#[test]
fn waiting_calls_are_closed_when_a_parked_run_is_cancelled() {
    let mut desk = Desk::began(Limits::default());
    desk.reply(1, FinishReason::Calls, 2);
    desk.take([ask(id(1, 0), false), allow(id(1, 1), Replay::Once, false)]);
    desk.launch(vec![enter(id(1, 1), Replay::Once, false)]);
    desk.take([Record::CancelAsked { by: CancelBy::User }]);
    assert_eq!(
        desk.decide(),
        Next::Done(Outcome::Cancelled { by: CancelBy::User })
    );
    assert_eq!(desk.results(), [Status::Cancelled, Status::OutcomeUnknown]);
}

#[test]
fn run_asks_for_more_and_goes_on_when_its_turns_are_spent() {
    let mut desk = Desk::began(Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    });
    desk.reply(1, FinishReason::Calls, 1);
    desk.take([allow(id(1, 0), Replay::Once, false)]);
    desk.launch(vec![enter(id(1, 0), Replay::Once, false)]);
    desk.take([
        Record::call_returned(id(1, 0), CallResult::ok("done")),
        Record::turn_settled(TurnNo(1)),
    ]);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Answer { pause: 0 }.into())
    );
    let waits = Arc::clone(desk.run.pauses().next().expect("the run asks"));
    desk.take([Record::Answered {
        pause: waits.id.clone(),
        answer: Answer::Extend {
            by: 2,
            message: None,
        },
    }]);
    desk.reply(2, FinishReason::Calls, 0);
    assert_eq!(
        desk.run.limits().and_then(|limits| limits.max_turns),
        Some(3)
    );
}

#[test]
fn run_has_a_last_turn_without_tools_when_more_is_declined() {
    let mut desk = Desk::began(Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    });
    desk.reply(1, FinishReason::Calls, 1);
    desk.take([allow(id(1, 0), Replay::Once, false)]);
    desk.launch(vec![enter(id(1, 0), Replay::Once, false)]);
    desk.take([
        Record::call_returned(id(1, 0), CallResult::ok("done")),
        Record::turn_settled(TurnNo(1)),
    ]);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Answer { pause: 0 }.into())
    );
    let waits = Arc::clone(desk.run.pauses().next().expect("the run asks"));
    desk.take([Record::Answered {
        pause: waits.id.clone(),
        answer: Answer::Decline {
            message: Some("Stop.".into()),
        },
    }]);
    desk.reply(2, FinishReason::Calls, 1);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Settle { turn: TurnNo(2) }.into())
    );
    assert_eq!(desk.results(), [Status::OverLimit]);
    desk.take([Record::turn_settled(TurnNo(2))]);
    assert_eq!(
        desk.decide(),
        Next::Done(Outcome::Limit {
            limit: Limit::Turns
        })
    );
}

#[test]
fn run_ends_at_its_limit_without_a_request_when_an_effect_says_so() {
    let mut desk = Desk::began(Limits::default());
    let turn = TurnNo(1);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Prepare { turn }.into())
    );
    let mut prepared = Record::turn_prepared(turn, ModelId::from("t/m"), Vec::new());
    if let Record::Prepared { stop, .. } = &mut prepared {
        *stop = Some(Limit::Stalled);
    }
    desk.take([prepared]);
    assert_eq!(
        desk.decide(),
        Next::Done(Outcome::Limit {
            limit: Limit::Stalled
        })
    );
    let who = Arc::new(adjutant_tool::Identity::root("main".into(), "a", "a"));
    assert_eq!(
        desk.run.result(&who).expect("it has ended").turns,
        0,
        "no request was made"
    );
}

#[test]
fn run_winds_up_when_its_time_is_spent() {
    let mut desk = Desk::began(Limits::default());
    desk.reply(1, FinishReason::Calls, 1);
    desk.take([allow(id(1, 0), Replay::Once, false)]);
    desk.launch(vec![enter(id(1, 0), Replay::Once, false)]);
    desk.take([Record::Exhausted { limit: Limit::Time }]);
    let busy = BTreeSet::from([ActivityId::Call(id(1, 0))]);
    assert_eq!(
        desk.run.next(&busy),
        Next::Wait {
            until_ms: None,
            stop: vec![ActivityId::Call(id(1, 0))]
        }
    );
    desk.take([Record::call_returned(
        id(1, 0),
        CallResult::new(Status::Cancelled, "stopped"),
    )]);
    assert_eq!(
        desk.decide(),
        Next::Done(Outcome::Limit { limit: Limit::Time })
    );
}

#[test]
fn run_goes_on_when_a_message_was_placed_after_its_answer() {
    let mut desk = Desk::began(Limits::default());
    desk.reply(1, FinishReason::End, 0);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Settle { turn: TurnNo(1) }.into())
    );
    let content = Entry::User(UserMessage::text("And this?"));
    let lane = adjutant_agent::Lane::FollowUp;
    desk.take([
        Record::Queued {
            item: 1,
            lane,
            content,
        },
        Record::turn_settled(TurnNo(1)),
        Record::Placed {
            items: vec![1],
            revised: Vec::new(),
        },
    ]);
    desk.reply(2, FinishReason::End, 0);
    desk.take([Record::turn_settled(TurnNo(2))]);
    let reply = Arc::clone(desk.run.reply().expect("it said something"));
    assert_eq!(
        desk.decide(),
        Next::Done(Outcome::Finished {
            reply,
            why: Completion::Answer
        })
    );
}

#[test]
fn run_goes_on_when_its_reply_was_interrupted_and_nobody_cancelled() {
    let mut desk = Desk::began(Limits::default());
    desk.reply(1, FinishReason::Interrupted, 1);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Settle { turn: TurnNo(1) }.into())
    );
    assert_eq!(desk.results(), [Status::Cancelled]);
    desk.take([Record::turn_settled(TurnNo(1))]);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Prepare { turn: TurnNo(2) }.into())
    );
}

#[test]
fn turn_is_prepared_again_when_its_request_did_not_fit() {
    let mut desk = Desk::began(Limits::default());
    let turn = TurnNo(1);
    desk.decide();
    desk.take([
        Record::turn_prepared(turn, ModelId::from("t/m"), Vec::new()),
        Record::Overflowed {
            turn,
            overflow: Overflow::default(),
        },
    ]);
    assert_eq!(
        desk.decide(),
        Next::Start(Activity::Prepare { turn }.into())
    );
}

#[test]
fn answer_means_nothing_when_nobody_asked() {
    let mut desk = Desk::began(Limits::default());
    let before = desk.next();
    desk.take([answered(&pause(id(1, 0), None), Answer::approve())]);
    assert_eq!((desk.next(), desk.run.pauses().count()), (before, 0));
}
