//! The output for events of real runs.

use adjutant::{
    Agent,
    llm::{Error, ErrorKind, FinishReason, Script, ScriptedModel, Status, Thinking},
    tools::{CallContext, ToolSpec, Tools, tool_fn},
};
use serde_json::{Value, json};

use super::*;

fn tools() -> Tools {
    let spec = |name| ToolSpec::new(name, "For a test.", json!({"type": "object"}));
    Tools::new("test")
        .tool(tool_fn(
            spec("good"),
            |_: Value, _: CallContext| async move { Ok(CallResult::ok("fine")) },
        ))
        .tool(tool_fn(
            spec("bad"),
            |_: Value, _: CallContext| async move {
                Ok(CallResult::new(
                    Status::Failed,
                    "\nit \x1b[31mbroke\nin two lines",
                ))
            },
        ))
}

/// Returns the output of a run with these replies; adjacent chunks of the answer are joined.
fn shown(show: Show, scripts: impl IntoIterator<Item = Script>) -> Vec<DisplayLine> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let agent = Agent::new(ScriptedModel::new(scripts)).toolbox(tools());
        let mut running = agent.run("Hi").stream().expect("the session is free");
        let (mut show, mut lines) = (show, Vec::new());
        while let Some(event) = running.next().await {
            for line in show.event(&without_time(event.kind)) {
                match (lines.last_mut(), line) {
                    (Some(DisplayLine::Said(before)), DisplayLine::Said(text)) => {
                        before.push_str(&text)
                    }
                    (_, line) => lines.push(line),
                }
            }
        }
        lines
    })
}

fn without_time(mut event: EventKind) -> EventKind {
    if let EventKind::ToolFinished { duration, .. } = &mut event {
        *duration = Duration::from_millis(12);
    }
    event
}

#[track_caller]
fn check(show: Show, scripts: impl IntoIterator<Item = Script>, expect: &[DisplayLine]) {
    assert_eq!(shown(show, scripts), expect);
}

fn said(text: &str) -> DisplayLine {
    DisplayLine::Said(text.into())
}

fn told(text: &str) -> DisplayLine {
    DisplayLine::Told(text.into())
}

fn busy(text: &str) -> DisplayLine {
    DisplayLine::Busy(text.into())
}

#[test]
fn text_ends_with_a_line_when_the_model_did_not_end_it() {
    let waiting = busy("waiting for the model");
    check(
        Show::new(TextDisplay::Live),
        [Script::new().text("Hello, world!")],
        &[waiting.clone(), said("Hello, world!\n")],
    );
    check(
        Show::new(TextDisplay::Live),
        [Script::new().text("Hello!\n")],
        &[waiting, said("Hello!\n")],
    );
}

#[test]
fn calls_are_told_when_they_succeed_and_fail() {
    let first = Script::new()
        .text("Let me look.")
        .call("good", json!({"path": "."}));
    let second = Script::new()
        .call("bad", json!({}))
        .call_raw("no\nne", "{\x1b");
    let waiting = busy("waiting for the model");
    let lines = shown(
        Show::new(TextDisplay::Live),
        [first, second, Script::new().text("Done.")],
    );
    let expect = [
        waiting.clone(),
        said("Let me look.\n"),
        told("→ good {\"path\":\".\"}"),
        busy("good"),
        told("✓ good 12 ms"),
        waiting.clone(),
        waiting,
        told("→ no ne {\u{fffd}"),
    ];
    assert_eq!(lines[..8], expect);
    assert!(
        lines.contains(&told("✗ bad 12 ms: it \u{fffd}[31mbroke")),
        "{lines:#?}"
    );
    assert_eq!(lines.last(), Some(&said("Done.\n")));
}

#[test]
fn thinking_is_shown_by_line_when_it_is_wished() {
    let script = || {
        let text = "First this.\nThen that.".into();
        Script::new()
            .thinking(Thinking {
                text,
                signature: None,
                redacted: false,
                extra: Default::default(),
            })
            .text("So.")
    };
    let waiting = busy("waiting for the model");
    check(
        Show::new(TextDisplay::Live),
        [script()],
        &[waiting.clone(), said("So.\n")],
    );
    let expect = [
        waiting,
        told("· First this."),
        told("· Then that."),
        said("So.\n"),
    ];
    check(
        Show::new(TextDisplay::Live).with_thinking(),
        [script()],
        &expect,
    );
}

#[test]
fn text_is_kept_when_the_model_fails_or_takes_it_back() {
    let broke = || Error::new(ErrorKind::Network, "the line\nbroke");
    let waiting = busy("waiting for the model");
    check(
        Show::new(TextDisplay::Live),
        [Script::new().text("Half an").fail(broke())],
        &[waiting.clone(), said("Half an\n")],
    );
    let again = || {
        Script::new()
            .text("Whole.")
            .after_retracted(Script::new().text("Half"), broke())
    };
    let void = told("the answer so far is void, another attempt follows: the line broke");
    let expect = [
        waiting.clone(),
        said("Half\n"),
        DisplayLine::Void,
        void,
        waiting.clone(),
        said("Whole.\n"),
    ];
    check(Show::new(TextDisplay::Live), [again()], &expect);
    let broke_off = told("the model broke off, another attempt follows: the line broke");
    let expect = [
        waiting.clone(),
        broke_off.clone(),
        waiting.clone(),
        said("Whole.\n"),
    ];
    check(Show::new(TextDisplay::Last), [again()], &expect);
    check(
        Show::new(TextDisplay::Nothing),
        [again()],
        &[waiting.clone(), broke_off, waiting],
    );
}

#[test]
fn last_reply_alone_is_shown_when_that_is_wished() {
    let scripts = || {
        [
            Script::new().text("Let me look.").call("good", json!({})),
            Script::new().text("Done."),
        ]
    };
    let waiting = busy("waiting for the model");
    let calls = [told("→ good {}"), busy("good"), told("✓ good 12 ms")];
    let mut expect = [
        &[waiting.clone()][..],
        &calls,
        &[waiting.clone(), waiting.clone()],
    ]
    .concat();
    check(Show::new(TextDisplay::Nothing), scripts(), &expect);
    expect.push(said("Done.\n"));
    check(Show::new(TextDisplay::Last), scripts(), &expect);
    let broke = Error::new(ErrorKind::Network, "the line broke");
    check(
        Show::new(TextDisplay::Last),
        [Script::new().text("Half").fail(broke)],
        &[waiting],
    );
}

#[test]
fn warnings_are_told_when_there_are_some() {
    let script = Script::new()
        .warning(Warning {
            kind: WarningKind::Degraded,
            message: "offline: a planner".into(),
        })
        .warning(Warning {
            kind: WarningKind::OptionDropped,
            message: "x was dropped".into(),
        })
        .warning(Warning {
            kind: WarningKind::FellBack,
            message: "p/m failed: overloaded".into(),
        })
        .text("Cut")
        .stop(FinishReason::Length);
    let expect = [
        busy("waiting for the model"),
        told("offline: a planner"),
        told("warning: x was dropped"),
        told("warning: p/m failed: overloaded; another model is asked"),
        said("Cut\n"),
        told("warning: the answer was cut off at the model's output limit"),
    ];
    check(Show::new(TextDisplay::Live), [script], &expect);
}

#[test]
fn text_is_shown_once_when_it_came_without_deltas() {
    let mut show = Show::new(TextDisplay::Live);
    let finished = |block| EventKind::BlockFinished {
        block,
        content: Block::text("whole").into(),
    };
    assert_eq!(show.event(&finished(0)), [said("whole")]);
    show.event(&EventKind::BlockStarted {
        block: 1,
        kind: BlockKind::Text,
    });
    assert_eq!(
        show.event(&EventKind::TextDelta {
            block: 1,
            text: "who".into()
        }),
        [said("who")]
    );
    assert_eq!(show.event(&finished(1)), [said("le")]);
}

#[test]
fn calls_are_counted_when_several_of_one_tool_run() {
    let mut show = Show::new(TextDisplay::Live);
    let started = |block, name: &str| EventKind::ToolStarted {
        call: CallId {
            turn: 1,
            attempt: 0,
            block,
        },
        name: name.into(),
        title: None,
        args: "{}".into(),
    };
    show.event(&started(0, "read_file"));
    show.event(&started(1, "list_files"));
    let expect = [told("→ read_file {}"), busy("list_files, read_file × 2")];
    assert_eq!(show.event(&started(2, "read_file")), expect);
}

#[test]
fn reason_goes_on_when_the_first_line_only_announces_it() {
    let text = "invalid arguments:\n  - /n: want integer\nreceived: {}";
    assert_eq!(reason(text), "invalid arguments: - /n: want integer");
    assert_eq!(reason("\nno such file\nmore"), "no such file");
    assert_eq!(reason(" "), "it failed");
}
