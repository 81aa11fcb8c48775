//! The folder of agents: who works on it, what is asked for, and how agents are found.

use std::{fs, thread};

use adjutant_runtime::{Desired, ErrorKind, Goal, Home, Instance, Status, supervisor::Settings};
use uuid::Uuid;

use super::fake::{Place, write_agent};

fn home() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = Home::at(folder.path().join("run"));
    (folder, home)
}

#[test]
fn version_control_leaves_the_folder_out_when_nobody_says_otherwise() {
    let (_folder, home) = home();
    home.make().expect("it is made");
    let ignored = home.root().join(".gitignore");
    assert_eq!(fs::read_to_string(&ignored).expect("it is there"), "*\n");
    fs::write(&ignored, "").expect("it is written");
    home.make().expect("it is there");
    assert_eq!(fs::read_to_string(&ignored).expect("it is there"), "");
}

#[test]
fn second_operator_is_refused_and_told_who_works_when_there_is_one() {
    let (_folder, home) = home();
    assert!(!home.is_operated().expect("it can be told"));
    let operator = home.operate().expect("nobody works on it");
    assert!(home.is_operated().expect("it can be told"));
    let error = home.operate().expect_err("there is one");
    let expect = format!(
        "another operator (process {}) works on {}",
        std::process::id(),
        home.root().display()
    );
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Busy, expect));
    drop(operator);
    assert!(!home.is_operated().expect("it can be told"));
    home.operate().expect("the first one has ended");
}

#[test]
fn operator_begins_when_others_only_look() {
    let (_folder, home) = home();
    home.make().expect("it is made");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..200).all(|_| home.is_operated().is_ok()));
        }
        for _ in 0..50 {
            home.operate().expect("nobody works on it");
        }
    });
}

#[test]
fn orders_are_counted_when_many_are_given_at_once() {
    let (_folder, home) = home();
    let id = Uuid::now_v7();
    write_agent(&home, id, "a");
    assert_eq!(home.desired(id).expect("it can be read"), Desired::NOTHING);
    thread::scope(|scope| {
        for goal in [Goal::Running, Goal::Stopped, Goal::Running, Goal::Stopped] {
            let home = &home;
            scope.spawn(move || (0..25).all(|_| home.desire(id, goal).is_ok()));
        }
    });
    assert_eq!(home.desired(id).expect("it can be read").order, 100);
    let names: Vec<String> = fs::read_dir(home.workspace(id).root())
        .expect("it is there")
        .map(|it| {
            it.expect("it can be read")
                .file_name()
                .into_string()
                .expect("names are text")
        })
        .collect();
    // Nothing is left beside.
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn stop_that_nobody_has_taken_up_is_not_lost_when_a_start_follows() {
    let (_folder, home) = home();
    let id = Uuid::now_v7();
    write_agent(&home, id, "a");
    let runs = || home.desire(id, Goal::Running).expect("it is written");
    assert!(!runs().restart);
    home.desire_restart(id).expect("it is written");
    assert!(runs().restart && runs().restart);
    home.carried_out(id).expect("it is written");
    assert!(!runs().restart);
    home.desire(id, Goal::Stopped).expect("it is written");
    assert!(runs().restart);
    assert!(
        !home
            .desire(id, Goal::Stopped)
            .expect("it is written")
            .restart
    );
}

#[test]
fn order_is_possible_when_the_last_one_cannot_be_understood() {
    let (_folder, home) = home();
    let id = Uuid::now_v7();
    write_agent(&home, id, "a");
    fs::write(home.workspace(id).file("desired.json"), "{\"goal\":\"dance").expect("it is written");
    assert_eq!(
        home.desired(id).expect_err("it is damaged").kind(),
        ErrorKind::Storage
    );
    home.desire(id, Goal::Stopped).expect("it is written");
    assert_eq!(home.desired(id).expect("it is whole").goal, Goal::Stopped);
    assert_eq!(
        home.desire(Uuid::now_v7(), Goal::Running)
            .expect_err("there is none")
            .kind(),
        ErrorKind::Missing
    );
}

#[test]
fn agents_are_found_by_name_id_and_beginning_of_an_id() {
    let (_folder, home) = home();
    let ids = [
        "aaaa1111-0000-4000-8000-000000000000",
        "aaaa2222-0000-4000-8000-000000000000",
    ];
    let ids = ids.map(|id| Uuid::try_parse(id).expect("it is an id"));
    write_agent(&home, ids[0], "one");
    write_agent(&home, ids[1], "aaaa");
    fs::create_dir_all(home.root().join("aaaa3333-0000-4000-8000-000000000000"))
        .expect("it is made");
    fs::create_dir_all(home.root().join("notes")).expect("it is made");
    let entries = home.entries().expect("it can be read");
    let found = |word: &str| {
        entries
            .find(word)
            .map(|entry| entry.id)
            .map_err(|error| error.kind())
    };
    assert_eq!(found("one"), Ok(ids[0]));
    assert_eq!(found(&ids[0].to_string()), Ok(ids[0]));
    assert_eq!(found("aaaa1"), Ok(ids[0]));
    // A name comes before the beginning of an id.
    assert_eq!(found("aaaa"), Ok(ids[1]));
    assert_eq!(
        [found("aaa"), found("two"), found("")],
        [Err(ErrorKind::Missing); 3]
    );
    write_agent(&home, ids[1], "two");
    let entries = home.entries().expect("it can be read");
    assert_eq!(
        entries.find("aaaa").map_err(|error| error.kind()).err(),
        Some(ErrorKind::Invalid)
    );
}

#[test]
fn others_are_found_when_one_is_damaged() {
    let (_folder, home) = home();
    let ids = [Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7()];
    write_agent(&home, ids[0], "well");
    write_agent(&home, ids[1], "damaged");
    fs::write(home.workspace(ids[1]).file("agent.json"), "{").expect("it is written");
    // A folder that was copied holds an agent of another id.
    write_agent(&home, ids[2], "copied");
    fs::copy(
        home.workspace(ids[0]).file("agent.json"),
        home.workspace(ids[2]).file("agent.json"),
    )
    .expect("it is copied");
    let entries = home.entries().expect("it can be read");
    let names: Vec<&str> = entries.all.iter().map(|entry| &*entry.name).collect();
    let wrong: Vec<Uuid> = entries.problems.iter().map(|(id, _)| *id).collect();
    assert_eq!((names, wrong), (vec!["well"], vec![ids[1], ids[2]]));
}

#[tokio::test(start_paused = true)]
async fn order_is_a_new_one_when_the_one_before_cannot_be_read() {
    let place = Place::new();
    let agent = place.running("a", []);
    for _ in 0..3 {
        place
            .home
            .desire(agent.id(), Goal::Running)
            .expect("it is written");
    }
    let mut working = place.supervise(Settings::new());
    working.until_status("a", &Status::Ready).await;
    working.report().await;
    fs::write(place.home.workspace(agent.id()).file("desired.json"), "{").expect("it is written");
    let desired = place
        .home
        .desire(agent.id(), Goal::Stopped)
        .expect("it is replaced");
    assert_eq!((desired.goal, desired.order), (Goal::Stopped, 5));
}
