//! A run that is resumed by another program: it goes on as it was begun, its time stands still, and its answers are heard.

#[path = "approval/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;
#[path = "approval/watch.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod watch;

use std::{sync::Arc, time::Duration};

use adjutant_agent::{
    Agent, CancelBy, HookContext, Limits, LogId, MemoryJournal, Outcome, OutputGuardrail,
    RunChange, Timeout, Verdict,
    instructions::{InstructionContext, Instructions},
    points::{BeforeTool, NextTurn, PauseAnswered},
    prepare_next_turn,
};
use adjutant_llm::{Entry, FixedWorld, Gate, ModelInfo, Reply, Script, ScriptedModel};
use adjutant_tool::{Answer, Approval, ToolSpec};
use serde_json::json;
use stage::{answered, names, spec};
use watch::Ran;

/// The parts of a program that outlive it.
#[derive(Clone)]
struct Rest {
    journal: MemoryJournal,
    world: Arc<FixedWorld>,
    ran: Ran,
}

impl Default for Rest {
    fn default() -> Self {
        Self {
            journal: MemoryJournal::default(),
            world: Arc::new(FixedWorld::at_ms(1_000)),
            ran: Ran::default(),
        }
    }
}

impl Rest {
    /// A program with a model that says these replies, and a tool that needs approval.
    fn program(&self, scripts: impl IntoIterator<Item = Script>) -> (Arc<ScriptedModel>, Agent) {
        let (model, agent) = stage::agent(scripts);
        let agent = agent
            .journal(self.journal.clone())
            .session(LogId("log".into()))
            .world(Arc::clone(&self.world));
        (
            model,
            agent.tool(self.ran.tool(ToolSpec {
                approval: Approval::Always,
                ..spec("write")
            })),
        )
    }
}

fn call(n: u64) -> Script {
    Script::new().call("write", json!({ "n": n }))
}

fn scripted(id: &str, scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(scripts).info(ModelInfo::new(id)))
}

/// Instructions that name a tone, and whoever is served: without a name, they cannot be made.
fn serving(tone: &'static str) -> Instructions {
    Instructions::default().source(move |cx: InstructionContext| async move {
        let name = cx
            .state
            .get("name")
            .and_then(|name| name.as_str())
            .ok_or("nobody is named")?;
        Ok(format!("{tone} {name}."))
    })
}

#[tokio::test]
async fn run_goes_on_as_it_was_begun_when_another_program_resumes_it() {
    for (state, anew, announced) in [
        (None, false, None),
        (Some("Bob"), false, Some("Obey Bob.")),
        (Some("Cyd"), true, Some("Obey Cyd.")),
    ] {
        let rest = Rest::default();
        let chosen = || scripted("test/chosen", [call(1), Script::new().text("Done.")]);
        let (_, first) = rest.program([]);
        let run = first
            .instructions(serving("Serve"))
            .run("Go.")
            .state("name", "Ada")
            .max_turns(3)
            .model(chosen());
        assert_eq!(names(&run.await.expect("the run waits")), ["main/c1_0_0"]);

        let (own, second) = rest.program([Script::new().text("Not asked.")]);
        let known = scripted("test/chosen", [Script::new().text("Done.")]);
        let second = second
            .instructions(serving("Obey"))
            .alternative(Arc::clone(&known));
        let resumed = second.resume(vec![answered("main/c1_0_0", Answer::approve())]);
        let resumed = state
            .into_iter()
            .fold(resumed, |resumed, name| resumed.state("name", name));
        let resumed = if anew {
            resumed.instruct_anew()
        } else {
            resumed
        };
        assert_eq!(resumed.await.expect("it answers").text(), "Done.");
        let asked = known.requests();
        let systems: Vec<&str> = asked.iter().map(|it| &*it.system).collect();
        assert_eq!((systems, own.requests().len()), (vec!["Serve Ada."], 0));
        let last = asked[0].entries.last().expect("an entry").entry.to_text();
        assert_eq!(
            announced.is_some(),
            last.contains("<system-reminder>"),
            "{last}"
        );
        assert!(announced.is_none_or(|text| last.contains(text)), "{last}");
    }
}

#[tokio::test]
async fn run_fails_when_it_switches_to_a_model_that_is_not_known() {
    let (model, agent) = Rest::default().program([call(1), Script::new().text("Not asked.")]);
    let gone = |_: &NextTurn| {
        let mut change = RunChange::default();
        change.model = Some("test/gone".into());
        Some(change)
    };
    let agent = agent
        .responder(|_, _| async { Some(Answer::approve()) })
        .on(prepare_next_turn(gone));
    let error = agent
        .run("Go.")
        .await
        .expect_err("another model is not asked in its place");
    let message = error
        .model_error()
        .expect("the model is missing")
        .to_string();
    assert!(
        message.contains("test/gone, which the agent does not know (it knows scripted/model)"),
        "{message}"
    );
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn time_counts_for_no_limit_when_the_run_is_parked() {
    const HOUR: u64 = 3_600_000;
    let late = Outcome::Cancelled {
        by: CancelBy::Deadline,
    };
    // The time counts or not; the hours parked; given an answer, or none; the end.
    let table = [
        (false, 5, true, None),
        (true, 1, true, None),
        (true, 5, true, Some(late.clone())),
        (true, 5, false, Some(late.clone())),
    ];
    for (parked_counts, hours, answers, ends) in table {
        let rest = Rest::default();
        let limits = Limits {
            deadline_ms: Some(1_000 + 2 * HOUR),
            parked_counts,
            ..Limits::default()
        };
        let (_, agent) = rest.program([call(1)]);
        agent
            .limits(limits)
            .run("Go.")
            .await
            .expect("the run waits");
        rest.world.advance_ms(hours * HOUR);
        let (_, agent) = rest.program([Script::new().text("Done.")]);
        let answer = answers.then(|| answered("main/c1_0_0", Answer::approve()));
        let result = agent
            .resume(answer.into_iter().collect())
            .await
            .expect("the run ends");
        let finished = |outcome: &Outcome| matches!(outcome, Outcome::Finished { .. });
        assert!(
            ends.as_ref()
                .map_or_else(|| finished(&result.outcome), |end| result.outcome == *end),
            "{result:?}"
        );
        assert_eq!(
            rest.ran.args().len(),
            usize::from(ends.is_none()),
            "{parked_counts} {hours}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn drives_share_the_time_when_a_run_has_a_timeout() {
    let (rest, minute) = (Rest::default(), Duration::from_secs(60));
    let (_, agent) = rest.program([call(1)]);
    let world = Arc::clone(&rest.world);
    let agent =
        agent
            .middleware(Timeout(minute * 3))
            .on(move |_: HookContext, point: BeforeTool| {
                world.advance_ms(120_000);
                async move {
                    tokio::time::sleep(minute * 2).await;
                    Verdict::Pass(point)
                }
            });
    agent.run("Go.").await.expect("the run waits");
    drop(agent);
    rest.world.advance_ms(3_600_000);
    let (_, agent) = rest.program([Script::new().text("Never.").wait_at(0, &Gate::default())]);
    let agent = agent.middleware(Timeout(minute * 3));
    let began = tokio::time::Instant::now();
    let result = agent
        .resume(vec![answered("main/c1_0_0", Answer::approve())])
        .await
        .expect("the run ends");
    assert_eq!(began.elapsed().as_secs(), 60);
    assert_eq!(
        result.outcome,
        Outcome::Cancelled {
            by: CancelBy::Deadline
        }
    );
}

#[tokio::test]
async fn edited_approval_is_refused_when_a_hook_denies_it() {
    let rest = Rest::default();
    let few = |agent: Agent| {
        agent.on(|_: HookContext, point: BeforeTool| async {
            if point.args["n"].as_u64() > Some(100) {
                Verdict::Deny("too many".into())
            } else {
                Verdict::Pass(point)
            }
        })
    };
    let (_, agent) = rest.program([call(1)]);
    let parked = few(agent.name("clerk"))
        .run("Go.")
        .await
        .expect("the run waits");
    let pause = &parked.pauses()[0];
    let asks = (
        &*pause.agent,
        &*pause.path,
        pause.call.as_ref().map(|call| call.name.as_str()),
    );
    assert_eq!(asks, ("clerk", "clerk", Some("write")));
    let again = || few(rest.program([Script::new().text("Done.")]).1);
    let answer = pause.with_answer(Answer::approve_with(r#"{"n": 1000}"#));
    let refused = again()
        .resume(vec![answer])
        .await
        .expect("the run waits on");
    let pause = &refused.pauses()[0];
    assert_eq!(
        (&*pause.refused[0], rest.ran.args().len()),
        ("not executed: too many", 0)
    );
    let answer = pause.with_answer(Answer::approve_with(r#"{"n": 7}"#));
    assert_eq!(
        again()
            .resume(vec![answer])
            .await
            .expect("it answers")
            .text(),
        "Done."
    );
    assert_eq!(rest.ran.args(), [json!({"n": 7})]);
}

#[tokio::test]
async fn approval_for_the_run_counts_when_its_arguments_are_taken() {
    let rest = Rest::default();
    let (_, agent) = rest.program([call(1), call(2), Script::new().text("Done.")]);
    let agent = agent.on(|_: HookContext, point: BeforeTool| async {
        if point.args["n"].as_u64() > Some(5) {
            Verdict::Deny("too many".into())
        } else {
            Verdict::Pass(point)
        }
    });
    let approve = |n: u64| Answer::Approve {
        args: Some(json!({ "n": n }).to_string().into()),
        for_run: true,
    };
    let parked = agent.run("Go.").await.expect("the run waits");
    let parked = agent
        .resume(vec![parked.pauses()[0].with_answer(approve(9))])
        .await
        .expect("the run waits on");
    let parked = agent
        .resume(vec![parked.pauses()[0].deny("no")])
        .await
        .expect("the next call waits");
    assert_eq!(
        (names(&parked), rest.ran.args().len()),
        (vec!["main/c2_0_0".to_owned()], 0)
    );
    let ended = agent
        .resume(vec![parked.pauses()[0].with_answer(approve(5))])
        .await
        .expect("it answers");
    assert_eq!(
        (ended.text().as_str(), rest.ran.args()),
        ("Done.", vec![json!({"n": 5})])
    );
}

#[tokio::test(start_paused = true)]
async fn answers_are_heard_when_something_else_comes_while_a_hook_is_asked() {
    let rest = Rest::default();
    let (_, agent) = rest.program([call(1), Script::new().text("Done.")]);
    let slow = |_: HookContext, point: PauseAnswered| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Verdict::Pass(point)
    };
    let agent = agent.on(slow);
    let parked = agent.run("Go.").await.expect("the run waits");
    agent.queue().steer("Soon, please.").expect("there is room");
    let ended = agent
        .resume(vec![parked.pauses()[0].approve()])
        .await
        .expect("it answers");
    assert_eq!((ended.text().as_str(), rest.ran.args().len()), ("Done.", 1));
}

#[tokio::test]
async fn other_pauses_keep_waiting_when_some_are_answered() {
    let rest = Rest::default();
    let (_, agent) = rest.program([
        call(1).call("write", json!({"n": 2})),
        Script::new().text("Done."),
    ]);
    let parked = agent.run("Go.").await.expect("the run waits");
    let error = agent
        .resume(Vec::new())
        .await
        .expect_err("nothing was answered");
    assert!(
        error
            .to_string()
            .ends_with("no answer to main/c1_0_0, main/c1_0_1"),
        "{error}"
    );
    let parked = agent
        .resume(vec![parked.pauses()[1].approve()])
        .await
        .expect("the run waits on");
    assert_eq!(
        (names(&parked), rest.ran.args()),
        (vec!["main/c1_0_0".to_owned()], vec![json!({"n": 2})])
    );
    let ended = agent
        .resume(vec![parked.pauses()[0].deny("no")])
        .await
        .expect("it answers");
    assert_eq!((ended.text().as_str(), ended.pauses().len()), ("Done.", 0));
}

#[tokio::test]
async fn next_request_has_no_answer_that_a_guardrail_rejected() {
    let (model, agent) =
        Rest::default().program([Script::new().text("Secret."), Script::new().text("Fine.")]);
    let check = |reply: Arc<Reply>| async move {
        if reply.text() == "Secret." {
            Err("it tells a secret".into())
        } else {
            Ok(())
        }
    };
    let agent = agent.middleware(OutputGuardrail::new("manners", check));
    agent.run("Tell me.").await.expect_err("it is rejected");
    agent.run("Again.").await.expect("it answers");
    let said = |entries: &adjutant_llm::Transcript| {
        let text = |entry: &Entry| match entry {
            Entry::Turn(turn) => Some(turn.reply().text()),
            _ => None,
        };
        entries
            .iter()
            .filter_map(|stored| text(&stored.entry))
            .collect::<Vec<_>>()
    };
    let withheld = "The answer was withheld by \"manners\": it tells a secret";
    assert_eq!(said(&model.requests()[1].entries), [withheld]);
    assert_eq!(
        said(&agent.log().transcript()),
        ["Secret.", withheld, "Fine."]
    );
}
