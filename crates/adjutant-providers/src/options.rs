//! The options of a request as a model accepts them: clamped, or dropped with a warning.

use std::sync::Arc;

use adjutant_llm::{
    Effort, Error, ErrorKind, ModelInfo, Options, Request, RequestOption, ToolChoice, Warning,
    WarningKind,
};

/// The options that are sent: refused options are dropped, and excessive values are lowered.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct Effective<'a> {
    /// The limit of the reply; `None` if the model refuses the option.
    pub max_output_tokens: Option<u64>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// The probability mass that tokens are sampled from.
    pub top_p: Option<f64>,
    /// A number that makes equal requests answered alike.
    pub seed: Option<u64>,
    /// The texts that end the reply.
    pub stop: &'a [Arc<str>],
    /// The effort of the request; one of the model's efforts.
    pub thinking: Option<Effort>,
    /// The permission or obligation of the model to call tools.
    pub tool_choice: &'a ToolChoice,
    /// True if one call at a time is wanted.
    pub sequential_calls: bool,
}

/// Checks that a request does not contradict itself.
///
/// # Errors
/// `Config` if the model takes tools only on another wire. `Invalid` if the request forces a tool that it does not
/// declare, or a call without any tools, or has a temperature outside 0.0 to 2.0, or a `top_p` outside 0.0 to 1.0.
pub(crate) fn check(info: &ModelInfo, request: &Request) -> Result<(), Error> {
    let invalid = |text: String| Err(Error::new(ErrorKind::Invalid, text));
    if info.tools_need_responses && !request.tools.is_empty() {
        let provider = info.provider();
        let hint = match provider.strip_suffix("-chat") {
            Some(provider) => format!("use {provider}/{}", info.name()),
            None => format!("set `wire` of the provider {provider} to `responses`"),
        };
        return Err(Error::new(
            ErrorKind::Config,
            format!(
                "{} takes tools only on the Responses API; hint: {hint}",
                info.id
            ),
        ));
    }
    match &request.options.tool_choice {
        ToolChoice::Named(name) if !request.tools.iter().any(|tool| tool.name == *name) => {
            return invalid(format!(
                "the request demands a call of {name}, which is none of its tools"
            ));
        }
        ToolChoice::Required
            if request.tools.is_empty() && request.options.server_tools.is_empty() =>
        {
            return invalid("the request demands a call and has no tools".to_owned());
        }
        _ => {}
    }
    match (request.options.temperature, request.options.top_p) {
        (Some(it), _) if !(0.0..=2.0).contains(&it) => {
            invalid(format!("the temperature is not from 0.0 to 2.0: {it}"))
        }
        (_, Some(it)) if !(0.0..=1.0).contains(&it) => {
            invalid(format!("top_p is not from 0.0 to 1.0: {it}"))
        }
        _ => Ok(()),
    }
}

/// Returns the options that are left for this model, and warns of all others.
pub fn effective<'a>(
    info: &ModelInfo,
    options: &'a Options,
    warnings: &mut Vec<Warning>,
) -> Effective<'a> {
    let mut drop_if = |asked: bool, option: RequestOption, what: &str| {
        let dropped = asked && info.refuses.contains(&option);
        if dropped {
            warn(
                warnings,
                format!("{what} was dropped: {} refuses it", info.id),
            );
        }
        !dropped
    };
    let forced = !matches!(options.tool_choice, ToolChoice::Auto | ToolChoice::None);
    let temperature = drop_if(
        options.temperature.is_some(),
        RequestOption::Temperature,
        "temperature",
    );
    let top_p = drop_if(options.top_p.is_some(), RequestOption::TopP, "top_p");
    let seed = drop_if(options.seed.is_some(), RequestOption::Seed, "seed");
    let stop = drop_if(!options.stop.is_empty(), RequestOption::Stop, "stop");
    let tool_choice = drop_if(forced, RequestOption::ForcedCalls, "tool_choice");
    let sequential = drop_if(
        options.sequential_calls,
        RequestOption::SequentialCalls,
        "sequential_calls",
    );
    let limited = drop_if(
        options.max_output_tokens.is_some(),
        RequestOption::MaxOutputTokens,
        "max_output_tokens",
    );
    Effective {
        max_output_tokens: limit(info, options, warnings).filter(|_| limited),
        temperature: options.temperature.filter(|_| temperature),
        top_p: options.top_p.filter(|_| top_p),
        seed: options.seed.filter(|_| seed),
        stop: if stop { &options.stop } else { &[] },
        thinking: thinking(info, options, warnings),
        tool_choice: if tool_choice {
            &options.tool_choice
        } else {
            &ToolChoice::Auto
        },
        sequential_calls: options.sequential_calls && sequential,
    }
}

/// The limit of the reply, or `None` if the model refuses the option or its limit is unknown.
fn limit(info: &ModelInfo, options: &Options, warnings: &mut Vec<Warning>) -> Option<u64> {
    if info.refuses.contains(&RequestOption::MaxOutputTokens) {
        return None;
    }
    let Some(most) = info.output_limit() else {
        return options.max_output_tokens;
    };
    let asked = options.max_output_tokens.unwrap_or(most);
    if asked > most {
        warn(
            warnings,
            format!(
                "max_output_tokens was lowered from {asked} to {most}: {} allows no more",
                info.id
            ),
        );
    }
    Some(asked.min(most))
}

/// The nearest effort that the model has.
fn thinking(info: &ModelInfo, options: &Options, warnings: &mut Vec<Warning>) -> Option<Effort> {
    let wanted = options.thinking?;
    let nearest = info.effort(wanted);
    match nearest {
        Some(it) if it == wanted => {}
        Some(it) => warn(
            warnings,
            format!(
                "thinking was changed from {wanted} to {it}: {} has no {wanted}",
                info.id
            ),
        ),
        // A model that cannot think does not think.
        None if wanted == Effort::Off => {}
        None => warn(
            warnings,
            format!(
                "thinking was dropped: {} cannot be told how much to think",
                info.id
            ),
        ),
    }
    nearest
}

/// Warns of an option that was dropped or changed.
pub fn warn(warnings: &mut Vec<Warning>, text: String) {
    warnings.push(Warning {
        kind: WarningKind::OptionDropped,
        message: text.into(),
    });
}

/// The extra fields that may be added to a body; `reserved` ones would break it.
pub fn extra<'a>(
    options: &'a Options,
    reserved: &'a [&str],
    warnings: &mut Vec<Warning>,
) -> Vec<(&'a String, &'a serde_json::Value)> {
    let (kept, left_out): (Vec<_>, Vec<_>) = options
        .extra
        .iter()
        .partition(|(name, _)| !reserved.contains(&name.as_str()));
    for (name, _) in left_out {
        warn(
            warnings,
            format!("the extra field {name} was dropped: it is made of the request itself"),
        );
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the options that are sent of these, and the warnings about the rest.
    fn sent<'a>(info: &ModelInfo, options: &'a Options) -> (Effective<'a>, Vec<String>) {
        let mut warnings = Vec::new();
        let effective = effective(info, options, &mut warnings);
        (
            effective,
            warnings.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn effective_drops_and_clamps_when_the_model_refuses() {
        let options = Options {
            max_output_tokens: Some(9_000),
            temperature: Some(0.5),
            top_p: Some(0.9),
            seed: Some(7),
            stop: vec!["x".into()],
            ..Options::default()
        };
        let options = Options {
            thinking: Some(Effort::Medium),
            tool_choice: ToolChoice::Required,
            sequential_calls: true,
            ..options
        };
        let info = ModelInfo {
            efforts: vec![Effort::Off, Effort::High],
            ..ModelInfo::new("p/m")
        };
        let mut expect = Effective {
            max_output_tokens: Some(8_192),
            temperature: Some(0.5),
            top_p: Some(0.9),
            seed: Some(7),
            stop: &options.stop,
            thinking: Some(Effort::High),
            tool_choice: &ToolChoice::Required,
            sequential_calls: true,
        };
        let texts = [
            "max_output_tokens was lowered from 9000 to 8192: p/m allows no more",
            "thinking was changed from medium to high: p/m has no medium",
        ];
        let (effective, warnings) = sent(&info, &options);
        assert_eq!(effective, expect);
        assert_eq!(warnings, texts);
        let info = ModelInfo {
            refuses: vec![
                RequestOption::Temperature,
                RequestOption::TopP,
                RequestOption::Seed,
                RequestOption::Stop,
                RequestOption::ForcedCalls,
                RequestOption::SequentialCalls,
                RequestOption::MaxOutputTokens,
            ],
            ..ModelInfo::new("p/m")
        };
        (expect.max_output_tokens, expect.temperature, expect.stop) = (None, None, &[]);
        (expect.top_p, expect.seed) = (None, None);
        (expect.thinking, expect.tool_choice, expect.sequential_calls) =
            (None, &ToolChoice::Auto, false);
        let texts = [
            "temperature",
            "top_p",
            "seed",
            "stop",
            "tool_choice",
            "sequential_calls",
            "max_output_tokens",
        ];
        let mut texts: Vec<_> = texts
            .map(|it| format!("{it} was dropped: p/m refuses it"))
            .into();
        texts.push("thinking was dropped: p/m cannot be told how much to think".to_owned());
        let (effective, warnings) = sent(&info, &options);
        assert_eq!(effective, expect);
        assert_eq!(warnings, texts);
        let defaults = Options::default();
        assert_eq!(sent(&info, &defaults), (expect, vec![]));
    }

    #[test]
    fn check_refuses_when_a_request_contradicts_itself() {
        let refused = |options: Options| {
            check(&ModelInfo::new("p/m"), &Request::new().options(options))
                .map_err(|it| it.to_string())
        };
        let named = refused(Options {
            tool_choice: ToolChoice::Named("x".into()),
            ..Options::default()
        });
        assert_eq!(
            named,
            Err("the request demands a call of x, which is none of its tools".to_owned())
        );
        let required = refused(Options {
            tool_choice: ToolChoice::Required,
            ..Options::default()
        });
        assert_eq!(
            required,
            Err("the request demands a call and has no tools".to_owned())
        );
        let nan = refused(Options {
            temperature: Some(f64::NAN),
            ..Options::default()
        });
        assert_eq!(
            nan,
            Err("the temperature is not from 0.0 to 2.0: NaN".to_owned())
        );
        let much = refused(Options {
            top_p: Some(1.5),
            ..Options::default()
        });
        assert_eq!(much, Err("top_p is not from 0.0 to 1.0: 1.5".to_owned()));
        assert_eq!(
            refused(Options {
                temperature: Some(2.0),
                ..Options::default()
            }),
            Ok(())
        );
    }
}
