//! A run comes to a value: asked for in the model's way, judged, sent back, all within one run; known when it is resumed.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use adjutant_agent::{
    Agent, Caps, ErrorKind, EventKind, Failure, Journal, Limit, Limits, LogId, MemoryJournal,
    Outcome, Output, OutputStep, OutputVerdict, Record, RunResult, Seq, agent_tool,
};
use adjutant_llm::{
    CallResult, FixedWorld, Format, ModelInfo, Request, RequestOption, Script, ScriptedModel,
    Status, Structured, ToolChoice, Usage,
};
use adjutant_tool::{Answer, Approval, ToolSpec, tool_fn};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A bill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Invoice {
    customer: String,
    cents: u32,
}

fn ada() -> Invoice {
    Invoice {
        customer: "Ada".into(),
        cents: 1200,
    }
}

/// How a model is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Native,
    Forced,
    Called,
    Prompt,
}

impl Way {
    fn model(self, scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
        let structured = match self {
            Way::Native => Structured::Native,
            Way::Forced | Way::Called => Structured::Tool,
            Way::Prompt => Structured::Prompt,
        };
        let refuses = if self == Way::Called {
            vec![RequestOption::ForcedCalls]
        } else {
            Vec::new()
        };
        let info = ModelInfo {
            structured,
            refuses,
            ..ModelInfo::new("scripted/model")
        };
        Arc::new(ScriptedModel::new(scripts).info(info))
    }

    fn says(self, answer: Value) -> Script {
        let script = match self {
            Way::Native => Script::new().text(answer.to_string()),
            Way::Forced | Way::Called => Script::new().call("Invoice", answer),
            Way::Prompt => Script::new().text(format!("Here it is:\n```json\n{answer}\n```")),
        };
        script.usage(used())
    }

    /// How a request asks: a format, the tools, the choice, the name of the schema in the system prompt.
    fn asks(self, request: &Request) -> (bool, Vec<&str>, ToolChoice, bool) {
        let tools = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        let options = &request.options;
        (
            options.format.is_some(),
            tools,
            options.tool_choice.clone(),
            request
                .entries
                .iter()
                .take(2)
                .any(|stored| stored.entry.to_text().contains("Invoice")),
        )
    }
}

fn used() -> Usage {
    Usage {
        input_uncached: 10,
        output: 1,
        ..Usage::default()
    }
}

/// An agent with a tool that knows the price, and its journal.
fn stage(model: &Arc<ScriptedModel>) -> (Agent, Arc<MemoryJournal>) {
    let journal = Arc::new(MemoryJournal::default());
    let spec = ToolSpec::new(
        "price",
        "Knows the price.",
        json!({"type": "object", "properties": {}}),
    );
    let price = tool_fn(spec, |_: Value, _| async {
        Ok(CallResult::ok("12 dollars"))
    });
    let agent = Agent::new(Arc::clone(model))
        .world(FixedWorld::default())
        .instructions("Be exact.")
        .tool(price);
    (
        agent
            .journal(Arc::clone(&journal))
            .session(LogId::from("bill")),
        journal,
    )
}

async fn log(journal: &MemoryJournal) -> Vec<Record> {
    let records = journal
        .read(&LogId::from("bill"), Seq(0))
        .map(|it| it.expect("the log is whole").record.clone());
    records.collect().await
}

fn verdicts(log: &[Record]) -> Vec<Result<Value, (String, u32)>> {
    let verdict = |record: &Record| match record {
        Record::OutputChecked {
            verdict: OutputVerdict::Accepted { value },
            ..
        } => Some(Ok(Value::clone(value))),
        Record::OutputChecked {
            verdict: OutputVerdict::Refused { reason, left },
            ..
        } => Some(Err((reason.to_string(), *left))),
        _ => None,
    };
    log.iter().filter_map(verdict).collect()
}

#[tokio::test]
async fn run_comes_to_a_struct_when_its_first_two_answers_are_wrong() {
    let all = vec!["price", "Invoice"];
    for (way, first) in [
        (Way::Native, (true, vec!["price"], ToolChoice::Auto, true)),
        (
            Way::Forced,
            (false, all.clone(), ToolChoice::Required, false),
        ),
        (Way::Called, (false, all, ToolChoice::Auto, true)),
        (Way::Prompt, (false, vec!["price"], ToolChoice::Auto, true)),
    ] {
        let look = Script::new()
            .text("Let me look.")
            .call("price", json!({}))
            .usage(used());
        let wrong = way.says(json!({"customer": "Ada", "cents": "many"}));
        let unfair = way.says(json!({"customer": "Ada", "cents": 7}));
        let model = way.model([look, wrong, unfair, way.says(json!(ada()))]);
        let (agent, journal) = stage(&model);
        let caps = Caps {
            requests: Some(9),
            ..Caps::default()
        };
        let agent = agent.limits(Limits {
            caps,
            ..Limits::default()
        });
        let fair = |invoice: Invoice| async move {
            if invoice.cents == 1200 {
                Ok(())
            } else {
                Err(format!("{} cents are not the price", invoice.cents))
            }
        };
        let came = agent
            .run("What does Ada owe?")
            .output::<Invoice>()
            .validate(fair)
            .await
            .expect("a value");
        model.assert_done();
        assert_eq!(
            (came.value, came.result.output.as_deref()),
            (ada(), Some(&json!(ada()))),
            "{way:?}"
        );
        let (result, requests) = (&came.result, model.requests());
        assert_eq!(
            (result.turns, result.usage, result.is_finished()),
            (4, used() + used() + used() + used(), true)
        );
        let shown = agent
            .new_session()
            .output(Output::<Invoice>::new().expect("a schema"))
            .log()
            .preview("Hi?")
            .await;
        assert_eq!(
            way.asks(&shown.expect("a request")),
            first,
            "{way:?}: what is previewed"
        );
        assert!(
            requests.iter().all(|request| way.asks(request) == first),
            "{way:?}: {:?}",
            way.asks(&requests[0])
        );
        // The conversation only grows: each request begins with all entries of the one before.
        for pair in requests.windows(2) {
            let entries = |it: &Request| {
                it.entries
                    .iter()
                    .map(|it| it.entry.clone())
                    .collect::<Vec<_>>()
            };
            let (one, two) = (entries(&pair[0]), entries(&pair[1]));
            assert!(two.len() > one.len() && two.starts_with(&one), "{way:?}");
            assert_eq!(pair[0].system, pair[1].system, "{way:?}");
        }
        let told = serde_json::to_string(&requests[3].entries).expect("JSON");
        assert!(
            told.contains("- /cents: ") && told.contains("not accepted: 7 cents are not the price"),
            "{told}"
        );
        let log = log(&journal).await;
        let count = |is: fn(&Record) -> bool| log.iter().filter(|record| is(record)).count();
        let whole = [
            count(|it| matches!(it, Record::Began { .. })),
            count(
                |it| matches!(it, Record::Began { terms: Some(terms), .. } if terms.output.is_some()),
            ),
            count(|it| matches!(it, Record::Opened { .. })),
            count(|it| matches!(it, Record::Ended { .. })),
        ];
        assert_eq!(whole, [1, 1, 4, 1], "{way:?}");
        let unfit = "The answer does not fit its schema:\n- /cents: want integer, but got string"
            .to_owned();
        let unfair = "The answer is not accepted: 7 cents are not the price".to_owned();
        assert_eq!(
            verdicts(&log),
            [Err((unfit, 2)), Err((unfair, 1)), Ok(json!(ada()))],
            "{way:?}"
        );
        let statuses: Vec<Status> = result.calls.iter().map(|call| call.result.status).collect();
        match way {
            Way::Native | Way::Prompt => assert_eq!(statuses, [Status::Ok]),
            Way::Forced | Way::Called => {
                assert_eq!(
                    statuses,
                    [Status::Ok, Status::InvalidArguments, Status::Ok, Status::Ok]
                )
            }
        }
    }
}

#[tokio::test]
async fn run_fails_or_is_unanswered_when_no_answer_is_what_is_wanted() {
    let says = |text: &str| Script::new().text(text);
    let model = Way::Native.model([says("no"), says("{}")]);
    let error = stage(&model)
        .0
        .run("Go.")
        .output::<Invoice>()
        .repairs(1)
        .await
        .expect_err("no answer fits");
    let result = error.result().expect("the run failed");
    let Outcome::Failed {
        failure: Failure::Output { reason },
    } = &result.outcome
    else {
        panic!("{result:?}")
    };
    assert!(
        reason.ends_with("- the whole: missing properties 'customer', 'cents'"),
        "{reason}"
    );
    assert_eq!((error.kind(), result.turns), (ErrorKind::Failed, 2));

    let model = Way::Native.model([says("no")]);
    let error = stage(&model)
        .0
        .run("Go.")
        .max_turns(1)
        .output::<Invoice>()
        .await
        .expect_err("no turn is left");
    let outcome = error.result().map(|result| result.outcome.clone());
    assert_eq!(
        (error.kind(), outcome),
        (
            ErrorKind::Unanswered,
            Some(Outcome::Limit {
                limit: Limit::Turns
            })
        )
    );

    let model = Way::Native.model([]);
    let schema = json!({"type": "thing"});
    let error = stage(&model)
        .0
        .run("Go.")
        .output_schema(schema)
        .await
        .expect_err("it is no schema");
    assert_eq!(error.kind(), ErrorKind::Prompt);
    let taken = Output::<Value>::from_format(Format::new("price", json!({"type": "object"})))
        .expect("a schema");
    let error = stage(&model)
        .0
        .output(taken)
        .run("Go.")
        .await
        .expect_err("a tool has the name");
    assert_eq!(
        error.model_error().map(|it| it.message()),
        Some("a tool of the request has the name of the answer: price")
    );
}

#[tokio::test]
async fn null_and_lists_are_answers_when_the_schema_says_so() {
    for value in [Value::Null, json!([1, 2])] {
        let model = Way::Native.model([Script::new().text(json!({"value": value}).to_string())]);
        let schema = json!({"type": ["array", "null"], "items": {"type": "integer"}});
        let came = stage(&model)
            .0
            .run("Go.")
            .output_schema(schema)
            .await
            .expect("a value");
        assert_eq!(came.value, value);
        let stored = serde_json::to_string(&came.result).expect("JSON");
        assert_eq!(
            serde_json::from_str::<RunResult>(&stored).expect("JSON"),
            came.result
        );
    }
}

#[tokio::test]
async fn wish_is_known_when_the_run_is_resumed_elsewhere() {
    for way in [Way::Native, Way::Forced] {
        let model = way.model([Script::new().call("pay", json!({})).usage(used())]);
        let (agent, journal) = stage(&model);
        let pay = || {
            let spec = ToolSpec::new("pay", "Pays.", json!({"type": "object", "properties": {}}));
            tool_fn(
                ToolSpec {
                    approval: Approval::Always,
                    ..spec
                },
                |_: Value, _| async { Ok(CallResult::ok("paid")) },
            )
        };
        let error = agent
            .tool(pay())
            .run("Pay.")
            .output::<Invoice>()
            .await
            .expect_err("it waits");
        let Some(Outcome::Paused { pauses }) = error.result().map(|it| it.outcome.clone()) else {
            panic!("{error}")
        };
        // Another program knows nothing but the journal.
        let later = way.model([way.says(json!({"customer": "Ada"})), way.says(json!(ada()))]);
        let (agent, _) = stage(&later);
        let agent = agent.tool(pay()).journal(Arc::clone(&journal));
        let answers = vec![pauses[0].with_answer(Answer::approve())];
        let result = agent.resume(answers).await.expect("it ends");
        assert_eq!(result.output.as_deref(), Some(&json!(ada())), "{way:?}");
        assert_eq!((result.turns, later.requests().len()), (3, 2), "{way:?}");
        assert_eq!(verdicts(&log(&journal).await).len(), 2, "{way:?}");
    }
}

#[tokio::test]
async fn value_only_grows_when_it_is_streamed() {
    for way in [Way::Native, Way::Forced] {
        // {"customer":"A|da","cents":12|00}
        let model = way.model(
            [json!({"customer": "Bob"}), json!(ada())].map(|it| way.says(it).delta_chars(14)),
        );
        let mut stream = stage(&model)
            .0
            .run("Go.")
            .output::<Invoice>()
            .stream()
            .expect("it begins");
        let mut seen = Vec::new();
        while let Some(step) = stream.next().await {
            match step {
                OutputStep::Partial(value) => seen.push(value),
                OutputStep::Event(event)
                    if matches!(event.kind, EventKind::OutputRefused { .. }) =>
                {
                    seen.push("void".into());
                }
                _ => {}
            }
        }
        let named = |name: &str| json!({"customer": name});
        let expect = [
            named("B"),
            named("Bob"),
            "void".into(),
            named("A"),
            named("Ada"),
            json!(ada()),
        ];
        assert_eq!(seen, expect, "{way:?}");
        assert_eq!(
            stream.finish().await.expect("a value").value,
            ada(),
            "{way:?}"
        );
    }
}

#[tokio::test]
async fn agent_under_another_gives_a_value_when_it_is_set_up_for_one() {
    let below =
        Way::Native.model(["no", &json!(ada()).to_string()].map(|text| Script::new().text(text)));
    let clerk = Agent::new(Arc::clone(&below))
        .name("clerk")
        .output(Output::<Invoice>::new().expect("a schema"));
    let above = Way::Native.model([
        Script::new().call("clerk", json!({"task": "Bill."})),
        Script::new().text("Done."),
    ]);
    let (lead, _) = stage(&above);
    let result = lead
        .tool(agent_tool("clerk", "Writes bills.", clerk))
        .run("Go.")
        .await
        .expect("it ends");
    assert_eq!(
        (below.requests().len(), result.calls[0].result.text()),
        (2, json!(ada()).to_string())
    );
    assert_eq!((result.text(), result.output), ("Done.".to_owned(), None));
}

#[tokio::test]
async fn validator_is_not_asked_again_when_its_word_is_in_the_log() {
    let asked = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&asked);
    let model = Way::Native.model([Script::new().text(json!(ada()).to_string())]);
    let (agent, journal) = stage(&model);
    let count = move |_: Invoice| {
        counts.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    };
    agent
        .run("Go.")
        .output::<Invoice>()
        .validate(count)
        .await
        .expect("a value");
    let replayed = agent.log().replay(None).await.expect("the log folds");
    let replayed = replayed
        .run
        .result(&Arc::new(agent.identity().clone()))
        .expect("a run has ended");
    assert_eq!(replayed.output.as_deref(), Some(&json!(ada())));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(verdicts(&log(&journal).await).len(), 1);
}
