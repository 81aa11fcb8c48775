//! The options of a request as a model takes them: clamped, dropped, and said so.

use std::sync::Arc;

use adjutant_llm::{ModelInfo, Options, RequestOption, Warning, WarningKind};

/// The options that are really sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Effective<'a> {
    /// The limit of the reply; `None` if the model refuses the option.
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) temperature: Option<f64>,
    pub(crate) stop: &'a [Arc<str>],
}

/// What is left of the options for this model.
pub(crate) fn effective<'a>(info: &ModelInfo, options: &'a Options, warnings: &mut Vec<Warning>) -> Effective<'a> {
    let mut dropped = |what: &str| {
        let text = format!("{what} was dropped: {} refuses it", info.id);
        warnings.push(Warning::new(WarningKind::OptionDropped, text));
    };
    let refuses = |option| info.refuses.contains(&option);
    let temperature = options.temperature.filter(|_| {
        let refused = refuses(RequestOption::Temperature);
        if refused {
            dropped("temperature");
        }
        !refused
    });
    let stop = if refuses(RequestOption::Stop) && !options.stop.is_empty() {
        dropped("stop");
        &[][..]
    } else {
        &options.stop[..]
    };
    if refuses(RequestOption::MaxOutputTokens) {
        if options.max_output_tokens.is_some() {
            dropped("max_output_tokens");
        }
        return Effective { max_output_tokens: None, temperature, stop };
    }
    let asked = options.max_output_tokens.unwrap_or(info.max_output_tokens);
    if asked > info.max_output_tokens {
        let text = format!(
            "max_output_tokens was lowered from {asked} to {}: {} allows no more",
            info.max_output_tokens, info.id
        );
        warnings.push(Warning::new(WarningKind::OptionDropped, text));
    }
    Effective { max_output_tokens: Some(asked.min(info.max_output_tokens)), temperature, stop }
}

/// The extra fields that may be added to a body; `reserved` ones would break it.
pub(crate) fn extra<'a>(
    options: &'a Options,
    reserved: &'a [&str],
    warnings: &mut Vec<Warning>,
) -> Vec<(&'a String, &'a serde_json::Value)> {
    let (kept, left_out): (Vec<_>, Vec<_>) =
        options.extra.iter().partition(|(name, _)| !reserved.contains(&name.as_str()));
    for (name, _) in left_out {
        let text = format!("the extra field {name} was dropped: it is made of the request itself");
        warnings.push(Warning::new(WarningKind::OptionDropped, text));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_drops_and_clamps_when_the_model_refuses() {
        let options = Options::new().max_output_tokens(9_000).temperature(0.5).stop("x");
        let mut warnings = Vec::new();
        let info = ModelInfo::new("p/m");
        let expect = Effective { max_output_tokens: Some(8_192), temperature: Some(0.5), stop: &options.stop };
        assert_eq!(effective(&info, &options, &mut warnings), expect);
        assert_eq!(
            warnings,
            [Warning::new(
                WarningKind::OptionDropped,
                "max_output_tokens was lowered from 9000 to 8192: p/m allows no more"
            )]
        );
        warnings.clear();
        let info = info
            .refuses(RequestOption::Temperature)
            .refuses(RequestOption::Stop)
            .refuses(RequestOption::MaxOutputTokens);
        let expect = Effective { max_output_tokens: None, temperature: None, stop: &[] };
        assert_eq!(effective(&info, &options, &mut warnings), expect);
        let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "temperature was dropped: p/m refuses it",
                "stop was dropped: p/m refuses it",
                "max_output_tokens was dropped: p/m refuses it"
            ]
        );
        assert_eq!(effective(&info, &Options::new(), &mut Vec::new()), expect);
    }
}
