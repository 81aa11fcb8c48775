//! `tool_scope`: tools that are left out are neither shown nor run.

#[path = "effects/stage.rs"]
mod stage;

use adjutant_agent::{
    Action, Agent,
    effects::{Offload, ToolScope, effect_fn, from_spec},
};
use adjutant_llm::{CallResult, Script, ScriptedModel, Status};
use adjutant_tool::{ErasedTool, ToolSpec, tool_fn};
use serde_json::json;
use stage::{agent, done, say, shown};

fn tool(name: &str) -> impl ErasedTool + 'static {
    let spec = ToolSpec::new(
        name,
        "Does something that takes many words to tell.",
        json!({ "type": "object" }),
    );
    tool_fn(spec, |_, _| async { Ok(CallResult::ok("done")) })
}

fn more(agent: Agent) -> Agent {
    agent.tool(tool("read")).tool(tool("write"))
}

fn names(model: &ScriptedModel) -> Vec<Vec<String>> {
    let names = |request: &adjutant_llm::Request| {
        request
            .tools
            .iter()
            .map(|tool| tool.name.to_string())
            .collect()
    };
    model.requests().iter().map(names).collect()
}

#[tokio::test]
async fn hidden_tool_cannot_be_called_when_the_scope_leaves_it_out() {
    let scripts = [
        Script::new().call("write", json!({})),
        say(json!({ "text": "a" })),
        done(),
    ];
    let (model, agent) = agent(128_000, scripts);
    let result = more(agent)
        .effect(ToolScope {
            exclude: vec!["write".into()],
            ..ToolScope::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(names(&model), vec![vec!["say", "read"]; 3]);
    assert_ne!(result.calls[0].result.status, Status::Ok);
    assert!(
        result.calls[0].result.text().contains("write"),
        "the text names the tool"
    );
    assert!(
        shown(&model)[1][1].starts_with("write ! "),
        "the model is told"
    );
    assert_eq!(result.calls[1].result.status, Status::Ok);
}

#[tokio::test]
async fn scopes_intersect_when_there_are_several() {
    let (model, agent) = agent(128_000, [done()]);
    let agent = more(agent)
        .effect(ToolScope {
            allow: Some(vec!["say".into(), "read".into()]),
            ..ToolScope::default()
        })
        .effect(ToolScope {
            exclude: vec!["say".into()],
            ..ToolScope::default()
        });
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(names(&model), [["read"]]);
}

#[tokio::test]
async fn allow_list_leaves_offered_tools_when_other_effects_offer_some() {
    for (scope, wanted) in [
        (
            ToolScope {
                allow: Some(vec!["say".into()]),
                ..ToolScope::default()
            },
            vec!["say", "recall"],
        ),
        (
            ToolScope {
                exclude: vec!["recall".into(), "read".into()],
                ..ToolScope::default()
            },
            vec!["say", "write"],
        ),
        (
            ToolScope {
                allow: Some(Vec::new()),
                ..ToolScope::default()
            },
            vec!["recall"],
        ),
    ] {
        let (model, agent) = agent(128_000, [done()]);
        more(agent)
            .effect(scope)
            .effect(Offload::default())
            .run("Go.")
            .await
            .expect("the run finishes");
        assert_eq!(names(&model), [wanted]);
    }
}

#[tokio::test]
async fn hidden_tools_are_not_counted_when_the_request_is_measured() {
    let (model, agent) = agent(128_000, [done()]);
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let look = |kind: &'static str| {
        let seen = std::sync::Arc::clone(&seen);
        effect_fn(kind, move |cx| {
            seen.lock().expect("nobody panics").push(cx.tokens);
            Ok(Vec::<Action>::new())
        })
    };
    let agent = more(agent)
        .effect(look("before"))
        .effect(ToolScope {
            exclude: vec!["read".into()],
            ..ToolScope::default()
        })
        .effect(look("after"));
    agent.run("Go.").await.expect("the run finishes");
    model.assert_done();
    let seen = seen.lock().expect("nobody panics").clone();
    assert!(seen[1] < seen[0], "{seen:?}");
}

#[test]
fn scope_reads_its_parameters_when_it_is_configured() {
    let read =
        |params| serde_json::from_value::<ToolScope>(params).expect("the parameters are known");
    assert_eq!(read(json!({})), ToolScope::default());
    let set = ToolScope {
        exclude: vec!["a".into()],
        allow: Some(vec!["b".into(), "c".into()]),
    };
    assert_eq!(read(json!({ "exclude": ["a"], "allow": ["b", "c"] })), set);
    assert_eq!(
        from_spec("tool_scope", json!({}))
            .expect("the kind is known")
            .kind(),
        "tool_scope"
    );
}
