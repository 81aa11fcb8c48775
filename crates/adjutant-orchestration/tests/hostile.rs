//! Everything at once, and at the wrong time: what no single part is tested for.

#[path = "hostile/combined.rs"]
mod combined;
#[path = "hostile/kept.rs"]
mod kept;
#[path = "hostile/nested.rs"]
mod nested;
#[path = "hostile/relays.rs"]
mod relays;
#[path = "hostile/teams.rs"]
mod teams;
