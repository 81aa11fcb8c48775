//! The file of a catalogue, checked field by field.

use std::fmt::Display;

use adjutant_llm::{
    Effort, Error, Inputs, LongPrice, ModelInfo, NanoUsd, Price, RequestOption, Structured,
    ThinkingControl,
};
use serde::Deserialize;

use super::{binds_thinking, config};

/// Decimals of a dollar that can be kept.
const DECIMALS: usize = 9;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The date when the models were looked up, as `YYYY-MM-DD`.
    #[serde(default, rename = "date")]
    _date: String,
    /// The places where they were looked up.
    #[serde(default, rename = "sources")]
    _sources: Vec<String>,
    pub(super) models: Vec<Model>,
}

/// One model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    id: String,
    context_window: u64,
    max_output_tokens: u64,
    #[serde(default)]
    inputs: Vec<Input>,
    #[serde(default)]
    efforts: Vec<Effort>,
    #[serde(default)]
    thinking: ThinkingControl,
    #[serde(default)]
    structured: Structured,
    /// By the name of the model if it is missing.
    thinking_binding: Option<bool>,
    #[serde(default)]
    refuses: Vec<RequestOption>,
    price: Option<Cost>,
    /// The place where this model was looked up, and the date.
    #[serde(default, rename = "source")]
    _source: String,
    #[serde(default)]
    default: bool,
}

/// The content that a message may have beside text.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Input {
    Image,
    Document,
    Audio,
}

/// US dollars for a million tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    cache_write_1h: Option<f64>,
    long: Option<Long>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Long {
    above: u64,
    input_percent: u32,
    output_percent: u32,
}

impl Model {
    /// The model, and whether it is the default of its provider.
    pub(super) fn check(self) -> Result<(ModelInfo, bool), Error> {
        let fail = |field: &str, why: &dyn Display| {
            Err(config(format!("model {}: {field}: {why}", self.id)))
        };
        if !self
            .id
            .split_once('/')
            .is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty())
        {
            return fail("id", &"it is not of the form provider/name");
        }
        if self.id.contains(char::is_whitespace) {
            return fail("id", &"it holds white space");
        }
        if self.context_window == 0 {
            return fail("context_window", &"it is 0");
        }
        if self.max_output_tokens == 0 || self.max_output_tokens > self.context_window {
            return fail(
                "max_output_tokens",
                &format!("it is not from 1 to the window: {}", self.max_output_tokens),
            );
        }
        if self.efforts.is_empty() && self.thinking == ThinkingControl::Budget {
            return fail("thinking", &"it is a budget, and there are no efforts");
        }
        let has = |input| self.inputs.contains(&input);
        let inputs = Inputs {
            images: has(Input::Image),
            documents: has(Input::Document),
            audio: has(Input::Audio),
        };
        let mut info = ModelInfo {
            context_window: self.context_window,
            max_output_tokens: self.max_output_tokens,
            inputs,
            structured: self.structured,
            thinking_binding: self
                .thinking_binding
                .unwrap_or_else(|| binds_thinking(&self.id)),
            refuses: self.refuses,
            efforts: self.efforts,
            thinking: self.thinking,
            ..ModelInfo::new(self.id.as_str())
        };
        info.efforts.sort_unstable();
        let Some(price) = self.price else {
            return Ok((info, self.default));
        };
        match price.check() {
            Ok(price) => Ok((
                ModelInfo {
                    price: Some(price),
                    ..info
                },
                self.default,
            )),
            Err((field, why)) => fail(&format!("price.{field}"), &why),
        }
    }
}

impl Cost {
    fn check(self) -> Result<Price, (&'static str, String)> {
        let class =
            |field, dollars: f64| nano(dollars).map_err(|why| (field, format!("{why}: {dollars}")));
        let or = |field, dollars: Option<f64>, usual| {
            dollars.map_or(Ok(usual), |dollars| class(field, dollars))
        };
        let input = class("input", self.input)?;
        let output = class("output", self.output)?;
        let cache_read = or("cache_read", self.cache_read, input)?;
        let cache_write = or("cache_write", self.cache_write, input)?;
        let cache_write_1h = or("cache_write_1h", self.cache_write_1h, cache_write)?;
        if cache_read > input {
            return Err(("cache_read", "it is more than that of the input".into()));
        }
        if cache_write_1h < cache_write {
            return Err((
                "cache_write_1h",
                "it is less than that of the shorter time".into(),
            ));
        }
        let long = self.long.map(
            |Long {
                 above,
                 input_percent,
                 output_percent,
             }| LongPrice {
                above,
                input_percent,
                output_percent,
            },
        );
        if long.is_some_and(|it| it.input_percent < 100 || it.output_percent < 100) {
            return Err(("long", "a percentage is below 100".into()));
        }
        Ok(Price {
            input,
            output,
            cache_read,
            cache_write,
            cache_write_1h,
            long,
        })
    }
}

/// Exact: the shortest decimal text of the number is what the file says, and its digits are moved.
fn nano(dollars: f64) -> Result<NanoUsd, &'static str> {
    let text = dollars.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    if text.starts_with('-') {
        return Err("it is less than nothing");
    }
    if decimals.len() > DECIMALS {
        return Err("it has more than nine decimals");
    }
    format!("{whole}{decimals:0<DECIMALS$}")
        .parse()
        .map(NanoUsd)
        .map_err(|_| "it is too much")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nano_is_exact_when_binary_numbers_are_not() {
        let cases = [
            (0.0, Ok(0)),
            (0.1, Ok(100_000_000)),
            (0.3, Ok(300_000_000)),
            (0.000_000_001, Ok(1)),
            (1.1, Ok(1_100_000_000)),
            (4.35, Ok(4_350_000_000)),
            (0.003_625, Ok(3_625_000)),
            (1_234.567_891_234, Ok(1_234_567_891_234)),
            (75.0, Ok(75_000_000_000)),
            (-0.5, Err("it is less than nothing")),
            (0.000_000_000_1, Err("it has more than nine decimals")),
            (1e30, Err("it is too much")),
        ];
        for (dollars, expect) in cases {
            assert_eq!(nano(dollars), expect.map(NanoUsd), "{dollars}");
        }
    }
}
