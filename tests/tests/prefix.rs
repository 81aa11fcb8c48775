//! A request begins with the one before it, byte for byte, on every wire: providers bill such a beginning at a tenth.

use std::sync::Arc;

use adjutant::{
    Agent, CallContext, Tools,
    agent::effects::Catalogue,
    llm::{CallResult, Effort, Options, Script, ScriptedModel},
    tool,
    tools::{ToolSpec, tool_fn},
};
use adjutant_testing::Loopback;
use adjutant_tests::{WIRES, Wire, signed};
use serde_json::json;

/// How many requests the conversation has.
const TURNS: usize = 50;
/// How many of them one run has; the last one is its answer.
const RUN: usize = 10;
/// A signature: base64.
const SEAL: &str = "YSB0aG91Z2h0";
/// How many bytes are shown on both sides of a difference.
const AROUND: usize = 60;

/// Looks at a city.
#[tool]
fn look(city: String) -> String {
    format!("There is much to see in {city}: \"the river\",\nthe bridge.")
}

/// Fails.
#[tool]
async fn fail(_cx: CallContext) -> Result<String, adjutant::ToolError> {
    Err(adjutant::ToolError::failed("nothing is found"))
}

/// What the model says in a turn: text, calls, thinking, in changing shapes.
fn script(turn: usize) -> Script {
    let script = Script::new().thinking(signed(&format!("Thought {turn}."), SEAL));
    if turn % RUN == RUN - 1 {
        return Script::new().text(format!("Answer {turn}, \"in quotes\"."));
    }
    let script = if turn.is_multiple_of(2) {
        script.text(format!("I shall look, {turn}."))
    } else {
        script
    };
    let script = script.call("look", json!({"city": format!("City {turn}")}));
    if turn.is_multiple_of(3) {
        script
            .call("fail", json!({}))
            .call("look", json!({"city": 7}))
    } else {
        script
    }
}

/// The bodies of a conversation, as the server received them.
async fn bodies(wire: Wire) -> Vec<String> {
    let scripted = Arc::new(ScriptedModel::new((0..TURNS).map(script)));
    let setup = Loopback::setup(Arc::clone(&scripted)).strict_signatures();
    let server = setup.start().await.expect("the server starts");
    let options = Options {
        thinking: Some(Effort::High),
        max_output_tokens: Some(20_000),
        ..Options::default()
    };
    let agent = Agent::new(wire.model(&server))
        .instructions("You know cities.\n\nBe brief.")
        .options(options);
    let agent = agent.tool(look).tool(fail);
    for run in 0..TURNS / RUN {
        let result = agent
            .run(format!("Where to, {run}?"))
            .await
            .expect("the run finishes");
        assert_eq!(
            result.text(),
            format!("Answer {}, \"in quotes\".", run * RUN + RUN - 1),
            "{wire}"
        );
    }
    scripted.assert_done();
    let text = |body: &[u8]| String::from_utf8(body.to_vec()).expect("JSON is UTF-8");
    server
        .requests()
        .iter()
        .map(|request| text(&request.body))
        .collect()
}

/// A body without cache marks.
fn unmarked(body: &str) -> String {
    let mut parts = body.split(r#","cache_control":{"#);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole.push_str(part.split_once('}').expect("a mark has an end").1);
    }
    whole
}

/// The first byte at which a body no longer begins with the one before it, with its surroundings.
fn broken(before: &str, after: &str) -> Option<String> {
    let (before, after) = (unmarked(before), unmarked(after));
    let open = before.trim_end_matches(['}', ']']);
    let same = open
        .bytes()
        .zip(after.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let around = |text: &str| {
        let bytes = &text.as_bytes()[same.saturating_sub(AROUND)..text.len().min(same + AROUND)];
        String::from_utf8_lossy(bytes).into_owned()
    };
    (same < open.len()).then(|| {
        format!(
            "byte {same}:\n  before: …{}…\n  after:  …{}…",
            around(&before),
            around(&after)
        )
    })
}

#[tokio::test]
async fn request_begins_with_the_one_before_when_turns_go_on() {
    for wire in WIRES {
        let bodies = bodies(wire).await;
        assert_eq!(bodies.len(), TURNS, "{wire}");
        for (at, pair) in bodies.windows(2).enumerate() {
            assert!(
                pair[0].len() < pair[1].len(),
                "{wire}, request {at}: the next one is no longer"
            );
            if let Some(how) = broken(&pair[0], &pair[1]) {
                panic!(
                    "{wire}: request {} does not begin with request {at}, from {how}",
                    at + 1
                );
            }
        }
        // Without marks to leave out, the test would not see that they move.
        let marks = bodies
            .iter()
            .map(|body| body.matches("\"cache_control\"").count());
        assert!(
            marks
                .clone()
                .all(|marks| (wire == Wire::Messages) == (1..=4).contains(&marks)),
            "{wire}"
        );
    }
}

/// The bodies of a conversation in which the second request loads a tool that was not listed.
async fn loading(wire: Wire) -> Vec<String> {
    let call = |name: &str| Script::new().call(name, json!({"city": "Rome"}));
    let load = Script::new().call("find_tools", json!({"names": ["tour_7"]}));
    let scripts = [
        call("look"),
        load,
        call("tour_7"),
        Script::new().text("Go."),
        call("tour_7"),
        Script::new().text("Well."),
    ];
    let server = Loopback::setup(Arc::new(ScriptedModel::new(scripts)))
        .start()
        .await
        .expect("the server starts");
    let tours = (0..300).fold(Tools::new("tours"), |tools, at| {
        let spec = ToolSpec::new(
            format!("tour_{at}"),
            "Shows a city. ".repeat(30),
            json!({"type": "object"}),
        );
        tools.tool(tool_fn(spec, |_, _| async { Ok(CallResult::ok("shown")) }))
    });
    let agent = Agent::new(wire.model(&server))
        .tool(look)
        .effect(Catalogue::default().toolbox(tours).share(0.01));
    for prompt in ["Where to?", "And then?"] {
        agent.run(prompt).await.expect("the run finishes");
    }
    server
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect()
}

#[tokio::test]
async fn only_one_beginning_changes_when_a_tool_of_a_catalogue_is_loaded() {
    for wire in WIRES {
        let bodies = loading(wire).await;
        let listed = bodies
            .iter()
            .map(|body| [body.contains("Shows a city."), body.contains("tour_8")]);
        let expect = [false, false, true, true, true, true].map(|loaded| [loaded, false]);
        assert_eq!(listed.collect::<Vec<_>>(), expect, "{wire}");
        for (at, pair) in bodies.windows(2).enumerate().filter(|(at, _)| *at != 1) {
            assert_eq!(broken(&pair[0], &pair[1]), None, "{wire}, request {at}");
        }
    }
}

#[test]
fn broken_names_the_byte_when_a_beginning_differs() {
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let before = format!(r#"{{"messages":[{{"text":"a"{mark}}}]}}"#);
    let after = format!(r#"{{"messages":[{{"text":"a"}},{{"text":"b"{mark}}}]}}"#);
    assert_eq!(broken(&before, &after), None);
    let after = after.replace("\"a\"", "\"ä\"");
    let told = broken(&before, &after).expect("they differ");
    assert!(
        told.starts_with("byte 22:") && told.contains(r#""text":"ä"},{"text""#),
        "{told}"
    );
    assert!(broken(&before, "").is_some_and(|it| it.starts_with("byte 0:")));
}
