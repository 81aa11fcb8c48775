//! Toolboxes, and what a manifest changes about them.

use std::time::Duration;

use adjutant_llm::CallResult;
use adjutant_runtime::ErrorKind;
use adjutant_tool::{CallContext, ToolSpec, Tools, tool_fn};
use serde_json::{Value, json};

use crate::stage::{Stage, calls, one, preview, result, run, seen, still, tools};

async fn shown(toolbox: Value) -> Vec<String> {
    let stage = Stage::new([]);
    let engine = stage.engine(one(json!({ "toolboxes": [toolbox] }))).await;
    tools(&preview(&engine).await)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn toolbox_is_the_one_that_is_named() {
    assert_eq!(
        shown(json!("files")).await,
        ["list_files", "read_file", "search_text"]
    );
    assert_eq!(
        shown(json!({ "name": "files" })).await,
        ["list_files", "read_file", "search_text"]
    );
}

#[tokio::test]
async fn toolbox_has_only_the_tools_that_are_named() {
    assert_eq!(
        shown(json!({ "name": "files", "only": ["*_file", "search_*"] })).await,
        ["read_file", "search_text"]
    );
}

#[tokio::test]
async fn toolbox_lacks_the_tools_that_are_excepted() {
    assert_eq!(
        shown(json!({ "name": "files", "except": ["*_files"] })).await,
        ["read_file", "search_text"]
    );
}

#[tokio::test]
async fn toolbox_has_its_prefix() {
    let toolbox = json!({ "name": "files", "prefix": "my_", "only": ["read_file"] });
    assert_eq!(shown(toolbox).await, ["my_read_file"]);
}

#[tokio::test]
async fn files_are_those_of_the_root() {
    let stage = Stage::new(calls("list_files", json!({})));
    stage.file("elsewhere/found.txt", "x");
    let toolbox = json!({ "name": "files", "root": stage.folder.path().join("elsewhere") });
    let ran = run(&stage.engine(one(json!({ "toolboxes": [toolbox] }))).await).await;
    assert!(result(&ran, 0).contains("found.txt"), "{}", result(&ran, 0));
}

#[tokio::test]
async fn files_are_those_of_the_working_folder_without_a_root() {
    let stage = Stage::new(calls("list_files", json!({})));
    stage.file("agent/work/here.txt", "x");
    stage.file("agent/state/hidden.txt", "x");
    let ran = run(&stage.engine(one(json!({ "toolboxes": ["files"] }))).await).await;
    assert!(
        result(&ran, 0).contains("here.txt") && !result(&ran, 0).contains("hidden"),
        "{}",
        result(&ran, 0)
    );
}

#[tokio::test]
async fn result_of_a_toolbox_has_its_size() {
    let stage = Stage::new(calls("read_file", json!({ "path": "long.txt" })));
    stage.file("agent/work/long.txt", &"a word on a line\n".repeat(1_000));
    let toolbox = json!({ "name": "files", "max_output": "512B" });
    let ran = run(&stage.engine(one(json!({ "toolboxes": [toolbox] }))).await).await;
    assert_eq!(ran.calls[0].result.status, adjutant_llm::Status::Ok);
    let shown = seen(&stage.model);
    assert!(
        shown.contains("a word on a line") && shown.len() < 3_000,
        "{}",
        shown.len()
    );
}

#[tokio::test(start_paused = true)]
async fn call_of_a_toolbox_has_its_time() {
    let spec = ToolSpec::new(
        "wait",
        "Waits.",
        json!({ "type": "object", "properties": {} }),
    );
    let waits = tool_fn(spec, |_: Value, _: CallContext| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(CallResult::ok("waited"))
    });
    let stage = Stage::new(calls("wait", json!({})));
    let builder = stage.builder(still(one(
        json!({ "toolboxes": [{ "name": "mine", "timeout": "5s" }] }),
    )));
    let engine = builder
        .toolbox("mine", Tools::new("mine").tool(waits))
        .build()
        .await
        .expect("it is right");
    let ran = run(&engine).await;
    assert_ne!(result(&ran, 0), "waited");
}

#[tokio::test]
async fn each_toolbox_is_there_with_what_it_stands_on() {
    let mut manifest = one(
        json!({ "toolboxes": ["files", "board", "notes", "memory", "reflections", "background"] }),
    );
    for (field, spec) in [
        ("board", json!({ "name": "b" })),
        ("notes", json!({ "name": "n" })),
        ("memory", json!({ "owner": "o" })),
    ] {
        manifest[field] = spec;
    }
    let stage = Stage::new([]);
    let engine = stage.engine(manifest).await;
    let request = preview(&engine).await;
    let shown = tools(&request);
    for tool in [
        "read_file",
        "claim_task",
        "list_notes",
        "store_memory",
        "recall_reflections",
        "list_tasks",
    ] {
        assert!(shown.contains(&tool), "{tool}: {shown:?}");
    }
}

#[tokio::test]
async fn changed_toolboxes_keep_their_names_apart() {
    let mut manifest = one(json!({ "toolboxes": [
        { "name": "board", "only": ["create_task"] }, { "name": "notes", "prefix": "wall_", "only": ["list_notes"] },
        { "name": "memory", "except": ["delete_memory", "replace_memory", "recall_memories"] },
        { "name": "background", "only": ["list_tasks"], "prefix": "bg_" },
    ] }));
    for (field, spec) in [
        ("board", json!({ "name": "b" })),
        ("notes", json!({ "name": "n" })),
        ("memory", json!({ "owner": "o" })),
    ] {
        manifest[field] = spec;
    }
    let stage = Stage::new([]);
    let engine = stage.engine(manifest).await;
    assert_eq!(
        tools(&preview(&engine).await),
        [
            "create_task",
            "wall_list_notes",
            "store_memory",
            "bg_list_tasks"
        ]
    );
}

#[tokio::test]
async fn workspace_is_not_among_the_files_of_a_root_above_it() {
    let stage = Stage::new(calls("read_file", json!({ "path": "agent/host.json" })));
    stage.file("agent/host.json", "the token");
    let toolbox = json!({ "name": "files", "root": stage.folder.path() });
    let ran = run(&stage.engine(one(json!({ "toolboxes": [toolbox] }))).await).await;
    assert_eq!(
        result(&ran, 0),
        "`agent/host.json` is not shown: agents are kept there"
    );
}

#[tokio::test]
async fn root_among_the_agents_of_a_folder_is_refused() {
    let stage = Stage::new(calls("list_files", json!({})));
    // A backend wrote it down: what stands beside it are agents too.
    stage.file("agent/agent.json", "{}");
    stage.file("other/host.json", "the token");
    for root in ["", "agent", "agent/state", "other"] {
        let toolbox = json!({ "name": "files", "root": stage.folder.path().join(root) });
        let error = stage.wrong(one(json!({ "toolboxes": [toolbox] }))).await;
        assert_eq!(error.kind(), ErrorKind::Config, "{root}: {error}");
    }
    stage.file("agent/work/part/here.txt", "x");
    let toolbox = json!({ "name": "files", "root": stage.work("part") });
    let ran = run(&stage.engine(one(json!({ "toolboxes": [toolbox] }))).await).await;
    assert!(result(&ran, 0).contains("here.txt"), "{}", result(&ran, 0));
}
