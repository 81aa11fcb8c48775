//! The file of a catalogue, checked field by field.

use std::fmt::Display;

use adjutant_llm::{
    Effort, Error, Inputs, LongPrice, ModelInfo, NanoUsd, Price, PromptCache, RequestOption,
    Structured, ThinkingControl,
};
use serde::Deserialize;

use super::{binds_thinking, config, max_tools, near};

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
    /// The known model with the default values of this one.
    base_model: Option<String>,
    context_window: Option<u64>,
    max_output_tokens: Option<u64>,
    inputs: Option<Vec<Input>>,
    efforts: Option<Vec<Effort>>,
    thinking: Option<ThinkingControl>,
    structured: Option<Structured>,
    /// By the name of the model if it is missing.
    thinking_binding: Option<bool>,
    /// By the provider if it is missing.
    max_tools: Option<usize>,
    refuses: Option<Vec<RequestOption>>,
    tools_need_responses: Option<bool>,
    prompt_cache: Option<PromptCache>,
    price: Option<Cost>,
    /// The place where this model was looked up, and the date.
    #[serde(default, rename = "source")]
    _source: String,
    #[serde(default)]
    default: bool,
}

/// The content of messages in addition to text.
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
        let base = match self.base_model.as_deref().map(base_model).transpose() {
            Ok(base) => base,
            Err(why) => return fail("base_model", &why),
        };
        let is_new = base.is_none();
        let mut info = base.unwrap_or_else(|| ModelInfo::new(self.id.as_str()));
        info.base_model =
            (!is_new).then(|| std::mem::replace(&mut info.id, self.id.as_str().into()));
        for (field, value, to) in [
            (
                "context_window",
                self.context_window,
                &mut info.context_window,
            ),
            (
                "max_output_tokens",
                self.max_output_tokens,
                &mut info.max_output_tokens,
            ),
        ] {
            match value {
                Some(value) => *to = value,
                None if is_new => return fail(field, &"it is missing"),
                None => {}
            }
        }
        if info.context_window == 0 {
            return fail("context_window", &"it is 0");
        }
        if info.max_output_tokens == 0 || info.max_output_tokens > info.context_window {
            return fail(
                "max_output_tokens",
                &format!("it is not from 1 to the window: {}", info.max_output_tokens),
            );
        }
        if let Some(inputs) = self.inputs {
            info.inputs = Inputs {
                images: inputs.contains(&Input::Image),
                documents: inputs.contains(&Input::Document),
                audio: inputs.contains(&Input::Audio),
            };
        }
        info.efforts = self.efforts.unwrap_or(info.efforts);
        info.efforts.sort_unstable();
        info.thinking = self.thinking.unwrap_or(info.thinking);
        if info.efforts.is_empty() && info.thinking == ThinkingControl::Budget {
            return fail("thinking", &"it is a budget, and there are no efforts");
        }
        info.structured = self.structured.unwrap_or(info.structured);
        info.thinking_binding = self
            .thinking_binding
            .unwrap_or_else(|| info.thinking_binding || binds_thinking(&self.id));
        info.max_tools = self
            .max_tools
            .or(info.max_tools)
            .or_else(|| max_tools(&self.id));
        info.refuses = self.refuses.unwrap_or(info.refuses);
        info.tools_need_responses = self
            .tools_need_responses
            .unwrap_or(info.tools_need_responses);
        info.prompt_cache = self.prompt_cache.unwrap_or(info.prompt_cache);
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

/// Returns the data of a known model, which may be named without its provider if that is OpenAI.
fn base_model(name: &str) -> Result<ModelInfo, String> {
    let all = super::builtin();
    let openai = || all.find(&format!("openai/{name}"));
    let found = all.find(name).or_else(openai).cloned();
    found.ok_or_else(|| {
        let hint = near::hint(name, all.models().map(|it| it.id.as_str()));
        format!("no model is called {name:?}{hint}")
    })
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

/// Exact: shifts the digits of the shortest decimal text of the number, which equals the text in the file.
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
