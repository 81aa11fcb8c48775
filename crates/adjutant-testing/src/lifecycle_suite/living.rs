//! The contract of every backend.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::Arc,
};

use adjutant_runtime::{
    ErrorKind, Reason, Status,
    prompt::{MessagesRequest, PromptRequest},
};
use serde_json::json;
use uuid::Uuid;

use super::{
    host::{ANSWERS, OPEN},
    stage::{LifeStage, becomes, clerk, create, is_gone, parse_resolved, stands, start},
};
use crate::suite::{Verdict, equal, fails, holds, ok};

pub(super) async fn lives_from_created_to_removed(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("serve").await?;
    let id = agent.id();
    stands(&*agent, &Status::Created)?;
    ok("preparing", agent.prepare().await)?;
    stands(&*agent, &Status::Stopped)?;
    start(&*agent).await?;
    stands(&*agent, &Status::Ready)?;
    let prompter = ok("the prompter", agent.prompter().await)?;
    let reply = ok(
        "asking",
        prompter.prompt(PromptRequest::new("Is it so?")).await,
    )?;
    equal("the answer", &reply.text.as_str(), &ANSWERS[0])?;
    let page = ok(
        "reading the session",
        prompter.messages(MessagesRequest::default()).await,
    )?;
    let texts: Vec<&str> = page
        .messages
        .iter()
        .map(|message| message.text.as_str())
        .collect();
    equal("the session", &texts, &vec!["Is it so?", ANSWERS[0]])?;
    becomes(&*agent, "ready", |status| *status == Status::Ready).await?;
    ok("stopping", agent.stop().await)?;
    stands(&*agent, &Status::Stopped)?;
    equal(
        "asking one that is stopped",
        &agent.prompter().await.err().map(|it| it.kind()),
        &Some(ErrorKind::Conflict),
    )?;
    start(&*agent).await?;
    ok("removing", agent.remove().await)?;
    equal("the status", &agent.status(), &Status::Removed)?;
    holds(
        "the folder is gone",
        !stage.home.join(id.to_string()).exists(),
    )?;
    is_gone(id)?;
    ok("removing again", agent.remove().await)?;
    for result in [
        agent.start().await,
        agent.prepare().await,
        agent.run().await,
    ] {
        equal(
            "the kind",
            &fails("using one that is gone", result)?.kind(),
            &ErrorKind::Conflict,
        )?;
    }
    ok("stopping one that is gone", agent.stop().await)
}

pub(super) async fn work_is_told(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("wait").await?;
    start(&*agent).await?;
    let prompter = ok("the prompter", agent.prompter().await)?;
    let asked = tokio::spawn(async move { prompter.prompt(PromptRequest::new("Go.")).await });
    becomes(&*agent, "working", |status| *status == Status::Working).await?;
    ok(
        "opening the gate",
        fs::write(agent.workspace().work().join(OPEN), ""),
    )?;
    becomes(&*agent, "ready", |status| *status == Status::Ready).await?;
    let reply = ok("asking", ok("the task", asked.await)?)?;
    equal("the answer", &reply.text.as_str(), &ANSWERS[0])?;
    ok("removing", agent.remove().await)
}

pub(super) async fn work_is_stopped(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("wait").await?;
    start(&*agent).await?;
    let prompter = ok("the prompter", agent.prompter().await)?;
    let asked = tokio::spawn(async move { prompter.prompt(PromptRequest::new("Go.")).await });
    becomes(&*agent, "working", |status| *status == Status::Working).await?;
    ok("stopping", agent.stop().await)?;
    stands(&*agent, &Status::Stopped)?;
    fails("the prompt", ok("the task", asked.await)?)?;
    is_gone(agent.id())
}

pub(super) async fn second_run_refused(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("serve").await?;
    let running = tokio::spawn({
        let agent = Arc::clone(&agent);
        async move { agent.run().await }
    });
    becomes(&*agent, "ready", Status::is_up).await?;
    for result in [agent.run().await, agent.start().await] {
        equal(
            "the kind",
            &fails("a second run", result)?.kind(),
            &ErrorKind::Conflict,
        )?;
    }
    holds("the first one goes on", agent.status().is_up())?;
    let (one, other) = tokio::join!(agent.stop(), agent.stop());
    ok("stopping twice", one.and(other))?;
    ok("the run", ok("the task", running.await)?)?;
    stands(&*agent, &Status::Stopped)
}

pub(super) async fn prepared_once(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("serve").await?;
    let asked: Vec<_> = (0..16)
        .map(|_| {
            let agent = Arc::clone(&agent);
            tokio::spawn(async move { agent.prepare().await })
        })
        .collect();
    for asked in asked {
        ok("preparing", ok("the task", asked.await)?)?;
    }
    let first = ok("reading", agent.workspace().prepared())?;
    ok("preparing again", agent.prepare().await)?;
    equal(
        "what was prepared",
        &ok("reading", agent.workspace().prepared())?,
        &first,
    )
}

pub(super) async fn preparing_again(stage: &LifeStage<'_>) -> Verdict {
    let backend = stage.open().await?;
    let (manifest, guide) = (
        stage.folder.join("adjutant.yaml"),
        stage.folder.join("guide.md"),
    );
    ok("writing", fs::write(&manifest, "name: clerk"))?;
    let agents = [json!({"name": "clerk", "context": [guide]})];
    let resolved = parse_resolved(
        json!({"name": "clerk", "entry_agent": "clerk", "agents": agents}),
        &[manifest],
    )?;
    let agent = ok("creating", backend.create(Uuid::new_v4(), resolved).await)?;
    equal(
        "the kind",
        &fails("preparing", agent.prepare().await)?.kind(),
        &ErrorKind::Pull,
    )?;
    equal("the reason", &agent.status().reason(), &Some(Reason::Pull))?;
    equal(
        "the kind",
        &fails("starting", agent.start().await)?.kind(),
        &ErrorKind::Pull,
    )?;
    ok("writing", fs::write(&guide, "Be brief."))?;
    start(&*agent).await?;
    ok("removing", agent.remove().await)
}

pub(super) async fn names_are_unique(stage: &LifeStage<'_>) -> Verdict {
    let (backend, first) = stage.agent("serve").await?;
    let named = backend
        .create(Uuid::new_v4(), clerk("clerk", "serve")?)
        .await;
    equal(
        "the kind",
        &named.err().map(|error| error.kind()),
        &Some(ErrorKind::Exists),
    )?;
    let twin = backend.create(first.id(), clerk("other", "serve")?).await;
    equal(
        "the kind",
        &twin.err().map(|error| error.kind()),
        &Some(ErrorKind::Exists),
    )?;
    let racer = clerk("racer", "serve")?;
    let made: Vec<_> = (0..8)
        .map(|_| {
            let (backend, racer) = (Arc::clone(&backend), racer.clone());
            tokio::spawn(async move { backend.create(Uuid::new_v4(), racer).await.is_ok() })
        })
        .collect();
    let mut won = 0;
    for made in made {
        won += usize::from(ok("the task", made.await)?);
    }
    equal("how many were made", &won, &1)?;
    ok("removing", first.remove().await)?;
    create(&*backend, "clerk", "serve").await.map(drop)
}

pub(super) async fn bad_names_refused(stage: &LifeStage<'_>) -> Verdict {
    let backend = stage.open().await?;
    for name in ["", "../up", "a/b", "a b", "name\n", "ä", &"x".repeat(65)] {
        let made = backend.create(Uuid::new_v4(), clerk(name, "serve")?).await;
        equal(
            &format!("the kind of {name:?}"),
            &made.err().map(|error| error.kind()),
            &Some(ErrorKind::Invalid),
        )?;
    }
    holds("nothing was made", !stage.home.exists())
}

pub(super) async fn folder_is_private(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("serve").await?;
    start(&*agent).await?;
    let mode = |path: &Path| {
        Ok::<_, String>(ok("looking", fs::metadata(path))?.permissions().mode() & 0o777)
    };
    let workspace = agent.workspace();
    for folder in [
        &*stage.home,
        workspace.root(),
        &workspace.work(),
        &workspace.state(),
        &workspace.logs(),
    ] {
        equal(&folder.display().to_string(), &mode(folder)?, &0o700)?;
    }
    for entry in ok("listing", fs::read_dir(workspace.root()))?
        .flatten()
        .filter(|entry| entry.path().is_file())
    {
        equal(
            &entry.path().display().to_string(),
            &mode(&entry.path())?,
            &0o600,
        )?;
    }
    ok("removing", agent.remove().await)
}

pub(super) async fn destroyed_whole(stage: &LifeStage<'_>) -> Verdict {
    let (backend, one) = stage.agent("serve").await?;
    let other = create(&*backend, "other", "serve").await?;
    start(&*one).await?;
    ok("preparing", other.prepare().await)?;
    ok("destroying", backend.destroy().await)?;
    equal(
        "both",
        &(one.status(), other.status()),
        &(Status::Removed, Status::Removed),
    )?;
    let left = ok("listing", fs::read_dir(&stage.home))?
        .flatten()
        .map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name != ".gitignore").collect();
    equal("what is left", &left, &vec!["names.lock".into()])?;
    is_gone(one.id())
}

pub(super) async fn links_are_not_followed(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("serve").await?;
    let outside = stage.folder.join("outside");
    ok("making", fs::create_dir(&outside))?;
    ok("writing", fs::write(outside.join("kept"), "dear"))?;
    ok("preparing", agent.prepare().await)?;
    ok(
        "linking",
        symlink(&outside, agent.workspace().work().join("link")),
    )?;
    ok("removing", agent.remove().await)?;
    equal(
        "what it led to",
        &ok("reading", fs::read_to_string(outside.join("kept")))?.as_str(),
        &"dear",
    )
}

pub(super) async fn goes_on_unwatched(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("serve").await?;
    let running = tokio::spawn({
        let agent = Arc::clone(&agent);
        async move { agent.run().await }
    });
    becomes(&*agent, "ready", Status::is_up).await?;
    running.abort();
    holds(
        "the run was dropped",
        running.await.is_err_and(|error| error.is_cancelled()),
    )?;
    let prompter = ok("the prompter", agent.prompter().await)?;
    ok(
        "asking",
        prompter.prompt(PromptRequest::new("Is it so?")).await,
    )?;
    ok("stopping", agent.stop().await)?;
    stands(&*agent, &Status::Stopped)
}

pub(super) async fn found_again(stage: &LifeStage<'_>) -> Verdict {
    let (backend, agent) = stage.agent("serve").await?;
    create(&*backend, "blank", "serve").await?;
    start(&*agent).await?;
    ok("stopping", agent.stop().await)?;
    let (id, workspace, resolved) = (agent.id(), agent.workspace(), agent.resolved());
    let written = ok("reading the log", agent.logs().tail(1_000))?;
    drop((agent, backend));
    let again = stage.open().await?;
    let loaded = ok("loading", again.load().await)?;
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    equal("the problems", &problems, &Vec::new())?;
    let [blank, agent] = &loaded.instances[..] else {
        return Err(format!("two agents: {loaded:?}"));
    };
    equal(
        "the other",
        &(&*blank.name(), blank.status()),
        &("blank", Status::Created),
    )?;
    equal(
        "the agent",
        &(agent.id(), agent.status()),
        &(id, Status::Stopped),
    )?;
    equal(
        "its folder",
        &(agent.workspace(), agent.resolved()),
        &(workspace, resolved),
    )?;
    equal(
        "its log",
        &ok("reading the log", agent.logs().tail(1_000))?,
        &written,
    )?;
    start(&**agent).await?;
    ok("destroying", again.destroy().await)
}
