//! The parts that a wire is made of, for protocols of your own.
//!
//! A wire defines how one protocol writes a request and reads an answer. The rest is shared by all wires: HTTP,
//! timeouts, frames, limits, the classification of refusals, the removal of keys, and the bytes of a history reused
//! from request to request. A wire has four small parts, each pure:
//!
//! 1. the vendor's JSON, as serde types that borrow;
//! 2. [`Encode`]: the head of a request (options with [`effective`], tools, the system prompt), and the messages of
//!    an entry, which [`project_entry`] returns in the form that the model may receive, whichever model wrote it;
//! 3. [`Decode`]: the state of one answer; [`Blocks`] number the content, [`Finish`] decides how it stopped,
//!    [`refusal`] classifies an error in the middle;
//! 4. [`Wire`]: where requests go, how a caller is known, and whether the answer is events or [lines](Framing::Lines).
//!
//! A [`WireModel`] is then a [`Model`](adjutant_llm::Model): below `Retry`, `Fallback` and the other decorators, with
//! [`Timeouts`](crate::Timeouts), headers and observers. A [`ForeignWire`] names it, and
//! [`Provider::register`](crate::Provider::register) makes the name available to [`model`](fn@crate::model), to every
//! [`Chooser`](crate::Chooser) and to manifests. The conformance suite of `adjutant-testing` checks it if you
//! describe how a server speaks the protocol. `examples/ollama` is a complete wire.
//!
//! # Example
//! A server that accepts one text per message, and answers in lines: `{"say":"…"}`, and `{"end":true}` as the last
//! one.
//! ```
//! use std::{collections::VecDeque, sync::Arc};
//! use adjutant_llm::{Block, BlockKind, Chunk, Entry, Error, ErrorKind, FinishReason, ModelInfo, Reply, Request, Warning};
//! use adjutant_providers::wire::*;
//!
//! #[derive(Debug, Clone)]
//! struct Plain(ModelInfo);
//!
//! impl Encode for Plain {
//!     fn head(&self, request: &Request, out: &mut Vec<u8>, _: &mut Vec<Warning>) -> Messages {
//!         out.extend_from_slice(b"{\"model\":");
//!         write(out, self.0.name());
//!         member(out, "system", &*request.system);
//!         out.extend_from_slice(b",\"messages\":[");
//!         Messages::None
//!     }
//!
//!     fn entry(&self, entry: &Entry, tail: &mut Tail, warnings: &mut Vec<Warning>) {
//!         match project_entry(entry, &self.0, warnings) {
//!             ProjectedEntry::User(pieces) => pieces.iter().for_each(|piece| match piece {
//!                 Piece::Text(text) => tail.push(text),
//!                 _ => warn_changed(warnings, "[media omitted: this server takes text]"),
//!             }),
//!             ProjectedEntry::Turn(turn) => turn.parts.iter().for_each(|part| match part {
//!                 ReplyPart::Text { text, .. } => tail.push(text),
//!                 _ => {}
//!             }),
//!             ProjectedEntry::Nothing => {}
//!         }
//!     }
//! }
//!
//! struct Answer { model: Arc<ModelInfo>, blocks: Blocks, said: String, ended: bool }
//!
//! impl Decode for Answer {
//!     fn frame(&mut self, frame: Frame<'_>, out: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
//!         let line: serde_json::Value = serde_json::from_str(frame.data)
//!             .map_err(|source| Error::new(ErrorKind::Protocol, "a line is no JSON").with_source(source))?;
//!         if line.get("error").is_some() {
//!             return Err(refusal(&self.model.id, frame.data));
//!         }
//!         if let Some(text) = line["say"].as_str() {
//!             if self.blocks.is_empty() {
//!                 self.blocks.open(|_| BlockKind::Text, out)?;
//!             }
//!             self.said.push_str(text);
//!             out.push_back(Chunk::Delta { block: 0, text: text.to_owned() });
//!         }
//!         self.ended |= line["end"] == true;
//!         Ok(if self.ended { Flow::Finished } else { Flow::More })
//!     }
//!
//!     fn is_whole(&self) -> bool {
//!         self.ended
//!     }
//!
//!     fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
//!         if !self.ended {
//!             return Err(Error::new(ErrorKind::Protocol, "the stream ended in the middle"));
//!         }
//!         if !self.blocks.is_empty() {
//!             self.blocks.close(0, Block::text(self.said.as_str()), out);
//!         }
//!         let mut reply = Reply::new(self.model.id.clone(), FinishReason::End);
//!         reply.blocks = self.blocks.take();
//!         Finish::Whole.settle(reply, out)
//!     }
//! }
//!
//! impl Wire for Plain {
//!     type Decoder = Answer;
//!
//!     fn address(&self, _: &ModelInfo) -> Address {
//!         Address::new("/talk").framing(Framing::Lines)
//!     }
//!
//!     fn decoder(&self, info: &Arc<ModelInfo>, seed: CallIdSeed) -> Answer {
//!         Answer { model: Arc::clone(info), blocks: Blocks::new(seed), said: String::new(), ended: false }
//!     }
//! }
//!
//! use adjutant_providers::{Provider, WireKind};
//! let wire = ForeignWire::new("plain-talk", |info: &ModelInfo| Plain(info.clone()));
//! Provider::new("plain", "http://127.0.0.1:4000").wire(WireKind::Foreign(wire)).register()?;
//! assert_eq!(adjutant_providers::model("plain/large")?.info().name(), "large");
//! # Ok::<(), Error>(())
//! ```

pub use crate::{
    blocks::{Blocks, CallIdSeed},
    cache_key::cache_key,
    classify::refusal,
    counts::usage_to_extra,
    driver::{Address, Auth, Decode, Finish, Flow},
    foreign::ForeignWire,
    host::{Remedy, Wire, WireModel},
    options::{Effective, effective, extra, warn},
    pieces::{Args, Piece, media_type, warn_changed},
    projection::{ProjectedEntry, ProjectedReply, ProjectedResult, ReplyPart, project_entry},
    segments::{Encode, Messages, Tail, member, write},
    sse::{Frame, Framing},
    text::Few,
    tool_names::wire_name,
};
