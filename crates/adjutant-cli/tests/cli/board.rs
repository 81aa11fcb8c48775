//! A board that agents work on, looked after from outside.

use std::{path::Path, sync::Arc, time::Duration};

use adjutant::{
    orchestration::board::{Board, Finish, NewTask},
    store::Sqlite,
};

use crate::sessions::Desk;

const LEASE: Duration = Duration::from_secs(60);

/// A plan: one task failed, another waits for it, a third is worked on.
async fn plan(file: &Path) -> [String; 3] {
    let kv = Sqlite::open(file).expect("it opens").kv("board");
    let board = Board::new(Arc::new(kv));
    let dig = NewTask::new("Dig \u{1b}[2Ja hole")
        .description("A deep one.\n")
        .criterion("It is deep.")
        .priority(2);
    let dig = board
        .create(dig.creator("lead"))
        .await
        .expect("it can be created")
        .id;
    let plant = board
        .create(NewTask::new("Plant").after(dig.clone()))
        .await
        .expect("it can be created")
        .id;
    let rake = board
        .create(NewTask::new("Rake"))
        .await
        .expect("it can be created")
        .id;
    board.claim(&dig, "ada", LEASE).await.expect("it is free");
    board
        .finish(&dig, "ada", Finish::failure("There is rock."))
        .await
        .expect("it is ada's");
    board.claim(&rake, "bob", LEASE).await.expect("it is free");
    [dig, plant, rake].map(|id| id.to_string())
}

/// A desk with the plan in its store.
fn planned() -> (Desk, [String; 3]) {
    let desk = Desk::new("store.db");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let ids = runtime.block_on(plan(Path::new(&desk.path("store.db"))));
    (desk, ids)
}

/// The lines of a table without the times.
fn rows(table: &str) -> Vec<String> {
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn board_list_shows_where_tasks_stand_and_what_blocks_them() {
    let (desk, [dig, plant, rake]) = planned();
    let table = desk.out(&["board", "list"]);
    let rows = rows(&table);
    assert_eq!(rows[0], "ID CHANGED (UTC) STATUS PRIORITY ABOUT");
    for (row, id, end) in [
        (
            &rows[1],
            &dig,
            " failed 2 Dig \u{fffd}[2Ja hole (ada)".to_owned(),
        ),
        (
            &rows[2],
            &plant,
            format!(" blocked 0 Plant ← {dig} (failed)"),
        ),
        (&rows[3], &rake, " in progress 0 Rake (bob)".to_owned()),
    ] {
        assert!(
            row.starts_with(id.as_str()) && row.ends_with(&end),
            "{table}"
        );
    }
    let blocked = desk.see(&["board", "list", "--blocked", "--json"]).events();
    assert_eq!(
        (blocked.len(), &blocked[0]["blocked_by"][0]["status"]),
        (1, &"failed".into())
    );
    let failed = desk
        .see(&["board", "list", "--status", "failed", "--json"])
        .events();
    assert_eq!(
        (failed.len(), &failed[0]["result"]),
        (1, &"There is rock.".into())
    );
    assert_eq!(
        desk.see(&["board", "list", "--assignee", "bob", "--json"])
            .events()[0]["id"],
        rake.as_str()
    );
    assert_eq!(desk.out(&["board", "list", "--board", "other"]), "");
}

#[test]
fn board_list_tells_the_next_page_when_there_is_one() {
    let (desk, [_, plant, rake]) = planned();
    let first = desk.see(&["board", "list", "--limit", "2", "--json"]);
    assert_eq!((first.code, first.stdout.lines().count()), (Some(0), 2));
    assert_eq!(
        first.stderr,
        format!("more: adjutant board list --limit 2 --json --after {plant}\n")
    );
    let rest = desk.see(&["board", "list", "--limit", "2", "--json", "--after", &plant]);
    assert_eq!(
        (rest.events()[0]["id"].as_str(), rest.stderr.as_str()),
        (Some(rake.as_str()), "")
    );
}

#[test]
fn board_show_tells_everything_of_a_task() {
    let (desk, [dig, plant, _]) = planned();
    let text = desk.out(&["board", "show", &dig]);
    for part in [
        "Dig \u{fffd}[2Ja hole\n",
        "status        failed\n",
        "result        There is rock.\n",
        "\nA deep one.\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(text.contains("criterion     It is deep.\n"), "{text}");
    assert!(
        desk.out(&["board", "show", &plant])
            .contains(&format!("blocked by    {dig} (failed)\n"))
    );
    let json = desk.see(&["board", "show", &dig, "--json"]).events();
    assert_eq!(
        (&json[0]["created_by"], &json[0]["attempts"]),
        (&"lead".into(), &1.into())
    );
}

#[test]
fn board_retry_and_cancel_change_tasks_when_they_may_be() {
    let (desk, [dig, plant, rake]) = planned();
    desk.see(&["board", "retry", &dig])
        .check(0, &format!("retried {dig}\n"), "");
    let cancelled = format!("cancelled {dig}\ncancelled {rake}\n");
    desk.see(&["board", "cancel", &dig, &rake])
        .check(0, &cancelled, "");
    let json = desk.see(&["board", "retry", &rake, "--json"]).events();
    assert_eq!(
        (&json[0]["id"], &json[0]["status"]),
        (&rake.as_str().into(), &"pending".into())
    );
    let refused = format!(
        "error: task {plant} is pending and cannot be retried\n\
         hint: it can be claimed, released, reassigned, cancelled, edited, made to depend on others\n"
    );
    desk.see(&["board", "retry", &plant]).check(2, "", &refused);
}

#[test]
fn board_is_refused_when_it_or_the_task_cannot_be() {
    let (desk, _) = planned();
    let missing = "error: there is no task \"x\"\nhint: `adjutant board list` shows the ids\n";
    for command in ["show", "retry", "cancel"] {
        desk.see(&["board", command, "x"]).check(2, "", missing);
    }
    let lines = "error: a store of JSON lines keeps sessions and no board\n\
                 hint: --store or ADJUTANT_STORE names an SQLite file or a PostgreSQL database\n";
    let desk = Desk::new("store/");
    adjutant::llm::private::folder(Path::new(&desk.path("store"))).expect("it can be made");
    desk.see(&["board", "list"]).check(2, "", lines);
    assert_eq!(
        desk.see(&["board", "list", "--status", "blue"]).code,
        Some(2)
    );
}

#[test]
fn board_is_kept_on_a_server_when_the_store_names_one() {
    let Some(desk) = Desk::on_server("board_is_kept_on_a_server_when_the_store_names_one") else {
        return;
    };
    desk.see(&["board", "list"])
        .check(0, "", "there is no such task\n");
}
