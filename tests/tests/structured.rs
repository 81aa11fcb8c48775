//! Answers by a schema over every wire, in every way of asking, with a first answer that must be repaired.

use std::sync::Arc;

use adjutant::{
    Model,
    llm::{
        Effort, ErrorKind, FinishReason, Format, Options, Request, Script, ScriptedModel, Shape,
        Structured, ToolChoice, Usage, complete_as, complete_json,
    },
    providers::Timeouts,
};
use adjutant_testing::Loopback;
use adjutant_tests::{WIRES, Wire, taken};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A trip.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Trip {
    /// Where it goes.
    city: String,
    /// How long it is.
    days: u8,
    stops: Vec<Sight>,
    note: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Sight {
    name: String,
    kind: Kind,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Church,
    Bridge,
}

/// How a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the wire's own mode.
    Native,
    /// By a call that it must make.
    Forced,
    /// By a call that it is asked to make: it thinks, and may not be forced then.
    Called,
    /// By words.
    Prompt,
}

const WAYS: [Way; 4] = [Way::Native, Way::Forced, Way::Called, Way::Prompt];

fn trip() -> (Trip, Value) {
    let stops = vec![Sight {
        name: "Dom".into(),
        kind: Kind::Church,
    }];
    let value = json!({"city": "Köln", "days": 3, "stops": [{"name": "Dom", "kind": "church"}], "note": null});
    (
        Trip {
            city: "Köln".into(),
            days: 3,
            stops,
            note: None,
        },
        value,
    )
}

impl Way {
    fn structured(self) -> Structured {
        match self {
            Way::Native => Structured::Native,
            Way::Forced | Way::Called => Structured::Tool,
            Way::Prompt => Structured::Prompt,
        }
    }

    fn options(self) -> Options {
        let options = Options {
            max_output_tokens: Some(20_000),
            ..Options::default()
        };
        if self == Way::Called {
            Options {
                thinking: Some(Effort::High),
                ..options
            }
        } else {
            options
        }
    }

    /// An answer in this way, as models give it.
    fn answer(self, name: &str, value: &Value) -> Script {
        let text = value.to_string();
        match self {
            Way::Native => Script::new().text(text),
            Way::Forced | Way::Called => Script::new().call_raw(name, text),
            Way::Prompt => {
                Script::new().text(format!("Here it is:\n```json\n{text}\n```\nGood luck!"))
            }
        }
    }

    /// Checks how a provider has understood that it was asked.
    #[track_caller]
    fn check(self, request: &Request, name: &str, what: &str) {
        let tools: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        let asked = (
            request.options.format.is_some(),
            tools,
            request.options.tool_choice.clone(),
        );
        let expect = match self {
            Way::Native => (true, vec![], ToolChoice::Auto),
            Way::Forced => (false, vec![name], ToolChoice::Named(name.into())),
            Way::Called => (false, vec![name], ToolChoice::Auto),
            Way::Prompt => (false, vec![], ToolChoice::Auto),
        };
        assert_eq!(asked, expect, "{what}");
        let told = serde_json::to_string(&request.entries)
            .expect("entries are JSON")
            .contains("church");
        assert_eq!(
            told,
            self == Way::Prompt,
            "{what}: whether the schema stands in the conversation"
        );
    }
}

/// A server with these scripts, and a model behind a wire that is asked in this way.
async fn stage(
    wire: Wire,
    way: Way,
    scripts: Vec<Script>,
) -> (Loopback, Arc<ScriptedModel>, Arc<dyn Model>) {
    let scripted = Arc::new(ScriptedModel::new(scripts));
    let setup = Loopback::setup(Arc::clone(&scripted)).strict_signatures();
    let server = setup.start().await.expect("the server starts");
    let model = wire.model_of(
        adjutant::llm::ModelInfo {
            structured: way.structured(),
            ..wire.info()
        },
        &wire.base_url(&server),
        Timeouts::new(),
    );
    (server, scripted, model)
}

fn used(input: u64) -> Usage {
    Usage {
        input_uncached: input,
        output: 10,
        ..Usage::default()
    }
}

/// Every wire, asked in every way.
fn cells() -> impl Iterator<Item = (Wire, Way, String)> {
    WIRES
        .into_iter()
        .flat_map(|wire| WAYS.map(|way| (wire, way, format!("{wire}, {way:?}"))))
}

/// Plays a cell; what is wrong with it is given, so that one cell does not hide another.
async fn repaired(wire: Wire, way: Way, what: &str) {
    let (expect, right) = trip();
    let mut wrong = right.clone();
    wrong["days"] = "three".into();
    wrong["stops"][0]["kind"] = "museum".into();
    let scripts = vec![
        way.answer("Trip", &wrong).usage(used(100)),
        way.answer("Trip", &right).usage(used(200)),
    ];
    let (_server, scripted, model) = stage(wire, way, scripts).await;
    let request = Request::new()
        .system("You plan trips.")
        .user("Where to?")
        .options(way.options());
    let shaped = taken(complete_as::<Trip>(&model, request).await, what);
    assert_eq!((shaped.value, shaped.attempts), (expect, 2), "{what}");
    assert_eq!(shaped.usage, used(100) + used(200), "{what}");
    let requests = scripted.requests();
    assert_eq!(requests.len(), 2, "{what}");
    way.check(&requests[0], "Trip", what);
    let told = serde_json::to_string(&requests[1].entries).expect("entries are JSON");
    assert!(
        told.contains("- /days: ") && told.contains("- /stops/0/kind: "),
        "{what}: {told}"
    );
}

#[tokio::test]
async fn answer_is_repaired_when_it_does_not_fit_on_any_wire_in_any_way() {
    let mut wrong = Vec::new();
    for (wire, way, what) in cells() {
        let cell = tokio::spawn(async move { repaired(wire, way, &what).await });
        if cell.await.is_err() {
            wrong.push((wire, way));
        }
    }
    assert_eq!(wrong, [], "cells that failed; what came stands above");
}

#[tokio::test]
async fn answer_is_unwrapped_when_the_schema_is_no_object() {
    for (wire, way, what) in cells() {
        let format = Format::new(
            "cities",
            json!({"type": "array", "items": {"type": "string"}}),
        );
        let answer = way.answer("cities", &json!({"value": ["Köln", "Bonn"]}));
        let (_server, _, model) = stage(wire, way, vec![answer]).await;
        let request = Request::new().user("Which?").options(way.options());
        let shaped = taken(complete_json(&model, request, format).await, &what);
        assert_eq!(
            (shaped.value, shaped.attempts),
            (json!(["Köln", "Bonn"]), 1),
            "{what}"
        );
    }
}

#[tokio::test]
async fn answer_is_an_error_when_no_repair_helps() {
    let mut shape = Shape::<Trip>::new().expect("a type has a schema");
    shape.repairs = 1;
    for (wire, way, what) in cells() {
        let wrong = || way.answer("Trip", &json!({"city": "Köln"}));
        let (server, _, model) = stage(wire, way, vec![wrong(), wrong()]).await;
        let error = shape
            .ask(
                &model,
                Request::new().user("Where to?").options(way.options()),
            )
            .await;
        let error = error.expect_err("it does not fit");
        assert_eq!(
            (error.kind(), server.request_count()),
            (ErrorKind::Protocol, 2),
            "{what}: {error}"
        );
        assert!(
            error
                .message()
                .starts_with("no answer fits the schema `Trip` (2 asked for)"),
            "{what}: {error}"
        );
    }
}

#[tokio::test]
async fn answer_is_an_error_when_the_reply_is_none() {
    for (wire, way, what) in cells() {
        for (stop, kind) in [
            (FinishReason::Refused, ErrorKind::Refused),
            (FinishReason::Length, ErrorKind::Invalid),
        ] {
            let (server, _, model) =
                stage(wire, way, vec![Script::new().text("I").stop(stop)]).await;
            let error = complete_as::<Trip>(
                &model,
                Request::new().user("Where to?").options(way.options()),
            )
            .await;
            let error = error.expect_err("there is no answer");
            assert_eq!(
                (error.kind(), server.request_count()),
                (kind, 1),
                "{what}, {stop:?}: {error}"
            );
        }
    }
}
