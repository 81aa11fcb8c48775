//! Teams: who is in them, how their agents write to each other, and that every run of a lead ends.

#[path = "team/desk.rs"]
pub(crate) mod desk;
#[path = "team/ends.rs"]
mod ends;
#[path = "team/found.rs"]
mod found;
#[path = "team/mailbox.rs"]
mod mailbox;
#[path = "team/members.rs"]
mod members;
#[path = "team/messages.rs"]
mod messages;
#[path = "team/property.rs"]
mod property;
#[path = "team/roles.rs"]
mod roles;
#[path = "team/seen.rs"]
mod seen;
