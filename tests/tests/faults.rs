//! Everything that may go wrong between an agent and a model, over every wire: one table, no cell missing.

#[path = "faults/perform.rs"]
mod perform;
#[path = "faults/same.rs"]
mod same;

use std::{collections::BTreeSet, time::Duration};

use adjutant_testing::Fault;
use adjutant_tests::{WIRES, Wire};
use futures_util::future::join_all;
use perform::{HAZARDS, perform};

/// Far longer than any cell should take, and far shorter than models are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Hazard, and what comes of the run on each wire, in the order of [`WIRES`]: how it ended, what became of calls, what was
/// said.
///
/// A failure shows kind, status, and `again` if it is worth trying again, with the wait that was asked for. After every
/// cell, a second run in the same session must finish: the server checks that the history it is sent is valid.
const TABLE: &[(&str, [&str; 4])] = &[
    ("none", ["finished answer · said all"; 4]),
    ("unreachable", ["failed Network, again"; 4]),
    ("tls, refused", ["failed Network, again"; 4]),
    ("tls, unanswered", ["failed Timeout, again"; 4]),
    ("hangup", ["failed Network, again"; 4]),
    ("status 401", ["failed Auth 401"; 4]),
    ("status 404", ["failed Config 404"; 4]),
    ("status 429", ["failed RateLimited 429, again after 7s"; 4]),
    ("status 500", ["failed Overloaded 500, again"; 4]),
    (
        "status overloaded",
        [
            "failed Overloaded 529, again",
            "failed Overloaded 503, again",
            "failed Overloaded 503, again",
            "failed Overloaded 503, again",
        ],
    ),
    ("html", ["failed Protocol 200"; 4]),
    ("cut_at", ["failed Network, again · said a part"; 4]),
    ("stall_at", ["failed Timeout, again · said a part"; 4]),
    ("stall_at the start", ["failed Timeout, again"; 4]),
    (
        "endless_frame",
        [
            "failed Protocol",
            "failed Protocol",
            "failed Protocol · said a part",
            "failed Protocol",
        ],
    ),
    ("garbage", ["failed Protocol · said a part"; 4]),
    ("split_every", ["finished answer · said all"; 4]),
    (
        "invalid_utf8",
        [
            "failed Protocol · said a part",
            "finished answer · said all",
            "failed Protocol · said a part",
            "finished answer · said \"Grüße aus Köln: Die Brücke über den großen Fluß seit heute früh für alle geöffnet, auch für Fußgänger, Lastenräder und Züge; nur die östliche Zufahrt bleibt bis zum Frühjahr geschlossen.\"",
        ],
    ),
    (
        "error_after",
        [
            "failed Overloaded, again · said a part",
            "failed Overloaded, again · said a part",
            "failed Overloaded 503, again · said a part",
            "failed Overloaded, again · said a part",
        ],
    ),
    ("missing_finish", ["failed Protocol · said all"; 4]),
    ("duplicate_usage", ["finished answer · said all"; 4]),
    ("slow_close", ["finished answer · said all"; 4]),
    ("pause", ["finished answer · said all"; 4]),
    ("content_type", ["finished answer · said all"; 4]),
    (
        "arguments that are no json",
        [
            "finished answer · add InvalidArguments · said all",
            "finished answer · add InvalidArguments · said all",
            "failed Generation, again",
            "finished answer · add InvalidArguments · said all",
        ],
    ),
    (
        "large result",
        ["finished answer · shout Ok, whole · said all"; 4],
    ),
    (
        "large result, whole",
        ["finished answer · shout Ok, whole · said all"; 4],
    ),
    (
        "tool that never returns",
        ["finished answer · hang TimedOut · said all"; 4],
    ),
];

#[test]
fn table_has_every_hazard_when_they_are_listed() {
    let hazards: Vec<&str> = TABLE.iter().map(|(hazard, _)| *hazard).collect();
    assert_eq!(hazards, HAZARDS);
}

#[test]
fn table_knows_every_fault_when_the_server_learns_more() {
    let known = |name: &str| {
        HAZARDS
            .iter()
            .any(|hazard| hazard.split([' ', ',']).next() == Some(name))
    };
    let missing: BTreeSet<&str> = Fault::all()
        .iter()
        .map(Fault::name)
        .filter(|name| !known(name))
        .collect();
    assert_eq!(missing, BTreeSet::new());
}

#[tokio::test]
async fn run_ends_well_when_anything_goes_wrong_on_any_wire() {
    let mut wrong = Vec::new();
    for (hazard, expect) in TABLE {
        // All wires at once: what waits waits once.
        let real = join_all(WIRES.map(|wire| patiently(hazard, wire))).await;
        if real != expect {
            wrong.push(format!("    (\"{hazard}\", {real:?}),"));
        }
    }
    assert!(
        wrong.is_empty(),
        "cells that are other than the table says:\n{}",
        wrong.join("\n")
    );
}

async fn patiently(hazard: &str, wire: Wire) -> String {
    let told = tokio::time::timeout(PATIENCE, perform(hazard, wire)).await;
    told.unwrap_or_else(|_| format!("no end within {PATIENCE:?}"))
}
