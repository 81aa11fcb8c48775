//! Tools that misbehave in ways that no future can be stopped in: they block their thread, or panic when they are dropped.

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use adjutant_agent::Agent;
use adjutant_llm::{CallResult, Script, ScriptedModel, Status};
use adjutant_tool::{CallContext, ToolSpec, tool, tool_fn};
use serde_json::json;
use tokio::task::coop;

/// A door that threads wait at until a test lets them go.
#[derive(Clone, Default)]
struct Door(Arc<(Mutex<bool>, Condvar)>);

impl Door {
    fn wait(&self) {
        let open = self.0.0.lock().expect("nobody panics inside");
        drop(
            self.0
                .1
                .wait_while(open, |open| !*open)
                .expect("nobody panics inside"),
        );
    }

    fn open(&self) {
        *self.0.0.lock().expect("nobody panics inside") = true;
        self.0.1.notify_all();
    }
}

/// Blocks its thread until the door opens.
#[tool]
fn stubborn(#[state] door: Door) -> String {
    door.wait();
    "done".to_owned()
}

/// Blocks a thread of its own until the door opens.
#[tool(blocking)]
fn polite(#[state] door: Door) -> String {
    door.wait();
    "done".to_owned()
}

/// Panics on a thread of its own.
#[tool(blocking)]
fn broken(number: Option<u64>) -> String {
    number.expect("nobody gives a number").to_string()
}

fn script(name: &'static str) -> [Script; 2] {
    [
        Script::new().call(name, json!({})),
        Script::new().text("Done."),
    ]
}

async fn status(agent: Agent) -> Status {
    let result = agent.run("Go.").await.expect("the run goes on");
    assert_eq!(result.text(), "Done.");
    result.calls[0].result.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_times_out_when_its_tool_blocks_a_thread_of_several() {
    let door = Door::default();
    let agent = Agent::new(ScriptedModel::new(script("stubborn"))).tool(stubborn(door.clone()));
    assert_eq!(
        status(agent.calls(|calls| calls.timeout = Some(Duration::from_millis(20)))).await,
        Status::TimedOut
    );
    door.open();
}

#[tokio::test]
async fn call_times_out_when_its_tool_blocks_a_thread_of_its_own() {
    let door = Door::default();
    let agent = Agent::new(ScriptedModel::new(script("polite"))).tool(polite(door.clone()));
    assert_eq!(
        status(agent.calls(|calls| calls.timeout = Some(Duration::from_millis(20)))).await,
        Status::TimedOut
    );
    door.open();
}

#[tokio::test]
async fn call_ends_in_its_result_when_a_blocking_tool_returns_or_panics() {
    let door = Door::default();
    door.open();
    let agent = Agent::new(ScriptedModel::new(script("polite"))).tool(polite(door));
    assert_eq!(status(agent).await, Status::Ok);
    let agent = Agent::new(ScriptedModel::new(script("broken"))).tool(broken);
    assert_eq!(status(agent).await, Status::Panicked);
}

#[tokio::test(start_paused = true)]
async fn call_ends_in_its_result_when_its_body_panics_as_it_is_dropped() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let spec = ToolSpec::new("bomb", "Waits for ever.", json!({"type": "object"}));
    let tool = tool_fn(spec, |_, _: CallContext| async {
        let bomb = Bomb;
        std::future::pending::<()>().await;
        drop(bomb);
        Ok(CallResult::ok("never"))
    });
    let agent = Agent::new(ScriptedModel::new(script("bomb"))).tool(tool);
    assert_eq!(
        status(agent.calls(|calls| calls.timeout = Some(Duration::from_millis(20)))).await,
        Status::Panicked
    );
}

/// Uses up the time of its task, and then waits for its next turn.
#[tool]
async fn greedy() -> String {
    while coop::has_budget_remaining() {
        coop::consume_budget().await;
    }
    coop::consume_budget().await;
    "done".to_owned()
}

#[tokio::test(start_paused = true)]
async fn call_goes_on_when_it_has_used_up_the_time_of_its_task() {
    let model = ScriptedModel::new([
        Script::new().call("greedy", json!({})),
        Script::new().text("b"),
    ]);
    let run = Agent::new(model).tool(greedy).run("Go.").into_future();
    let result = tokio::time::timeout(Duration::from_secs(3_600), run)
        .await
        .expect("it does not hang");
    assert_eq!(
        result.expect("the run finishes").calls[0].result.status,
        Status::Ok
    );
}
