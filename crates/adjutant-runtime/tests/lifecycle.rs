//! Tests of the lifecycle.
#![expect(
    clippy::panic,
    reason = "what helps tests fails loudly, and a host tells what it sees"
)]

#[path = "lifecycle/adverse.rs"]
mod adverse;
#[path = "lifecycle/both.rs"]
mod both;
#[path = "lifecycle/carried.rs"]
mod carried;
#[path = "lifecycle/control.rs"]
mod control;
#[path = "lifecycle/crashed.rs"]
mod crashed;
#[path = "lifecycle/desk.rs"]
mod desk;
#[path = "lifecycle/found.rs"]
mod found;
#[path = "lifecycle/host.rs"]
mod host;
#[path = "lifecycle/logs.rs"]
mod logs;
#[path = "lifecycle/peers.rs"]
mod peers;
#[path = "lifecycle/provenance.rs"]
mod provenance;
#[path = "lifecycle/routes.rs"]
mod routes;
#[path = "lifecycle/ruled.rs"]
mod ruled;
#[path = "lifecycle/status.rs"]
mod status;
#[path = "lifecycle/updated.rs"]
mod updated;
#[path = "lifecycle/versions.rs"]
mod versions;
#[path = "lifecycle/workspace.rs"]
mod workspace;
