//! Hazards of options: an option reaches the server, or is dropped with a warning.

use adjutant_llm::{
    Effort, Format, Options, Request, RequestOption, Script, ToolChoice, ToolDecl, Warning,
    WarningKind,
};
use serde_json::{Value, json};

use super::{
    Subject, Verdict,
    stage::{HazardStage, ensure, hello, same, with_tools},
};

pub(super) async fn system_and_tools(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text("Done.")]).await?;
    let request = with_tools().system("Be brief.\n\nBe kind.");
    stage.reply(request.clone()).await?;
    let asked = stage.understood(0)?;
    same("the system prompt", &*asked.system, &*request.system)?;
    let told = |tool: &ToolDecl| {
        let schema = &tool.schema;
        (
            tool.name.clone(),
            tool.description.clone(),
            schema["properties"].clone(),
            schema["required"].clone(),
        )
    };
    let tools = |request: &Request| request.tools.iter().map(told).collect::<Vec<_>>();
    same("the tools", tools(&asked), tools(&request))
}

pub(super) async fn tool_choice_none(subject: &dyn Subject) -> Verdict {
    let (asked, _) = chosen(subject, ToolChoice::None).await?;
    ensure(
        asked.options.tool_choice == ToolChoice::None || asked.tools.is_empty(),
        || format!("the model may call: {:?}", asked.options.tool_choice),
    )
}

pub(super) async fn forced_tool(subject: &dyn Subject) -> Verdict {
    for choice in [ToolChoice::Required, ToolChoice::Named("find".into())] {
        let (asked, warnings) = chosen(subject, choice.clone()).await?;
        if !has_dropped_option(&warnings) {
            same("the choice", &asked.options.tool_choice, &choice)?;
        }
    }
    Ok(())
}

async fn chosen(
    subject: &dyn Subject,
    choice: ToolChoice,
) -> Result<(Request, Vec<Warning>), String> {
    send_request(
        subject,
        with_tools().options(Options {
            tool_choice: choice,
            ..Options::default()
        }),
    )
    .await
}

/// Sends a request, and returns the options as the provider understood them, and the warnings.
async fn send_request(
    subject: &dyn Subject,
    request: Request,
) -> Result<(Request, Vec<Warning>), String> {
    let stage = HazardStage::new(subject, [Script::new().text("Done.")]).await?;
    let heard = stage.ask(request).await;
    let warnings = heard.warnings();
    heard.reply()?;
    Ok((stage.understood(0)?, warnings))
}

fn has_dropped_option(warnings: &[Warning]) -> bool {
    warnings
        .iter()
        .any(|warning| warning.kind == WarningKind::OptionDropped)
}

pub(super) async fn sequential_calls(subject: &dyn Subject) -> Verdict {
    let (request, warnings) = send_request(
        subject,
        with_tools().options(Options {
            sequential_calls: true,
            ..Options::default()
        }),
    )
    .await?;
    ensure(
        request.options.sequential_calls || has_dropped_option(&warnings),
        || "several calls may be made at once".into(),
    )?;
    let (request, _) = send_request(subject, with_tools()).await?;
    ensure(!request.options.sequential_calls, || {
        "one call at a time was asked for by nobody".into()
    })
}

pub(super) async fn structured(subject: &dyn Subject) -> Verdict {
    let schema = json!({
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
        "additionalProperties": false,
    });
    let wanted = json!({"answer": "forty-two"});
    let answer = wanted.to_string();
    let script =
        Script::from_fn(
            move |request| match (&request.options.tool_choice, &*request.tools) {
                (ToolChoice::Named(name), _) => Script::new().call_raw(name.as_str(), answer),
                (ToolChoice::Required, [tool]) => {
                    Script::new().call_raw(tool.name.as_str(), answer)
                }
                _ => Script::new().text(answer),
            },
        );
    let stage = HazardStage::new(subject, [script]).await?;
    let request = hello().options(Options {
        format: Some(Format::new("verdict", schema)),
        ..Options::default()
    });
    let reply = stage.reply(request).await?;
    let args = reply.calls().map(|call| call.args.to_string());
    let came: Vec<Value> = args
        .chain([reply.text()])
        .filter_map(|text| serde_json::from_str(&text).ok())
        .collect();
    ensure(came.contains(&wanted), || {
        format!("the answer is {:?}, by its text {:?}", came, reply.text())
    })?;
    let sent = stage.request_body(0)?.to_string();
    ensure(
        sent.contains("\"answer\"") || sent.contains("\\\"answer\\\""),
        || "the schema was not sent".into(),
    )
}

pub(super) async fn effort(subject: &dyn Subject) -> Verdict {
    let options = Options {
        thinking: Some(Effort::High),
        max_output_tokens: Some(20_000),
        ..Options::default()
    };
    let stage = HazardStage::new(subject, [Script::new().text("Done.")]).await?;
    let heard = stage.ask(hello().options(options)).await;
    let warnings = heard.warnings();
    heard.reply()?;
    let sent = stage.request_body(0)?;
    let told = sent["generationConfig"]["thinkingConfig"].is_object()
        || stage.understood(0)?.options.thinking.is_some()
        || [
            "thinking",
            "output_config",
            "reasoning",
            "reasoning_effort",
            "enable_thinking",
            "chat_template_kwargs",
        ]
        .iter()
        .any(|field| sent.get(field).is_some());
    match (stage.model.info().efforts.is_empty(), told) {
        (false, false) => {
            Err("nothing was asked about thinking, although the model can be told".into())
        }
        (true, true) => {
            Err("the model was told how much to think, although it cannot be told".into())
        }
        (true, false) => ensure(has_dropped_option(&warnings), || {
            "the option was dropped without a warning".into()
        }),
        (false, true) => Ok(()),
    }
}

pub(super) async fn sampling_asked(subject: &dyn Subject) -> Verdict {
    let options = Options {
        top_p: Some(0.5),
        seed: Some(7),
        ..Options::default()
    };
    let (request, warnings) = send_request(subject, hello().options(options)).await?;
    let told = |what: &str| {
        warnings
            .iter()
            .any(|it| it.message.starts_with(&format!("{what} was dropped")))
    };
    for (what, arrived) in [
        ("top_p", request.options.top_p == Some(0.5)),
        ("seed", request.options.seed == Some(7)),
    ] {
        ensure(arrived != told(what), || {
            format!("{what}: arrived: {arrived}, the warnings are {warnings:?}")
        })?;
    }
    Ok(())
}

pub(super) async fn limits_asked(subject: &dyn Subject) -> Verdict {
    let stage = HazardStage::new(subject, [Script::new().text("Done.")]).await?;
    let heard = stage
        .ask(hello().options(Options {
            max_output_tokens: Some(77),
            temperature: Some(0.5),
            ..Options::default()
        }))
        .await;
    let warnings = heard.warnings();
    heard.reply()?;
    let (asked, info) = (stage.understood(0)?, stage.model.info());
    let mut refused = 0;
    if info.refuses.contains(&RequestOption::MaxOutputTokens) {
        refused += 1;
    } else {
        same(
            "the output limit",
            asked.options.max_output_tokens,
            Some(77),
        )?;
    }
    if info.refuses.contains(&RequestOption::Temperature) {
        refused += 1;
    } else {
        same("the temperature", asked.options.temperature, Some(0.5))?;
    }
    ensure(warnings.len() >= refused, || {
        format!("{refused} options were dropped, the warnings are {warnings:?}")
    })
}
