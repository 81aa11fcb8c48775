//! What records of pauses mean when they come late, whoever wrote them.

use std::sync::Arc;

use adjutant_agent::{Admission, Limits, Pause, Record, Run, RunNo, Seq, Stamped, TurnNo};
use adjutant_llm::{Block, Call, CallId, CallResult, Entry, FinishReason, Reply};
use adjutant_tool::{Answer, Ask, Identity, Replay};

const CALL: CallId = CallId {
    turn: 1,
    attempt: 0,
    block: 0,
};

fn fold(records: Vec<Record>) -> Run {
    let mut run = Run::default();
    for (seq, record) in (1..).zip(records) {
        let stamped = Stamped::new(Seq(seq), 0, "main".into(), record);
        run.apply(&stamped).expect("the record can follow");
    }
    run
}

/// A resumable call that has begun, and one that has not.
fn begun() -> Vec<Record> {
    let call = |block| {
        Arc::new(Block::Call(Call::new(
            CallId { block, ..CALL },
            "tool",
            "{}",
        )))
    };
    let mut reply = Reply::new("test/model".into(), FinishReason::Calls);
    reply.blocks = vec![call(0), call(1)];
    let replay = Replay::Resumable;
    let allow = Admission::Allow {
        args: "{}".into(),
        changed: false,
        title: None,
        replay,
        sequential: false,
    };
    vec![
        Record::began(RunNo(1), vec![Entry::User("Go.".into())], Limits::default()),
        Record::Opened {
            turn: TurnNo(1),
            last: None,
        },
        Record::turn_prepared(TurnNo(1), "test/model".into(), Vec::new()),
        Record::reply_received(TurnNo(1), Arc::new(reply), None),
        Record::Admitted {
            call: CALL,
            admission: allow,
        },
        Record::Launched { calls: vec![CALL] },
    ]
}

fn pause(key: &str) -> Arc<Pause> {
    Arc::new(Pause::for_call(
        &Identity::root("main".into(), "a", "agent"),
        Call::new(CALL, "tool", "{}"),
        Some(key),
        Ask::question("What?"),
        0,
    ))
}

fn open(run: &Run) -> Vec<&str> {
    run.pauses().map(|pause| &*pause.id.0).collect()
}

#[test]
fn pauses_of_a_call_are_closed_when_it_has_its_result() {
    let mut records = begun();
    records.extend(["own", "given"].map(|key| Record::Paused { pause: pause(key) }));
    let run = fold(records.clone());
    assert_eq!(open(&run), ["main/c1_0_0/own", "main/c1_0_0/given"]);
    records.push(Record::call_returned(CALL, CallResult::ok("done")));
    assert!(open(&fold(records.clone())).is_empty());
    let answer = || Record::Answered {
        pause: pause("own").id.clone(),
        answer: Answer::give(1),
    };
    let before = fold(records.clone());
    records.extend([
        answer(),
        Record::Unanswered {
            pause: pause("given").id.clone(),
        },
    ]);
    let after = fold(records);
    assert_eq!(open(&after), Vec::<&str>::new());
    assert_eq!(
        (before.view(), before.history()),
        (after.view(), after.history())
    );
}

#[test]
fn pause_is_known_when_its_call_gave_way_before_it_was_recorded() {
    let mut records = begun();
    records.push(Record::Suspended {
        call: CALL,
        pauses: vec![pause("own")],
    });
    assert_eq!(open(&fold(records.clone())), ["main/c1_0_0/own"]);
    records.push(Record::Answered {
        pause: pause("own").id.clone(),
        answer: Answer::give(1),
    });
    assert!(open(&fold(records)).is_empty());
}
