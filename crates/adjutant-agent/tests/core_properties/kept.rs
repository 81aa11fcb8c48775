//! A log that is opened from a fold kept beside it is the same as one that is read whole.

use std::sync::Arc;

use adjutant_agent::{Agent, Answered, Event, Journal, LogId, RunResult, Seq, Snapshot, Stamped};
use adjutant_llm::{FixedWorld, ModelInfo, Request, Script, ScriptedModel, model_fn};
use futures_util::StreamExt;

use super::{actors, keeping::Keeping, plan::Plan, session::Session, tools::World};

/// All that can be seen of a log that is opened and goes on.
#[derive(Debug, PartialEq)]
struct Seen {
    pauses: Vec<Arc<adjutant_agent::Pause>>,
    queued: String,
    preview: Option<Request>,
    events: Vec<Event>,
    ended: Option<RunResult>,
    snapshot: Snapshot,
    records: Vec<String>,
}

/// A fold of the records up to a place, kept, and the log read on from there up to an end; against the log without one.
pub(crate) async fn property(plan: &Plan, place: f64, end: f64) {
    let mut session = Session::new(plan);
    session.play().await;
    let log = session.agent.session_id().clone();
    let records: Vec<_> = session.records().await.into_iter().map(Arc::new).collect();
    let part = |of: usize, share: f64| ((of as f64 * share) as usize).min(of);
    let end = part(records.len(), end).max(1);
    let place = part(end, place).max(1);
    drop(session);

    let (plain, kept) = (Keeping::default(), Keeping::every(1));
    plain.append(&log, &records[..end]).await;
    kept.append(&log, &records[..place]).await;
    agent(plan, &kept, &log)
        .take_over()
        .log()
        .open()
        .await
        .expect("the log opens");
    let folded = kept
        .load_fold(&log)
        .await
        .expect("memory does not fail")
        .expect("a fold is kept");
    assert_eq!(folded.seq, Seq(place as u64));
    kept.append(&log, &records[place..end]).await;

    let whole = look(plan, &plain, &log).await;
    let opened = look(plan, &kept, &log).await;
    assert_eq!(opened, whole, "{place} of {end} records");
}

async fn look(plan: &Plan, journal: &Keeping, log: &LogId) -> Seen {
    let from = journal
        .load_fold(log)
        .await
        .expect("memory does not fail")
        .map_or(0, |folded| folded.seq.0 - 1);
    let agent = agent(plan, journal, log).take_over();
    agent.log().open().await.expect("the log opens");
    assert_eq!(journal.read_after(), Seq(from), "the fold was not used");
    let (pauses, queued) = (agent.log().pauses(), format!("{:?}", agent.queue().items()));
    let preview = agent.log().preview("What now?").await.ok();
    let answers = pauses
        .iter()
        .map(|it| it.with_answer(actors::answer(&it.ask, 0)));
    let answers: Vec<Answered> = answers.collect();
    let running = if answers.is_empty() {
        agent.run("Go on.").stream()
    } else {
        agent.resume(answers).stream()
    };
    let mut running = running.expect("the session is free");
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event);
    }
    let ended = running.result().and_then(|result| result.ok().cloned());
    let records = journal
        .read(log, Seq(0))
        .map(|stamped| text(&stamped.expect("memory does not fail")));
    let records = records.collect().await;
    Seen {
        pauses,
        queued,
        preview,
        events,
        ended,
        snapshot: agent.snapshot(),
        records,
    }
}

fn text(stamped: &Stamped) -> String {
    String::from_utf8_lossy(stamped.bytes().expect("a record is JSON")).into_owned()
}

/// Another program on the log: the same gear, and a model that answers at once.
fn agent(plan: &Plan, journal: &Keeping, log: &LogId) -> Agent {
    let last = model_fn(ModelInfo::new("test/last"), |request| {
        adjutant_llm::Model::stream(
            &ScriptedModel::new([Script::new().text("The end.")]),
            request,
        )
    });
    let agent = Agent::new(last)
        .world(FixedWorld::at_ms(3_000))
        .journal(journal.clone());
    actors::equip(&plan.gear, &World::default(), agent).session(log.clone())
}
