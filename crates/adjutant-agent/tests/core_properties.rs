//! What holds for every script, hook, effect, middleware, pause, queue and cut: one log, one state, one stream.

#[path = "core_properties/actors.rs"]
mod actors;
#[path = "property/brackets.rs"]
mod brackets;
#[path = "core_properties/check.rs"]
mod check;
#[path = "property/dripping.rs"]
mod dripping;
#[path = "property/fold.rs"]
mod fold;
#[path = "core_properties/found.rs"]
mod found;
#[path = "core_properties/keeping.rs"]
mod keeping;
#[path = "core_properties/kept.rs"]
mod kept;
#[path = "core_properties/plan.rs"]
mod plan;
#[path = "core_properties/session.rs"]
mod session;
#[path = "core_properties/tools.rs"]
mod tools;

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::{Agent, Event, Events, Outcome, Stamped};
use adjutant_llm::{ModelInfo, Script, ScriptedModel, Usage, model_fn};
use keeping::Keeping;
use plan::{Around, Plan};
use proptest::{prelude::*, test_runner::Config};
use session::Session;

async fn property(plan: &Plan) {
    let mut session = Session::new(plan);
    session.play().await;
    // Another program, with nothing around it, finds the session in order and says what is left to say.
    let records = session.records().await;
    let logged = check::queue(&records);
    let last = model_fn(ModelInfo::new("test/last"), |request| {
        check::request(&request);
        adjutant_llm::Model::stream(
            &ScriptedModel::new([Script::new().text("The end.")]),
            request,
        )
    });
    let last = Agent::new(last)
        .journal(session.journal.clone())
        .session(session.agent.session_id().clone())
        .take_over();
    last.log().open().await.expect("the log opens");
    assert!(last.log().pauses().is_empty());
    queues(&session, &logged, &last);
    let result = last.run("Still there?").await.expect("it answers");
    assert_eq!(result.text(), "The end.");
    assert!(matches!(result.outcome, Outcome::Finished { .. }));
    assert!(last.queue().is_empty(), "a message waits for ever");

    let records = session.records().await;
    let run = fold::log(&records);
    assert_eq!(run.history(), &last.log().transcript());
    let queue = check::queue(&records);
    assert!(
        queue.queued.keys().all(|item| queue.has_ended(*item)),
        "a message was lost: {queue:?}"
    );
    check::limits(&records);
    check::history(&records, run.history());
    check::calls(
        &records,
        run.history(),
        &session.world.ran.lock().expect("nobody panics inside"),
    );
    session
        .requests()
        .for_each(|request| check::request(&request));
    usage(&session, &records);
    streams(&session, &records);
}

/// Every message that was queued was placed, was withdrawn, or waits; exactly one of them.
fn queues(session: &Session<'_>, logged: &check::Queue, last: &Agent) {
    let numbers: BTreeMap<String, u64> = logged
        .queued
        .iter()
        .map(|(item, (_, entry))| (check::text(entry), *item))
        .collect();
    assert_eq!(
        numbers.len(),
        logged.queued.len(),
        "a message was queued twice"
    );
    let waits = |agent: &Agent, wanted: &str| {
        agent
            .queue()
            .items()
            .iter()
            .any(|item| check::text(&item.content) == wanted)
    };
    for pushed in &session.pushed {
        let number = numbers.get(&pushed.text);
        let ended = number.is_some_and(|item| logged.has_ended(*item));
        let here = waits(&session.agent, &pushed.text);
        let withdrawn = pushed.withdrawn_at.is_some();
        let taken_back = withdrawn && !number.is_some_and(|item| logged.placed.contains(item));
        assert!(
            !withdrawn || (taken_back && !here),
            "{} was withdrawn and placed",
            pushed.text
        );
        let count =
            u32::from(ended || taken_back) + u32::from(here) + u32::from(pushed.lost && !here);
        assert_eq!(
            count, 1,
            "{}: ended {ended}, waits {here}, withdrawn {withdrawn}",
            pushed.text
        );
        // What a log holds waits for whoever opens it.
        let open = number.is_some_and(|item| !logged.has_ended(*item));
        assert_eq!(
            waits(last, &pushed.text),
            open,
            "{} in another program",
            pushed.text
        );
    }
}

/// Results say what the records add up to; what models used is all there if nothing was cut.
fn usage(session: &Session<'_>, records: &[Stamped]) {
    let runs = check::used(records);
    let newest: BTreeMap<_, _> = session
        .results()
        .map(|result| (result.run, result))
        .collect();
    for (run, result) in newest {
        let ended = !matches!(result.outcome, Outcome::Paused { .. });
        if ended {
            let used = runs[&run];
            assert_eq!(
                (result.usage, result.total_usage),
                (used.own, used.own + used.under),
                "{result:?}"
            );
        }
    }
    let left = session.drives.iter().any(|seen| !seen.whole);
    if session.clean && !left && !leaves(session) {
        let under = runs
            .values()
            .fold(Usage::default(), |sum, used| sum + used.under);
        assert_eq!(
            under,
            *session.world.helped.lock().expect("nobody panics inside"),
            "what helpers used"
        );
    }
}

fn leaves(session: &Session<'_>) -> bool {
    session
        .plan()
        .gear
        .around
        .iter()
        .any(|around| matches!(around, Around::Leaves(_)))
}

/// Every drive has one end and is balanced; what it told is what the log tells.
fn streams(session: &Session<'_>, records: &[Stamped]) {
    let who = Arc::new(session.agent.identity().clone());
    let (mut events, mut logged) = (Events::new(Arc::clone(&who)), Vec::new());
    records
        .iter()
        .for_each(|stamped| events.fold(stamped, |event| logged.push(event)));
    let (mut brackets, mut at, mut follows) = (brackets::Brackets::new(true), 0, true);
    for seen in &session.drives {
        brackets.drive(&seen.events, seen.whole);
        let live: Vec<Event> = seen
            .events
            .iter()
            .filter(|event| brackets::is_record(event))
            .cloned()
            .collect();
        let live: Vec<Event> = live
            .into_iter()
            .map(|event| Event {
                who: Arc::clone(&who),
                ..event
            })
            .collect();
        if let Some(first) = live.first().filter(|_| !follows) {
            at += logged[at..]
                .iter()
                .take_while(|event| event.seq < first.seq)
                .count();
        }
        let end = at + live.len();
        assert!(
            end <= logged.len(),
            "a drive told more than the log: {live:#?}"
        );
        assert_eq!(
            live,
            logged[at..end],
            "the log tells something else than the drive did"
        );
        (at, follows) = (end, seen.whole);
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(work)
}

/// The bytes of a session: its records and its events.
async fn bytes(plan: &Plan, journal: Keeping) -> (Vec<String>, Vec<Event>) {
    let mut session = Session::on(plan, journal);
    session.play().await;
    let records = session.records().await;
    let text =
        |stamped: &Stamped| String::from_utf8(stamped.bytes().expect("a record is JSON").to_vec());
    let records = records
        .iter()
        .map(|stamped| text(stamped).expect("JSON is text"))
        .collect();
    (
        records,
        session
            .drives
            .into_iter()
            .flat_map(|seen| seen.events)
            .collect(),
    )
}

proptest! {
    #![proptest_config(Config { cases: 128, failure_persistence: None, ..Config::default() })]

    #[test]
    fn session_is_one_log_when_everything_takes_part(plan in plan::plans()) {
        run(property(&plan));
    }

    #[test]
    fn session_is_byte_for_byte_the_same_when_it_is_played_again(plan in plan::plans()) {
        let (first, second) = (run(bytes(&plan, Keeping::default())), run(bytes(&plan, Keeping::default())));
        prop_assert_eq!(first.0, second.0);
        prop_assert_eq!(first.1, second.1);
    }

    #[test]
    fn session_is_byte_for_byte_the_same_when_folds_of_it_are_kept(plan in plan::plans(), every in 1_u64..80) {
        let (plain, kept) = (run(bytes(&plan, Keeping::default())), run(bytes(&plan, Keeping::every(every))));
        prop_assert_eq!(plain.0, kept.0);
        prop_assert_eq!(plain.1, kept.1);
    }

    #[test]
    fn session_goes_on_the_same_when_it_is_opened_from_a_kept_fold(plan in plan::plans(), place in 0.0..1.0_f64, end in 0.0..1.0_f64) {
        run(kept::property(&plan, place, end));
    }
}
