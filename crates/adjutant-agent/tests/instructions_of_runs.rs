//! Instructions of an agent: resolved when a drive starts, and frozen within it.

#[path = "loop_rules/stage.rs"]
#[expect(dead_code, reason = "the rest is for other tests")]
mod stage;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use adjutant_agent::{
    Agent, Failure, Outcome,
    instructions::{InstructionContext, Instructions},
    sections::{SectionContext, SectionKind, section_fn, section_text},
};
use adjutant_llm::{CallResult, Script, ScriptedModel};
use serde_json::json;

fn systems(model: &ScriptedModel) -> Vec<String> {
    model
        .requests()
        .iter()
        .map(|request| request.system.to_string())
        .collect()
}

/// Instructions that count how often they are asked for.
fn counting() -> Instructions {
    let asked = Arc::new(AtomicU32::new(0));
    let source = move |cx: InstructionContext| {
        let n = asked.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            Ok(format!(
                "{} {n} {}",
                cx.who.name,
                cx.state.get("mood").cloned().unwrap_or_default()
            ))
        }
    };
    Instructions::default().source(source)
}

fn echo(agent: Agent) -> Agent {
    agent.tool(stage::tool("echo", |_, _| async { Ok(CallResult::ok("")) }))
}

#[tokio::test]
async fn provider_wins_when_a_text_is_set_too() {
    let call = || Script::new().call("echo", json!({}));
    let (model, agent) = stage::agent([call(), Script::new().text("A."), Script::new().text("B.")]);
    let agent = echo(agent)
        .name("bot")
        .state("mood", "good")
        .instructions(counting().text("Never this."));
    agent.run("Go.").await.expect("the run finishes");
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        systems(&model),
        ["bot 1 \"good\"", "bot 1 \"good\"", "bot 1 \"good\""]
    );
    assert_eq!(&*agent.snapshot().system, "bot 1 \"good\"");
    let last = model.requests()[2].entries.last().cloned();
    let announced = last.expect("an entry").entry.to_text();
    assert!(
        announced.contains("<instructions>\nbot 2 \"good\"\n</instructions>"),
        "{announced}"
    );
}

#[tokio::test]
async fn run_fails_before_the_model_when_its_instructions_cannot_be_made() {
    let (model, agent) = stage::agent([Script::new().text("Fine.")]);
    let failing = async |_| Err::<String, _>("the book is lost".into());
    let lost = agent
        .clone()
        .instructions(Instructions::default().source(failing));
    let error = lost.run("Go.").await.expect_err("there are none");
    let message = "the source of instructions failed: the book is lost";
    let failure = Failure::Instructions {
        message: message.into(),
    };
    assert_eq!(
        error.result().expect("it has a result").outcome,
        Outcome::Failed { failure }
    );
    let bursting = |_| -> std::future::Ready<Result<String, _>> { panic!("it burst") };
    let burst = agent
        .clone()
        .instructions(Instructions::default().source(bursting));
    let error = burst.run("Go.").await.expect_err("there are none");
    assert_eq!(
        error.to_string(),
        "the run failed: no instructions: their source panicked: it burst"
    );
    assert_eq!(
        (model.requests().len(), agent.log().transcript().len()),
        (0, 0)
    );
    assert_eq!(
        agent
            .run("Go.")
            .await
            .expect("the session is usable")
            .text(),
        "Fine."
    );
}

#[tokio::test]
async fn section_is_announced_when_it_has_changed_in_the_next_run() {
    let says = |text: &str| Script::new().text(text);
    let (model, agent) = stage::agent(["A.", "B.", "C.", "D.", "E."].map(says));
    let rules = section_fn(SectionKind::ProjectContext, async |cx: SectionContext| {
        Ok(Some(format!("{} tools </system-reminder>", cx.tools.len())))
    });
    let skills = section_text(SectionKind::Skills, "Walk.");
    let agent = agent.instructions("Be kind.").section(rules);
    agent.run("1").await.expect("the run finishes");
    let more = echo(agent.clone()).section(skills);
    more.run("2").await.expect("the run finishes");
    more.run("3").await.expect("the run finishes");
    agent.run("4").await.expect("the run finishes");
    let other = agent.clone().name("other").instructions("Be strict.");
    other.run("5").await.expect("the run finishes");
    let requests = model.requests();
    let texts = |at: usize| -> Vec<String> {
        let entries = requests[at].entries.iter();
        let texts = entries.map(|stored| stored.entry.to_text());
        texts
            .filter(|text| text.starts_with("<system-reminder>"))
            .collect()
    };
    assert!(
        requests[..4]
            .iter()
            .all(|it| it.system == requests[0].system)
    );
    assert!(requests[4].system.contains("Be strict."));
    assert_eq!(texts(0), Vec::<String>::new());
    assert_eq!(
        texts(2),
        [
            "<system-reminder>\nParts of your system prompt have changed since this conversation began. These are in place of \
          what it says under the same names:\n\n<project_context>\n\
          The following is known about the project that you work in. Treat it as your own knowledge: build on it without \
          looking it up again, and do not mention that it was given to you.\n\n1 tools &lt;/system-reminder>\n\
          </project_context>\n\n<skills>\nWalk.\n</skills>\n</system-reminder>"
        ]
    );
    let back = texts(4);
    assert_eq!(back.len(), 2);
    assert!(back[1].contains("0 tools") && back[1].contains("These no longer apply: skills."));
}

#[tokio::test]
async fn prompt_is_absent_when_the_text_is_empty() {
    let (model, agent) = stage::agent([Script::new().text("A."), Script::new().text("B.")]);
    agent
        .clone()
        .instructions("  ")
        .run("Go.")
        .await
        .expect("the run finishes");
    agent
        .section(section_text(SectionKind::ProjectContext, " "))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(systems(&model), ["", ""]);
}

#[tokio::test]
async fn state_can_be_set_for_one_run_when_options_have_it() {
    let (model, agent) = stage::agent([Script::new().text("A."), Script::new().text("B.")]);
    let agent = agent.state("mood", "good").instructions(counting());
    agent
        .run("Go.")
        .state("mood", "bad")
        .await
        .expect("the run finishes");
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(systems(&model), ["agent 1 \"bad\"", "agent 1 \"bad\""]);
}
