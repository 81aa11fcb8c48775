//! Events of the OpenAI Responses API as chunks. Pure: state and an event give chunks.

use std::{collections::VecDeque, sync::Arc};

use adjutant_llm::{
    Chunk, Error, ErrorKind, Extra, FinishReason, ModelId, ModelInfo, Reply, Usage,
};
use serde_json::{Value, value::RawValue};

use super::{
    item::TextKind,
    items::{Items, MAX_ITEMS, Spot, too_many},
    wire::{self, Done, Event, Growth, Kind, Response},
};
use crate::{
    blocks::CallIdSeed,
    classify::Refusal,
    counts,
    driver::{Decode, Finish, Flow},
    sse::Frame,
};

/// The text that some servers end their events with.
const DONE: &str = "[DONE]";
/// The largest number of characters of an unreadable event that stand in the message.
const MAX_EXCERPT: usize = 120;
/// The events that are understood; one of these that cannot be read is an error.
const KNOWN: [&str; 17] = [
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
];

/// The state of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    model: ModelId,
    items: Items,
    usage: Usage,
    raw_usage: Extra,
    ending: Option<Ending>,
    wire_id: Option<Arc<str>>,
}

/// The end of an answer.
#[derive(Debug)]
struct Ending {
    finish: Finish,
    raw: Arc<str>,
}

impl Decoder {
    pub(super) fn new(info: &ModelInfo, place: CallIdSeed) -> Self {
        Self {
            model: info.id.clone(),
            items: Items::new(info.provider().into(), place),
            usage: Usage::default(),
            raw_usage: Extra::default(),
            ending: None,
            wire_id: None,
        }
    }

    fn event(
        &mut self,
        kind: &str,
        event: Event<'_>,
        data: &str,
        out: &mut VecDeque<Chunk>,
    ) -> Result<Flow, Error> {
        let spot = Spot {
            index: event.output_index.0,
            id: event.item_id.0.as_deref().filter(|it| !it.is_empty()),
        };
        let (content, summary) = (
            event.content_index.0.unwrap_or(0),
            event.summary_index.0.unwrap_or(0),
        );
        let delta = event.delta.0.as_deref().unwrap_or_default();
        let text = event.text.0.as_deref().unwrap_or_default();
        match kind {
            "response.output_text.delta" => {
                self.items
                    .grow(spot, (TextKind::Said, content), delta, out)?
            }
            "response.function_call_arguments.delta" => {
                self.items.grow(spot, (TextKind::Args, 0), delta, out)?
            }
            "response.reasoning_summary_text.delta" => {
                self.items
                    .grow(spot, (TextKind::Summary, summary), delta, out)?
            }
            "response.reasoning_text.delta" => {
                self.items
                    .grow(spot, (TextKind::Thought, content), delta, out)?
            }
            "response.output_text.done" => {
                self.items
                    .whole(spot, (TextKind::Said, content), text, out)?
            }
            "response.reasoning_summary_text.done" => {
                self.items
                    .whole(spot, (TextKind::Summary, summary), text, out)?
            }
            "response.reasoning_text.done" => {
                self.items
                    .whole(spot, (TextKind::Thought, content), text, out)?
            }
            "response.function_call_arguments.done" => {
                let arguments = event.arguments.0.as_deref().unwrap_or_default();
                self.items
                    .whole(spot, (TextKind::Args, 0), arguments, out)?;
            }
            "response.refusal.delta" => {
                self.items.refuse();
                self.items
                    .grow(spot, (TextKind::Said, content), delta, out)?;
            }
            "response.refusal.done" => {
                self.items.refuse();
                let refusal = event.refusal.0.as_deref().unwrap_or_default();
                self.items
                    .whole(spot, (TextKind::Said, content), refusal, out)?;
            }
            "response.output_item.added" | "response.output_item.done" => {
                let raw = event.item.ok_or_else(|| unreadable(data))?;
                let item = read_item(raw)?;
                let id = item.id.0.clone();
                let spot = Spot {
                    id: id.as_deref().or(spot.id),
                    ..spot
                };
                if kind.ends_with("added") {
                    self.items.begin(spot, &item, out)?;
                } else {
                    self.items.done(spot, item, raw.get(), out)?;
                }
            }
            "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let raw = event.response.ok_or_else(|| unreadable(data))?;
                self.finish_response(kind, raw, out)?;
                return Ok(Flow::Finished);
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                self.start_response(event.response)
            }
            "error" => return Err(self.refusal(data)),
            // An error without a type, as gateways send it.
            "" | "message"
                if serde_json::from_str::<Value>(data)
                    .is_ok_and(|it| it.get("error").is_some_and(|it| !it.is_null())) =>
            {
                return Err(self.refusal(data));
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    fn start_response(&mut self, response: Option<&RawValue>) {
        let response =
            response.and_then(|raw| serde_json::from_str::<Response<'_>>(raw.get()).ok());
        if let Some(id) = response.and_then(|it| it.id.0).filter(|id| !id.is_empty()) {
            self.wire_id = Some(id.into());
        }
    }

    /// The last event: it contains the complete answer, including items that had no events.
    fn finish_response(
        &mut self,
        kind: &str,
        raw: &RawValue,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let response: Response<'_> =
            serde_json::from_str(raw.get()).map_err(|_| unreadable(raw.get()))?;
        self.start_response(Some(raw));
        self.read_usage(response.usage, out);
        let status = response.status.0.as_deref().unwrap_or_default();
        let is = |name: &str| status == name || kind.strip_prefix("response.") == Some(name);
        if is("failed") || is("cancelled") {
            return Err(self.failure(raw.get()));
        }
        let output = response.output.unwrap_or_default();
        if output.len() > MAX_ITEMS {
            return Err(too_many());
        }
        if output.len() > self.items.count_done() {
            let came = self.items.ids_done();
            // All are read before the first one counts.
            let items = output.iter().map(|raw| read_item(raw));
            let items = items.collect::<Result<Vec<_>, _>>()?;
            for (index, (raw, item)) in (0..).zip(output.iter().zip(items)) {
                if item.id.0.as_deref().is_none_or(|id| !came.contains(id)) {
                    self.items.add_missing(index, item, raw.get(), out)?;
                }
            }
        }
        let reason = response.incomplete_details.and_then(|it| it.reason.0);
        self.ending = Some(if is("incomplete") {
            let finish = match reason.as_deref() {
                Some("content_filter") => Finish::As(FinishReason::Filtered),
                // Without a stop reason, the content may be incomplete.
                Some("max_output_tokens" | "max_tokens" | "") | None => {
                    Finish::As(FinishReason::Length)
                }
                Some(_) => Finish::Unknown {
                    open: self.items.is_cut(),
                },
            };
            Ending {
                finish,
                raw: reason.as_deref().unwrap_or("incomplete").into(),
            }
        } else if is("completed") || status.is_empty() {
            Ending {
                finish: Finish::Whole,
                raw: "completed".into(),
            }
        } else {
            Ending {
                finish: Finish::Unknown {
                    open: self.items.is_cut(),
                },
                raw: status.into(),
            }
        });
        Ok(())
    }

    fn read_usage(&mut self, raw: Option<&RawValue>, out: &mut VecDeque<Chunk>) {
        let Some(raw) = raw else { return };
        let Ok(said) = serde_json::from_str::<wire::Usage>(raw.get()) else {
            return;
        };
        self.usage = normal(&said);
        self.raw_usage = counts::usage_to_extra(raw);
        out.push_back(Chunk::Usage {
            usage: self.usage,
            raw: self.raw_usage.clone(),
        });
    }

    /// An answer that failed: it holds the error.
    fn failure(&self, response: &str) -> Error {
        let value = serde_json::from_str::<Value>(response).unwrap_or_default();
        let error = value.get("error").filter(|error| !error.is_null());
        match error.and_then(|_| Refusal::from_value(&value)) {
            Some(refusal) => refusal.into_error(&self.broke_off(), response),
            None => Error::new(
                ErrorKind::Overloaded,
                format!("{} failed without a reason", self.model),
            ),
        }
    }

    /// An event that is an error: flat as it is documented, or nested as it comes.
    ///
    /// Source: openai-dotnet issue 881, 2025-12.
    fn refusal(&self, data: &str) -> Error {
        let mut value = serde_json::from_str::<Value>(data).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            // The type marks it as an error, without naming which.
            fields.remove("type");
        }
        let refusal = Refusal::from_value(&value).unwrap_or_else(|| Refusal::from_body(200, data));
        refusal.into_error(&self.broke_off(), data)
    }

    fn broke_off(&self) -> String {
        format!("{} broke off with an error", self.model)
    }
}

impl Decode for Decoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        let data = frame.data.trim();
        if data.is_empty() {
            return Ok(Flow::More);
        }
        if data == DONE {
            return Ok(Flow::Finished);
        }
        if frame.event.ends_with(".delta")
            && let Ok(growth) = serde_json::from_str::<Growth<'_>>(data)
            && let Some(key) = grown(&growth)
        {
            let spot = Spot {
                index: growth.output_index,
                id: growth.item_id.filter(|it| !it.is_empty()),
            };
            self.items.grow(spot, key, &growth.delta.0, out)?;
            return Ok(Flow::More);
        }
        let event: Event<'_> = match serde_json::from_str(data) {
            Ok(event) => event,
            Err(_) => return tolerate(frame),
        };
        let kind = event.kind.0.clone();
        self.event(kind.as_deref().unwrap_or(frame.event), event, data, out)
    }

    fn document(&mut self, json: &str, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let raw: &RawValue = serde_json::from_str(json).map_err(|_| unreadable(json))?;
        let response: Response<'_> = serde_json::from_str(json).map_err(|_| unreadable(json))?;
        if response.output.is_none() {
            return Err(unreadable(json));
        }
        self.finish_response("response.done", raw, out)
    }

    fn is_whole(&self) -> bool {
        self.ending.is_some()
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
        let Some(ending) = self.ending.take() else {
            return Err(Error::new(
                ErrorKind::Protocol,
                "the stream ended in the middle",
            ));
        };
        let (blocks, refused) = self.items.end(out)?;
        let finish = match ending.finish {
            Finish::Whole | Finish::Unknown { .. } if refused => Finish::As(FinishReason::Refused),
            finish => finish,
        };
        let mut reply = Reply::new(self.model.clone(), FinishReason::End);
        reply.blocks = blocks;
        reply.raw_stop = Some(ending.raw);
        reply.usage = self.usage;
        reply.raw_usage = std::mem::take(&mut self.raw_usage);
        reply.wire_id = self.wire_id.take();
        finish.settle(reply, out)
    }
}

/// Returns the text that grows, if nothing else is to be done about it.
fn grown(growth: &Growth<'_>) -> Option<(TextKind, u64)> {
    let (content, summary) = (
        growth.content_index.unwrap_or(0),
        growth.summary_index.unwrap_or(0),
    );
    match growth.kind {
        "response.output_text.delta" => Some((TextKind::Said, content)),
        "response.function_call_arguments.delta" => Some((TextKind::Args, 0)),
        "response.reasoning_summary_text.delta" => Some((TextKind::Summary, summary)),
        "response.reasoning_text.delta" => Some((TextKind::Thought, content)),
        _ => None,
    }
}

fn read_item(raw: &RawValue) -> Result<Done<'_>, Error> {
    serde_json::from_str(raw.get()).map_err(|_| unreadable(raw.get()))
}

/// Usage in disjoint classes.
fn normal(said: &wire::Usage) -> Usage {
    let count = |count: Option<u64>| count.unwrap_or(0);
    let input = count(said.input_tokens);
    let details = said.input_tokens_details.as_ref();
    let cache_read = count(details.and_then(|it| it.cached_tokens)).min(input);
    let cache_write = count(details.and_then(|it| it.cache_write_tokens)).min(input - cache_read);
    let output = count(said.output_tokens);
    let reasoning = count(
        said.output_tokens_details
            .as_ref()
            .and_then(|it| it.reasoning_tokens),
    )
    .min(output);
    Usage {
        input_uncached: input - cache_read - cache_write,
        cache_read,
        cache_write,
        cache_write_1h: 0,
        output,
        reasoning,
    }
}

/// An event that cannot be read is an error, unless it is of a kind that is not known anyway.
fn tolerate(frame: Frame<'_>) -> Result<Flow, Error> {
    let kind = serde_json::from_str::<Kind<'_>>(frame.data).map_err(|_| unreadable(frame.data))?;
    let known = kind
        .kind
        .0
        .as_deref()
        .is_none_or(|kind| KNOWN.contains(&kind));
    if known {
        Err(unreadable(frame.data))
    } else {
        Ok(Flow::More)
    }
}

fn unreadable(data: &str) -> Error {
    let excerpt: String = data.chars().take(MAX_EXCERPT).collect();
    Error::new(
        ErrorKind::Protocol,
        format!("the stream holds an event that cannot be read: {excerpt}"),
    )
}
