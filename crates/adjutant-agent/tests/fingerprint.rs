//! The fingerprint of requests: recorded when it changes, and never silently another one.

use std::sync::Arc;

use adjutant_agent::{
    Agent, Config, Digest, EventKind, Flush, HookContext, Journal, LogId, MemoryJournal, Owner,
    Record, Seq, Stamped, Verdict, points::BeforeModel,
};
use adjutant_llm::{CallResult, Effort, FixedWorld, Options, Script, ScriptedModel, WarningKind};
use adjutant_tool::{CallContext, ErasedTool, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

fn tool(name: &str, description: &str) -> impl ErasedTool + 'static {
    let spec = ToolSpec::new(
        name.to_owned(),
        description.to_owned(),
        json!({"type": "object"}),
    );
    tool_fn(spec, |_: Value, _: CallContext| async {
        Ok(CallResult::ok("done"))
    })
}

fn calls(times: usize) -> Vec<Script> {
    let calls = std::iter::repeat_with(|| Script::new().call("look", json!({}))).take(times);
    calls.chain([Script::new().text("Done.")]).collect()
}

fn agent(journal: &MemoryJournal, scripts: Vec<Script>) -> (Arc<ScriptedModel>, Agent) {
    let model = Arc::new(ScriptedModel::new(scripts));
    let agent = Agent::new(Arc::clone(&model))
        .world(FixedWorld::at_ms(1_000))
        .instructions("Be brief.");
    (
        model,
        agent
            .journal(journal.clone())
            .session(LogId::from("log"))
            .tool(tool("look", "Looks.")),
    )
}

async fn records(journal: &MemoryJournal) -> Vec<Arc<Stamped>> {
    journal
        .read(&LogId::from("log"), Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await
}

fn configs(records: &[Arc<Stamped>]) -> Vec<Arc<Config>> {
    let config = |it: &Arc<Stamped>| match &it.record {
        Record::Configured { config } => Some(Arc::clone(config)),
        _ => None,
    };
    records.iter().filter_map(config).collect()
}

fn fields(before: &Config, after: &Config) -> Vec<String> {
    before
        .differences(after)
        .iter()
        .map(|it| it.field.to_string())
        .collect()
}

#[tokio::test]
async fn fingerprint_is_recorded_once_when_nothing_changes() {
    let journal = MemoryJournal::default();
    let (model, agent) = agent(&journal, calls(2));
    model.push(Script::new().text("Again."));
    agent.run("Go.").await.expect("it answers");
    agent.run("Again.").await.expect("it answers");
    let log = records(&journal).await;
    let found = configs(&log);
    assert_eq!(
        (found.len(), found[0].system),
        (1, Digest::compute(b"Be brief."))
    );
    assert_eq!((found[0].tools.len(), &found[0].options), (1, &json!({})));
    let at = log
        .iter()
        .position(|it| matches!(it.record, Record::Configured { .. }))
        .expect("it is there");
    assert!(
        matches!(log[at + 1].record, Record::Prepared { .. }),
        "{:?}",
        log[at + 1]
    );
    let (one, other) = (
        agent.log().config().await.expect("it has one"),
        agent.log().config().await.expect("it has one"),
    );
    assert!(Arc::ptr_eq(&one, &other), "nothing is digested again");
    assert_eq!(one, found[0]);
}

#[tokio::test]
async fn fingerprint_is_recorded_again_when_a_part_changes() {
    let journal = MemoryJournal::default();
    let (model, agent) = agent(&journal, calls(0));
    (0..5).for_each(|_| model.push(Script::new().text("Yes.")));
    agent.run("1").await.expect("it answers");
    let agent = agent.instructions("Be long.");
    agent.run("2").await.expect("it answers");
    let agent = agent.tools(
        adjutant_tool::Tools::new("tools")
            .tool(tool("look", "Looks well."))
            .tool(tool("more", "More.")),
    );
    agent.run("3").await.expect("it answers");
    let agent = agent.thinking(Effort::High);
    agent.run("4").await.expect("it answers");
    agent.run("5").await.expect("it answers");
    let found = configs(&records(&journal).await);
    let changes: Vec<_> = found
        .windows(2)
        .map(|pair| fields(&pair[0], &pair[1]))
        .collect();
    assert_eq!(
        changes,
        [vec!["tools.look", "tools.more"], vec!["options.thinking"]]
    );
}

#[tokio::test]
async fn fingerprint_is_of_the_tools_that_are_shown_when_some_are_hidden() {
    let journal = MemoryJournal::default();
    let (_, agent) = agent(&journal, calls(1));
    let agent =
        agent
            .tool(tool("more", "More."))
            .on(|_: HookContext, mut point: BeforeModel| async move {
                if point.view.len() == 1 {
                    point.hidden.push("more".into());
                }
                Verdict::Pass(point)
            });
    agent.run("Go.").await.expect("it answers");
    let found = configs(&records(&journal).await);
    assert_eq!(fields(&found[0], &found[1]), ["tools.more"]);
    assert_eq!(found.len(), 2);
}

/// The log as a crash leaves it right behind the preparation of its turn.
async fn cut(journal: &MemoryJournal, without: bool) -> MemoryJournal {
    let all = records(journal).await;
    let end = all
        .iter()
        .position(|it| matches!(it.record, Record::Prepared { .. }))
        .expect("a turn was prepared");
    let copy = MemoryJournal::default();
    let mut log = copy
        .own(&LogId::from("log"), &Owner::default())
        .await
        .expect("it is free");
    let kept = all[..=end]
        .iter()
        .filter(|it| !(without && matches!(it.record, Record::Configured { .. })));
    let renumbered = (1..).zip(kept).map(|(seq, it)| {
        Arc::new(Stamped::new(
            Seq(seq),
            it.at_ms,
            it.thread.clone(),
            it.record.clone(),
        ))
    });
    log.append(&renumbered.collect::<Vec<_>>(), Flush::Now)
        .await
        .expect("memory does not fail");
    copy
}

/// Goes on with the open turn: the warnings, and the log.
async fn go_on(agent: &Agent, journal: &MemoryJournal) -> (Vec<String>, Vec<Arc<Stamped>>) {
    let mut running = agent
        .resume(Vec::new())
        .stream()
        .expect("the session is free");
    let mut warnings = Vec::new();
    while let Some(event) = running.next().await {
        if let EventKind::Warning { warning } = event.kind {
            assert_eq!(warning.kind, WarningKind::Diverged);
            warnings.push(warning.to_string());
        }
    }
    assert_eq!(
        running
            .result()
            .expect("it ended")
            .expect("it answers")
            .text(),
        "Done."
    );
    (warnings, records(journal).await)
}

#[tokio::test]
async fn divergence_is_told_and_recorded_when_an_open_turn_is_asked_by_another_program() {
    let journal = MemoryJournal::default();
    let (_, first) = agent(&journal, calls(0));
    first.run("Go.").await.expect("it answers");
    let journal = cut(&journal, false).await;
    let (model, later) = agent(&journal, calls(0));
    let options = Options {
        temperature: Some(0.5),
        ..Options::default()
    };
    let later = later
        .instructions("Be long.")
        .options(options)
        .tool(tool("more", "More."));
    let (warnings, log) = go_on(&later, &journal).await;
    assert_eq!(
        warnings,
        [
            "turn 1 is asked with other parts than it was prepared with: options.temperature, tools.more"
        ]
    );
    let found = configs(&log);
    // The run keeps the instructions that it was begun with.
    let now = later.log().config().await.expect("it has one");
    let now = Arc::new(Config {
        system: found[0].system,
        ..Config::clone(&now)
    });
    assert_eq!(
        (found.len(), &found[1], model.requests().len()),
        (2, &now, 1)
    );
    let at = |wanted: fn(&Record) -> bool| {
        log.iter()
            .rposition(|it| wanted(&it.record))
            .expect("it is there")
    };
    assert!(
        at(|it| matches!(it, Record::Configured { .. }))
            < at(|it| matches!(it, Record::Replied { .. }))
    );
}

#[tokio::test]
async fn nothing_is_told_when_an_open_turn_is_asked_with_the_same() {
    let journal = MemoryJournal::default();
    agent(&journal, calls(0))
        .1
        .run("Go.")
        .await
        .expect("it answers");
    let journal = cut(&journal, false).await;
    let (warnings, log) = go_on(&agent(&journal, calls(0)).1, &journal).await;
    assert_eq!((warnings, configs(&log).len()), (Vec::new(), 1));
}

#[tokio::test]
async fn fingerprint_is_recorded_when_an_older_program_left_none() {
    let journal = MemoryJournal::default();
    agent(&journal, calls(0))
        .1
        .run("Go.")
        .await
        .expect("it answers");
    let journal = cut(&journal, true).await;
    let (warnings, log) = go_on(&agent(&journal, calls(0)).1, &journal).await;
    assert_eq!((warnings, configs(&log).len()), (Vec::new(), 1));
}
