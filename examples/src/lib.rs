//! Runnable examples live in `examples/`; this library only compiles the code of documents as doc tests.

#[cfg(doctest)]
#[doc = include_str!("../../docs/agents.md")]
mod agents;
#[cfg(doctest)]
#[doc = include_str!("../../docs/fleet.md")]
mod fleet;
#[cfg(doctest)]
#[doc = include_str!("../../docs/hands.md")]
mod hands;
#[cfg(doctest)]
#[doc = include_str!("../../crates/adjutant-macros/README.md")]
mod macros;
#[cfg(doctest)]
#[doc = include_str!("../../docs/memory.md")]
mod memory;
#[cfg(doctest)]
#[doc = include_str!("../../docs/models.md")]
mod models;
#[cfg(doctest)]
#[doc = include_str!("../../docs/orchestration.md")]
mod orchestration;
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme;
#[cfg(doctest)]
#[doc = include_str!("../../docs/sessions.md")]
mod sessions;
#[cfg(doctest)]
#[doc = include_str!("../../docs/skills.md")]
mod skills;
#[cfg(doctest)]
#[doc = include_str!("../../docs/stores.md")]
mod stores;
#[cfg(doctest)]
#[doc = include_str!("../../docs/testing.md")]
mod testing;
#[cfg(doctest)]
#[doc = include_str!("../../docs/tools.md")]
mod tools;
