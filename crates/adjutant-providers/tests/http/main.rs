//! The wires, embedders and observers against servers on this machine: what is sent, and what is made of the answers.

#[cfg(unix)]
mod cloud_keys;
#[cfg(unix)]
mod clouds;
mod embed;
mod keys;
mod observe;
mod odd;
mod provider;
mod refusals;
mod remedies;
mod server;
mod tape;
mod wires;
