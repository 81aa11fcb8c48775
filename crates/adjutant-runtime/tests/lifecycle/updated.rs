//! Agents that are made anew of another manifest, and keep what they have.

use std::{fs, path::Path, sync::Arc};

use adjutant_runtime::{
    Backend, ErrorKind, Instance, Resolved, Status,
    backend::{InProcess, InProcessOptions},
    prompt::{MessagesRequest, PromptRequest},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::desk::{LONG, Manner, Place, place, process, resolved};

/// A backend of each kind whose agents are engines.
pub(super) fn engines() -> Vec<(Place, Arc<dyn Backend>)> {
    let (folder, host, home) = place(&Manner {
        before: "",
        does: "engine",
    });
    let own = Place::new();
    let here: Arc<dyn Backend> = Arc::new(InProcess::new(
        own.path().join("home"),
        InProcessOptions::new(),
    ));
    vec![(own, here), (folder, Arc::new(process(&home, &host)))]
}

/// An agent with a guide and a table, and these fields besides.
fn clerk(folder: &Path, fields: Value) -> Resolved {
    let manifest = folder.join("adjutant.yaml");
    fs::write(&manifest, "name: clerk").expect("it can be written");
    let mut agent =
        json!({"name": "clerk", "model": "offline/planner", "context": [folder.join("guide.md")]});
    agent
        .as_object_mut()
        .expect("a mapping")
        .extend(fields.as_object().expect("a mapping").clone());
    let data = json!([{"file": folder.join("table.csv")}]);
    resolved(
        json!({"name": "clerk", "entry_agent": "clerk", "agents": [agent], "data": data}),
        &[&manifest],
    )
}

fn write(folder: &Path, guide: &str, table: &str) {
    fs::write(folder.join("guide.md"), guide).expect("it can be written");
    fs::write(folder.join("table.csv"), table).expect("it can be written");
}

async fn prompt(agent: &dyn Instance, text: &str) {
    agent
        .prompter()
        .await
        .expect("it can be asked")
        .prompt(PromptRequest::new(text))
        .await
        .expect("it answers");
}

/// What the user has said in the session.
async fn said(agent: &dyn Instance) -> Vec<String> {
    let prompter = agent.prompter().await.expect("it can be asked");
    let page = prompter
        .messages(MessagesRequest::new())
        .await
        .expect("there is a session");
    page.messages
        .into_iter()
        .filter(|it| &*it.role == "user")
        .map(|it| it.text)
        .collect()
}

fn read(agent: &dyn Instance, path: &str) -> String {
    fs::read_to_string(agent.workspace().root().join(path)).expect("it is there")
}

#[tokio::test]
async fn update_changes_what_runs_and_keeps_what_the_agent_has() {
    for (folder, backend) in engines() {
        let files = folder.path();
        write(files, "Be brief.", "a,b\n");
        let agent = backend
            .create(Uuid::new_v4(), clerk(files, json!({})))
            .await
            .expect("it is created");
        agent.start().await.expect("it begins");
        prompt(&*agent, "Who are you?").await;
        fs::write(agent.workspace().work().join("table.csv"), "of the agent").expect("its own");
        fs::write(agent.workspace().work().join("notes"), "of the agent").expect("its own");
        write(files, "Be very brief.", "a,b\n");
        let new = clerk(files, json!({"max_turns": 7, "toolboxes": ["files"]}));
        let changes = agent.update(new.clone()).await.expect("it is updated");
        let told = changes.to_string();
        assert_eq!(
            told.lines()
                .filter(|it| !it.contains("host file"))
                .collect::<Vec<_>>(),
            [
                "field agents.clerk.max_turns: 7 is new",
                r#"field agents.clerk.toolboxes: ["files"] is new"#,
                "context file context/0/guide.md: other bytes, 9 -> 14",
                "tool files of clerk: is new",
            ],
        );
        assert_eq!((agent.status(), &*agent.resolved()), (Status::Ready, &new));
        assert_eq!(read(&*agent, "context/0/guide.md"), "Be very brief.");
        assert_eq!(
            [read(&*agent, "work/table.csv"), read(&*agent, "work/notes")],
            ["of the agent"; 2]
        );
        prompt(&*agent, "And now?").await;
        assert_eq!(said(&*agent).await, ["Who are you?", "And now?"]);
        assert!(!agent.workspace().root().join(".former").exists());
        // Nothing changes: nothing is told.
        assert!(agent.update(new).await.expect("it is updated").is_empty());
        // A table that has changed is laid anew.
        write(files, "Be very brief.", "a,b,c\n");
        agent.stop().await.expect("it ends");
        let newer = clerk(files, json!({}));
        agent
            .update(newer.clone())
            .await
            .expect("it is updated where it stands");
        assert_eq!(
            (agent.status(), &*agent.resolved()),
            (Status::Stopped, &newer)
        );
        assert_eq!(read(&*agent, "work/table.csv"), "a,b,c\n");
        agent.start().await.expect("it begins");
        assert_eq!(said(&*agent).await.len(), 2);
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn update_that_fails_leaves_the_old_one_running() {
    for (folder, backend) in engines() {
        let files = folder.path();
        write(files, "Be brief.", "a,b\n");
        let old = clerk(files, json!({}));
        let agent = backend
            .create(Uuid::new_v4(), old.clone())
            .await
            .expect("it is created");
        agent.start().await.expect("it begins");
        prompt(&*agent, "Who are you?").await;
        let other_name = {
            let mut value = serde_json::to_value(&old).expect("it is written");
            value["manifest"]["name"] = "scribe".into();
            serde_json::from_value(value).expect("it is a manifest")
        };
        let refused = agent
            .update(other_name)
            .await
            .expect_err("it is another one");
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        // What cannot be made touches nothing.
        let missing = agent
            .update(clerk(files, json!({"context": [files.join("none.md")]})))
            .await;
        assert_eq!(missing.expect_err("there is none").kind(), ErrorKind::Pull);
        assert_eq!((agent.status(), &*agent.resolved()), (Status::Ready, &old));
        // What is made and does not begin is taken back.
        write(files, "Be rude.", "x\n");
        let broken = agent
            .update(clerk(files, json!({"model": "anthropic/claude-sonnet-5"})))
            .await;
        let error = broken.expect_err("there is no key").to_string();
        assert!(
            error.starts_with("the update failed, and was taken back: "),
            "{error}"
        );
        assert_eq!((agent.status(), &*agent.resolved()), (Status::Ready, &old));
        assert_eq!(
            [
                read(&*agent, "context/0/guide.md"),
                read(&*agent, "work/table.csv")
            ],
            ["Be brief.", "a,b\n"]
        );
        prompt(&*agent, "Still there?").await;
        assert_eq!(said(&*agent).await, ["Who are you?", "Still there?"]);
        let left = [".update", ".former", ".preparing"]
            .map(|name| agent.workspace().root().join(name).exists());
        assert_eq!(left, [false; 3]);
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn update_that_a_crash_interrupts_is_finished_or_proven_by_the_next_start() {
    for (folder, backend) in engines() {
        let files = folder.path();
        write(files, "Be brief.", "a\n");
        let agent = backend
            .create(Uuid::new_v4(), clerk(files, json!({})))
            .await
            .expect("it is created");
        agent.prepare().await.expect("it is made");
        let root = agent.workspace().root().to_owned();
        let host = Some(files.join("host")).filter(|host| host.exists());
        let host = host.unwrap_or_else(|| std::env::current_exe().expect("this program"));
        write(files, "Be very brief.", "b\n");
        let new = clerk(files, json!({"max_turns": 7}));
        agent
            .workspace()
            .make_update(&new, &host, 1)
            .and_then(|it| it.keep())
            .expect("it is made beside");
        assert_eq!(read(&*agent, "context/0/guide.md"), "Be brief.");
        // As it is in the middle: the old context is kept, the new one is not there yet.
        fs::create_dir_all(root.join(".former")).expect("a folder");
        fs::rename(root.join("context"), root.join(".former/context")).expect("it is moved");
        agent.start().await.expect("it begins");
        let told = agent
            .workspace()
            .last_update()
            .expect("it can be read")
            .expect("it has ended");
        assert_eq!(
            (told.failed, read(&*agent, "context/0/guide.md")),
            (None, "Be very brief.".to_owned())
        );
        assert_eq!(
            (&*agent.resolved(), read(&*agent, "work/table.csv")),
            (&new, "b\n".to_owned())
        );
        assert!(!root.join(".former").exists() && !root.join(".update").exists());
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn update_that_was_kept_runs_in_the_end_whatever_was_in_the_way_of_its_start() {
    let is_killed = "if rm \"$2/kill\"; then kill -9 $$; fi";
    let (folder, host, home) = place(&Manner {
        before: is_killed,
        does: "engine",
    });
    write(folder.path(), "Be brief.", "a\n");
    let backend = process(&home, &host);
    let agent = backend
        .create(Uuid::new_v4(), clerk(folder.path(), json!({})))
        .await
        .expect("it is created");
    agent.prepare().await.expect("it is made");
    let workspace = agent.workspace();
    let new = clerk(folder.path(), json!({"max_turns": 7}));
    let make = |new: &Resolved| {
        workspace
            .make_update(new, &host, 1)
            .expect("it is made beside")
    };
    make(&new).keep().expect("it is kept");
    // One that is made and not kept leaves it alone.
    drop(make(&clerk(folder.path(), json!({"max_turns": 8}))));
    let kept = || {
        workspace
            .update()
            .map(|it| it.agent().expect("it can be read").resolved)
    };
    assert_eq!(kept().as_deref(), Some(&new));
    let newer = clerk(folder.path(), json!({"max_turns": 9}));
    make(&newer).keep().expect("it takes the other one's place");
    assert_eq!(kept().as_deref(), Some(&newer));
    let start = async || agent.start().await.map_err(|error| error.kind());
    fs::write(workspace.file("kill"), "").expect("it is written");
    assert_eq!((start().await, kept()), (Err(ErrorKind::Killed), None));
    let other = workspace.lock_host().expect("nobody runs it");
    assert_eq!(start().await, Err(ErrorKind::Busy));
    drop(other);
    assert_eq!((start().await, &*agent.resolved()), (Ok(()), &newer));
    let told = workspace
        .last_update()
        .expect("it can be read")
        .expect("it has ended");
    assert_eq!(told.failed, None);
    let left = [".update", ".former", ".preparing", ".dropped"]
        .map(|name| workspace.root().join(name).exists());
    assert_eq!(left, [false; 4]);
    agent.remove().await.expect("it goes");
}

#[tokio::test]
async fn update_is_proven_when_the_next_operator_finds_it_running() {
    let (folder, host, home) = place(&Manner {
        before: "",
        does: "engine",
    });
    write(folder.path(), "Be brief.", "a\n");
    let first = process(&home, &host);
    let agent = first
        .create(Uuid::new_v4(), clerk(folder.path(), json!({})))
        .await
        .expect("it is created");
    agent.start().await.expect("it begins");
    // As an operator leaves it that was killed before it had noted that the update has begun well.
    let former = agent.workspace().root().join(".former");
    fs::create_dir_all(&former).expect("a folder");
    drop((agent, first));
    let next = process(&home, &host);
    let agent = Arc::clone(&next.load().await.expect("they are found").instances[0]);
    agent
        .watch()
        .wait_for_within(LONG, |status| *status == Status::Ready)
        .await
        .expect("it runs");
    assert!(
        !former.exists(),
        "the next crash would take the update back"
    );
    agent.remove().await.expect("it goes");
}
