//! A program that dies anywhere, after acknowledgements anywhere.

use std::{collections::BTreeMap, mem, sync::Arc};

use adjutant_agent::{EventKind, MemoryJournal, Outcome, Record, Running, Stamped};
use adjutant_llm::{BlockKind, Entry, FinishReason};
use proptest::{prelude::*, test_runner::Config};

use super::{fold, records, said, script::Plan, script::text};

/// Where a trial acknowledges and dies, counted in events that were read.
#[derive(Debug, Clone)]
struct Trial {
    plan: Plan,
    acknowledged: Vec<prop::sample::Index>,
    dies: prop::sample::Index,
    resumes: bool,
}

fn trial() -> impl Strategy<Value = Trial> {
    let plan = (1..4_u32, 1..9_usize, any::<bool>(), any::<bool>()).prop_map(
        |(turns, chars, stumbles, thinks)| Plan {
            turns,
            chars,
            stumbles,
            thinks,
        },
    );
    let places = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    (plan, places, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(plan, acknowledged, dies, resumes)| Trial {
            plan,
            acknowledged,
            dies,
            resumes,
        },
    )
}

/// The text of each attempt at a reply, as a reader knows it.
async fn read(running: &mut Running, events: usize, acknowledged: &[usize]) -> Vec<String> {
    let (mut said, mut known): (Vec<String>, _) = (Vec::new(), Vec::new());
    for at in 0..events {
        let Some(event) = running.next().await else {
            break;
        };
        match event.kind {
            EventKind::ReplyStarted { .. } => said.push(String::new()),
            EventKind::TextDelta { text, .. } => {
                said.last_mut().expect("a reply has begun").push_str(&text)
            }
            _ => {}
        }
        if acknowledged.contains(&at) {
            running.acknowledge().await.expect("memory does not fail");
            known.clone_from(&said);
        }
    }
    known
}

/// The text of each attempt at a reply, as far as a log holds it.
fn held(records: &[Arc<Stamped>]) -> Vec<String> {
    let mut held: BTreeMap<_, String> = BTreeMap::new();
    for stamped in records {
        match &stamped.record {
            Record::Heard {
                turn,
                attempt,
                parts,
                ..
            } => {
                let texts = parts
                    .iter()
                    .filter(|part| part.kind == BlockKind::Text)
                    .map(|part| part.text.as_str());
                held.entry((*turn, *attempt)).or_default().extend(texts);
            }
            Record::Replied { turn, reply, .. } => {
                held.insert((*turn, u32::MAX), reply.text());
            }
            _ => {}
        }
    }
    held.into_values().collect()
}

#[track_caller]
fn check(log: &[Arc<Stamped>], acknowledged: &[String]) {
    let held = held(log);
    // What was void by then, though its reader had not come to that, need not be held.
    for said in acknowledged.iter().filter(|said| !said.starts_with('V')) {
        assert!(
            held.iter().any(|held| held.starts_with(said)),
            "{held:?} does not hold {said:?}"
        );
    }
}

async fn play(trial: &Trial) {
    let whole = MemoryJournal::default();
    let mut running = trial
        .plan
        .agent(&whole)
        .run("Go.")
        .stream()
        .expect("the session is free");
    let mut events = 0;
    while running.next().await.is_some() {
        events += 1;
    }
    let log = "log".into();
    let journal = MemoryJournal::default();
    let mut running = trial
        .plan
        .agent(&journal)
        .run("Go.")
        .stream()
        .expect("the session is free");
    let dies = trial.dies.index(events) + 1;
    let places: Vec<usize> = trial.acknowledged.iter().map(|at| at.index(dies)).collect();
    let acknowledged = read(&mut running, dies, &places).await;
    // As a program does that dies: nothing is dropped, nothing closed.
    mem::forget(running);

    let left = records(&journal, &log).await;
    check(&left, &acknowledged);
    let kept = fold(&left);
    let other = trial.plan.agent(&journal).take_over();
    if trial.resumes && kept.is_open() {
        let result = other.resume(Vec::new()).await.expect("the run goes on");
        assert!(
            matches!(result.outcome, Outcome::Finished { .. }),
            "{:?}",
            result.outcome
        );
        assert_eq!(
            (result.text(), result.turns),
            (text(trial.plan.turns - 1), trial.plan.turns)
        );
    } else {
        other.run("Again.").await.expect("it answers");
    }
    let end = fold(&records(&journal, &log).await);
    assert_eq!(end.partial_reply(), []);
    if trial.resumes && kept.is_open() {
        let same = fold(&records(&whole, &log).await);
        assert_eq!(
            (said(&end), end.history().len()),
            (said(&same), same.history().len())
        );
    } else {
        assert!(
            said(&end).starts_with(&said(&kept)),
            "{:?} does not hold {:?}",
            said(&end),
            said(&kept)
        );
    }
    // An interrupted reply has calls that never ran, and each has its result.
    for stored in end.history().iter() {
        if let Entry::Turn(turn) = &stored.entry
            && turn.reply().stop == FinishReason::Interrupted
        {
            assert_eq!(turn.results().len(), turn.reply().calls().count());
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 192, failure_persistence: None, ..Config::default() })]

    #[test]
    fn log_holds_what_was_acknowledged_when_the_program_dies_anywhere(trial in trial()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(play(&trial));
    }
}
