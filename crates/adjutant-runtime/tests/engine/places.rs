//! What lasts: sessions, memory, board, notes, reflections.

use adjutant_agent::{EventKind, Outcome};
use adjutant_llm::Script;
use adjutant_runtime::{Credentials, Engine, ErrorKind, Lead};
use adjutant_store::{JsonlJournal, Sqlite};
use serde_json::{Value, json};

use crate::stage::{
    MODEL, OTHER, Stage, agents, calls, lead, one, preview, resolved, result, run, seen, tools,
    with,
};

fn sessions(spec: Value) -> Value {
    with(one(json!({})), json!({ "sessions": spec }))
}

fn answer() -> Script {
    Script::new().text("Good morning.")
}

#[tokio::test]
async fn sessions_are_kept_in_a_database_of_the_workspace() {
    for (store, file) in [
        (json!({}), "agent.db"),
        (json!({ "kind": "sqlite", "path": "deep.db" }), "deep.db"),
    ] {
        let stage = Stage::new([answer()]);
        run(&stage.engine(sessions(json!({ "store": store }))).await).await;
        let kept = Sqlite::open(stage.workspace().state().join(file)).expect("it is there");
        let log = adjutant_agent::Journal::info(&kept.journal(), &"main".into()).await;
        assert_eq!(&*log.expect("it is kept").log.0, "main");
    }
}

#[tokio::test]
async fn sessions_are_kept_as_lines_when_the_manifest_says_so() {
    for (path, folder) in [(json!(null), "sessions"), (json!("talks"), "talks")] {
        let stage = Stage::new([answer()]);
        run(&stage
            .engine(sessions(
                json!({ "store": { "kind": "jsonl", "path": path } }),
            ))
            .await)
        .await;
        let kept = JsonlJournal::open(stage.workspace().state().join(folder)).expect("it is there");
        assert!(
            adjutant_agent::Journal::info(&kept, &"main".into())
                .await
                .is_ok()
        );
    }
    let stage = Stage::new([]);
    let store =
        json!({ "sessions": { "store": { "kind": "jsonl" } }, "board": { "name": "work" } });
    assert_eq!(
        stage.wrong(with(one(json!({})), store)).await.kind(),
        ErrorKind::Config
    );
}

#[tokio::test]
async fn nothing_lasts_in_memory() {
    let stage = Stage::new([answer(), answer()]);
    let engine = stage
        .engine(sessions(json!({ "store": { "kind": "memory" } })))
        .await;
    run(&engine).await;
    assert_eq!(run(&engine).await.text(), "Good morning.");
    assert_eq!(lead(&engine).log().transcript().len(), 4);
    assert_eq!(
        std::fs::read_dir(stage.workspace().state())
            .expect("it is there")
            .count(),
        0
    );
}

#[tokio::test]
async fn address_of_a_server_comes_from_its_variable() {
    let store = json!({ "kind": "postgres", "url_variable": "STORE_URL" });
    let wrong = Stage::new([])
        .wrong(sessions(json!({ "store": store })))
        .await;
    match cfg!(feature = "postgres") {
        true => assert!(
            wrong.message().contains("STORE_URL") && wrong.kind() == ErrorKind::Storage,
            "{wrong}"
        ),
        false => assert_eq!(wrong.kind(), ErrorKind::Config),
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn address_of_a_server_is_never_told() {
    let store = json!({ "kind": "postgres", "url_variable": "STORE_URL" });
    let url = "postgresql://ada:MARKED-PASSWORD@127.0.0.1:9/agents";
    let builder = Stage::new([]).builder(sessions(json!({ "store": store })));
    let wrong = builder
        .credentials(Credentials::none().with("STORE_URL", url))
        .build()
        .await
        .expect_err("nobody is there");
    assert_eq!(wrong.kind(), ErrorKind::Storage);
    assert!(
        !format!("{wrong} {wrong:?}").contains("MARKED"),
        "{wrong:?}"
    );
}

#[tokio::test]
async fn store_outside_the_workspace_is_refused() {
    for path in ["/tmp/x.db", "../x.db", "a/../../x.db", ""] {
        let wrong = Stage::new([])
            .wrong(sessions(json!({ "store": { "path": path } })))
            .await;
        assert_eq!(wrong.kind(), ErrorKind::Config, "{path}");
    }
}

#[tokio::test]
async fn store_that_is_no_database_is_an_error_of_storage() {
    let stage = Stage::new([]);
    stage.file(
        "agent/state/agent.db",
        "this is not a database, and much longer than a header of one would be at all ......",
    );
    assert_eq!(stage.wrong(one(json!({}))).await.kind(), ErrorKind::Storage);
}

#[tokio::test]
async fn records_survive_what_the_manifest_says() {
    for durability in ["sync", "async", "on_exit"] {
        let gate = adjutant_llm::Gate::default();
        let stage = Stage::new([Script::new().text("Good morning.").wait_at(0, &gate)]);
        let engine = stage
            .engine(sessions(json!({ "durability": durability })))
            .await;
        let lead = lead(&engine);
        let mut running = lead.run("Hello.").stream().expect("it begins");
        while !matches!(
            running.next().await.expect("it goes on").kind,
            EventKind::ReplyStarted { .. }
        ) {}
        let other = Sqlite::open(stage.workspace().state().join("agent.db")).expect("it is there");
        let kept = adjutant_agent::Journal::info(&other.journal(), &"main".into())
            .await
            .is_ok_and(|log| log.head.0 > 0);
        assert_eq!(kept, durability != "on_exit", "{durability}");
    }
}

#[tokio::test]
async fn prompt_that_names_no_session_has_the_default_one() {
    let stage = Stage::new([]);
    assert_eq!(stage.engine(one(json!({}))).await.default_session(), "main");
    let engine = stage
        .engine(sessions(json!({ "default_session": "desk" })))
        .await;
    assert_eq!(engine.default_session(), "desk");
}

#[tokio::test]
async fn session_has_one_handle_and_its_own_conversation() {
    let stage = Stage::new([answer(), answer(), answer()]);
    let engine = stage.engine(one(json!({}))).await;
    let of = |name: &str| match engine.lead(name).expect("a name") {
        Lead::Agent(agent) => agent,
        Lead::HandoffChain(_) => panic!("it hands nothing over"),
    };
    of("a").run("Hello.").await.expect("it finishes");
    of("b").run("Hello.").await.expect("it finishes");
    of("a").run("Hello.").await.expect("it finishes");
    assert_eq!(
        (
            of("a").log().transcript().len(),
            of("b").log().transcript().len()
        ),
        (4, 2)
    );
    let busy = of("a");
    let _running = busy.run("Hello.").stream().expect("it begins");
    assert!(of("a").is_running() && !of("b").is_running());
    for wrong in ["", "a\nb", &"x".repeat(4_000)] {
        assert_eq!(
            engine.lead(wrong).expect_err("no name").kind(),
            ErrorKind::Invalid
        );
    }
}

#[tokio::test]
async fn many_sessions_that_rest_are_read_again() {
    let stage = Stage::new((0..101).map(|_| answer()));
    let engine = stage.engine(one(json!({}))).await;
    for at in 0..100 {
        let Lead::Agent(agent) = engine.lead(&format!("s{at}")).expect("a name") else {
            panic!("one agent")
        };
        agent.run("Hello.").await.expect("it finishes");
    }
    let Lead::Agent(first) = engine.lead("s0").expect("a name") else {
        panic!("one agent")
    };
    assert_eq!(first.log().transcript().len(), 0, "it was let go of");
    first.run("Hello.").await.expect("it finishes");
    assert_eq!(first.log().transcript().len(), 4);
}

#[tokio::test]
async fn conversation_goes_on_in_another_engine() {
    let stage = Stage::new([answer(), answer()]);
    run(&stage.engine(one(json!({}))).await).await;
    let engine = stage.engine(one(json!({}))).await;
    run(&engine).await;
    assert_eq!(lead(&engine).log().transcript().len(), 4);
}

fn memory(spec: Value) -> Value {
    with(
        one(json!({ "toolboxes": ["memory"] })),
        json!({ "memory": spec }),
    )
}

fn store(fact: &str) -> [Script; 2] {
    calls("store_memory", json!({ "fact": fact }))
}

#[tokio::test]
async fn facts_of_an_owner_are_recalled_for_that_owner_alone() {
    for (owner, knows) in [("ada", true), ("bob", false)] {
        let stage = Stage::new(store("The parser is written in Rust."));
        run(&stage.engine(memory(json!({ "owner": "ada" }))).await).await;
        stage.model.push(Script::new().text("In Rust."));
        let engine = stage.engine(memory(json!({ "owner": owner }))).await;
        let Lead::Agent(agent) = engine.lead("later").expect("a name") else {
            panic!("one agent")
        };
        agent
            .run("What is the parser written in?")
            .await
            .expect("it finishes");
        let seen = seen(&stage.model);
        assert_eq!(seen.contains("written in Rust"), knows, "{seen}");
    }
}

#[tokio::test]
async fn so_many_facts_are_recalled_as_the_manifest_says() {
    for (limit, most) in [(json!(1), 1), (json!(null), 3)] {
        let facts = [
            "The parser is fast.",
            "The parser is old.",
            "The parser is green.",
        ];
        let stage = Stage::new(facts.iter().flat_map(|fact| store(fact)));
        let engine = stage
            .engine(memory(json!({ "owner": "ada", "limit": limit })))
            .await;
        for _ in 0..3 {
            run(&engine).await;
        }
        stage.model.push(answer());
        let Lead::Agent(agent) = engine.lead("later").expect("a name") else {
            panic!("one agent")
        };
        agent.run("How is the parser?").await.expect("it finishes");
        let seen = seen(&stage.model);
        assert_eq!(seen.matches("The parser is ").count(), most, "{seen}");
    }
}

#[tokio::test]
async fn facts_are_drawn_from_runs_when_the_manifest_says_so() {
    for extract in [true, false] {
        let stage = Stage::new([answer(), Script::new().text("[]"), Script::new().text("[]")]);
        run(&stage
            .engine(memory(json!({ "owner": "ada", "extract": extract })))
            .await)
        .await;
        assert_eq!(stage.model.requests().len() > 1, extract);
    }
}

#[tokio::test]
async fn board_of_the_manifest_is_shared_by_its_agents() {
    let manifest = with(
        one(json!({ "toolboxes": ["board"] })),
        json!({ "board": { "name": "work" } }),
    );
    let stage = Stage::new(calls("create_task", json!({ "title": "Sweep the floor" })));
    let ran = run(&stage.engine(manifest).await).await;
    assert!(
        result(&ran, 0).contains("Sweep") || result(&ran, 0).contains("id"),
        "{}",
        result(&ran, 0)
    );
    let kv = Sqlite::open(stage.workspace().state().join("agent.db"))
        .expect("it is there")
        .kv("work");
    assert!(
        adjutant_agent::KvStore::newest(&kv)
            .await
            .expect("it can be read")
            .0
            > 0
    );
}

#[tokio::test]
async fn workers_of_two_sessions_have_two_names_on_a_board() {
    let manifest = with(
        one(json!({ "toolboxes": ["board"] })),
        json!({ "board": { "name": "work" } }),
    );
    let stage = Stage::new([]);
    let engine = stage.engine(manifest).await;
    let name = |session: &str| match engine.lead(session).expect("a name") {
        Lead::Agent(agent) => agent.identity().name.to_string(),
        Lead::HandoffChain(_) => panic!("one agent"),
    };
    assert_eq!(
        (name("main"), name("desk 2")),
        ("solo".to_owned(), "solo-desk2".to_owned())
    );
}

#[tokio::test]
async fn notes_of_the_manifest_are_shared_by_its_agents() {
    let manifest = with(
        one(json!({ "toolboxes": ["notes"] })),
        json!({ "notes": { "name": "wall" } }),
    );
    let stage = Stage::new(calls(
        "write_note",
        json!({ "name": "plan", "content": "First the roof." }),
    ));
    let engine = stage.engine(manifest).await;
    assert!(preview(&engine).await.system.contains("<notes_protocol>"));
    run(&engine).await;
    let kv = Sqlite::open(stage.workspace().state().join("agent.db"))
        .expect("it is there")
        .kv("wall");
    assert!(
        adjutant_agent::KvStore::newest(&kv)
            .await
            .expect("it can be read")
            .0
            > 0
    );
}

/// A task that fails, and what is kept of it.
async fn failing(reflections: Value) -> Stage {
    let task = json!({ "tasks": [{ "agent": "helper", "task": "Paint the fence green.", "context": "Soon." }] });
    let failed = json!({ "status": "failed", "summary": "There is no green paint; the key is MARKED-KEY-123." });
    let stage = Stage::with(
        calls("delegate", task),
        [Script::new().call("task_complete", failed)],
    );
    let manifest = agents([
        json!({ "name": "chief", "model": MODEL, "delegation": { "depth": 1 }, "reflections": reflections, "toolboxes": ["reflections"] }),
        json!({ "name": "helper", "description": "Helps.", "model": OTHER }),
    ]);
    let credentials = Credentials::none().with("SOME_KEY", "MARKED-KEY-123");
    let engine = stage
        .builder(manifest)
        .credentials(credentials)
        .build()
        .await
        .expect("it is right");
    run(&engine).await;
    stage.model.push(Script::new().call(
        "recall_reflections",
        json!({ "task": "Paint the fence green." }),
    ));
    stage.model.push(answer());
    let ran = run(&engine).await;
    assert!(
        result(&ran, 0).contains("no green paint"),
        "{}",
        result(&ran, 0)
    );
    assert!(!result(&ran, 0).contains("MARKED"), "{}", result(&ran, 0));
    stage
}

#[tokio::test]
async fn reflections_are_kept_in_their_folder() {
    let stage = failing(json!({ "folder": "learned" })).await;
    let folder = stage.workspace().root().join("learned");
    let notes = std::fs::read_dir(folder).expect("it was made").flatten();
    assert_eq!(
        notes
            .filter(|note| note.path().extension().is_some_and(|it| it == "md"))
            .count(),
        1
    );
}

#[cfg(unix)]
#[tokio::test]
async fn reflections_are_not_kept_behind_a_link() {
    let stage = Stage::new([]);
    std::fs::create_dir_all(stage.workspace().work()).expect("it is made");
    std::os::unix::fs::symlink("/", stage.workspace().work().join("x")).expect("it is linked");
    let wrong = stage
        .wrong(one(json!({ "reflections": { "folder": "work/x/tmp" } })))
        .await;
    assert_eq!(wrong.kind(), ErrorKind::Config, "{wrong}");
}

#[tokio::test]
async fn reflections_are_kept_in_the_store_without_a_folder() {
    let stage = failing(json!({})).await;
    let kv = Sqlite::open(stage.workspace().state().join("agent.db"))
        .expect("it is there")
        .kv("reflections");
    assert!(
        adjutant_agent::KvStore::newest(&kv)
            .await
            .expect("it can be read")
            .0
            > 0
    );
}

#[tokio::test]
async fn engine_without_a_workspace_removes_what_it_made() {
    let stage = Stage::new([answer()]);
    let builder =
        Engine::builder(resolved(one(json!({})))).model(MODEL, std::sync::Arc::clone(&stage.model));
    let engine = builder.build().await.expect("it is right");
    assert!(matches!(
        run(&engine).await.outcome,
        Outcome::Finished { .. }
    ));
    assert!(tools(&preview(&engine).await).is_empty());
    let root = engine.workspace().root().to_owned();
    assert!(root.is_dir());
    drop(engine);
    assert!(!root.exists());
}
