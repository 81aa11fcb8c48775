//! What a tool gives: to the model, to the application, and to whoever reads the history.

use std::sync::Arc;

use adjutant_llm::{CallResult, Content, Document, Entry, Image, Script, Source, Status};
use adjutant_tool::{CallContext, Conversation, ToolSpec, tool_fn};
use serde_json::{Value, json};

use super::stage::{agent, calls, script, spec};
use super::watch::shown;

#[tokio::test]
async fn result_reaches_the_model_with_its_pictures_when_a_tool_returns_some() {
    let source = |data: &str| Source::Base64 { data: data.into() };
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let pdf = "JVBERi0xLjcKJSVFT0Y=";
    let content = vec![
        Content::text("look"),
        Content::Image(Image {
            media_type: "image/png".into(),
            source: source(pixel),
        }),
        Content::Document(Document {
            media_type: "application/pdf".into(),
            name: None,
            source: source(pdf),
        }),
    ];
    let (model, agent) = agent(script(&[("tool", json!({"n": 1}))]));
    let gives = content.clone();
    let agent = agent.tool(tool_fn(spec("tool"), move |_: Value, _| {
        let content = gives.clone();
        async move {
            Ok(CallResult {
                content,
                ..CallResult::ok("")
            })
        }
    }));
    agent.run("Go.").await.expect("the run finishes");
    let Entry::Turn(turn) = &model.requests()[1].entries[1] else {
        unreachable!("a turn follows the prompt")
    };
    assert_eq!(turn.results()[0].content, content);
}

#[tokio::test]
async fn details_stay_out_of_the_request_when_a_tool_sets_them() {
    let (model, agent) = agent(script(&[("tool", json!({"n": 1}))]));
    let agent = agent.tool(tool_fn(spec("tool"), |_: Value, _| async {
        Ok(CallResult {
            details: json!({"only": "here"}),
            ..CallResult::ok("told")
        })
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(result.calls[0].result.details, json!({"only": "here"}));
    // A wire writes the text of a result, never its details.
    assert_eq!(shown(&model, 1), ["told"]);
}

#[tokio::test]
async fn content_is_kept_when_a_tool_fails_with_some() {
    let failure = || CallResult {
        details: json!({"done": 50}),
        ..CallResult::new(Status::Failed, "half of it")
    };
    let (model, agent) = agent(script(&[("tool", json!({"n": 1}))]));
    let agent = agent.tool(tool_fn(spec("tool"), move |_: Value, _| async move {
        Ok(failure())
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!((*result.calls[0].result).clone(), failure());
    assert_eq!(shown(&model, 1), ["half of it"]);
}

#[tokio::test]
async fn history_keeps_a_result_whole_when_the_model_is_shown_less() {
    let call = |n: u64| Script::new().call("tool", json!({"n": n}));
    let recall = Script::new().call("recall", json!({"call": "c1_0_0"}));
    let (model, agent) = agent([call(1), recall, Script::new().text("Done.")]);
    let agent = agent.calls(|calls| calls.max_result_bytes = 1_000);
    let agent = agent.tool(tool_fn(
        ToolSpec {
            max_output: Some(4),
            ..spec("tool")
        },
        |_: Value, _| async { Ok(CallResult::ok("abcdefgh")) },
    ));
    let schema = json!({"type": "object"});
    let recall = adjutant_tool::ToolSpec::new("recall", "Gives the whole.", schema);
    let agent = agent.tool(tool_fn(recall, |args: Value, cx: CallContext| async move {
        let conversation: Arc<Conversation> =
            cx.get().expect("a call of a run knows its conversation");
        let call = args["call"]
            .as_str()
            .and_then(|call| call.parse().ok())
            .expect("a call id");
        let found = conversation
            .result(&call)
            .map_or("nothing".into(), |result| result.text());
        Ok(CallResult::ok(format!(
            "{} of {} entries",
            found,
            conversation.history.len()
        )))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    let notice = "abcd\n[output cut: the first 4 of 8 bytes are shown; \"recall\" gives the rest, call c1_0_0]";
    assert_eq!(
        (shown(&model, 1), shown(&model, 2)),
        (
            vec![notice.to_owned()],
            vec!["abcdefgh of 2 entries".to_owned()]
        )
    );
    let texts: Vec<String> = calls(&result)
        .into_iter()
        .map(|(_, _, text)| text)
        .collect();
    assert_eq!(texts, ["abcdefgh", "abcdefgh of 2 entries"]);
    let Entry::Turn(turn) = &result.entries[1] else {
        unreachable!("a turn follows the prompt")
    };
    assert_eq!(turn.results()[0].text(), "abcdefgh");
}
