//! What holds for every script, every failure and every cut: one log, one state, one stream.

#[path = "property/check.rs"]
mod check;
#[path = "property/dripping.rs"]
mod dripping;
#[path = "property/plan.rs"]
mod plan;

use std::sync::Arc;

use adjutant_agent::{
    Agent, Event, EventKind, Events, Journal, Limits, LogId, MemoryJournal, Seq, Stamped,
};
use adjutant_llm::{FixedWorld, Script, ScriptedModel};
use adjutant_tool::Cancel;
use dripping::Dripping;
use futures_util::StreamExt;
use plan::{Cut, Plan, Ran};
use proptest::{prelude::*, test_runner::Config};

/// One run as it was seen: its events, and whether it was read to the end.
struct Seen {
    events: Vec<Event>,
    whole: bool,
}

async fn perform(agent: &Agent, plan: &Plan, model: &Arc<ScriptedModel>) -> Seen {
    let token = Cancel::new();
    let limits = Limits {
        max_turns: Some(plan.max_turns),
        max_parallel_tools: plan.parallel,
        ..Limits::default()
    };
    let mut running = agent
        .clone()
        .limits(limits)
        .run("Go on.")
        .model(Dripping(Arc::clone(model)))
        .cancel(token.clone())
        .stream()
        .expect("the session is free");
    if plan.cut == Cut::Before {
        running.cancel();
    }
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        let at = events.len();
        events.push(event);
        match plan.cut {
            Cut::Handle(n) if n == at => running.cancel(),
            Cut::Token(n) if n == at => token.cancel(),
            Cut::Drop(n) if n == at => {
                return Seen {
                    events,
                    whole: false,
                };
            }
            _ => {}
        }
    }
    let told = events.last().map(|event| &event.kind);
    let result = running
        .result()
        .expect("the run has ended")
        .expect("the log holds")
        .clone();
    assert_eq!(
        told,
        Some(&EventKind::RunFinished {
            result: Arc::new(result)
        })
    );
    Seen {
        events,
        whole: true,
    }
}

async fn read(journal: &MemoryJournal, log: &LogId) -> Vec<Stamped> {
    let records = journal.read(log, Seq(0)).map(|stamped| {
        let stamped = stamped.expect("memory does not fail");
        Stamped::new(
            stamped.seq,
            stamped.at_ms,
            stamped.thread.clone(),
            stamped.record.clone(),
        )
    });
    records.collect().await
}

async fn property(plans: Vec<Plan>) {
    let (journal, ran) = (MemoryJournal::default(), Ran::default());
    let mut agent = Agent::new(ScriptedModel::new([]))
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone());
    for tool in plan::tools(&ran) {
        agent = agent.toolbox(adjutant_tool::Tools::new("tools").tool(Boxed(tool)));
    }
    let (mut seen, mut models) = (Vec::new(), Vec::new());
    for plan in &plans {
        let model = plan::model(&plan.lines);
        seen.push(perform(&agent, plan, &model).await);
        models.push(model);
    }
    // A last run waits for whatever was left behind, and must find the session in order.
    let model = Arc::new(ScriptedModel::new([Script::new().text("The end.")]));
    let last = agent
        .run("Still there?")
        .model(Arc::clone(&model))
        .await
        .expect("it answers");
    assert_eq!(last.text(), "The end.");
    models.push(model);

    let records = read(&journal, agent.session_id()).await;
    let run = check::log(&records);
    assert_eq!(check::bounds(&records), (plans.len() + 1, plans.len() + 1));
    assert_eq!(run.history(), &agent.log().transcript());
    check::transcript(run.history(), &ran.lock().expect("nobody panics inside"));
    let requests = models.iter().flat_map(|model| model.requests());
    requests.for_each(|request| check::request(&request, run.history()));

    let (mut events, mut folded) = (Events::new(Arc::new(agent.identity().clone())), Vec::new());
    records
        .iter()
        .for_each(|stamped| events.fold(stamped, |event| folded.push(event)));
    for (run, seen) in (1..).zip(&seen) {
        check::brackets(&seen.events, seen.whole);
        let live: Vec<&Event> = seen
            .events
            .iter()
            .filter(|event| check::is_record(event))
            .collect();
        let logged: Vec<&Event> = folded.iter().filter(|event| event.run.0 == run).collect();
        assert!(seen.whole || logged.len() >= live.len());
        let logged = if seen.whole {
            &logged[..]
        } else {
            &logged[..live.len()]
        };
        assert_eq!(
            logged, live,
            "the log of run {run} shows something else than the run did"
        );
    }
}

/// A tool behind a box.
struct Boxed(Box<dyn adjutant_tool::ErasedTool>);

#[async_trait::async_trait]
impl adjutant_tool::ErasedTool for Boxed {
    fn spec(&self) -> adjutant_tool::ToolSpec {
        self.0.spec()
    }

    fn rewrites(&self) -> bool {
        self.0.rewrites()
    }

    async fn call(
        &self,
        args: serde_json::Value,
        cx: adjutant_tool::CallContext,
    ) -> Result<adjutant_llm::CallResult, adjutant_tool::ToolError> {
        self.0.call(args, cx).await
    }
}

proptest! {
    #![proptest_config(Config { cases: 128, failure_persistence: None, ..Config::default() })]

    #[test]
    fn session_is_one_log_when_anything_happens(plans in plan::plans()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(property(plans));
    }
}
