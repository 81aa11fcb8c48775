//! What a hostile server does, and what it comes to: within the limits of time and size, and in words.

#[path = "hostile/answers.rs"]
mod answers;
#[path = "hostile/lists.rs"]
mod lists;

use std::sync::Mutex;

use adjutant_llm::Status;
use adjutant_tool::{CallContext, Toolset};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::script::{
    Act, AnyScript, Speaks, answer, names, notify, refuse, resolve, server, text, tool, usual,
    warnings,
};

type Row = (&'static str, AnyScript, &'static str);

/// A server of the newer revision that answers one method in its own way.
fn on(method: &'static str, act: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static) -> AnyScript {
    of(Speaks::New, method, act)
}

fn of(
    speaks: Speaks,
    method: &'static str,
    act: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static,
) -> AnyScript {
    Box::new(move |_, message| match message["method"].as_str() {
        Some(known) if known == method => act(message),
        Some("tools/call") => vec![answer(message, text("fine"))],
        _ => usual(speaks, message, &[tool("a")]),
    })
}

/// A server that lists these tools.
fn lists(tools: Vec<Value>) -> AnyScript {
    on("tools/list", move |message| {
        vec![page(message, &tools, Value::Null)]
    })
}

/// A server that answers calls with this.
fn results(result: Value) -> AnyScript {
    on("tools/call", move |message| {
        vec![answer(message, result.clone())]
    })
}

fn page(message: &Value, tools: &[Value], next: Value) -> Act {
    let mut result = json!({"resultType": "complete", "tools": tools, "ttlMs": 3_600_000, "cacheScope": "public"});
    if !next.is_null() {
        result["nextCursor"] = next;
    }
    answer(message, result)
}

fn schema(schema: Value) -> Vec<Value> {
    vec![json!({"name": "bad", "inputSchema": schema}), tool("a")]
}

fn content(parts: Value) -> Value {
    json!({"resultType": "complete", "content": parts})
}

fn declared(schema: Value, result: Value) -> AnyScript {
    Box::new(move |_, message| match message["method"].as_str() {
        Some("tools/call") => vec![answer(message, result.clone())],
        Some("tools/list") => {
            let tool =
                json!({"name": "a", "inputSchema": {"type": "object"}, "outputSchema": schema});
            vec![page(message, &[tool], Value::Null)]
        }
        _ => usual(Speaks::New, message, &[]),
    })
}

fn needs(requests: Value, state: Value) -> AnyScript {
    results(
        json!({"resultType": "input_required", "inputRequests": requests, "requestState": state}),
    )
}

fn nested(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

/// A schema whose check would take three to the power of fifteen steps.
fn bomb() -> Value {
    let link = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        (format!("d{at}"), json!({"allOf": [next, next, next]}))
    };
    let mut defs: serde_json::Map<String, Value> = (0..15).map(link).collect();
    defs.insert("d15".into(), json!({"type": "string"}));
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})
}

/// What a set holds, what it warns of, and what a call of its first tool comes to, in one text.
async fn told(set: &Toolset) -> String {
    let mut told = match names(set) {
        all if all.len() > 8 => format!("{} tools", all.len()),
        all => all.join(" "),
    };
    for warning in warnings(set) {
        told += &format!(" | {}", short(&warning.replace("MCP server \"s\": ", "")));
    }
    let Some(tool) = set.iter().next() else {
        return told;
    };
    let came = match tool.call(json!({}), CallContext::detached()).await {
        Ok(result) => {
            let how = if result.status == Status::Ok {
                "ok"
            } else {
                "failed"
            };
            format!("{how}: {}", result.text())
        }
        Err(error) => format!("{:?}: {}", error.kind, error.message),
    };
    format!(
        "{told} -> {}",
        short(&came.replace("MCP server \"s\": ", ""))
    )
}

/// A text, or its beginning, length and end.
fn short(text: &str) -> String {
    match text.len() {
        ..300 => text.to_owned(),
        length => format!("{}…({length})…{}", &text[..24], &text[length - 40..]),
    }
}

/// Longer than all limits of a call together; nobody waits for it in fact.
const LONGEST: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn hostile_server_is_an_error_or_a_warning() {
    let begin = [
        lists::beginnings(),
        lists::noisy_beginnings(),
        lists::long_lists(),
        lists::odd_tools(),
    ];
    let call = [
        answers::no_results(),
        answers::not_unicode(),
        answers::odd_results(),
        answers::questions(),
        answers::tasks(),
        answers::storms(),
    ];
    let rows: Vec<Row> = begin.into_iter().chain(call).flatten().collect();
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for (what, script, expect) in rows {
        let server = server(script);
        let came = async { told(&resolve(&server).await).await };
        let came = timeout(LONGEST, came)
            .await
            .unwrap_or_else(|_| "no end".to_owned());
        if came != expect {
            wrong.push(format!("{what}\n  came:   {came:?}\n  expect: {expect:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn call_of_a_set_that_is_gone_is_an_answer_of_the_server() {
    let listed = Mutex::new(0);
    let server = server(move |_, message: &Value| match message["method"].as_str() {
        Some("tools/list") => {
            let mut listed = listed.lock().expect("nobody panicked");
            *listed += 1;
            vec![page(
                message,
                &[tool(if *listed == 1 { "a" } else { "b" })],
                Value::Null,
            )]
        }
        Some("tools/call") if message["params"]["name"] == "a" => {
            vec![
                notify("notifications/tools/list_changed", json!({})),
                refuse(message, -32602, "unknown tool"),
            ]
        }
        Some("tools/call") => vec![answer(message, text("b"))],
        _ => usual(Speaks::New, message, &[]),
    });
    let turn = resolve(&server).await;
    let expect = "s_a -> failed: it refused the call: unknown tool (-32602)";
    assert_eq!(
        (told(&turn).await.as_str(), told(&turn).await.as_str()),
        (expect, expect)
    );
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(told(&resolve(&server).await).await, "s_b -> ok: b");
}
