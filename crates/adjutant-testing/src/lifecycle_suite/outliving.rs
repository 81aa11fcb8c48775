//! The contract for agents in their own processes, with any launcher.

use adjutant_runtime::{
    ErrorKind, Reason, Status,
    prompt::{MessagesRequest, PromptRequest},
};

use super::{
    host::ANSWERS,
    stage::{
        LifeStage, ask_to_end, becomes, find_marked, is_gone, kill_host, stands, start, until,
    },
};
use crate::suite::{Verdict, equal, fails, holds, ok};

pub(super) async fn environment_arrives(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("serve").await?;
    start(&*agent).await?;
    let lines = ok("reading the log", agent.logs().tail(1_000))?;
    let line = lines
        .iter()
        .rfind(|line| line.starts_with("environment: "))
        .cloned()
        .unwrap_or_default();
    let (workspace, id) = (agent.workspace(), agent.id());
    for (name, value) in [
        ("ADJUTANT_AGENT", id.to_string()),
        ("HOME", workspace.work().display().to_string()),
        ("TMPDIR", workspace.tmp().display().to_string()),
    ] {
        holds(
            &format!("{name}={value} is in {line}"),
            line.contains(&format!(" {name}={value}")),
        )?;
    }
    holds("nothing of the operator is there", !line.contains(" CARGO"))?;
    ok("removing", agent.remove().await)
}

pub(super) async fn outlives_its_operator(stage: &LifeStage<'_>) -> Verdict {
    let (backend, agent) = stage.agent("serve").await?;
    start(&*agent).await?;
    let (id, address, processes) = (agent.id(), agent.address(), find_marked(agent.id()));
    let prompter = ok("the prompter", agent.prompter().await)?;
    ok("asking", prompter.prompt(PromptRequest::new("One?")).await)?;
    drop((agent, backend, prompter));
    let (_backend, agent) = stage.only().await?;
    equal(
        "the agent",
        &(agent.id(), agent.status(), agent.address()),
        &(id, Status::Ready, address),
    )?;
    equal("the processes", &find_marked(id), &processes)?;
    let prompter = ok("the prompter", agent.prompter().await)?;
    let reply = ok("asking", prompter.prompt(PromptRequest::new("Two?")).await)?;
    equal("the answer", &reply.text.as_str(), &ANSWERS[1])?;
    let page = ok(
        "reading the session",
        prompter.messages(MessagesRequest::default()).await,
    )?;
    equal("the messages", &page.messages.len(), &4)?;
    equal(
        "the kind",
        &fails("starting", agent.start().await)?.kind(),
        &ErrorKind::Conflict,
    )?;
    ok("stopping", agent.stop().await)?;
    stands(&*agent, &Status::Stopped)?;
    is_gone(id)?;
    start(&*agent).await?;
    ok("removing", agent.remove().await)
}

pub(super) async fn crash_is_told(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("fork").await?;
    start(&*agent).await?;
    kill_host(agent.id());
    let status = becomes(&*agent, "failed", |status| !status.is_active()).await?;
    equal("the reason", &status.reason(), &Some(Reason::Crashed))?;
    is_gone(agent.id())?;
    // It waits for the end to be settled, and makes no crash undone.
    ok("stopping", agent.stop().await)?;
    stands(&*agent, &status)?;
    start(&*agent).await?;
    ok("removing", agent.remove().await)
}

pub(super) async fn adopted_crash_is_told(stage: &LifeStage<'_>) -> Verdict {
    let (backend, agent) = stage.agent("fork").await?;
    start(&*agent).await?;
    drop((agent, backend));
    let (_backend, agent) = stage.only().await?;
    equal("the status", &agent.status(), &Status::Ready)?;
    kill_host(agent.id());
    let status = becomes(&*agent, "failed", |status| !status.is_active()).await?;
    equal("the reason", &status.reason(), &Some(Reason::Crashed))?;
    is_gone(agent.id())
}

pub(super) async fn death_unseen_is_told(stage: &LifeStage<'_>) -> Verdict {
    let (backend, agent) = stage.agent("fork").await?;
    start(&*agent).await?;
    let (id, workspace) = (agent.id(), agent.workspace());
    drop((agent, backend));
    kill_host(id);
    until("it lets go of its lock", || {
        workspace.is_hosted().is_ok_and(|is_hosted| !is_hosted)
    })
    .await?;
    let (_backend, agent) = stage.only().await?;
    equal(
        "the reason",
        &agent.status().reason(),
        &Some(Reason::Crashed),
    )?;
    stands(&*agent, &agent.status())?;
    is_gone(id)?;
    start(&*agent).await?;
    ok("removing", agent.remove().await)
}

pub(super) async fn early_end_is_told(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("fail").await?;
    let error = fails("starting", agent.start().await)?;
    equal("the kind", &error.kind(), &ErrorKind::Crashed)?;
    for words in ["exit code 7", "no luck today"] {
        holds(
            &format!("{words:?} is in {error}"),
            error.message().contains(words),
        )?;
    }
    equal(
        "the reason",
        &agent.status().reason(),
        &Some(Reason::Crashed),
    )
}

pub(super) async fn end_is_told_by_itself(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("tell").await?;
    equal(
        "the kind",
        &fails("starting", agent.start().await)?.kind(),
        &ErrorKind::Model,
    )?;
    equal(
        "the status",
        &agent.status(),
        &Status::failed(Reason::Model, "the variable NO_KEY is not set"),
    )
}

pub(super) async fn deaf_is_killed(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("deaf").await?;
    start(&*agent).await?;
    ok("stopping", agent.stop().await)?;
    stands(&*agent, &Status::Stopped)?;
    is_gone(agent.id())?;
    start(&*agent).await?;
    ok("removing", agent.remove().await)
}

pub(super) async fn adopted_deaf_is_killed(stage: &LifeStage<'_>) -> Verdict {
    let (backend, agent) = stage.agent("deaf").await?;
    start(&*agent).await?;
    drop((agent, backend));
    let (_backend, agent) = stage.only().await?;
    ok("stopping", agent.stop().await)?;
    stands(&*agent, &Status::Stopped)?;
    is_gone(agent.id())
}

pub(super) async fn children_end_with_it(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("fork").await?;
    start(&*agent).await?;
    until("its children run", || find_marked(agent.id()).len() >= 3).await?;
    ok("stopping", agent.stop().await)?;
    is_gone(agent.id())
}

pub(super) async fn signal_ends_it_well(stage: &LifeStage<'_>) -> Verdict {
    let (_backend, agent) = stage.agent("serve").await?;
    start(&*agent).await?;
    let started = ok("reading the start", agent.workspace().last_start())?;
    ask_to_end(started.and_then(|it| it.pid).unwrap_or_default());
    let status = becomes(&*agent, "ended", |status| !status.is_active()).await?;
    equal("the status", &status, &Status::Stopped)?;
    is_gone(agent.id())?;
    ok("removing", agent.remove().await)
}
