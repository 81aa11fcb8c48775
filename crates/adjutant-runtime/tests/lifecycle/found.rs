//! Agents that are found again: by the next operator, after a crash, half made, half removed.

use std::{fs, sync::Arc};

use adjutant_runtime::{Backend, ErrorKind, Instance, Reason, Status, Workspace};
use uuid::Uuid;

use super::desk::{GOOD, both, created, kill, options, place, process, process_with};

/// The only agent that is found, and no problem.
async fn only(backend: &dyn Backend) -> Arc<dyn Instance> {
    let mut loaded = backend.load().await.expect("it can be read");
    assert_eq!(
        loaded
            .problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    assert_eq!(loaded.instances.len(), 1);
    loaded.instances.remove(0)
}

#[tokio::test]
async fn agent_that_is_being_started_by_another_process_is_left_alone() {
    for (_folder, home, backend) in both() {
        let agent = created(&*backend, "clerk").await;
        agent.prepare().await.expect("it is made");
        let workspace = agent.workspace();
        fs::write(
            workspace.file("status.json"),
            r#"{"status":"starting","at_ms":1}"#,
        )
        .expect("it can be written");
        let lock =
            adjutant_runtime::Lock::take(&workspace.file("life.lock")).expect("nobody holds it");
        let other = super::desk::in_process(&home);
        let loaded = other.load().await.expect("it can be read");
        assert_eq!(loaded.instances.len(), 0);
        assert_eq!(
            loaded
                .problems
                .iter()
                .map(adjutant_runtime::Error::kind)
                .collect::<Vec<_>>(),
            [ErrorKind::Busy]
        );
        assert_eq!(
            workspace.status().expect("it can be read").status,
            Status::Starting
        );
        assert_eq!(
            agent
                .start()
                .await
                .expect_err("another one starts it")
                .kind(),
            ErrorKind::Busy
        );
        drop(lock);
        agent.start().await.expect("nobody else does");
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn agents_that_cannot_be_read_are_told_beside_the_others() {
    for (_folder, home, backend) in both() {
        let good = created(&*backend, "good").await;
        let broken: Vec<Uuid> = (0..4).map(|_| Uuid::new_v4()).collect();
        let folder = |number: usize| home.join(broken[number].to_string());
        for number in 0..4 {
            fs::create_dir(folder(number)).expect("it can be made");
        }
        fs::write(folder(1).join("agent.json"), "{").expect("it can be written");
        // The agent of another folder.
        fs::copy(
            good.workspace().file("agent.json"),
            folder(2).join("agent.json"),
        )
        .expect("it can be copied");
        let text = fs::read_to_string(good.workspace().file("agent.json")).expect("it can be read");
        let text = text.replace(&good.id().to_string(), &broken[3].to_string());
        fs::write(folder(3).join("agent.json"), text).expect("it can be written");
        fs::write(
            folder(3).join("status.json"),
            r#"{"status":"dreaming","at_ms":1}"#,
        )
        .expect("it can be written");
        fs::write(home.join("notes.txt"), "not an agent").expect("it can be written");
        let other = super::desk::in_process(&home);
        let loaded = other.load().await.expect("it can be read");
        assert_eq!(
            loaded
                .instances
                .iter()
                .map(|agent| agent.id())
                .collect::<Vec<_>>(),
            [good.id()]
        );
        let mut kinds = Vec::new();
        for id in &broken {
            let told = loaded
                .problems
                .iter()
                .find(|problem| problem.message().contains(&id.to_string()));
            kinds.push(told.expect("it is told").kind());
        }
        assert_eq!(
            kinds,
            [
                ErrorKind::Missing,
                ErrorKind::Storage,
                ErrorKind::Storage,
                ErrorKind::Storage
            ]
        );
    }
}

#[tokio::test]
async fn what_was_half_made_or_half_removed_is_finished() {
    for (_folder, home, backend) in both() {
        let (made, going) = (
            created(&*backend, "made").await,
            created(&*backend, "going").await,
        );
        going.prepare().await.expect("it is made");
        let (making, gone) = (made.workspace(), going.workspace());
        // Killed while it prepared, while it removed, after it had renamed, and while it created.
        fs::write(
            making.file("status.json"),
            r#"{"status":"preparing","at_ms":1}"#,
        )
        .expect("it can be written");
        fs::create_dir_all(making.file(".preparing").join("context")).expect("it can be made");
        fs::create_dir_all(making.work().join("half")).expect("it can be made");
        fs::write(
            gone.file("status.json"),
            r#"{"status":"removing","at_ms":1}"#,
        )
        .expect("it can be written");
        fs::create_dir_all(
            home.join(format!(".removed-{}", Uuid::new_v4()))
                .join("state"),
        )
        .expect("it can be made");
        fs::create_dir_all(home.join(format!(".creating-{}", Uuid::new_v4())))
            .expect("it can be made");
        let other = super::desk::in_process(&home);
        let agent = only(&other).await;
        assert_eq!((agent.id(), agent.status()), (made.id(), Status::Created));
        assert!(!making.file(".preparing").exists() && !making.work().exists());
        assert!(!gone.root().exists());
        let mut left: Vec<_> = fs::read_dir(&home)
            .expect("it is there")
            .flatten()
            .map(|it| it.file_name())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [".gitignore", made.id().to_string().as_str(), "names.lock"]
        );
        agent.start().await.expect("it begins");
        agent.remove().await.expect("it goes");
    }
}

#[tokio::test]
async fn removal_that_could_not_be_done_is_done_when_asked_again() {
    for (_folder, home, backend) in both() {
        let agent = created(&*backend, "clerk").await;
        agent.prepare().await.expect("it is made");
        let workspace: Workspace = agent.workspace();
        // Somebody renamed it already, and was killed then.
        fs::rename(
            workspace.root(),
            home.join(format!(".removed-{}", agent.id())),
        )
        .expect("it can be moved");
        agent.remove().await.expect("it goes");
        assert_eq!(agent.status(), Status::Removed);
        assert!(!home.join(format!(".removed-{}", agent.id())).exists());
    }
}

#[tokio::test]
async fn workspace_is_found_again_where_it_was_moved() {
    let (folder, host, home) = place(&GOOD);
    let backend = process(&home, &host);
    let guide = folder.path().join("guide.md");
    fs::write(&guide, "Be brief.").expect("it can be written");
    let agent = serde_json::json!({"name": "clerk", "context": [guide]});
    let manifest = serde_json::json!({"name": "clerk", "entry_agent": "clerk", "agents": [agent]});
    let agent = backend
        .create(Uuid::new_v4(), super::desk::resolved(manifest, &[]))
        .await
        .expect("it is created");
    agent.prepare().await.expect("it is made");
    drop((agent, backend));
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&home, &elsewhere).expect("it can be moved");
    let backend = process(&elsewhere, &host);
    let agent = only(&backend).await;
    let prepared = agent.workspace().prepared().expect("it is made");
    let context =
        serde_json::to_value(&prepared.resolved.manifest.agents[0].context).expect("JSON");
    assert_eq!(
        context,
        serde_json::json!([agent.workspace().context().join("0/guide.md")])
    );
    agent.start().await.expect("it begins");
    agent.remove().await.expect("it goes");
}

/// Somebody else's processes, killed with the test.
struct Innocents(Vec<std::process::Child>);

impl Innocents {
    fn shell(script: &str) -> (Self, u32, String) {
        use std::{io::BufRead, os::unix::process::CommandExt, process::Stdio};
        let mut command = std::process::Command::new("/bin/sh");
        command
            .args(["-c", script])
            .stdout(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn().expect("a shell is there");
        let (group, mut line) = (child.id(), String::new());
        let output = child.stdout.take().expect("it was asked for");
        std::io::BufReader::new(output)
            .read_line(&mut line)
            .expect("it says a line");
        (Self(vec![child]), group, line.trim().to_owned())
    }
}

impl Drop for Innocents {
    fn drop(&mut self) {
        for child in &mut self.0 {
            if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
                let _gone =
                    rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            let _told = child.wait();
        }
    }
}

fn lives(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with(['Z', 'X']))
}

/// Writes another process down as the last one of an agent that was up, as files of a machine that was switched off tell.
fn written_down(workspace: &Workspace, pid: u32) {
    for name in ["start.json", "host.json"] {
        let text = fs::read(workspace.file(name)).expect("there is one");
        let mut value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        value["pid"] = pid.into();
        fs::write(workspace.file(name), value.to_string()).expect("it can be written");
    }
    fs::write(
        workspace.file("status.json"),
        r#"{"status":"ready","at_ms":1}"#,
    )
    .expect("it can be written");
}

/// An agent that ran once and does not now.
async fn stopped_once(home: &std::path::Path, host: &std::path::Path) -> Workspace {
    let backend = process(home, host);
    let agent = created(&backend, "clerk").await;
    agent.start().await.expect("it begins");
    agent.stop().await.expect("it ends");
    agent.workspace()
}

#[tokio::test]
async fn group_that_has_the_number_of_an_old_start_is_left_alone() {
    let (_folder, host, home) = place(&GOOD);
    let workspace = stopped_once(&home, &host).await;
    // Its leader ends: then only the group has the number.
    let (mut innocents, group, member) = Innocents::shell("sleep 600 >/dev/null & echo $!");
    innocents.0[0].wait().expect("it ends");
    written_down(&workspace, group);
    // It did not end by itself, as far as anybody can tell.
    let _none = fs::remove_file(workspace.file("ended.json"));
    assert_eq!(
        only(&process(&home, &host)).await.status().reason(),
        Some(Reason::Crashed)
    );
    let was_left = lives(&member);
    kill(member.parse().expect("an id"));
    assert!(was_left);
}

#[tokio::test]
async fn process_that_has_the_number_of_an_old_start_is_left_alone_when_a_stranger_holds_the_lock()
{
    let (_folder, host, home) = place(&GOOD);
    let workspace = stopped_once(&home, &host).await;
    let (_innocents, group, _) = Innocents::shell("echo up; sleep 600; :");
    written_down(&workspace, group);
    let lock = workspace.lock_host().expect("nobody holds it");
    let backend = process_with(
        &home,
        &host,
        options().readiness(std::time::Duration::from_millis(50)),
    );
    let loaded = backend.load().await.expect("it can be read");
    let told: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    assert!(lives(&group.to_string()), "{told:?}");
    let expect = format!(
        "a program that nobody here started holds {}",
        workspace.file("host.lock").display()
    );
    assert_eq!(told, [expect]);
    drop(lock);
}
