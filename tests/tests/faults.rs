//! Everything that may go wrong between an agent and a model, over every wire: one table, no cell missing.

#[path = "faults/perform.rs"]
mod perform;
#[path = "faults/same.rs"]
mod same;

use std::collections::BTreeSet;

use adjutant_testing::Fault;
use perform::{HAZARDS, WIRES, Wire, perform};

/// Hazard, wire, and what comes of the run: how it ended, what became of calls, what was said.
///
/// A failure shows kind, status, and `again` if it is worth trying again, with the wait that was asked for. After every
/// cell, a second run in the same session must finish: the server checks that the history it is sent is valid.
const TABLE: &[(&str, Wire, &str)] = &[
    ("none", Wire::Messages, "finished answer · said all"),
    ("none", Wire::Chat, "finished answer · said all"),
    ("unreachable", Wire::Messages, "failed Network, again"),
    ("unreachable", Wire::Chat, "failed Network, again"),
    ("tls, refused", Wire::Messages, "failed Network, again"),
    ("tls, refused", Wire::Chat, "failed Network, again"),
    ("tls, unanswered", Wire::Messages, "failed Timeout, again"),
    ("tls, unanswered", Wire::Chat, "failed Timeout, again"),
    ("hangup", Wire::Messages, "failed Network, again"),
    ("hangup", Wire::Chat, "failed Network, again"),
    ("status 401", Wire::Messages, "failed Auth 401"),
    ("status 401", Wire::Chat, "failed Auth 401"),
    ("status 404", Wire::Messages, "failed Config 404"),
    ("status 404", Wire::Chat, "failed Config 404"),
    ("status 429", Wire::Messages, "failed RateLimited 429, again after 7s"),
    ("status 429", Wire::Chat, "failed RateLimited 429, again after 7s"),
    ("status 500", Wire::Messages, "failed Overloaded 500, again"),
    ("status 500", Wire::Chat, "failed Overloaded 500, again"),
    ("status overloaded", Wire::Messages, "failed Overloaded 529, again"),
    ("status overloaded", Wire::Chat, "failed Overloaded 503, again"),
    ("html", Wire::Messages, "failed Protocol 200"),
    ("html", Wire::Chat, "failed Protocol 200"),
    ("cut_at", Wire::Messages, "failed Network, again · said a part"),
    ("cut_at", Wire::Chat, "failed Network, again · said a part"),
    ("stall_at", Wire::Messages, "failed Timeout, again · said a part"),
    ("stall_at", Wire::Chat, "failed Timeout, again · said a part"),
    ("stall_at the start", Wire::Messages, "failed Timeout, again"),
    ("stall_at the start", Wire::Chat, "failed Timeout, again"),
    ("endless_frame", Wire::Messages, "failed Protocol"),
    ("endless_frame", Wire::Chat, "failed Protocol"),
    ("garbage", Wire::Messages, "failed Protocol · said a part"),
    ("garbage", Wire::Chat, "failed Protocol · said a part"),
    ("split_every", Wire::Messages, "finished answer · said all"),
    ("split_every", Wire::Chat, "finished answer · said all"),
    ("invalid_utf8", Wire::Messages, "failed Protocol · said a part"),
    ("invalid_utf8", Wire::Chat, "failed Protocol · said a part"),
    ("error_after", Wire::Messages, "failed Overloaded, again · said a part"),
    ("error_after", Wire::Chat, "failed Overloaded, again · said a part"),
    ("missing_finish", Wire::Messages, "failed Protocol · said all"),
    ("missing_finish", Wire::Chat, "failed Protocol · said all"),
    ("duplicate_usage", Wire::Messages, "finished answer · said all"),
    ("duplicate_usage", Wire::Chat, "finished answer · said all"),
    ("slow_close", Wire::Messages, "finished answer · said all"),
    ("slow_close", Wire::Chat, "finished answer · said all"),
    ("arguments that are no json", Wire::Messages, "finished answer · add InvalidArguments · said all"),
    ("arguments that are no json", Wire::Chat, "finished answer · add InvalidArguments · said all"),
    ("large result", Wire::Messages, "finished answer · shout Ok, cut · said all"),
    ("large result", Wire::Chat, "finished answer · shout Ok, cut · said all"),
    ("large result, whole", Wire::Messages, "finished answer · shout Ok · said all"),
    ("large result, whole", Wire::Chat, "finished answer · shout Ok · said all"),
    ("tool that never returns", Wire::Messages, "finished answer · hang TimedOut · said all"),
    ("tool that never returns", Wire::Chat, "finished answer · hang TimedOut · said all"),
];

#[test]
fn table_has_every_cell_when_hazards_and_wires_are_multiplied() {
    let cells: Vec<(&str, Wire)> = TABLE.iter().map(|(hazard, wire, _)| (*hazard, *wire)).collect();
    let expect: Vec<(&str, Wire)> = HAZARDS.iter().flat_map(|hazard| WIRES.map(|wire| (*hazard, wire))).collect();
    assert_eq!(cells, expect);
}

#[test]
fn table_knows_every_fault_when_the_server_learns_more() {
    let known = |name: &str| HAZARDS.iter().any(|hazard| hazard.split([' ', ',']).next() == Some(name));
    let missing: BTreeSet<&str> = Fault::all().iter().map(Fault::name).filter(|name| !known(name)).collect();
    assert_eq!(missing, BTreeSet::new());
}

#[tokio::test]
async fn run_ends_well_when_anything_goes_wrong_on_any_wire() {
    let mut wrong = Vec::new();
    for (hazard, wire, expect) in TABLE {
        let real = perform(hazard, *wire).await;
        if real != *expect {
            wrong.push(format!("    (\"{hazard}\", Wire::{wire:?}, \"{real}\"),"));
        }
    }
    assert!(wrong.is_empty(), "cells that are other than the table says:\n{}", wrong.join("\n"));
}
