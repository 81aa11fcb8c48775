//! Tests of the surface: the same checks in this process and over HTTP, and what is HTTP's alone.

#[path = "surface/a2a.rs"]
mod a2a;
#[path = "surface/cancelling.rs"]
mod cancelling;
#[path = "surface/history.rs"]
mod history;
#[path = "surface/live.rs"]
mod live;
#[path = "surface/object.rs"]
mod object;
#[path = "surface/openapi.rs"]
mod openapi;
#[path = "surface/pausing.rs"]
mod pausing;
#[path = "surface/prompting.rs"]
mod prompting;
#[path = "surface/raw.rs"]
mod raw;
#[path = "surface/refusing.rs"]
mod refusing;
#[path = "surface/stage.rs"]
mod stage;
#[path = "surface/status.rs"]
mod status;
#[path = "surface/streams.rs"]
mod streams;
#[path = "surface/wire.rs"]
mod wire;
