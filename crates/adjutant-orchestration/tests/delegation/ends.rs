//! How a delegated task ends, and what is told of it.

use adjutant_agent::{Agent, CancelBy, Outcome};
use adjutant_llm::{CallResult, Error, ErrorKind, FinishReason, Gate, Script, Status};
use adjutant_orchestration::{Completion, CompletionStatus, Profile, Registry};
use adjutant_tool::{Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};

use super::desk::{
    boss, calls, delegated, delegates, register, register_as, reports, results, says, task,
};

/// What comes of a task whose agent says this.
async fn ended(script: impl Fn() -> Vec<Script> + Send + Sync + 'static, max_turns: u32) -> Value {
    let registry = Registry::new();
    let step = || {
        let spec = ToolSpec {
            replay: Replay::Pure,
            ..ToolSpec::new("step", "Steps.", json!({ "type": "object" }))
        };
        tool_fn(spec, |_, _| async { Ok(CallResult::ok("stepped")) })
    };
    register_as(
        &registry,
        Profile::new("coder", ""),
        move |_| script(),
        move |agent: Agent| agent.max_turns(max_turns).tool(step()),
    );
    delegated(&registry, [task("coder", "Do it.")]).await[0].take()
}

#[tokio::test]
async fn completion_is_whole_when_the_agent_reports() {
    let said = json!({
        "status": "completed", "summary": "All done.", "files_modified": ["a.rs"], "tests_run": ["a: ok"],
        "caveats": "None.",
    });
    let args = said.clone();
    let report = ended(move || vec![calls("task_complete", args.clone())], 5).await;
    assert_eq!(
        report,
        json!({ "agent": "coder-task-1", "result": "All done.", "completion": said })
    );
}

#[tokio::test]
async fn result_is_a_line_of_status_and_caveats_when_the_summary_is_blank() {
    let said = json!({ "status": "failed", "summary": " ", "caveats": "No compiler." });
    let report = ended(move || vec![calls("task_complete", said.clone())], 5).await;
    assert_eq!(report["result"], "failed: No compiler.");
    let report = ended(
        || {
            vec![calls(
                "task_complete",
                json!({ "status": "completed", "summary": "" }),
            )]
        },
        5,
    )
    .await;
    assert_eq!(report["result"], "completed");
}

#[tokio::test]
async fn result_is_the_reply_when_the_agent_does_not_report() {
    let report = ended(|| vec![says("Simply done.")], 5).await;
    assert_eq!(
        report,
        json!({ "agent": "coder-task-1", "result": "Simply done." })
    );
    let report = ended(|| vec![says(&"ä".repeat(2_001))], 5).await;
    let cut = format!(
        "{}\n[cut here: 1 characters are left out]",
        "ä".repeat(2_000)
    );
    assert_eq!(report["result"], cut);
}

#[tokio::test]
async fn reply_is_marked_when_the_output_limit_has_cut_it_off() {
    let report = ended(|| vec![says("Half a").stop(FinishReason::Length)], 5).await;
    let expected = json!({
        "agent": "coder-task-1", "result": "Half a", "warning": "the answer was cut off by the output limit",
    });
    assert_eq!(report, expected);
}

#[tokio::test]
async fn completion_is_bounded_when_the_agent_says_too_much() {
    let said = json!({
        "status": "completed", "summary": "s".repeat(2_010), "caveats": "c".repeat(2_010),
        "files_modified": vec!["f".repeat(400); 105],
    });
    let report = ended(move || vec![calls("task_complete", said.clone())], 5).await;
    let completion: Completion =
        serde_json::from_value(report["completion"].clone()).expect("a completion");
    assert!(
        completion
            .summary
            .ends_with("s\n[cut here: 10 characters are left out]")
    );
    assert!(
        completion
            .caveats
            .expect("caveats")
            .ends_with("c\n[cut here: 10 characters are left out]")
    );
    assert_eq!(
        (
            completion.files_modified.len(),
            &*completion.files_modified[100]
        ),
        (101, "and 5 more")
    );
    assert!(completion.files_modified[0].ends_with("f\n[cut here: 100 characters are left out]"));
}

#[tokio::test]
async fn failed_completion_is_made_when_the_agent_runs_out_of_turns() {
    let report = ended(|| (0..9).map(|_| calls("step", json!({}))).collect(), 3).await;
    let summary = "the agent reached its limit of max turns before it was done";
    let expected = json!({
        "agent": "coder-task-1", "result": summary, "completion": { "status": "failed", "summary": summary },
    });
    assert_eq!(report, expected);
    let report = ended(
        || vec![Script::new().text("So far.").call("step", json!({}))],
        1,
    )
    .await;
    assert_eq!(
        report["result"],
        format!("{summary}; its last reply: So far.")
    );
}

#[tokio::test]
async fn completion_counts_when_it_is_said_in_the_last_turn() {
    let report = ended(|| vec![reports("Just in time.")], 1).await;
    assert_eq!(
        report["completion"],
        json!({ "status": "completed", "summary": "Just in time." })
    );
}

#[tokio::test]
async fn status_is_an_error_of_the_call_when_it_is_none() {
    let registry = Registry::new();
    let asked = register(&registry, Profile::new("coder", ""), |_| {
        vec![
            calls(
                "task_complete",
                json!({ "status": "maybe", "summary": "?" }),
            ),
            reports("Now."),
        ]
    });
    let report = delegated(&registry, [task("coder", "Do it.")]).await;
    assert_eq!(
        (report[0]["result"].as_str(), asked.requests().len()),
        (Some("Now."), 2)
    );
}

#[tokio::test]
async fn first_report_counts_when_there_are_two() {
    let two = || {
        vec![
            Script::new()
                .call(
                    "task_complete",
                    json!({ "status": "failed", "summary": "First." }),
                )
                .call(
                    "task_complete",
                    json!({ "status": "completed", "summary": "Second." }),
                ),
        ]
    };
    let registry = Registry::new();
    register(&registry, Profile::new("coder", ""), move |_| two());
    let (_, agent) = boss(
        &registry,
        [delegates([task("coder", "Do it.")]), says("Done.")],
    );
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut said = Vec::new();
    while let Some(event) = running.next().await {
        if let adjutant_agent::EventKind::ToolFinished { result, name, .. } = event.kind {
            said.push((name.to_string(), result.text()));
        }
    }
    assert_eq!(said[0], ("task_complete".into(), "Reported.".into()));
    assert_eq!(
        said[1].1,
        "Ignored: you have reported already, and the first report counts."
    );
    assert!(said[2].1.contains("\"result\":\"First.\""), "{}", said[2].1);
}

#[tokio::test]
async fn run_of_the_agent_ends_at_once_when_it_reports() {
    let registry = Registry::new();
    let asked = register(&registry, Profile::new("coder", ""), |_| {
        vec![reports("Done."), says("Never.")]
    });
    delegated(&registry, [task("coder", "Do it.")]).await;
    assert_eq!(asked.requests().len(), 1);
}

#[tokio::test]
async fn error_is_told_when_the_agent_fails() {
    let report = ended(
        || vec![Script::new().fail(Error::new(ErrorKind::Auth, "the key is wrong"))],
        5,
    )
    .await;
    let error = report["error"].as_str().expect("an error");
    assert!(
        error.starts_with("the agent failed: ") && error.contains("the key is wrong"),
        "{error}"
    );
    assert_eq!(report.as_object().map(|it| it.len()), Some(2), "{report}");
}

#[tokio::test]
async fn error_is_told_when_the_factory_panics() {
    let registry = Registry::new();
    registry.register(Profile::new("broken", ""), || {
        unreachable!("no agent today")
    });
    register(&registry, Profile::new("coder", ""), |_| {
        vec![reports("Coded.")]
    });
    let results = delegated(
        &registry,
        [task("broken", "Do it."), task("coder", "Do it.")],
    )
    .await;
    assert_eq!(
        results[0],
        json!({ "agent": "broken-task-1", "error": "the agent could not be made: it panicked" })
    );
    assert_eq!(results[1]["result"], "Coded.");
}

#[tokio::test]
async fn results_are_in_the_order_of_the_tasks_when_agents_end_in_another() {
    let registry = Registry::new();
    let gate = Gate::default();
    let wait = gate.clone();
    register(&registry, Profile::new("slow", ""), move |_| {
        vec![says("Slow.").wait_at(0, &wait)]
    });
    register(&registry, Profile::new("quick", ""), move |_| {
        let gate = gate.clone();
        vec![Script::from_fn(move |_| {
            gate.open();
            says("Quick.")
        })]
    });
    let results = delegated(&registry, [task("slow", "Do it."), task("quick", "Do it.")]).await;
    assert_eq!(
        (results[0]["result"].as_str(), results[1]["result"].as_str()),
        (Some("Slow."), Some("Quick."))
    );
}

#[tokio::test(start_paused = true)]
async fn agents_are_cancelled_when_the_run_is() {
    let registry = Registry::new();
    let gate = Gate::default();
    let wait = gate.clone();
    register(&registry, Profile::new("slow", ""), move |_| {
        vec![says("Never.").wait_at(0, &wait)]
    });
    let (_, agent) = boss(
        &registry,
        [delegates([task("slow", "Do it.")]), says("Done.")],
    );
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    tokio::spawn(async move {
        gate.wait_until_reached().await;
        stopper.stop(CancelBy::User);
    });
    while running.next().await.is_some() {}
    let result = running.finish().await.expect("the run ends");
    assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
    assert_eq!(
        results(&result)[0][0]["error"],
        "the agent was stopped by the parent"
    );
}

#[tokio::test]
async fn completion_is_found_in_the_run_when_there_is_one() {
    let registry = Registry::new();
    let (_, agent) = boss(
        &registry,
        [
            calls("task_complete", json!({ "status": "completed" })),
            says("Done."),
        ],
    );
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (Completion::from_run(&result), result.calls[0].result.status),
        (None, Status::UnknownTool)
    );
    let completed = Completion::failure("No.");
    assert_eq!(
        json!(completed),
        json!({ "status": "failed", "summary": "No." })
    );
    assert_eq!(completed.status, CompletionStatus::Failed);
}
