//! Agents that are carried elsewhere in the middle of something.

use std::sync::Arc;

use adjutant_agent::Outcome;
use adjutant_runtime::{
    Backend, Home, Instance, Resolved, Trust,
    backend::Process,
    bundle::{ExportOptions, ImportOptions, export, import},
    prompt::{PausesRequest, PromptRequest, ResumeRequest},
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::desk::{Manner, Place, place, process, resolved};

/// An agent that asks before each call, and has these fields besides.
fn clerk(fields: &Value) -> Resolved {
    let mut agent = json!({"name": "clerk", "model": "offline/planner", "toolboxes": ["files"]});
    agent["access"] = json!({"default": "ask"});
    agent
        .as_object_mut()
        .expect("a mapping")
        .extend(fields.as_object().expect("a mapping").clone());
    resolved(
        json!({"name": "clerk", "entry_agent": "clerk", "agents": [agent]}),
        &[],
    )
}

/// A folder of agents that are engines, each in a process.
fn agents(folder: &Place, name: &str) -> (Home, Process) {
    let root = folder.path().join(name);
    (Home::at(&root), process(&root, &folder.path().join("host")))
}

/// The agent, as it arrives in another folder.
async fn carried(folder: &Place, home: &Home) -> (Process, Arc<dyn Instance>) {
    let (entries, file) = (
        home.entries().expect("they are read").all,
        folder.path().join("bundle"),
    );
    export(&entries[0], &file, &ExportOptions::new()).expect("it is exported");
    let (there, backend) = agents(folder, "there");
    import(&there, &file, &ImportOptions::new(), &Trust::All).expect("it is imported");
    let agent = Arc::clone(&backend.load().await.expect("it is found").instances[0]);
    (backend, agent)
}

#[tokio::test]
async fn run_that_waits_is_listed_and_answered_where_its_agent_was_carried() {
    let (folder, _, _) = place(&Manner {
        before: "",
        does: "engine",
    });
    let (home, backend) = agents(&folder, "here");
    let agent = backend
        .create(Uuid::new_v4(), clerk(&json!({})))
        .await
        .expect("it is created");
    agent.start().await.expect("it begins");
    let prompter = agent.prompter().await.expect("it can be asked");
    let reply = prompter
        .prompt(PromptRequest::new("What is in this folder?"))
        .await
        .expect("it waits");
    assert!(
        matches!(reply.result.outcome, Outcome::Paused { .. }),
        "{reply:?}"
    );
    agent.stop().await.expect("it ends");
    let (_backend, agent) = carried(&folder, &home).await;
    agent.start().await.expect("it begins");
    let prompter = agent.prompter().await.expect("it can be asked");
    let waiting = prompter
        .pauses(PausesRequest::new())
        .await
        .expect("they are listed")
        .pauses;
    let [waits] = &waiting[..] else {
        panic!("one thing waits: {waiting:?}")
    };
    let answer = ResumeRequest::new(vec![waits.pause.deny("no")]);
    let events: Vec<_> = prompter
        .resume(answer)
        .await
        .expect("it is answered")
        .collect()
        .await;
    assert!(events.iter().all(Result::is_ok), "{events:?}");
    agent.remove().await.expect("it goes");
}

#[tokio::test]
async fn update_that_no_start_has_seen_goes_along_when_an_agent_is_carried() {
    let (folder, host, _) = place(&Manner {
        before: "",
        does: "engine",
    });
    let (home, backend) = agents(&folder, "here");
    let agent = backend
        .create(Uuid::new_v4(), clerk(&json!({})))
        .await
        .expect("it is created");
    agent.prepare().await.expect("it is made");
    let new = clerk(&json!({"max_turns": 7}));
    agent
        .workspace()
        .make_update(&new, &host, 1)
        .and_then(|it| it.keep())
        .expect("it is made beside");
    let (_backend, carried) = carried(&folder, &home).await;
    assert_eq!(carried.resolved().manifest, new.manifest);
    // Here, it is in its place too.
    agent.start().await.expect("it begins");
    assert_eq!(agent.resolved().manifest, new.manifest);
    let told = agent
        .workspace()
        .last_update()
        .expect("it can be read")
        .expect("it has ended");
    assert_eq!(told.failed, None);
    agent.remove().await.expect("it goes");
}
