//! Workspaces: what is copied into them, and what is refused.

use std::{fs, os::unix::fs::symlink, path::Path, sync::Arc};

use adjutant_runtime::{Backend, Error, ErrorKind, Instance, Status, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::desk::{in_process, resolved};

/// A project with a manifest and a guide, and a folder outside of it.
fn project() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("project")).expect("it can be made");
    fs::create_dir_all(folder.path().join("outside")).expect("it can be made");
    fs::write(folder.path().join("project/adjutant.yaml"), "name: clerk")
        .expect("it can be written");
    fs::write(folder.path().join("project/guide.md"), "Be brief.").expect("it can be written");
    fs::write(folder.path().join("outside/secret.md"), "Nobody may know.")
        .expect("it can be written");
    folder
}

/// Prepares an agent of this manifest.
async fn prepared(folder: &Path, fields: Value) -> (Arc<dyn Instance>, Result<(), Error>) {
    let mut manifest =
        json!({"name": "clerk", "entry_agent": "clerk", "agents": [{"name": "clerk"}]});
    manifest
        .as_object_mut()
        .expect("an object")
        .extend(fields.as_object().expect("an object").clone());
    let source = folder.join("project/adjutant.yaml");
    let backend = in_process(&folder.join("home"));
    let agent = backend
        .create(Uuid::new_v4(), resolved(manifest, &[&source]))
        .await
        .expect("it is created");
    let made = agent.prepare().await;
    (agent, made)
}

/// Nothing is left of an attempt that failed.
fn is_bare(workspace: &Workspace) -> bool {
    let made = ["context", "skills", "work", ".preparing", "prepared.json"];
    made.iter().all(|name| !workspace.file(name).exists())
}

/// Asserts that a manifest with this context file cannot be prepared.
async fn refused(folder: &Path, file: &Path, kind: ErrorKind, says: &str) {
    let (agent, made) = prepared(
        folder,
        json!({"agents": [{"name": "clerk", "context": [file]}]}),
    )
    .await;
    let error = made.expect_err("it is refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(says), "{error}");
    assert!(is_bare(&agent.workspace()), "{says}");
    assert_eq!(
        agent.status().reason().map(|reason| reason.kind()),
        Some(kind)
    );
}

#[tokio::test]
async fn files_are_copied_and_paths_are_those_of_the_copies() {
    let folder = project();
    let at = |name: &str| folder.path().join("project").join(name);
    fs::create_dir_all(at("other")).expect("it can be made");
    fs::write(at("other/guide.md"), "Be kind.").expect("it can be written");
    let agents = json!([
        {"name": "clerk", "context": [at("guide.md"), {"file": at("other/guide.md"), "name": "Manners"}]},
        {"name": "maid", "instructions": {"file": at("guide.md")}, "context": [{"file": at("none.md"), "optional": true}]},
    ]);
    let (agent, made) = prepared(
        folder.path(),
        json!({"agents": agents, "data": [{"file": at("guide.md")}]}),
    )
    .await;
    made.expect("it is made");
    let workspace = agent.workspace();
    let manifest = workspace.prepared().expect("it is made").resolved.manifest;
    let told = serde_json::to_value(&manifest.agents).expect("JSON");
    let copy = |path: &str| workspace.context().join(path);
    assert_eq!(told[0]["context"][0], json!(copy("0/guide.md")));
    assert_eq!(told[0]["context"][1]["file"], json!(copy("1/guide.md")));
    assert_eq!(told[0]["context"][1]["name"], "Manners");
    assert_eq!(
        told[1]["instructions"]["file"],
        json!(copy("0/guide.md")),
        "copied once"
    );
    assert_eq!(told[1].get("context"), None, "what may be missing is");
    assert_eq!(
        fs::read_to_string(copy("1/guide.md")).expect("it is there"),
        "Be kind."
    );
    assert_eq!(
        fs::read_to_string(workspace.work().join("guide.md")).expect("it is there"),
        "Be brief."
    );
    assert!(!workspace.file(".preparing").exists());
    let text = fs::read_to_string(workspace.file("prepared.json")).expect("it is there");
    assert!(
        !text.contains(&workspace.root().display().to_string()),
        "it can be moved"
    );
}

#[tokio::test]
async fn links_out_of_the_project_are_refused() {
    let folder = project();
    let project = folder.path().join("project");
    symlink(
        folder.path().join("outside/secret.md"),
        project.join("link.md"),
    )
    .expect("it can be made");
    symlink(folder.path().join("outside"), project.join("dir")).expect("it can be made");
    refused(
        folder.path(),
        &project.join("link.md"),
        ErrorKind::Pull,
        "lies outside the folder of its manifest",
    )
    .await;
    let folder = self::project();
    symlink(
        folder.path().join("outside"),
        folder.path().join("project/dir"),
    )
    .expect("it can be made");
    let file = folder.path().join("project/dir/secret.md");
    refused(
        folder.path(),
        &file,
        ErrorKind::Pull,
        "lies outside the folder of its manifest",
    )
    .await;
    let folder = self::project();
    let file = folder.path().join("project/../outside/secret.md");
    refused(
        folder.path(),
        &file,
        ErrorKind::Pull,
        "lies outside the folder of its manifest",
    )
    .await;
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused() {
    let folder = project();
    refused(
        folder.path(),
        &folder.path().join("project"),
        ErrorKind::Pull,
        "is a folder, not a regular file",
    )
    .await;
    let folder = project();
    let pipe = folder.path().join("project/pipe");
    let status = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .expect("it is there");
    assert!(status.success());
    refused(
        folder.path(),
        &pipe,
        ErrorKind::Pull,
        "is a device or a pipe, not a regular file",
    )
    .await;
    let folder = project();
    refused(
        folder.path(),
        Path::new("/dev/zero"),
        ErrorKind::Pull,
        "lies outside",
    )
    .await;
    let folder = project();
    refused(
        folder.path(),
        &folder.path().join("project/none.md"),
        ErrorKind::Pull,
        "none.md",
    )
    .await;
}

#[tokio::test]
async fn files_that_are_too_long_are_refused() {
    let folder = project();
    let file = folder.path().join("project/long.md");
    fs::File::create(&file)
        .and_then(|file| file.set_len((8 << 20) + 1))
        .expect("it can be made");
    refused(
        folder.path(),
        &file,
        ErrorKind::Pull,
        "is longer than 8388608 bytes",
    )
    .await;
}

#[tokio::test]
async fn data_may_not_leave_the_working_folder_or_meet() {
    for to in ["../up", "/tmp/up", "a/../../up"] {
        let folder = project();
        let guide = folder.path().join("project/guide.md");
        let (agent, made) =
            prepared(folder.path(), json!({"data": [{"file": guide, "to": to}]})).await;
        assert_eq!(
            made.expect_err("it leaves").kind(),
            ErrorKind::Config,
            "{to}"
        );
        assert!(is_bare(&agent.workspace()));
    }
    let folder = project();
    let guide = folder.path().join("project/guide.md");
    let data = json!([{"file": guide, "to": "a"}, {"file": guide, "to": "./a"}]);
    let (_, made) = prepared(folder.path(), json!({"data": data})).await;
    let error = made.expect_err("they meet");
    assert_eq!(error.message(), "two files of data are laid to ./a");
}

#[tokio::test]
async fn skills_with_links_are_refused_and_scripts_stay_executable() {
    use std::os::unix::fs::PermissionsExt;
    let folder = project();
    let skill = folder.path().join("project/sums");
    fs::create_dir(&skill).expect("it can be made");
    fs::write(skill.join("SKILL.md"), "---\nname: sums\n---").expect("it can be written");
    fs::write(skill.join("add.sh"), "#!/bin/sh").expect("it can be written");
    fs::set_permissions(skill.join("add.sh"), fs::Permissions::from_mode(0o755))
        .expect("it can be changed");
    let (agent, made) = prepared(folder.path(), json!({"skill_folders": [skill]})).await;
    made.expect("it is made");
    let copies = agent.workspace().skills().join("0/sums");
    let mode = |name: &str| {
        fs::metadata(copies.join(name))
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode("SKILL.md"), mode("add.sh")), (0o600, 0o700));
    agent.remove().await.expect("it goes");
    symlink("/etc/passwd", skill.join("accounts")).expect("it can be made");
    let (agent, made) = prepared(folder.path(), json!({"skill_folders": [skill]})).await;
    let error = made.expect_err("it holds a link");
    assert!(
        error
            .message()
            .ends_with("sums/accounts is not a regular file"),
        "{error}"
    );
    assert!(is_bare(&agent.workspace()));
}

#[tokio::test]
async fn tools_must_be_what_was_pinned_in_the_manifest() {
    let folder = project();
    let tool = |binary: &Path, sha256: &str| json!({"process_tools": [{"name": "look", "description": "Looks.", "binary": binary, "sha256": sha256}]});
    let (_, made) = prepared(folder.path(), tool(Path::new("/bin/sh"), &"0".repeat(64))).await;
    let error = made.expect_err("it is another one");
    assert_eq!(error.kind(), ErrorKind::Pull);
    assert!(
        error
            .message()
            .starts_with("/bin/sh is not what was pinned for the tool look: 0000"),
        "{error}"
    );
}

#[tokio::test]
async fn workspace_that_cannot_be_written_leaves_nothing_half() {
    let folder = project();
    let guide = folder.path().join("project/guide.md");
    let backend = in_process(&folder.path().join("home"));
    let source = folder.path().join("project/adjutant.yaml");
    let agents = json!([{"name": "clerk", "context": [guide]}]);
    let manifest = json!({"name": "clerk", "entry_agent": "clerk", "agents": agents});
    let agent = backend
        .create(Uuid::new_v4(), resolved(manifest, &[&source]))
        .await
        .expect("it is created");
    // What stands in the way of one of its folders. A disk that refuses takes the same way.
    fs::write(agent.workspace().file("state"), "in the way").expect("it can be written");
    let error = agent.prepare().await.expect_err("there is no place");
    assert_eq!(error.kind(), ErrorKind::Init, "{error}");
    assert!(
        error.message().starts_with("cannot make the folder "),
        "{error}"
    );
    assert!(is_bare(&agent.workspace()));
    fs::remove_file(agent.workspace().file("state")).expect("it can be deleted");
    agent.prepare().await.expect("there is a place now");
}

#[tokio::test]
async fn stop_while_the_workspace_is_made_gives_stopped() {
    let folder = project();
    let data = folder.path().join("project/data");
    // Sparse, so it takes no place, and long enough to be stopped in.
    fs::File::create(&data)
        .and_then(|file| file.set_len(200 << 20))
        .expect("it can be made");
    let backend = in_process(&folder.path().join("home"));
    let source = folder.path().join("project/adjutant.yaml");
    let manifest = json!({"name": "clerk", "entry_agent": "clerk", "agents": [{"name": "clerk"}], "data": [{"file": data}]});
    let agent = backend
        .create(Uuid::new_v4(), resolved(manifest, &[&source]))
        .await
        .expect("it is created");
    for runs in [false, true] {
        let mut watch = agent.watch();
        let doing = tokio::spawn({
            let agent = Arc::clone(&agent);
            async move {
                if runs {
                    agent.start().await
                } else {
                    agent.prepare().await
                }
            }
        });
        watch
            .wait_for(|status| *status == Status::Preparing)
            .await
            .expect("it begins");
        agent.stop().await.expect("it ends");
        assert_eq!(
            doing
                .await
                .expect("it ends")
                .expect_err("it was stopped")
                .kind(),
            ErrorKind::Closed
        );
        assert_eq!(agent.status(), Status::Stopped);
        assert!(is_bare(&agent.workspace()));
    }
}
