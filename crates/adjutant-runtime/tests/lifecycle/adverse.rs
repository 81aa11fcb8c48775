//! Processes that do not behave, and what stands in their way.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, sync::Arc, time::Duration};

use adjutant_runtime::{
    Backend, ErrorKind, Instance, Reason, Status,
    backend::{HostChange, LogLimits},
};
use serde_json::json;
use uuid::Uuid;

use super::desk::{
    GOOD, LONG, Manner, clerk, created, kill, marked, options, pid, place, process, process_with,
    resolved, until, write_host,
};

/// What an agent failed with.
fn failure(agent: &dyn Instance) -> (Reason, String) {
    match agent.status() {
        Status::Failed { reason, message } => (reason, message.to_string()),
        other => panic!("it is {other}"),
    }
}

#[tokio::test]
async fn host_that_exits_at_once_has_crashed_with_its_last_words() {
    let (_folder, host, home) = place(&Manner {
        before: "",
        does: "fail",
    });
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    let error = agent.start().await.expect_err("it exits");
    assert_eq!(error.kind(), ErrorKind::Crashed);
    let (reason, message) = failure(&*agent);
    assert_eq!(reason, Reason::Crashed);
    assert!(
        message.starts_with("its process ended with the exit code 7 before it was ready"),
        "{message}"
    );
    assert!(error.message().contains("no luck today"), "{error}");
    assert_eq!(
        agent.run().await.expect_err("it exits").kind(),
        ErrorKind::Crashed
    );
}

#[tokio::test]
async fn host_that_tells_why_it_cannot_begin_is_believed() {
    let (_folder, host, home) = place(&Manner {
        before: "",
        does: "tell",
    });
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    assert_eq!(
        agent.start().await.expect_err("no key").kind(),
        ErrorKind::Model
    );
    let (reason, message) = failure(&*agent);
    assert_eq!(reason, Reason::Model);
    assert_eq!(
        message, "the variable NO_KEY is not set",
        "and nothing of its log"
    );
}

#[tokio::test]
async fn host_that_never_gets_ready_is_killed() {
    let (_folder, host, home) = place(&Manner {
        before: "trap '' TERM; while :; do sleep 1; done",
        does: "serve",
    });
    let backend = process_with(
        &home,
        &host,
        options().readiness(Duration::from_millis(300)),
    );
    let agent = created(&backend, "clerk").await;
    assert_eq!(
        agent.start().await.expect_err("it is not ready").kind(),
        ErrorKind::Readiness
    );
    assert_eq!(
        failure(&*agent),
        (Reason::Readiness, "not ready after 300 ms".to_owned())
    );
    assert_eq!(marked(agent.id()), Vec::<u32>::new());
}

#[tokio::test]
async fn host_that_floods_its_output_fills_no_disk() {
    let flood = "(while :; do echo 'a line that nobody ever wanted to read, and that says so at length'; done) &";
    let (_folder, host, home) = place(&Manner {
        before: flood,
        does: "serve",
    });
    let mut limits = LogLimits::default();
    (limits.max_bytes, limits.kept) = (16 << 10, 2);
    let backend = process_with(&home, &host, options().logs(limits));
    let agent = created(&backend, "clerk").await;
    agent.start().await.expect("it begins");
    let logs = agent.workspace().logs();
    until("two files are put aside", || {
        logs.join("output.2.log").exists()
    })
    .await;
    for name in ["output.1.log", "output.2.log"] {
        assert!(fs::metadata(logs.join(name)).expect("it is there").len() <= 32 << 10);
    }
    assert_eq!(agent.status(), Status::Ready);
    agent.stop().await.expect("it ends");
    assert_eq!(marked(agent.id()), Vec::<u32>::new());
}

#[tokio::test]
async fn crash_is_told_with_the_signal_and_is_no_stop() {
    let (_folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    let running = tokio::spawn({
        let agent = Arc::clone(&agent);
        async move { agent.run().await }
    });
    agent
        .watch()
        .wait_for(Status::is_up)
        .await
        .expect("it begins");
    kill(pid(&agent.workspace()));
    let error = running.await.expect("it ends").expect_err("it was killed");
    assert_eq!(error.kind(), ErrorKind::Crashed);
    let (reason, message) = failure(&*agent);
    assert_eq!(reason, Reason::Crashed);
    assert!(
        message.starts_with("its process was killed by the signal 9"),
        "{message}"
    );
    assert_eq!(message.matches("signal 9").count(), 1, "{message}");
    assert_eq!(
        agent.workspace().status().expect("it can be read").status,
        agent.status()
    );
    agent.stop().await.expect("there is nothing to do");
    assert_eq!(
        failure(&*agent).0,
        Reason::Crashed,
        "a stop makes no crash undone"
    );
    agent.start().await.expect("it begins again");
    agent.remove().await.expect("it goes");
}

#[tokio::test]
async fn working_folder_that_was_deleted_is_made_again() {
    let (_folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    agent.prepare().await.expect("it is made");
    for folder in [agent.workspace().work(), agent.workspace().tmp()] {
        fs::remove_dir_all(folder).expect("it is there");
    }
    agent.start().await.expect("it begins");
    agent.stop().await.expect("it ends");
}

#[tokio::test]
async fn host_that_was_asked_to_end_by_somebody_else_has_stopped() {
    let (_folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    agent.start().await.expect("it begins");
    let id = rustix::process::Pid::from_raw(pid(&agent.workspace()).cast_signed()).expect("an id");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is there");
    agent
        .watch()
        .wait_for(|status| !status.is_active())
        .await
        .expect("it ends");
    assert_eq!(agent.status(), Status::Stopped);
}

#[tokio::test]
async fn port_is_kept_and_a_new_one_is_told_when_it_is_taken() {
    let (_folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    agent.start().await.expect("it begins");
    let first = agent.address().expect("it listens");
    agent.stop().await.expect("it ends");
    assert_eq!(agent.address(), Some(first), "where it listened last");
    agent.start().await.expect("it begins again");
    // Other tests open ports meanwhile: this one may be taken by one of them.
    let mut tries = 0;
    let first = loop {
        let before = agent.address();
        agent.stop().await.expect("it ends");
        agent.start().await.expect("it begins again");
        if let Some(kept) = agent.address().filter(|address| Some(*address) == before) {
            break kept;
        }
        tries += 1;
        assert!(tries < 10, "the port is never kept");
    };
    agent.stop().await.expect("it ends");
    let _taken = TcpListener::bind(first).ok();
    let mut watch = agent.watch();
    agent.start().await.expect("it begins elsewhere");
    let second = agent.address().expect("it listens");
    assert_ne!(second, first);
    watch.wait_for(Status::is_up).await.expect("it is");
    assert_eq!(watch.address(), Some(second));
    let kept = agent.workspace().status().expect("it can be read");
    assert_eq!(
        (kept.address, kept.former_address),
        (Some(second), Some(first))
    );
    agent.remove().await.expect("it goes");
}

#[tokio::test]
async fn host_that_is_missing_or_cannot_be_executed_is_told() {
    let (_folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    fs::remove_file(&host).expect("it is there");
    let error = agent.start().await.expect_err("it is missing");
    assert_eq!(error.kind(), ErrorKind::Pull, "{error}");
    write_host(&host, &GOOD);
    fs::set_permissions(&host, fs::Permissions::from_mode(0o600)).expect("it can be changed");
    let error = agent.start().await.expect_err("it cannot be executed");
    assert_eq!(
        (
            error.kind(),
            error.message().ends_with("/host cannot be executed")
        ),
        (ErrorKind::Config, true),
        "{error}"
    );
    fs::set_permissions(&host, fs::Permissions::from_mode(0o700)).expect("it can be changed");
    agent.start().await.expect("it is as it should be");
    agent.stop().await.expect("it ends");
    fs::remove_file(&host).expect("it is there");
    assert_eq!(
        agent.start().await.expect_err("it is missing").kind(),
        ErrorKind::Config
    );
    assert_eq!(failure(&*agent).0, Reason::Config);
}

#[tokio::test]
async fn host_that_was_changed_is_refused_unless_that_is_accepted() {
    let (_folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    agent.prepare().await.expect("it is made");
    write_host(
        &host,
        &Manner {
            before: "# another one",
            does: "serve",
        },
    );
    assert_eq!(
        agent.start().await.expect_err("it was changed").kind(),
        ErrorKind::Config
    );
    let (reason, message) = failure(&*agent);
    assert_eq!(reason, Reason::Config);
    assert!(
        message.ends_with(&format!("the host file {} was changed", host.display())),
        "{message}"
    );
    drop((agent, backend));
    let backend = process_with(&home, &host, options().host_change(HostChange::Accept));
    let loaded = backend.load().await.expect("it can be read");
    loaded.instances[0].start().await.expect("it is accepted");
    let workspace = loaded.instances[0].workspace();
    assert_eq!(
        workspace
            .prepared()
            .expect("it is made")
            .provenance
            .verify(&workspace),
        []
    );
    backend.destroy().await.expect("all goes");
}

#[tokio::test]
async fn tool_that_was_changed_since_the_agent_was_made_is_refused() {
    let (folder, host, home) = place(&GOOD);
    let tool = folder.path().join("tool");
    write_host(&tool, &GOOD);
    let backend = process(&home, &host);
    let tools = json!([{"name": "look", "description": "Looks.", "binary": tool}]);
    let agents = json!([{"name": "clerk", "tools": ["look"]}]);
    let manifest =
        json!({"name": "clerk", "entry_agent": "clerk", "agents": agents, "process_tools": tools});
    let agent = backend
        .create(Uuid::new_v4(), resolved(manifest, &[]))
        .await
        .expect("it is created");
    agent.start().await.expect("it begins");
    agent.stop().await.expect("it ends");
    fs::write(&tool, "#!/bin/sh\necho mine now").expect("it can be written");
    assert_eq!(
        agent.start().await.expect_err("it was changed").kind(),
        ErrorKind::Config
    );
    assert!(
        failure(&*agent)
            .1
            .ends_with(&format!("the tool file {} was changed", tool.display()))
    );
}

#[tokio::test]
async fn stop_while_it_begins_is_no_failure() {
    let (_folder, host, home) = place(&Manner {
        before: "echo here; sleep 600",
        does: "serve",
    });
    let backend = process_with(&home, &host, options().grace(Duration::from_secs(2)));
    let agent = created(&backend, "clerk").await;
    let starting = tokio::spawn({
        let agent = Arc::clone(&agent);
        async move { agent.start().await }
    });
    let logs = agent.logs();
    until("the host runs", || {
        logs.tail(1).is_ok_and(|lines| lines == ["here"])
    })
    .await;
    agent.stop().await.expect("it ends");
    assert_eq!(
        starting
            .await
            .expect("it ends")
            .expect_err("it was stopped")
            .kind(),
        ErrorKind::Closed
    );
    assert_eq!(agent.status(), Status::Stopped);
    assert_eq!(marked(agent.id()), Vec::<u32>::new());
}

#[tokio::test]
async fn second_host_of_a_workspace_is_refused() {
    let (_folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    agent.prepare().await.expect("it is made");
    let lock = agent.workspace().lock_host().expect("nobody runs it");
    assert_eq!(
        agent
            .workspace()
            .lock_host()
            .expect_err("it is held")
            .kind(),
        ErrorKind::Busy
    );
    assert_eq!(
        agent.start().await.expect_err("somebody runs it").kind(),
        ErrorKind::Busy
    );
    drop(lock);
    agent.start().await.expect("nobody runs it");
    assert_eq!(
        agent.workspace().lock_host().expect_err("it runs").kind(),
        ErrorKind::Busy
    );
    agent.remove().await.expect("it goes");
}

#[tokio::test]
async fn credentials_are_looked_up_at_each_start_and_stand_nowhere_but_in_the_environment() {
    let (_folder, host, home) = place(&GOOD);
    let value = Arc::new(std::sync::Mutex::new("marked-one"));
    let lookup = {
        let value = Arc::clone(&value);
        move |name: &str| {
            (name == "CLERK_KEY").then(|| (*value.lock().expect("not poisoned")).to_owned())
        }
    };
    // It writes its environment to its log, so that this can be seen to find what is there.
    let backend = process_with(&home, &host, options().credentials(lookup));
    let mut resolved = clerk("clerk");
    // What it needs is told by its manifest: what is said beside it brings no variable into its environment.
    let provider =
        json!({"name": "own", "base_url": "http://127.0.0.1:9/v1", "key_variables": ["CLERK_KEY"]});
    resolved.manifest.providers.push(provider);
    resolved.manifest.agents[0].model = Some(adjutant_runtime::manifest::ModelChoice::Name(
        "own/model".into(),
    ));
    resolved.needs = vec!["AWS_SECRET_ACCESS_KEY".to_owned()];
    let agent = backend
        .create(Uuid::new_v4(), resolved)
        .await
        .expect("it is created");
    agent.start().await.expect("it begins");
    let logs = agent.logs();
    let environment = || {
        let lines = logs.tail(1_000).expect("it can be read");
        lines
            .into_iter()
            .rfind(|line| line.starts_with("environment: "))
            .expect("it was written")
    };
    assert!(environment().contains("CLERK_KEY=marked-one"));
    let names = |line: &str| {
        let mut names: Vec<String> = line
            .split(' ')
            .skip(1)
            .filter_map(|entry| Some(entry.split_once('=')?.0.to_owned()))
            .collect();
        names.retain(|name| {
            !name.starts_with("LIFE_HOST")
                && !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str())
        });
        names.sort();
        names
    };
    let allowed = [
        "ADJUTANT_AGENT",
        "ADJUTANT_AGENT_START",
        "CLERK_KEY",
        "HOME",
        "LANG",
        "PATH",
        "TMPDIR",
    ];
    assert_eq!(names(&environment()), allowed);
    let pid = pid(&agent.workspace());
    let line = fs::read(format!("/proc/{pid}/cmdline")).expect("it runs");
    assert!(!String::from_utf8_lossy(&line).contains("marked"));
    agent.stop().await.expect("it ends");
    *value.lock().expect("not poisoned") = "marked-two";
    agent.start().await.expect("it begins again");
    assert!(environment().contains("CLERK_KEY=marked-two"));
    agent.stop().await.expect("it ends");
    // The host itself wrote them there.
    fs::remove_dir_all(agent.workspace().logs()).expect("it can be deleted");
    let mut folders = vec![home.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("it can be read").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                let text = fs::read(entry.path()).expect("it can be read");
                assert!(
                    !String::from_utf8_lossy(&text).contains("marked-"),
                    "{}",
                    entry.path().display()
                );
            }
        }
    }
}

#[tokio::test]
async fn start_is_waited_for_no_longer_than_it_takes() {
    let (_folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let agent = created(&backend, "clerk").await;
    agent.prepare().await.expect("it is made");
    let begun = std::time::Instant::now();
    agent.start().await.expect("it begins");
    println!("from start to ready: {} ms", begun.elapsed().as_millis());
    assert!(begun.elapsed() < LONG);
    agent.remove().await.expect("it goes");
}
