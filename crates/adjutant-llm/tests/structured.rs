//! An answer fits its schema, whatever way it is asked for, or is a typed error; what it took is counted whole.

use std::sync::Arc;

use adjutant_llm::{
    Effort, Entry, Error, ErrorKind, FinishReason, Format, ModelInfo, NanoUsd, Options, Origin,
    Price, Request, RequestOption, Script, ScriptedModel, Shape, Shaped, Status, Structured,
    ToolChoice, ToolDecl, Usage, complete_as, complete_json,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A bill.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Invoice {
    /// Who pays.
    customer: String,
    cents: u32,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

fn model(how: Structured, scripts: impl IntoIterator<Item = Script>) -> ScriptedModel {
    ScriptedModel::new(scripts).info(ModelInfo {
        structured: how,
        ..ModelInfo::new("scripted/model")
    })
}

fn usage(input_uncached: u64, output: u64) -> Usage {
    Usage {
        input_uncached,
        output,
        ..Usage::default()
    }
}

fn request() -> Request {
    Request::new()
        .system("Be exact.")
        .user("Ada owes 12 dollars.")
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "customer": {"type": "string", "description": "Who pays."},
            "cents": {"type": "integer", "format": "uint32", "minimum": 0},
        },
        "required": ["customer", "cents"],
        "description": "A bill.",
    })
}

fn ada() -> Invoice {
    Invoice {
        customer: "Ada".into(),
        cents: 1200,
    }
}

const ADA: &str = r#"{"customer": "Ada", "cents": 1200}"#;

fn texts(request: &Request) -> Vec<String> {
    let text = |entry: &Entry| match entry {
        Entry::User(message) => match &message.origin {
            Origin::Person => format!("person: {}", message.content[0].as_text().expect("text")),
            Origin::Reminder { by } => {
                format!("{by}: {}", message.content[0].as_text().expect("text"))
            }
            other => unreachable!("no {other:?} here"),
        },
        Entry::Turn(turn) => {
            let results: Vec<_> = turn
                .results()
                .iter()
                .map(|it| (it.status, it.text()))
                .collect();
            format!("model: {} {results:?}", turn.reply().text())
        }
        other => unreachable!("no {other:?} here"),
    };
    request
        .entries
        .iter()
        .map(|stored| text(&stored.entry))
        .collect()
}

async fn fails(model: &ScriptedModel, request: Request) -> (ErrorKind, String) {
    let error: Error = complete_as::<Invoice>(model, request)
        .await
        .expect_err("there is no answer");
    model.assert_done();
    (error.kind(), error.message().to_owned())
}

#[tokio::test]
async fn complete_as_sets_the_format_when_the_wire_has_such_a_mode() {
    let price = Price::dollars(1.0, 2.0, 0.0, 0.0);
    let info = ModelInfo {
        structured: Structured::Native,
        price: Some(price),
        ..ModelInfo::new("scripted/model")
    };
    let model = ScriptedModel::new([Script::new().text(ADA).usage(usage(100, 10))]).info(info);
    let shaped: Shaped<Invoice> = complete_as(&model, request()).await.expect("an answer");
    assert_eq!(shaped.value, ada());
    assert_eq!(
        (
            shaped.usage,
            shaped.cost,
            shaped.attempts,
            shaped.reply.text()
        ),
        (usage(100, 10), Some(NanoUsd(120_000)), 1, ADA.to_owned())
    );
    let asked = model.requests().remove(0);
    assert_eq!(asked.options.format, Some(Format::new("Invoice", schema())));
    assert_eq!(
        asked,
        request().options(Options {
            format: Some(Format::new("Invoice", schema())),
            ..Options::default()
        })
    );
}

#[tokio::test]
async fn complete_as_forces_a_call_when_the_model_answers_by_tool() {
    let script = Script::new()
        .text("Gladly.")
        .call("Invoice", json!({"customer": "Ada", "cents": 1200}));
    let model = model(Structured::Tool, [script]);
    let weather = ToolDecl {
        name: "weather".into(),
        description: "Tells it.".into(),
        schema: Arc::new(json!({})),
    };
    let shaped: Shaped<Invoice> = complete_as(&model, request().tools([weather.clone()]))
        .await
        .expect("the arguments are the answer");
    assert_eq!(
        (shaped.value, shaped.cost, shaped.attempts),
        (ada(), None, 1)
    );
    let tool = ToolDecl {
        name: "Invoice".into(),
        description: "Takes the whole answer; call it exactly once. A bill.".into(),
        schema: Arc::new(schema()),
    };
    let options = Options {
        tool_choice: ToolChoice::Named("Invoice".into()),
        sequential_calls: true,
        ..Options::default()
    };
    assert_eq!(
        model.requests(),
        [request().tools([weather, tool]).options(options)]
    );
}

#[tokio::test]
async fn complete_as_asks_for_the_call_when_the_model_refuses_to_be_forced() {
    let refuses = vec![RequestOption::ForcedCalls, RequestOption::SequentialCalls];
    let info = ModelInfo {
        structured: Structured::Tool,
        refuses,
        ..ModelInfo::new("scripted/model")
    };
    let model = ScriptedModel::new([Script::new().text(format!("```json\n{ADA}\n```"))]).info(info);
    let shaped: Shaped<Invoice> = complete_as(&model, request())
        .await
        .expect("a text that is JSON is taken too");
    assert_eq!(shaped.value, ada());
    let asked = model.requests().remove(0);
    assert_eq!(*asked.options, Options::default());
    let instruction = "structured_output: Give your answer by calling the tool `Invoice` exactly once. Write nothing else.";
    assert_eq!(texts(&asked), ["person: Ada owes 12 dollars.", instruction]);
}

#[tokio::test]
async fn complete_as_does_not_force_the_call_when_the_request_asks_to_think() {
    let script = || Script::new().call("Invoice", json!({"customer": "Ada", "cents": 1200}));
    let model = model(Structured::Tool, [script(), script()]);
    for effort in [Effort::Low, Effort::Off] {
        let options = Options {
            thinking: Some(effort),
            ..Options::default()
        };
        let shaped: Shaped<Invoice> = complete_as(&model, request().options(options))
            .await
            .expect("an answer");
        assert_eq!(shaped.value, ada());
    }
    let choices = model
        .requests()
        .iter()
        .map(|it| it.options.tool_choice.clone())
        .collect::<Vec<_>>();
    assert_eq!(
        choices,
        [ToolChoice::Auto, ToolChoice::Named("Invoice".into())]
    );
}

#[tokio::test]
async fn complete_as_appends_the_schema_when_the_model_answers_by_words() {
    let model = model(
        Structured::Prompt,
        [Script::new().text(format!("It is {ADA}, I think."))],
    );
    let tool = ToolDecl {
        name: "weather".into(),
        description: "Tells it.".into(),
        schema: Arc::new(json!({})),
    };
    let mine = request().tools([tool]);
    let shaped: Shaped<Invoice> = complete_as(&model, mine.clone()).await.expect("an answer");
    assert_eq!(shaped.value, ada());
    let asked = model.requests().remove(0);
    assert_eq!(
        *asked.options,
        Options {
            tool_choice: ToolChoice::None,
            ..Options::default()
        }
    );
    let instruction = format!(
        "structured_output: Answer with one JSON object and nothing else: no explanation, no code fence. It must fit \
         this JSON schema, which is named `Invoice`:\n{}",
        schema()
    );
    assert_eq!(
        texts(&asked),
        ["person: Ada owes 12 dollars.", &instruction]
    );
    assert_eq!(
        mine.entries.len(),
        1,
        "the conversation of the caller is as it was"
    );
}

#[tokio::test]
async fn complete_as_shows_what_is_wrong_when_a_call_does_not_fit() {
    let price = Price::dollars(1.0, 1.0, 0.0, 0.0);
    let retracted = Script::new().text("lost").usage(usage(5, 5));
    let scripts = [
        Script::new()
            .call("Invoice", json!({"customer": 7}))
            .usage(usage(10, 1)),
        Script::new()
            .call("Invoice", json!({"customer": "Ada", "cents": 1200}))
            .usage(usage(20, 2))
            .after_retracted(retracted, Error::new(ErrorKind::Network, "cut")),
    ];
    let info = ModelInfo {
        structured: Structured::Tool,
        price: Some(price),
        ..ModelInfo::new("scripted/model")
    };
    let model = ScriptedModel::new(scripts).info(info);
    let shaped: Shaped<Invoice> = complete_as(&model, request())
        .await
        .expect("the second answer fits");
    assert_eq!(
        (shaped.value, shaped.usage, shaped.cost, shaped.attempts),
        (ada(), usage(35, 8), Some(NanoUsd(43_000)), 2)
    );
    let asked = model.requests().remove(1);
    let expect = [
        "person: Ada owes 12 dollars.".to_owned(),
        format!("model:  {:?}", [(Status::InvalidArguments, "not accepted: see the next message")]),
        "structured_output: The answer does not fit its schema:\n- the whole: missing properties 'cents'\n- \
         /customer: want string, but got number\nCall `Invoice` again with the whole corrected answer."
            .to_owned(),
    ];
    assert_eq!(texts(&asked), expect);
    let Entry::Turn(turn) = &asked.entries[1] else {
        panic!("the reply comes after the question")
    };
    let (first, second) = (turn.reply().calls().next(), shaped.reply.calls().next());
    assert_ne!(first.expect("a call").id, second.expect("a call").id);
}

#[tokio::test]
async fn complete_as_gives_up_when_no_repair_fits() {
    let says = |text: &str| Script::new().text(text);
    let model = model(
        Structured::Native,
        [
            says("no"),
            says("{}"),
            says(r#"{"customer": "Ada", "cents": -1}"#),
        ],
    );
    let message =
        "no answer fits the schema `Invoice` (3 asked for): - /cents: must be >=0, but got -1";
    assert_eq!(
        fails(&model, request()).await,
        (ErrorKind::Protocol, message.to_owned())
    );
    let last = model.requests().remove(2);
    let feedback = [
        "structured_output: The answer does not fit its schema:\n- the whole: no JSON in the answer: expected ident \
         at line 1 column 2\nAnswer again with the whole corrected JSON object and nothing else.",
        "model: {} []",
        "structured_output: The answer does not fit its schema:\n- the whole: missing properties 'customer', \
         'cents'\nAnswer again with the whole corrected JSON object and nothing else.",
    ];
    assert_eq!(&texts(&last)[2..], feedback);
}

#[tokio::test]
async fn ask_repairs_as_often_as_it_is_told_when_the_number_is_set() {
    let model = model(Structured::Native, [Script::new().text("no")]);
    let mut shape = Shape::<Invoice>::new().expect("a shape");
    shape.repairs = 0;
    let error = shape
        .ask(&model, request())
        .await
        .expect_err("there is no repair");
    let message = "no answer fits the schema `Invoice` (1 asked for): - the whole: no JSON in the answer: expected ident at line \
                   1 column 2";
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Protocol, message)
    );
}

#[tokio::test]
async fn complete_as_names_the_cause_when_a_reply_is_no_answer() {
    let stopped = |stop| [Script::new().text("{").stop(stop)];
    assert_eq!(
        fails(
            &model(Structured::Native, stopped(FinishReason::Refused)),
            request()
        )
        .await,
        (
            ErrorKind::Refused,
            "the model refused to answer with Invoice".into()
        )
    );
    assert_eq!(
        fails(
            &model(Structured::Native, stopped(FinishReason::Filtered)),
            request()
        )
        .await,
        (
            ErrorKind::Refused,
            "the model refused to answer with Invoice".into()
        )
    );
    assert_eq!(
        fails(
            &model(Structured::Prompt, stopped(FinishReason::Length)),
            request()
        )
        .await,
        (
            ErrorKind::Invalid,
            "the output limit cut off the answer Invoice; hint: raise max_output_tokens".into()
        )
    );
    assert_eq!(
        fails(
            &model(Structured::Tool, [Script::new().call("weather", json!({}))]),
            request()
        )
        .await,
        (
            ErrorKind::Protocol,
            "the model called weather instead of answering with Invoice".into()
        )
    );
    assert_eq!(
        fails(
            &model(
                Structured::Native,
                [Script::new().fail(Error::new(ErrorKind::Timeout, "late"))]
            ),
            request()
        )
        .await,
        (ErrorKind::Timeout, "late".into())
    );
    let tool = ToolDecl {
        name: "Invoice".into(),
        description: "Mine.".into(),
        schema: Arc::new(json!({})),
    };
    assert_eq!(
        fails(&model(Structured::Tool, []), request().tools([tool])).await,
        (
            ErrorKind::Invalid,
            "a tool of the request has the name of the answer: Invoice".into()
        )
    );
}

#[tokio::test]
async fn ask_goes_on_when_the_provider_pauses() {
    let paused = Script::new().text("searching").stop(FinishReason::Paused);
    let model = model(Structured::Native, [paused, Script::new().text(ADA)]);
    let mut shape = Shape::<Invoice>::new().expect("a shape");
    shape.repairs = 0;
    let shaped = shape
        .ask(&model, request())
        .await
        .expect("a pause is no failure");
    assert_eq!((shaped.value, shaped.attempts), (ada(), 2));
    assert_eq!(
        texts(&model.requests()[1]),
        ["person: Ada owes 12 dollars.", "model: searching []"]
    );
}

#[tokio::test]
async fn ask_wraps_the_schema_when_it_is_not_one_of_an_object() {
    let answers = [
        r#"{"value": [{"name": "a", "children": []}]}"#,
        r#"[{"name": "a", "children": []}]"#,
    ];
    for answer in answers {
        let model = model(Structured::Native, [Script::new().text(answer)]);
        let shaped: Shaped<Vec<Tree>> = complete_as(&model, request())
            .await
            .expect("wrapped or bare");
        assert_eq!(
            shaped.value,
            [Tree {
                name: "a".into(),
                children: Vec::new()
            }]
        );
        let format = model.requests()[0]
            .options
            .format
            .clone()
            .expect("a format");
        let tree = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            },
            "required": ["name", "children"],
        });
        let schema = json!({
            "type": "object",
            "properties": {"value": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            "required": ["value"],
            "additionalProperties": false,
            "$defs": {"Tree": tree},
        });
        assert_eq!(format, Format::new("Array_of_Tree", schema));
    }
}

#[tokio::test]
async fn complete_json_gives_the_value_when_the_schema_is_dynamic() {
    let list = json!({"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}]});
    let model = model(
        Structured::Native,
        [Script::new().text(r#"{"value": [null, [null]]}"#)],
    );
    let format = Format::new("nested", list);
    let shaped = complete_json(&model, request(), format)
        .await
        .expect("a reference to the root still holds");
    assert_eq!(shaped.value, json!([null, [null]]));
    let error = complete_json(&model, request(), Format::new("two words", json!({})))
        .await
        .expect_err("no name");
    let message = "not a name of 1 to 64 letters, digits, _ and -: \"two words\"";
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Invalid, message)
    );
    let error = complete_json(&model, request(), Format::new("x", json!({"type": 1})))
        .await
        .expect_err("no schema");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn ask_repairs_when_the_schema_fits_but_the_type_does_not() {
    let scripts = [
        Script::new().text(r#"{"cents": 5}"#),
        Script::new().text(ADA),
    ];
    let model = model(Structured::Native, scripts);
    let shape = Shape::<Invoice>::from_format(Format::new("loose", json!({"type": "object"})))
        .expect("a shape");
    let shaped = shape
        .ask(&model, request())
        .await
        .expect("the second answer can be read");
    assert_eq!((shaped.value, shaped.attempts), (ada(), 2));
    let feedback = "structured_output: The answer does not fit its schema:\n- the whole: missing field \
                    `customer`\nAnswer again with the whole corrected JSON object and nothing else.";
    assert_eq!(texts(&model.requests()[1])[2], feedback);
}
