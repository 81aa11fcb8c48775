//! The tools that speak to whoever watches: a plan, and a question.

use std::sync::Arc;

use adjutant_llm::{CallResult, Content};
use adjutant_tool::{
    Answer, Ask, CallContext, Cancel, Entered, Identity, Reentry, Replay, ToolError, Tools,
};
use adjutant_toolkit::{Plan, ask_user};
use serde_json::{Value, json};

use super::log::Watched;

async fn call(tools: &Tools, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
    let tool = tools
        .toolset()
        .iter()
        .next()
        .expect("the toolbox holds one")
        .clone();
    tool.call(args, cx).await
}

fn told<T>(entered: Entered<T>) -> String {
    match entered {
        Entered::Failed(error) => format!("{:?}: {error}", error.kind),
        _ => "no failure".to_owned(),
    }
}

#[tokio::test]
async fn plan_is_noted_and_shown_when_it_is_updated() {
    let watched = Arc::new(Watched::default());
    let who = Identity::root("a".into(), "b", "c");
    let cx = CallContext::new(Arc::new(who), Cancel::new(), watched.clone());
    let args = json!({"steps": [
        {"text": "look", "status": "done"},
        {"text": "think", "status": "in_progress"},
        {"text": "act", "status": "pending"},
    ]});
    let result = call(&Plan::new().toolbox(), args.clone(), cx)
        .await
        .expect("it is kept");
    assert_eq!(result.text(), "The plan is kept: 3 steps, 1 done.");
    let shown = json!([[Content::text("[x] look\n[>] think\n[ ] act")], args]);
    assert_eq!(
        watched.told(),
        [("plan".to_owned(), args), ("shown".to_owned(), shown)]
    );
}

#[tokio::test]
async fn longest_plan_fits_a_note_and_a_longer_one_is_refused() {
    let plan = |steps: usize, text: &str| json!({"steps": vec![json!({"text": text, "status": "in_progress"}); steps]});
    let widest = "\u{1f980}".repeat(300);
    let table = [
        (plan(0, ""), "The plan is kept: 0 steps, 0 done."),
        (plan(50, &widest), "The plan is kept: 50 steps, 0 done."),
        (plan(51, "x"), "a plan has 50 steps at most, not 51"),
        (
            plan(1, " "),
            "step 1 cannot be kept: ` `; hint: a step is one line of 1 to 300 characters",
        ),
        (
            plan(1, "a\u{1b}[2J"),
            "step 1 cannot be kept: `a\\u{1b}[2J`; hint: a step is one line of 1 to 300 characters",
        ),
    ];
    let tools = Plan::new().toolbox();
    for (args, expect) in table {
        let shown = match call(&tools, args, CallContext::detached()).await {
            Ok(result) => result.text(),
            Err(error) => error.message.to_string(),
        };
        assert_eq!(shown, expect);
    }
    assert!(
        call(&tools, plan(1, &"x".repeat(301)), CallContext::detached())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn question_waits_and_its_answer_comes_when_entered_again() {
    let tools = ask_user();
    assert_eq!(
        tools.toolset().iter().next().expect("one").spec().replay,
        Replay::Resumable
    );
    let table = [
        (
            json!({"question": "Which?", "options": ["red", "blue"]}),
            Answer::give("red"),
            "red",
        ),
        (
            json!({"question": "Why?"}),
            Answer::give("because"),
            "because",
        ),
        (
            json!({"question": "Why?"}),
            Answer::Decline {
                message: Some("guess".into()),
            },
            "guess",
        ),
        (
            json!({"question": "Why?"}),
            Answer::Decline { message: None },
            "the user gave no answer",
        ),
        (
            json!({"question": "Why?"}),
            Answer::Expired,
            "the user did not answer in time",
        ),
    ];
    for (args, answer, expect) in table {
        let entry = Reentry::default();
        let Entered::Waiting(asks) = entry.enter(|cx| call(&tools, args.clone(), cx)).await else {
            panic!("it asks: {args}");
        };
        let options = args.get("options");
        let schema = options.map_or(
            json!({"type": "string", "maxLength": 20_000}),
            |it| json!({"type": "string", "enum": it}),
        );
        let ask = Ask {
            schema,
            ..Ask::question(args["question"].as_str().expect("a text"))
        };
        assert_eq!(asks, [("answer".into(), ask)]);
        if options.is_some() {
            assert!(
                entry.answer("answer", Answer::give("green")).is_err(),
                "green is no option"
            );
        }
        entry.answer("answer", answer).expect("it waits");
        let shown = match entry.enter(|cx| call(&tools, args.clone(), cx)).await {
            Entered::Ended(result) => result.text(),
            Entered::Failed(error) => error.message.to_string(),
            other => panic!("it ends: {other:?}"),
        };
        assert_eq!(shown, expect);
    }
}

#[tokio::test]
async fn question_is_refused_when_it_cannot_be_shown() {
    let tools = ask_user();
    let many: Vec<String> = (0..21).map(|it| it.to_string()).collect();
    let table = [
        (json!({"question": " "}), "invalid question"),
        (json!({"question": "\u{1b}[2J"}), "invalid question"),
        (json!({"question": "x".repeat(4_001)}), "invalid question"),
        (
            json!({"question": "?", "options": many}),
            "a question has 20 options at most, not 21",
        ),
        (
            json!({"question": "?", "options": ["a", "a"]}),
            "the option `a` appears twice",
        ),
        (
            json!({"question": "?", "options": ["a\nb"]}),
            "this is no option: `a\\nb`",
        ),
    ];
    for (args, expect) in table {
        let told = told(Reentry::default().enter(|cx| call(&tools, args, cx)).await);
        assert!(
            told.starts_with("InvalidArguments: ") && told.contains(expect),
            "{told}"
        );
    }
    let error = call(&tools, json!({"question": "?"}), CallContext::detached())
        .await
        .expect_err("nobody is there");
    assert!(
        error.message.contains("nobody can be asked here"),
        "{error}"
    );
}
