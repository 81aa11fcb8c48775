//! What holds for every backend.

use std::{fs, os::unix::fs::PermissionsExt, sync::Arc};

use adjutant_runtime::{
    Backend, ErrorKind, Instance, Status, Workspace,
    backend::{InProcess, InProcessOptions},
    prompt::{MessagesRequest, PromptRequest},
};
use serde_json::json;
use uuid::Uuid;

use super::desk::{Manner, answering_when_open, both, clerk, created, in_process, marked, place, process, resolved};

/// What stands in `status.json`.
fn kept(workspace: &Workspace) -> Status {
    workspace.status().expect("it can be read").status
}

#[tokio::test]
async fn agent_lives_from_created_to_removed() {
    for (_folder, home, backend) in both() {
        let id = Uuid::new_v4();
        let agent = backend.create(id, clerk("clerk")).await.expect("it is created");
        assert_eq!((agent.id(), &*agent.name(), agent.status()), (id, "clerk", Status::Created));
        assert_eq!(kept(&agent.workspace()), Status::Created);
        agent.prepare().await.expect("it is made");
        assert_eq!((agent.status(), kept(&agent.workspace())), (Status::Stopped, Status::Stopped));
        agent.start().await.expect("it begins");
        assert_eq!((agent.status(), kept(&agent.workspace())), (Status::Ready, Status::Ready));
        let prompter = agent.prompter().await.expect("it can be asked");
        let reply = prompter.prompt(PromptRequest::new("Is it so?")).await.expect("it answers");
        assert_eq!(reply.text, "Yes.");
        let page = prompter.messages(MessagesRequest::default()).await.expect("there is a session");
        assert_eq!(
            page.messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(),
            ["Is it so?", "Yes."]
        );
        agent.watch().wait_for(|status| *status == Status::Ready).await.expect("it works no more");
        agent.stop().await.expect("it ends");
        assert_eq!((agent.status(), kept(&agent.workspace())), (Status::Stopped, Status::Stopped));
        assert_eq!(agent.prompter().await.err().map(|error| error.kind()), Some(ErrorKind::Conflict));
        agent.start().await.expect("it begins again");
        agent.remove().await.expect("it goes");
        assert_eq!(agent.status(), Status::Removed);
        assert!(!home.join(id.to_string()).exists());
        assert_eq!(marked(id), Vec::<u32>::new());
        agent.remove().await.expect("it is gone already");
        for error in [agent.start().await, agent.prepare().await, agent.run().await] {
            assert_eq!(error.expect_err("it is gone").kind(), ErrorKind::Conflict);
        }
        agent.stop().await.expect("there is nothing to do");
    }
}

#[tokio::test]
async fn watcher_sees_work_begin_and_end() {
    let (_folder, host, home) = place(&Manner { before: "", does: "serve_slowly" });
    let build = |_, workspace, _| async move { Ok(answering_when_open(&workspace)) };
    let here: Arc<dyn Backend> = Arc::new(InProcess::new(home.join("here"), InProcessOptions::new().build(build)));
    let there: Arc<dyn Backend> = Arc::new(process(&home.join("there"), &host));
    for backend in [here, there] {
        let agent = created(&*backend, "clerk").await;
        agent.start().await.expect("it begins");
        let prompter = agent.prompter().await.expect("it can be asked");
        let asked = tokio::spawn(async move { prompter.prompt(PromptRequest::new("Go.")).await });
        let mut watch = agent.watch();
        watch.wait_for(|status| *status == Status::Working).await.expect("it works");
        fs::write(agent.workspace().work().join("open"), "").expect("it can be written");
        watch.wait_for(|status| *status == Status::Ready).await.expect("it works no more");
        assert_eq!(asked.await.expect("it ends").expect("it answers").text, "Yes.");
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn agent_that_works_is_stopped() {
    let (_folder, host, home) = place(&Manner { before: "", does: "serve_slowly" });
    let build = |_, workspace, _| async move { Ok(answering_when_open(&workspace)) };
    let here: Arc<dyn Backend> = Arc::new(InProcess::new(home.join("here"), InProcessOptions::new().build(build)));
    let there: Arc<dyn Backend> = Arc::new(process(&home.join("there"), &host));
    for backend in [here, there] {
        let agent = created(&*backend, "clerk").await;
        agent.start().await.expect("it begins");
        let prompter = agent.prompter().await.expect("it can be asked");
        let asked = tokio::spawn(async move { prompter.prompt(PromptRequest::new("Go.")).await });
        agent.watch().wait_for(|status| *status == Status::Working).await.expect("it works");
        agent.stop().await.expect("it ends");
        assert_eq!(agent.status(), Status::Stopped);
        assert!(asked.await.expect("it ends").is_err(), "it was not answered");
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn run_ends_without_error_when_stopped_and_a_second_one_is_rejected() {
    for (_folder, _home, backend) in both() {
        let agent = created(&*backend, "clerk").await;
        let running = tokio::spawn({
            let agent = Arc::clone(&agent);
            async move { agent.run().await }
        });
        agent.watch().wait_for(Status::is_up).await.expect("it begins");
        let (second, third) = (agent.run().await, agent.start().await);
        for error in [second, third] {
            let error = error.expect_err("it runs");
            assert_eq!((error.kind(), error.message()), (ErrorKind::Conflict, "the agent clerk runs already"));
        }
        assert!(agent.status().is_up(), "the first one goes on");
        let (one, other) = tokio::join!(agent.stop(), agent.stop());
        one.and(other).expect("both see it end");
        running.await.expect("it ends").expect("it was asked to");
        assert_eq!(agent.status(), Status::Stopped);
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn prepare_is_done_once_when_many_ask() {
    for (_folder, _home, backend) in both() {
        let agent = created(&*backend, "clerk").await;
        let asked: Vec<_> = (0..16)
            .map(|_| {
                let agent = Arc::clone(&agent);
                tokio::spawn(async move { agent.prepare().await })
            })
            .collect();
        for asked in asked {
            asked.await.expect("it ends").expect("it is made");
        }
        let first = agent.workspace().prepared().expect("it can be read");
        agent.prepare().await.expect("it is made already");
        assert_eq!(agent.workspace().prepared().expect("it can be read"), first);
        assert_eq!(agent.status(), Status::Stopped);
    }
}

#[tokio::test]
async fn prepare_that_failed_is_tried_again() {
    for (folder, _home, backend) in both() {
        let (manifest, guide) = (folder.path().join("adjutant.yaml"), folder.path().join("guide.md"));
        fs::write(&manifest, "name: clerk").expect("it can be written");
        let agent = json!({"name": "clerk", "context": [guide]});
        let resolved = resolved(json!({"name": "clerk", "entry_agent": "clerk", "agents": [agent]}), &[&manifest]);
        let agent = backend.create(Uuid::new_v4(), resolved).await.expect("it is created");
        let error = agent.prepare().await.expect_err("the guide is missing");
        assert_eq!(error.kind(), ErrorKind::Pull, "{error}");
        let Status::Failed { reason, message } = agent.status() else { panic!("{}", agent.status()) };
        assert_eq!((reason.word(), message.contains("guide.md")), ("pull", true), "{message}");
        assert_eq!(agent.start().await.expect_err("it is missing still").kind(), ErrorKind::Pull);
        fs::write(&guide, "Be brief.").expect("it can be written");
        agent.start().await.expect("it is there now");
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn names_and_ids_are_unique_in_a_folder() {
    for (_folder, _home, backend) in both() {
        let first = created(&*backend, "clerk").await;
        let named = backend.create(Uuid::new_v4(), clerk("clerk")).await.err().expect("the name is taken");
        let text = format!("there is an agent called clerk already: {}", first.id());
        assert_eq!((named.kind(), named.message()), (ErrorKind::Exists, text.as_str()));
        let twin = backend.create(first.id(), clerk("other")).await.err().expect("the id is taken");
        assert_eq!(twin.kind(), ErrorKind::Exists);
        let made: Vec<_> = (0..8)
            .map(|_| {
                let backend = Arc::clone(&backend);
                tokio::spawn(async move { backend.create(Uuid::new_v4(), clerk("racer")).await.is_ok() })
            })
            .collect();
        let mut won = 0;
        for made in made {
            won += usize::from(made.await.expect("it ends"));
        }
        assert_eq!(won, 1);
        first.remove().await.expect("it goes");
        created(&*backend, "clerk").await;
    }
}

#[tokio::test]
async fn hostile_names_are_refused() {
    for (_folder, home, backend) in both() {
        for name in ["", "../up", "a/b", "a b", "name\n", "ä", &"x".repeat(65)] {
            let error = backend.create(Uuid::new_v4(), clerk(name)).await.err().expect("it is no name");
            assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}");
        }
        assert!(!home.exists(), "nothing was made");
    }
}

#[tokio::test]
async fn folder_of_an_agent_is_its_owners_alone() {
    let mode = |path: &std::path::Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    for (_folder, home, backend) in both() {
        let agent = created(&*backend, "clerk").await;
        agent.start().await.expect("it begins");
        let workspace = agent.workspace();
        for folder in [home.as_path(), workspace.root(), &workspace.work(), &workspace.state(), &workspace.logs()] {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
        for entry in fs::read_dir(workspace.root()).expect("it can be read").flatten() {
            if entry.path().is_file() {
                assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
            }
        }
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn backend_destroys_all_that_it_made() {
    for (_folder, home, backend) in both() {
        let (one, other) = (created(&*backend, "one").await, created(&*backend, "other").await);
        one.start().await.expect("it begins");
        other.prepare().await.expect("it is made");
        backend.destroy().await.expect("all goes");
        assert_eq!((one.status(), other.status()), (Status::Removed, Status::Removed));
        let left = fs::read_dir(&home).expect("it is there").flatten().map(|entry| entry.file_name());
        assert_eq!(left.filter(|name| name != ".gitignore").collect::<Vec<_>>(), ["names.lock"]);
        assert_eq!(marked(one.id()), Vec::<u32>::new());
    }
}

#[tokio::test]
async fn links_are_deleted_and_not_followed_when_an_agent_is_removed() {
    for (folder, _home, backend) in both() {
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).expect("it can be made");
        fs::write(outside.join("kept"), "dear").expect("it can be written");
        let agent = created(&*backend, "clerk").await;
        agent.prepare().await.expect("it is made");
        std::os::unix::fs::symlink(&outside, agent.workspace().work().join("link")).expect("it can be made");
        agent.remove().await.expect("it goes");
        assert_eq!(fs::read_to_string(outside.join("kept")).expect("it is there"), "dear");
    }
}

#[tokio::test]
async fn agent_in_this_process_ends_when_nobody_holds_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let backend = in_process(folder.path());
    let agent = created(&backend, "clerk").await;
    agent.start().await.expect("it begins");
    let workspace = agent.workspace();
    assert!(workspace.is_hosted().expect("it can be found out"));
    drop((agent, backend));
    super::desk::until("it lets go of its lock", || !workspace.is_hosted().expect("it can be found out")).await;
    let again = in_process(folder.path());
    let loaded = adjutant_runtime::Backend::load(&again).await.expect("it can be read");
    let [agent] = &loaded.instances[..] else { panic!("one agent") };
    assert_eq!(agent.status().to_string(), "failed (crashed): its process ended while nobody followed it");
    Instance::start(&**agent).await.expect("it begins again");
}

#[tokio::test]
async fn agent_goes_on_when_nobody_waits_for_its_run() {
    for (_folder, _home, backend) in both() {
        let agent = created(&*backend, "clerk").await;
        let running = tokio::spawn({
            let agent = Arc::clone(&agent);
            async move { agent.run().await }
        });
        agent.watch().wait_for(Status::is_up).await.expect("it begins");
        running.abort();
        assert!(running.await.expect_err("it was dropped").is_cancelled());
        let prompter = agent.prompter().await.expect("it can be asked");
        assert_eq!(prompter.prompt(PromptRequest::new("Is it so?")).await.expect("it answers").text, "Yes.");
        agent.stop().await.expect("it ends");
        assert_eq!(agent.status(), Status::Stopped);
    }
}

#[tokio::test]
async fn stopped_agents_are_found_again_as_they_were() {
    for (folder, home, backend) in both() {
        let agent = created(&*backend, "clerk").await;
        created(&*backend, "blank").await;
        agent.start().await.expect("it begins");
        agent.stop().await.expect("it ends");
        let (id, address, workspace) = (agent.id(), agent.address(), agent.workspace());
        let written = agent.logs().tail(1_000).expect("it can be read");
        let again: Arc<dyn Backend> = match folder.path().join("host") {
            host if host.exists() => Arc::new(process(&home, &host)),
            _ => Arc::new(in_process(&home)),
        };
        drop((agent, backend));
        let loaded = again.load().await.expect("they can be read");
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let [blank, agent] = &loaded.instances[..] else { panic!("two agents: {loaded:?}") };
        assert_eq!((&*blank.name(), blank.status()), ("blank", Status::Created));
        assert_eq!((agent.id(), &*agent.name(), agent.status()), (id, "clerk", Status::Stopped));
        assert_eq!((agent.address(), agent.workspace(), &*agent.resolved()), (address, workspace, &clerk("clerk")));
        assert_eq!(agent.logs().tail(1_000).expect("it can be read"), written);
        agent.start().await.expect("it begins again");
        assert_eq!(agent.address(), address, "it has its port again");
        again.destroy().await.expect("all goes");
    }
}

#[tokio::test]
async fn missing_key_is_a_failure_of_the_model_and_is_looked_up_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = Arc::new(std::sync::Mutex::new(None));
    let lookup = {
        let key = Arc::clone(&key);
        move |name: &str| (name == "ANTHROPIC_API_KEY").then(|| key.lock().expect("not poisoned").clone()).flatten()
    };
    let backend = InProcess::new(folder.path().join("home"), InProcessOptions::new().credentials(lookup));
    let agent = json!({"name": "clerk", "model": "anthropic/claude-sonnet-5"});
    let mut resolved = resolved(json!({"name": "clerk", "entry_agent": "clerk", "agents": [agent]}), &[]);
    resolved.needs = vec!["ANTHROPIC_API_KEY".to_owned()];
    let agent = backend.create(Uuid::new_v4(), resolved).await.expect("it is created");
    let error = agent.start().await.expect_err("there is no key");
    assert_eq!(error.kind(), ErrorKind::Model, "{error}");
    let Status::Failed { reason, message } = agent.status() else { panic!("{}", agent.status()) };
    assert_eq!((reason.word(), message.contains("ANTHROPIC_API_KEY")), ("model", true), "{message}");
    *key.lock().expect("not poisoned") = Some("a-key".to_owned());
    agent.start().await.expect("there is one now");
    agent.remove().await.expect("it goes");
}
