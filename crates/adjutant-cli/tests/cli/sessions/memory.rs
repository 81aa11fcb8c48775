//! What is learned in one session is known in the next, and can be looked at and forgotten.

use super::Desk;
use crate::command::{says, serve};

#[test]
fn facts_are_known_to_other_sessions_when_a_run_has_learned_them() {
    let desk = Desk::new("store.db");
    let facts = r#"{"facts": ["The user has a dog named Rex."]}"#;
    let server = serve([
        says("Hello Rex!"),
        says(facts),
        says("Meat."),
        says(r#"{"facts": []}"#),
    ]);
    let first = [
        "run",
        "This is my dog Rex.",
        "--session",
        "a",
        "--memory",
        "ada",
        "-q",
    ];
    desk.ask(&server, &first).check(0, "Hello Rex!\n", "");
    let second = [
        "run",
        "What does my dog eat?",
        "--session",
        "b",
        "--memory",
        "ada",
        "-q",
    ];
    desk.ask(&server, &second).check(0, "Meat.\n", "");
    let body = String::from_utf8_lossy(&server.requests()[2].body).into_owned();
    assert!(body.contains("The user has a dog named Rex."), "{body}");

    let list = desk.out(&["memory", "list", "--owner", "ada"]);
    assert!(
        list.lines().count() == 1 && list.ends_with("  The user has a dog named Rex.\n"),
        "{list}"
    );
    let found = desk
        .see(&["memory", "search", "dog", "--owner", "ada", "--json"])
        .events();
    assert_eq!(found[0]["text"], "The user has a dog named Rex.");
    let none = "nothing that is known fits\n";
    desk.see(&["memory", "search", "cat", "--owner", "ada"])
        .check(0, "", none);
    desk.see(&["memory", "list", "--owner", "bob"])
        .check(0, "", "nothing is known of bob\n");

    let id = found[0]["id"].as_str().expect("a fact has an id");
    assert_eq!(
        desk.see(&["memory", "forget", id, "--owner", "bob"]).code,
        Some(2)
    );
    desk.see(&["memory", "forget", id, "--owner", "ada"])
        .check(0, &format!("forgot {id}\n"), "");
    assert_eq!(desk.out(&["memory", "list", "--owner", "ada"]), "");
}

#[test]
fn memory_is_refused_when_there_can_be_none() {
    let desk = Desk::new("store/");
    adjutant::llm::private::folder(std::path::Path::new(&desk.path("store")))
        .expect("it can be made");
    let error = "error: a store of JSON lines keeps sessions and no memory\n\
                 hint: --store or ADJUTANT_STORE names an SQLite file or a PostgreSQL database\n";
    desk.see(&["memory", "list", "--owner", "ada"])
        .check(2, "", error);
    let planner = "error: the planner is no language model: it learns nothing\n\
                   hint: --model names a language model; without one, leave --memory out\n";
    let args = [
        "run",
        "Hi",
        "-m",
        "offline/planner",
        "--memory",
        "ada",
        "-q",
    ];
    Desk::new("store.db").see(&args).check(2, "", planner);
}
