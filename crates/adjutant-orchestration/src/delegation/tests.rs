//! Rules of tasks on a board and of reflections, with ones that only take notes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_agent::{Agent, CancelBy, RunResult};
use adjutant_llm::{FixedWorld, Gate, Script, ScriptedModel};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::plan::Again;
use super::{Delegation, Recall, Recalled, TaskDriver, TaskEnd, driver::Lost};
use crate::{Completion, Error, ErrorKind, Profile, Registry};

/// Writes down what is asked of it, and fails at what it is told to.
#[derive(Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
    fails: Option<&'static str>,
    lost: Mutex<Option<Lost>>,
    loses: Notify,
    ended: Notify,
}

impl Notes {
    fn failing(at: &'static str) -> Arc<Self> {
        Arc::new(Self {
            fails: Some(at),
            ..Self::default()
        })
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, step: &str, line: String) -> Result<(), Error> {
        self.lines().push(format!("{step} {line}"));
        if self.fails == Some(step) {
            return Err(Error::new(ErrorKind::Taken, format!("no {step} today")));
        }
        Ok(())
    }

    fn lose(&self, lost: Lost) {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(lost);
        self.loses.notify_one();
    }
}

#[async_trait]
impl TaskDriver for Notes {
    async fn claim(
        &self,
        task: &str,
        agent: &str,
        by: &str,
        _: Again,
    ) -> Result<Vec<String>, Error> {
        assert_eq!(by, "boss");
        self.note("claim", format!("{task} {agent}"))
            .map(|()| Vec::new())
    }

    async fn hand_on(&self, task: &str, to: &str) -> Result<(), Error> {
        self.note("hand_on", format!("{task} {to}"))
    }

    async fn end(&self, task: &str, agent: &str, end: TaskEnd) -> Result<(), Error> {
        let (how, completion) = match end {
            TaskEnd::Completed(completion) => ("completed", completion),
            TaskEnd::Failed(completion) => ("failed", completion),
        };
        self.ended.notify_one();
        self.note(
            "end",
            format!("{task} {agent} {how}: {}", completion.summary),
        )
    }

    async fn hold(&self, _: &str, _: &str) -> Lost {
        loop {
            self.loses.notified().await;
            if let Some(lost) = *self.lost.lock().unwrap_or_else(PoisonError::into_inner) {
                return lost;
            }
        }
    }
}

#[async_trait]
impl Recall for Notes {
    async fn recall(&self, task: &str) -> Result<Recalled, Error> {
        self.note("recall", task.to_owned())?;
        Ok(Recalled {
            ids: vec!["r1".to_owned()],
            text: "<prior_reflections>Mind the gap.".to_owned(),
        })
    }

    async fn record(&self, agent: &str, task: &str, failure: &Completion) -> Result<(), Error> {
        self.note("record", format!("{agent} {task} {}", failure.summary))
    }

    async fn outcome(&self, ids: &[String], helped: Option<bool>) -> Result<(), Error> {
        self.note("outcome", format!("{} {helped:?}", ids.join(",")))
    }
}

fn reports(status: &str, summary: &str) -> Script {
    Script::new().call(
        "task_complete",
        json!({ "status": status, "summary": summary }),
    )
}

/// A registry whose `coder` says this.
fn coder(script: impl Fn() -> Vec<Script> + Send + Sync + 'static) -> Registry {
    let registry = Registry::new();
    registry.register(Profile::new("coder", ""), move || {
        Agent::new(ScriptedModel::new(script())).max_turns(2)
    });
    registry
}

fn board(notes: &Arc<Notes>, registry: &Registry) -> Delegation {
    Delegation::new(registry.clone())
        .max_depth(1)
        .driven_by(Arc::clone(notes) as Arc<dyn TaskDriver>)
}

fn boss(delegation: &Delegation, agent: &str) -> Agent {
    let task = json!({ "agent": agent, "task": "Fix it.", "context": "", "task_id": "T1" });
    let script = [
        Script::new().call("delegate", json!({ "tasks": [task] })),
        Script::new().text("Done."),
    ];
    let boss = Agent::new(ScriptedModel::new(script))
        .name("boss")
        .world(FixedWorld::at_ms(1_000));
    delegation.install(boss)
}

fn report(result: &RunResult) -> Value {
    result.calls[0].result.details[0].clone()
}

/// What comes of one task, and what was noted.
#[track_caller]
fn check(notes: &Arc<Notes>, delegation: &Delegation, expected: &Value, lines: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    let agent = boss(delegation, "coder");
    let result = runtime
        .expect("a runtime")
        .block_on(async { agent.run("Go.").await })
        .expect("the run finishes");
    assert_eq!(
        (report(&result), notes.lines().clone()),
        (
            expected.clone(),
            lines.iter().map(|it| (*it).to_owned()).collect()
        )
    );
}

#[test]
fn task_is_claimed_before_and_ended_after_when_the_agent_reports() {
    for status in ["completed", "failed"] {
        let notes = Arc::new(Notes::default());
        let delegation = board(&notes, &coder(move || vec![reports(status, "So.")]));
        let expected = json!({
            "agent": "coder-fix-1", "result": "So.", "completion": { "status": status, "summary": "So." },
        });
        let end = format!("end T1 coder-fix-1 {status}: So.");
        check(
            &notes,
            &delegation,
            &expected,
            &["claim T1 coder-fix-1", &end],
        );
    }
}

#[test]
fn agent_is_not_started_when_its_task_cannot_be_claimed() {
    let notes = Notes::failing("claim");
    let delegation = board(&notes, &coder(Vec::new));
    let expected =
        json!({ "agent": "coder-fix-1", "error": "the task cannot be claimed: no claim today" });
    check(&notes, &delegation, &expected, &["claim T1 coder-fix-1"]);
}

#[test]
fn task_counts_as_completed_when_the_agent_only_answers() {
    let notes = Arc::new(Notes::default());
    let delegation = board(&notes, &coder(|| vec![Script::new().text("Fixed.")]));
    let expected = json!({ "agent": "coder-fix-1", "result": "Fixed." });
    check(
        &notes,
        &delegation,
        &expected,
        &[
            "claim T1 coder-fix-1",
            "end T1 coder-fix-1 completed: Fixed.",
        ],
    );
}

#[test]
fn task_fails_when_the_agent_runs_out_of_turns() {
    let notes = Arc::new(Notes::default());
    let step = || Script::new().call("none", json!({}));
    let delegation = board(&notes, &coder(move || vec![step(), step()]));
    let said = "the agent reached its limit of max turns before it was done";
    let expected = json!({
        "agent": "coder-fix-1", "result": said, "completion": { "status": "failed", "summary": said },
    });
    let end = format!("end T1 coder-fix-1 failed: {said}");
    check(
        &notes,
        &delegation,
        &expected,
        &["claim T1 coder-fix-1", &end],
    );
}

#[test]
fn task_fails_when_the_agent_does() {
    let notes = Arc::new(Notes::default());
    let fail = || adjutant_llm::Error::new(adjutant_llm::ErrorKind::Auth, "no key");
    let delegation = board(&notes, &coder(move || vec![Script::new().fail(fail())]));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let result = runtime
        .block_on(boss(&delegation, "coder").run("Go."))
        .expect("the run finishes");
    let error = report(&result)["error"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(error.contains("no key"), "{error}");
    assert_eq!(
        *notes.lines(),
        [
            "claim T1 coder-fix-1".to_owned(),
            format!("end T1 coder-fix-1 failed: {error}")
        ]
    );
}

#[test]
fn task_fails_when_the_factory_panics() {
    let (notes, registry) = (Arc::new(Notes::default()), Registry::new());
    registry.register(Profile::new("coder", ""), || unreachable!("no agent today"));
    let said = "the agent could not be made: it panicked";
    let expected = json!({ "agent": "coder-fix-1", "error": said });
    let end = format!("end T1 coder-fix-1 failed: {said}");
    check(
        &notes,
        &board(&notes, &registry),
        &expected,
        &["claim T1 coder-fix-1", &end],
    );
}

#[test]
fn result_has_a_warning_when_the_board_cannot_be_told() {
    let notes = Notes::failing("end");
    let delegation = board(&notes, &coder(|| vec![Script::new().text("Fixed.")]));
    let warning = "the board does not know how the task ended: no end today";
    let expected = json!({ "agent": "coder-fix-1", "result": "Fixed.", "warning": warning });
    check(
        &notes,
        &delegation,
        &expected,
        &[
            "claim T1 coder-fix-1",
            "end T1 coder-fix-1 completed: Fixed.",
        ],
    );
}

#[test]
fn result_has_a_warning_when_there_is_no_board() {
    let notes = Arc::new(Notes::default());
    let delegation = Delegation::new(coder(|| vec![Script::new().text("Fixed.")])).max_depth(1);
    let warning = "there is no board: `task_id` is ignored";
    check(
        &notes,
        &delegation,
        &json!({ "agent": "coder-fix-1", "result": "Fixed.", "warning": warning }),
        &[],
    );
}

#[tokio::test(start_paused = true)]
async fn agent_is_stopped_when_its_task_is_no_longer_its_own() {
    let cancelled = "cancelled: the task was cancelled on the board";
    for (lost, said) in [
        (Lost::Cancelled, cancelled),
        (Lost::Taken, "given up: another worker has the task"),
    ] {
        let (notes, gate) = (Arc::new(Notes::default()), Gate::default());
        let wait = gate.clone();
        let registry = coder(move || vec![Script::new().text("Never.").wait_at(0, &wait)]);
        let (agent, board) = (boss(&board(&notes, &registry), "coder"), Arc::clone(&notes));
        tokio::spawn(async move {
            gate.wait_until_reached().await;
            board.lose(lost);
        });
        let result = agent.run("Go.").await.expect("the run finishes");
        assert_eq!(
            report(&result),
            json!({ "agent": "coder-fix-1", "error": said })
        );
        assert_eq!(
            *notes.lines(),
            ["claim T1 coder-fix-1"],
            "the board knows already"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn agent_does_not_begin_when_its_task_is_cancelled_while_it_waits_for_a_slot() {
    let (notes, registry) = (Arc::new(Notes::default()), Registry::new());
    registry.register(Profile::new("coder", "").max_concurrency(1), || {
        Agent::new(ScriptedModel::new([]))
    });
    let _busy = registry
        .spawn("coder", "")
        .expect("registered")
        .slot
        .take()
        .await;
    let agent = boss(&board(&notes, &registry), "coder");
    notes.lose(Lost::Cancelled);
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        report(&result)["error"],
        "cancelled: the task was cancelled on the board"
    );
}

#[tokio::test(start_paused = true)]
async fn task_fails_when_the_run_is_cancelled() {
    let (notes, gate) = (Arc::new(Notes::default()), Gate::default());
    let wait = gate.clone();
    let registry = coder(move || vec![Script::new().text("Never.").wait_at(0, &wait)]);
    let mut running = boss(&board(&notes, &registry), "coder")
        .run("Go.")
        .stream()
        .expect("the session is free");
    let stopper = running.stopper();
    tokio::spawn(async move {
        gate.wait_until_reached().await;
        stopper.stop(CancelBy::User);
    });
    while running.next().await.is_some() {}
    let end = "end T1 coder-fix-1 failed: the agent was stopped by the parent";
    assert_eq!(*notes.lines(), ["claim T1 coder-fix-1", end]);
}

#[tokio::test(start_paused = true)]
async fn task_fails_when_its_call_is_given_up_without_a_word() {
    use adjutant_tool::{Replay, ToolSpec, tool_fn};
    let (notes, registry) = (Arc::new(Notes::default()), Registry::new());
    let stuck = || ToolSpec {
        replay: Replay::Once,
        ..ToolSpec::new("stuck", "Ignores wishes.", json!({ "type": "object" }))
    };
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    registry.register(Profile::new("coder", ""), move || {
        let begins = Arc::clone(&begins);
        let tool = tool_fn(stuck(), move |_, _| {
            begins.notify_one();
            std::future::pending()
        });
        let model = ScriptedModel::new([Script::new().call("stuck", json!({}))]);
        Agent::new(model)
            .tool(tool)
            .calls(|calls| calls.grace = std::time::Duration::from_secs(3_600))
    });
    let mut running = boss(&board(&notes, &registry), "coder")
        .run("Go.")
        .stream()
        .expect("the session is free");
    let stopper = running.stopper();
    tokio::spawn(async move {
        begun.notified().await;
        stopper.stop(CancelBy::User);
    });
    while running.next().await.is_some() {}
    notes.ended.notified().await;
    assert_eq!(
        notes.lines()[1],
        "end T1 coder-fix-1 failed: the delegation was given up"
    );
}

#[tokio::test]
async fn task_goes_to_the_peer_when_it_is_handed_on() {
    let (notes, registry) = (Arc::new(Notes::default()), Registry::new());
    let args = json!({ "target_agent": "peer", "reason": "r", "context": "c" });
    registry.register(Profile::new("coder", ""), move || {
        Agent::new(ScriptedModel::new([
            Script::new().call("handoff", args.clone())
        ]))
    });
    registry.register(Profile::new("peer", ""), || {
        Agent::new(ScriptedModel::new([reports("completed", "Mine.")]))
    });
    let agent = boss(&board(&notes, &registry).max_handoffs(1), "coder");
    agent.run("Go.").await.expect("the run finishes");
    let expected = [
        "claim T1 coder-fix-1",
        "hand_on T1 peer-fix-1",
        "end T1 peer-fix-1 completed: Mine.",
    ];
    assert_eq!(*notes.lines(), expected);
}

#[tokio::test]
async fn peer_does_not_begin_when_its_task_cannot_be_handed_on() {
    let (notes, registry) = (Notes::failing("hand_on"), Registry::new());
    let args = json!({ "target_agent": "peer", "reason": "r", "context": "c" });
    registry.register(Profile::new("coder", ""), move || {
        Agent::new(ScriptedModel::new([
            Script::new().call("handoff", args.clone())
        ]))
    });
    registry.register(Profile::new("peer", ""), || {
        unreachable!("it does not begin")
    });
    let result = boss(&board(&notes, &registry).max_handoffs(1), "coder")
        .run("Go.")
        .await
        .expect("it finishes");
    let said = "the task cannot be handed on: no hand_on today";
    assert_eq!(
        report(&result),
        json!({ "agent": "coder-fix-1", "error": said })
    );
    assert_eq!(
        notes.lines()[2],
        format!("end T1 coder-fix-1 failed: {said}")
    );
}

fn learning(notes: &Arc<Notes>, registry: Registry) -> Delegation {
    Delegation::new(registry)
        .max_depth(1)
        .learning_from(Arc::clone(notes) as Arc<dyn Recall>)
}

/// What is noted of reflections when the coder says this.
async fn learned(
    notes: &Arc<Notes>,
    script: impl Fn() -> Vec<Script> + Send + Sync + 'static,
) -> Vec<String> {
    boss(&learning(notes, coder(script)), "coder")
        .run("Go.")
        .await
        .expect("the run finishes");
    notes.lines().clone()
}

#[tokio::test]
async fn reflections_are_told_before_the_task_when_there_are_some() {
    let (notes, model) = (
        Arc::new(Notes::default()),
        Arc::new(ScriptedModel::new([reports("completed", "Yes.")])),
    );
    let (registry, asked) = (Registry::new(), Arc::clone(&model));
    registry.register(Profile::new("coder", ""), move || {
        Agent::new(Arc::clone(&model))
    });
    boss(&learning(&notes, registry), "coder")
        .run("Go.")
        .await
        .expect("the run finishes");
    let told: Vec<String> = asked.requests()[0]
        .entries
        .iter()
        .map(|it| format!("{:?}", it.entry))
        .collect();
    assert_eq!(told.len(), 2);
    assert!(
        told[0].contains("<prior_reflections>Mind the gap."),
        "{told:?}"
    );
    assert_eq!(*notes.lines(), ["recall Fix it.", "outcome r1 Some(true)"]);
}

#[tokio::test]
async fn failure_is_recorded_when_the_agent_reports_one_or_runs_out_of_turns() {
    let notes = Arc::new(Notes::default());
    let lines = learned(&notes, || vec![reports("failed", "No.")]).await;
    assert_eq!(
        lines,
        [
            "recall Fix it.",
            "record coder Fix it. No.",
            "outcome r1 Some(false)"
        ]
    );
    let notes = Arc::new(Notes::default());
    let step = || Script::new().call("none", json!({}));
    let lines = learned(&notes, move || vec![step(), step()]).await;
    let said = "record coder Fix it. the agent reached its limit of max turns before it was done";
    assert_eq!(lines, ["recall Fix it.", said, "outcome r1 Some(false)"]);
}

#[tokio::test]
async fn help_is_unknown_when_the_agent_was_broken_off() {
    let notes = Arc::new(Notes::default());
    let fail = || adjutant_llm::Error::new(adjutant_llm::ErrorKind::Auth, "no key");
    assert_eq!(
        learned(&notes, move || vec![Script::new().fail(fail())]).await,
        ["recall Fix it.", "outcome r1 None"]
    );
}

#[tokio::test]
async fn task_is_done_when_reflections_cannot_be_looked_up() {
    let notes = Notes::failing("recall");
    assert_eq!(
        learned(&notes, || vec![reports("completed", "Yes.")]).await,
        ["recall Fix it."]
    );
}
