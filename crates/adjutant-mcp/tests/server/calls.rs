//! What clients are told of tools, prompts and resources, and what calls come to.

use std::sync::Arc;

use adjutant_llm::{CallResult, Content};
use adjutant_mcp::{McpHost, ServedResource};
use adjutant_tool::{ToolSpec, Tools, tool_fn};
use serde_json::{Value, json};

use crate::client::{BOTH, Client, Rev, text, tools};

fn host() -> McpHost {
    let schema = json!({
        "type": "object",
        "properties": { "of": { "type": "string", "enum": ["tea", "toast", "milk"], "description": "What of." } },
        "required": ["of"],
    });
    let prompts = Tools::new("prompts").tool(tool_fn(
        ToolSpec::new("ask_for", "Asks for it.", schema),
        |args, _| async move {
            Ok(CallResult::ok(format!(
                "Bring {}.",
                args["of"].as_str().unwrap_or_default()
            )))
        },
    ));
    let family = ServedResource::new("note://{year}/{name}.md", "notes", |uri| async move {
        Ok(Content::text(uri))
    });
    McpHost::new("test")
        .tools(tools(&Arc::default()))
        .prompts(prompts)
        .resource(family.media_type("text/markdown"))
}

#[tokio::test]
async fn a_call_comes_to_its_result_when_the_tool_ends() {
    let says = |text: &str| json!([{ "type": "text", "text": text }]);
    let rows = [
        (
            "echo",
            json!({ "say": "hi" }),
            json!({ "content": says("hi"), "isError": false }),
        ),
        (
            "picture",
            json!({}),
            json!({ "content": [{ "type": "text", "text": "[omitted image of 3 bytes: its format is unknown; PNG, JPEG, GIF and WebP are taken]" }], "isError": false }),
        ),
        (
            "price",
            json!({}),
            json!({ "content": says("3 euros"), "structuredContent": { "price": 3 }, "isError": false }),
        ),
        (
            "broken",
            json!({}),
            json!({ "content": says("no luck"), "isError": true }),
        ),
    ];
    for rev in BOTH {
        let mut client = Client::open(&host(), rev).await;
        for (name, args, mut expect) in rows.clone() {
            let mut got = client.call(name, args).await["result"].take();
            got.as_object_mut().unwrap().remove("_meta");
            if rev == Rev::New {
                expect["resultType"] = json!("complete");
            }
            assert_eq!(got, expect, "{name} at {rev:?}");
        }
        let panicked = client.call("panics", json!({})).await;
        assert_eq!(panicked["result"]["isError"], true, "{panicked}");
        let sampled = client.call("samples", json!({})).await;
        assert!(text(&sampled).contains("has no model to ask"), "{sampled}");
    }
}

#[tokio::test]
async fn lists_say_what_is_offered_when_they_are_asked_for() {
    for rev in BOTH {
        let mut client = Client::open(&host(), rev).await;
        let tools = client.ask("tools/list", json!({})).await;
        let names: Vec<_> = tools["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["name"])
            .collect();
        assert_eq!(
            names,
            [
                "echo", "picture", "price", "broken", "panics", "pay", "name", "samples", "slow"
            ]
        );
        assert_eq!(
            tools["result"]["tools"][2]["outputSchema"]["required"],
            json!(["price"])
        );
        assert_eq!(tools["result"]["tools"][5]["title"], "Pay");
        let prompts = client.ask("prompts/list", json!({})).await;
        let of = json!([{ "name": "of", "description": "What of.", "required": true }]);
        assert_eq!(prompts["result"]["prompts"][0]["arguments"], of);
        let templates = client.ask("resources/templates/list", json!({})).await;
        assert_eq!(
            templates["result"]["resourceTemplates"][0]["uriTemplate"],
            "note://{year}/{name}.md"
        );
    }
}

#[tokio::test]
async fn prompts_and_resources_give_what_they_hold_when_they_are_read() {
    let rows = [
        (
            "prompts/get",
            json!({ "name": "ask_for", "arguments": { "of": "tea" } }),
            "/result/messages/0/content/text",
            json!("Bring tea."),
        ),
        (
            "prompts/get",
            json!({ "name": "ask_for", "arguments": { "of": "mud" } }),
            "/error/code",
            json!(-32602),
        ),
        (
            "prompts/get",
            json!({ "name": "unknown" }),
            "/error/code",
            json!(-32602),
        ),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "ask_for" }, "argument": { "name": "of", "value": "t" } }),
            "/result/completion/values",
            json!(["tea", "toast"]),
        ),
        (
            "resources/read",
            json!({ "uri": "note://2026/a.md" }),
            "/result/contents/0/text",
            json!("note://2026/a.md"),
        ),
        (
            "resources/read",
            json!({ "uri": "note://2026/a.md" }),
            "/result/contents/0/mimeType",
            json!("text/markdown"),
        ),
        (
            "resources/read",
            json!({ "uri": "note://2026/b/a.md" }),
            "/error/data/uri",
            json!("note://2026/b/a.md"),
        ),
        (
            "resources/read",
            json!({ "uri": "note:///a.md" }),
            "/error/data/uri",
            json!("note:///a.md"),
        ),
        (
            "resources/list",
            json!({ "cursor": "next" }),
            "/error/code",
            json!(-32602),
        ),
    ];
    for rev in BOTH {
        let mut client = Client::open(&host(), rev).await;
        for (method, params, at, expect) in rows.clone() {
            let got = client.ask(method, params.clone()).await;
            assert_eq!(
                got.pointer(at),
                Some(&expect),
                "{method} {params} at {rev:?}: {got}"
            );
        }
    }
}

#[tokio::test]
async fn a_client_hears_of_a_change_when_it_watches_the_resource() {
    let (watched, other) = ("note://2026/a.md", "note://2026/b.md");
    for rev in BOTH {
        let host = host();
        let mut client = Client::open(&host, rev).await;
        if rev == Rev::Old {
            client
                .ask("resources/subscribe", json!({ "uri": watched }))
                .await;
        } else {
            let wanted = json!({ "resourceSubscriptions": [watched, "file:///etc/passwd"] });
            client
                .begin("subscriptions/listen", json!({ "notifications": wanted }))
                .await;
            let accepted = client.next().await.unwrap();
            assert_eq!(
                accepted["params"]["notifications"]["resourceSubscriptions"],
                json!([watched]),
                "{accepted}"
            );
            // It listens once it has said so.
            tokio::task::yield_now().await;
        }
        host.resource_changed(other);
        host.resource_changed(watched);
        let told = client.next().await.unwrap();
        assert_eq!(
            (&told["method"], &told["params"]["uri"]),
            (&json!("notifications/resources/updated"), &json!(watched))
        );
    }
}

#[tokio::test]
async fn progress_and_logs_are_told_when_the_client_wishes_it() {
    let cancelled = |id: u64| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    for rev in BOTH {
        let mut client = Client::open(&host(), rev).await;
        let meta = json!({ "progressToken": "p" });
        let id = client
            .begin(
                "tools/call",
                json!({ "name": "slow", "arguments": {}, "_meta": meta }),
            )
            .await;
        let told = client.next().await.unwrap();
        let expect =
            json!({ "progressToken": "p", "progress": 7.0, "total": 9.0, "message": "waiting" });
        assert_eq!(told["params"], expect, "{told}");
        client.send(cancelled(id)).await;

        let mut meta = Value::Null;
        if rev == Rev::Old {
            client
                .ask("logging/setLevel", json!({ "level": "info" }))
                .await;
        } else {
            meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
        }
        let id = client
            .begin(
                "tools/call",
                json!({ "name": "slow", "arguments": {}, "_meta": meta }),
            )
            .await;
        let told = client.next().await.unwrap();
        assert_eq!(
            (&told["method"], &told["params"]["data"]),
            (&json!("notifications/message"), &json!("waiting")),
            "{told}"
        );
        client.send(cancelled(id)).await;
        assert_eq!(
            client.call("echo", json!({ "say": "still here" })).await["result"]["isError"],
            false
        );
    }
}
