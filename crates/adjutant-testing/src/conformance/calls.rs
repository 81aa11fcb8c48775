//! Hazards of calls: their ids, their arguments, and their way back to the provider.

use std::sync::Arc;

use adjutant_llm::{Block, Call, CallResult, Entry, FinishReason, Reply, Request, Script, Status};
use serde_json::{Value, json};

use super::{
    Subject, Verdict,
    stage::{HazardStage, ensure, results, same, turn, with_tools},
};

/// Sends a request, answers every call of the reply, and sends the next request.
async fn there_and_back(
    subject: &dyn Subject,
    script: Script,
    result: impl Fn(&Call) -> CallResult,
) -> Result<(Arc<Reply>, Request), String> {
    let stage = HazardStage::new(subject, [script, Script::new().text("Done.")]).await?;
    let request = with_tools();
    let reply = stage.reply(request.clone()).await?;
    for call in reply.calls() {
        same(
            "the turn and attempt of a call's id",
            (call.id.turn, call.id.attempt),
            (request.turn(), 0),
        )?;
    }
    let second = back(&stage, request, &reply, result).await?;
    Ok((reply, second))
}

/// Sends a reply back with its results; gives what the provider understood.
async fn back(
    stage: &HazardStage,
    mut request: Request,
    reply: &Arc<Reply>,
    result: impl Fn(&Call) -> CallResult,
) -> Result<Request, String> {
    request.entries.push(turn(reply, result)?);
    if reply.calls().next().is_none() {
        request = request.user("Go on.");
    }
    let done = stage.reply(request).await?;
    same("the second reply", done.text().as_str(), "Done.")?;
    stage.understood(1)
}

fn echo_call(call: &Call) -> CallResult {
    CallResult::ok(format!("{} of {}", call.name, call.args))
}

pub(super) async fn parallel_calls(subject: &dyn Subject) -> Verdict {
    let script = Script::new()
        .call("look", json!({"city": "Köln"}))
        .call("find", json!({"city": "Bonn"}));
    let answer = |call: &Call| CallResult::ok(call.name.as_str());
    let (reply, second) = there_and_back(subject, script, answer).await?;
    same("the stop", reply.stop, FinishReason::Calls)?;
    let names: Vec<&str> = reply.calls().map(|call| call.name.as_str()).collect();
    same("the calls", names, vec!["look", "find"])?;
    let pair = |name: &str| (name.to_owned(), name.to_owned());
    same(
        "the results",
        results(&second),
        vec![pair("look"), pair("find")],
    )
}

pub(super) async fn identical_calls(subject: &dyn Subject) -> Verdict {
    let args = json!({"city": "Köln"});
    let script = Script::new()
        .call("look", args.clone())
        .call("look", args.clone())
        .call("look", args);
    let (reply, second) = there_and_back(subject, script, |call| {
        CallResult::ok(call.id.block.to_string())
    })
    .await?;
    let blocks: Vec<u32> = reply.calls().map(|call| call.id.block).collect();
    same("the calls", blocks.len(), 3)?;
    let expected: Vec<_> = blocks
        .iter()
        .map(|block| ("look".to_owned(), block.to_string()))
        .collect();
    same("the results", results(&second), expected)
}

pub(super) async fn text_and_call(subject: &dyn Subject) -> Verdict {
    let script = Script::new()
        .text("I shall look.")
        .call("look", json!({"city": "Köln"}));
    let (reply, second) = there_and_back(subject, script, echo_call).await?;
    same("the text", reply.text().as_str(), "I shall look.")?;
    let turns = second
        .entries
        .iter()
        .filter_map(|stored| match &stored.entry {
            Entry::Turn(turn) => Some(turn.reply().clone()),
            _ => None,
        });
    let kinds: Vec<&str> = turns
        .flat_map(|reply| reply.blocks.iter().map(kind).collect::<Vec<_>>())
        .collect();
    same("the reply that went back", kinds, vec!["text", "call"])
}

fn kind(block: &Arc<Block>) -> &'static str {
    match &**block {
        Block::Text(_) => "text",
        Block::Thinking(_) => "thinking",
        Block::Call(_) => "call",
        _ => "other",
    }
}

pub(super) async fn exact_arguments(subject: &dyn Subject) -> Verdict {
    const ARGS: &str =
        r#"{"z":9007199254740993,"a":[1,{"y":true,"b":null}],"city":"K\u00f6ln \ud83d\ude00"}"#;
    let (reply, second) =
        there_and_back(subject, Script::new().call_raw("look", ARGS), echo_call).await?;
    let expected = serde_json::from_str::<Value>(ARGS)
        .map_err(|error| error.to_string())?
        .to_string();
    let came = |args: &str| {
        serde_json::from_str::<Value>(args)
            .unwrap_or_default()
            .to_string()
    };
    let args: Vec<String> = reply.calls().map(|call| came(&call.args)).collect();
    same("the arguments", args, vec![expected.clone()])?;
    let back: Vec<String> = second
        .entries
        .iter()
        .filter_map(|stored| {
            if let Entry::Turn(turn) = &stored.entry {
                Some(turn.reply().clone())
            } else {
                None
            }
        })
        .flat_map(|reply| {
            reply
                .calls()
                .map(|call| came(&call.args))
                .collect::<Vec<_>>()
        })
        .collect();
    same("the arguments that went back", back, vec![expected])
}

pub(super) async fn empty_arguments(subject: &dyn Subject) -> Verdict {
    let (reply, second) = there_and_back(subject, Script::new().call_raw("look", ""), |_| {
        CallResult::ok("r")
    })
    .await?;
    let args: Vec<&str> = reply.calls().map(|call| call.args.trim()).collect();
    ensure(matches!(args.as_slice(), ["" | "{}"]), || {
        format!("the arguments are {args:?}")
    })?;
    same(
        "the results",
        results(&second),
        vec![("look".to_owned(), "r".to_owned())],
    )
}

pub(super) async fn invalid_arguments(subject: &dyn Subject) -> Verdict {
    const ARGS: &str = r#"{"city": "Köln", "#;
    let scripts = [
        Script::new().call_raw("look", ARGS),
        Script::new().text("Done."),
    ];
    let stage = HazardStage::new(subject, scripts).await?;
    let heard = stage.ask(with_tools()).await;
    stage.understood(0)?;
    // A wire that cannot express such a call fails: with an error, or with a reply without calls.
    let Ok(reply) = heard.reply() else {
        return Ok(());
    };
    let args: Vec<&str> = reply.calls().map(|call| &*call.args).collect();
    ensure(matches!(args.as_slice(), [] | [ARGS]), || {
        format!("the arguments are {args:?}")
    })?;
    let refused =
        |_: &Call| CallResult::new(Status::InvalidArguments, "The arguments are no JSON.");
    back(&stage, with_tools(), &reply, refused)
        .await
        .map(|_| ())
}

pub(super) async fn truncated_call(subject: &dyn Subject) -> Verdict {
    let script = Script::new()
        .text("I shall")
        .call_raw("look", r#"{"city": "K"#)
        .stop(FinishReason::Length);
    let stage = HazardStage::new(subject, [script, Script::new().text("Done.")]).await?;
    let reply = stage.reply(with_tools()).await?;
    same("the stop", reply.stop, FinishReason::Length)?;
    same("the text", reply.text().as_str(), "I shall")?;
    ensure(!reply.may_run_calls(), || "the call may run".into())?;
    let cut = |_: &Call| CallResult::new(Status::Truncated, "The reply was cut off.");
    back(&stage, with_tools(), &reply, cut).await.map(|_| ())
}

pub(super) async fn error_result(subject: &dyn Subject) -> Verdict {
    let failed = |_: &Call| CallResult::new(Status::Failed, "no such city");
    let script = Script::new().call("look", json!({"city": "X"}));
    let (_, second) = there_and_back(subject, script, failed).await?;
    let told = results(&second);
    ensure(
        told.len() == 1 && told[0].1.contains("no such city"),
        || format!("the results are {told:?}"),
    )
}
