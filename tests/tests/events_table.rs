//! The tables of docs/events.md, compared with the types: every event, its name, its fields.

use std::collections::{BTreeMap, BTreeSet};

use adjutant::{
    Agent, CallContext, EventKind,
    llm::{Script, ScriptedModel, Thinking, Warning, WarningKind},
    tool,
    tools::Progress,
};
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../docs/events.md");

/// Tells how far it is.
#[tool]
fn look(cx: CallContext) -> &'static str {
    cx.progress(Progress::text("half of it"));
    "all of it"
}

#[test]
fn table_names_every_event_when_the_types_are_asked() {
    let documented: Vec<(String, String)> =
        rows("## Every event").into_iter().map(|row| (code(&row[0]).remove(0), code(&row[1]).remove(0))).collect();
    let names: Vec<&str> = documented.iter().map(|(_, name)| name.as_str()).collect();
    let known = known_names();
    assert_eq!(names, known, "the names of docs/events.md, in the order of EventKind");
    for (variant, name) in &documented {
        assert_eq!(snake(variant), *name, "a variant and its JSON name");
    }
}

#[tokio::test]
async fn table_names_the_fields_when_a_run_shows_them() {
    let documented: BTreeMap<String, Vec<String>> =
        rows("## Every event").into_iter().map(|row| (code(&row[1]).remove(0), code(&row[2]))).collect();
    let mut seen = BTreeSet::new();
    for kind in shown().await {
        let value = serde_json::to_value(&kind).expect("an event is JSON");
        let fields: BTreeSet<&str> =
            value.as_object().expect("an event is an object").keys().map(String::as_str).filter(|it| *it != "event").collect();
        let name = value["event"].as_str().expect("an event has a name").to_owned();
        let expect = documented.get(&name).expect("the event is in the table");
        let allowed: BTreeSet<&str> = expect.iter().map(|it| it.trim_end_matches('?')).collect();
        let needed: BTreeSet<&str> = expect.iter().map(String::as_str).filter(|it| !it.ends_with('?')).collect();
        assert!(fields.is_subset(&allowed) && fields.is_superset(&needed), "{name} has the fields {fields:?}");
        seen.insert(name);
    }
    let unseen: Vec<&str> = known_names().into_iter().filter(|name| !seen.contains(*name)).map(leak).collect();
    assert_eq!(unseen, ["reply_retracted", "cancel_asked", "app"].map(|it| it), "events whose fields were not compared");
}

#[test]
fn mapping_leads_to_events_when_it_leads_anywhere() {
    let known = known_names();
    let rows = rows("## Names elsewhere");
    let systems = rows.iter().filter(|row| !row[0].is_empty()).count();
    assert_eq!(systems, 5, "systems of the mapping");
    for row in &rows {
        let (theirs, ours) = (code(&row[1]), code(&row[2]));
        assert!(!theirs.is_empty(), "a row without an event: {row:?}");
        assert!(row[2] == "not yet" || !ours.is_empty(), "a row that leads nowhere: {row:?}");
        let wrong: Vec<_> = ours.iter().filter(|name| !known.contains(&name.as_str())).collect();
        assert!(wrong.is_empty(), "a row that leads to no event of ours: {wrong:?}");
    }
}
