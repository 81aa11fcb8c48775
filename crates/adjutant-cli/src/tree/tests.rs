//! Tests of the drawing of running agents.

use adjutant::{agent::Seq, llm::ThreadId, tools::Identity};
use serde_json::{Value, json};

use super::*;

/// Returns an agent at this depth below the first one.
fn who(name: &str, depth: u16) -> Identity {
    let mut who = Identity::root(ThreadId::from(name), name, name);
    who.depth = depth;
    who.parent = (depth > 0).then(|| ThreadId::from("lead"));
    who
}

fn event(who: &Identity, kind: Value) -> Event {
    let mut event = json!({"seq": Seq(1), "at_ms": 0, "run": 1, "turn": 1, "who": who});
    let fields = kind.as_object().expect("an object").clone();
    event.as_object_mut().expect("an object").extend(fields);
    serde_json::from_value(event).expect("an event")
}

fn begun(names: &[&str]) -> TreeView {
    let mut tree = TreeView::default();
    tree.see(&event(&who("lead", 0), json!({"event": "run_started"})));
    for name in names {
        tree.see(&event(
            &who("lead", 0),
            json!({"event": "child_opened", "call": "c1_0_0", "child": who(name, 1)}),
        ));
        tree.see(&event(&who(name, 1), json!({"event": "run_started"})));
    }
    tree
}

#[test]
fn tree_is_drawn_ten_times_a_second_at_most() {
    let now = Instant::now();
    assert_eq!((begun(&[]).due(now), begun(&[]).text()), (None, None));
    let mut tree = begun(&["a"]);
    assert_eq!(tree.due(now), Some(now));
    tree.draw(now);
    assert_eq!(tree.due(now), None);
    tree.see(&event(
        &who("a", 1),
        json!({"event": "text_delta", "block": 0, "text": "Hm\u{1b}[2J"}),
    ));
    assert_eq!(tree.due(now), Some(now + DRAW_EVERY));
    assert_eq!(
        tree.draw(now),
        [
            "lead: working, 0 tokens",
            "a: working, 0 tokens · Hm\u{fffd}[2J"
        ]
    );
}

#[test]
fn tree_shows_those_at_work_and_counts_the_others() {
    let names: Vec<String> = (0..8).map(|at| format!("n{at}")).collect();
    let mut tree = begun(&names.iter().map(String::as_str).collect::<Vec<_>>());
    tree.at("delegate");
    let lines = tree.draw(Instant::now());
    assert_eq!(
        (lines.len(), lines[0].as_str()),
        (8, "lead: working, 0 tokens · delegate")
    );
    assert_eq!(
        (lines[1].as_str(), lines[7].as_str()),
        ("n0: working, 0 tokens", "(2 more)")
    );
    assert!(tree.is_busy() && !begun(&[]).is_busy());
}
