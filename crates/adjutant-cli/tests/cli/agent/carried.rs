//! Agents in files, and which bytes they run.

use super::Project;

#[test]
fn agent_remembers_its_sessions_when_it_was_carried_elsewhere() {
    let project = Project::new();
    project.done(&["agent", "create"]);
    project.done(&["agent", "start", "ada"]);
    project.done(&["agent", "prompt", "ada", "Remember the heron.", "-q"]);
    let seen = project.run(&["agent", "export", "ada"]);
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("the agent ada runs, "),
        "{}",
        seen.stderr
    );
    assert!(
        seen.stderr
            .ends_with("\nhint: `adjutant agent stop ada` stops it\n"),
        "{}",
        seen.stderr
    );
    project.done(&["agent", "stop", "ada"]);
    let told = project.done(&["agent", "export", "ada"]);
    assert!(
        told.starts_with("exported ada into ada.adjutant-agent: "),
        "{told}"
    );
    let file = project.path().join("ada.adjutant-agent");
    let other = Project::new();
    let imported = other.done(&[
        "agent",
        "import",
        &file.to_string_lossy(),
        "--name",
        "grace",
    ]);
    assert!(imported.starts_with("imported grace: "), "{imported}");
    assert_eq!(other.done(&["agent", "start", "grace"]), "grace: ready\n");
    let database = walk(&other.path().join(".adjutant/run"), "agent.db");
    let bytes: Vec<u8> = database
        .iter()
        .flat_map(|path| std::fs::read(path).expect("it is there"))
        .collect();
    assert!(
        bytes.windows(9).any(|it| it == b"the heron"),
        "the session went along"
    );
    // A file that was changed by one byte is refused.
    let mut bytes = std::fs::read(&file).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("it is written");
    let seen = other.run(&["agent", "import", &file.to_string_lossy(), "--name", "eve"]);
    assert_eq!(seen.code, Some(2));
    assert!(
        seen.stderr
            .contains("is damaged: its digest is not that of its bytes"),
        "{}",
        seen.stderr
    );
}

/// The files below a folder whose names begin so.
fn walk(folder: &std::path::Path, name: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it is there").flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => walk(&path, name),
            path if entry.file_name().to_string_lossy().starts_with(name) => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

/// A project with an agent that has all that may be carried; it was spoken to, and stands in a file beside the project.
fn exported() -> (Project, tempfile::TempDir, String) {
    let project = Project::of(
        "name: ada\nmodel: offline/planner\ncontext: [facts.md]\nskill_folders: [skills]\n\
         toolboxes: [{name: files, root: docs}]\ntools: [greet]\n\
         process_tools: [{name: greet, description: Greets., binary: bin/greet.sh}]\n",
    );
    let at = |name: &str| project.path().join(name);
    for (name, text) in [
        ("facts.md", "Facts."),
        (
            "skills/sums/SKILL.md",
            "---\nname: sums\ndescription: Adds.\n---\nAdd.\n",
        ),
        ("docs/a.md", "A document."),
        ("bin/greet.sh", "#!/bin/sh\necho hello\n"),
    ] {
        std::fs::create_dir_all(at(name).parent().expect("a folder")).expect("it is made");
        std::fs::write(at(name), text).expect("it is written");
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(at("bin/greet.sh"), mode).expect("it is changed");
    project.done(&["agent", "create", "--trust"]);
    project.done(&["agent", "start", "ada"]);
    project.done(&["agent", "prompt", "ada", "Remember the heron.", "-q"]);
    project.done(&["agent", "stop", "ada"]);
    let beside = tempfile::tempdir().expect("a folder");
    let file = beside.path().join("ada").to_string_lossy().into_owned();
    let seen = project.run(&["agent", "export", "ada", &file]);
    let needed = format!(
        "needed where it is imported: {}, the folder of the toolbox files\n",
        at("docs").display()
    );
    assert_eq!((seen.code, seen.stderr.as_str()), (Some(0), &*needed));
    (project, beside, file)
}

#[test]
fn agent_runs_elsewhere_when_the_folder_where_it_was_is_deleted() {
    let (project, _beside, file) = exported();
    let old = project.path().to_string_lossy().into_owned();
    drop(project);
    assert!(!std::path::Path::new(&old).exists());
    let other = Project::new();
    std::fs::create_dir_all(other.path().join("place")).expect("it is made");
    let seen = other.run(&["agent", "import", &file, "--trust"]);
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr
            .contains("hint: `--root DIR` names the folder that stands for that of the manifest"),
        "{}",
        seen.stderr
    );
    let seen = other.run(&[
        "agent",
        "import",
        &file,
        "--root",
        "place",
        "--set",
        "max_turns=none",
        "--trust",
    ]);
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    other.done(&[
        "agent",
        "import",
        &file,
        "--root",
        "place",
        "--set",
        "max_turns=7",
        "--trust",
    ]);
    let run = other.path().join(".adjutant/run");
    for written in [walk(&run, "agent.json"), walk(&run, "prepared.json")].concat() {
        let text = std::fs::read_to_string(written).expect("it is there");
        assert!(
            !text.contains(&old) && text.contains("\"max_turns\": 7"),
            "{text}"
        );
    }
    let docs = other
        .path()
        .canonicalize()
        .expect("it is there")
        .join("place/docs");
    let seen = other.run(&["agent", "start", "ada"]);
    let told = format!(
        "error: the agent ada works in {}, and there is no such folder\nhint: make it, or name another one as the `root` \
         of its toolbox\n",
        docs.display()
    );
    assert!(seen.stderr.contains(&told), "{}", seen.stderr);
    std::fs::create_dir(docs).expect("it is made");
    assert_eq!(other.done(&["agent", "start", "ada"]), "ada: ready\n");
    other.done(&["agent", "prompt", "ada", "Hello again.", "-q"]);
    let database: Vec<u8> = walk(&run, "agent.db")
        .iter()
        .flat_map(|path| std::fs::read(path).expect("it is there"))
        .collect();
    assert!(
        ["the heron", "Hello again."]
            .iter()
            .all(|it| database.windows(it.len()).any(|part| part == it.as_bytes()))
    );
    other.done(&["agent", "stop", "ada"]);
    let told = other.done(&["agent", "provenance", "ada", "--verify"]);
    assert!(
        ["tools/greet/greet.sh", "facts.md", "SKILL.md"]
            .iter()
            .all(|it| told.contains(it)),
        "{told}"
    );
    std::fs::write(&walk(&run, "greet.sh")[0], "#!/bin/sh\necho mine\n").expect("it is written");
    assert_eq!(
        other.run(&["agent", "provenance", "ada", "--verify"]).code,
        Some(1)
    );
    // What was trusted is another content now.
    let seen = other.run(&["agent", "start", "ada"]);
    assert!(
        seen.code == Some(2)
            && seen
                .stderr
                .contains("nobody trusts what the agent ada wants"),
        "{}",
        seen.stderr
    );
}

#[test]
fn programs_that_came_along_go_when_an_update_has_proven_itself() {
    let (_project, _beside, file) = exported();
    let other = Project::of("name: ada\nmodel: anthropic/claude-sonnet-5\n");
    std::fs::create_dir(other.path().join("docs")).expect("it is made");
    other.done(&["agent", "import", &file, "--root", ".", "--trust"]);
    other.done(&["agent", "start", "ada"]);
    let run = other.path().join(".adjutant/run");
    // One that cannot begin is taken back, with the programs.
    let broken = other.run(&["agent", "update", "ada", "adjutant.yaml"]);
    assert!(
        broken.code == Some(1) && broken.stderr.contains("was taken back"),
        "{broken:#?}"
    );
    assert_eq!(
        (
            walk(&run, "greet.sh").len(),
            &*other.done(&["agent", "status", "ada"])
        ),
        (1, "ready\n")
    );
    let updated = other.done(&[
        "agent",
        "update",
        "ada",
        "adjutant.yaml",
        "--model",
        "offline/planner",
    ]);
    assert_eq!(
        (&*updated, walk(&run, "greet.sh").len()),
        ("ada: updated, ready\n", 0)
    );
    other.done(&["agent", "stop", "ada"]);
    other.done(&["agent", "provenance", "ada", "--verify"]);
    let again = other.done(&["agent", "export", "ada", "again"]);
    assert!(again.starts_with("exported ada into again: "), "{again}");
    let bundle = std::fs::read(other.path().join("again")).expect("it is there");
    assert!(
        !bundle.windows(6).any(|it| it == b"tools/"),
        "nothing of it goes along any more"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn agent_runs_in_a_root_that_has_nothing_of_where_it_was() {
    use std::process::Command;
    let bare = [
        "--unshare-all",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--",
        "true",
    ];
    if !Command::new("bwrap")
        .args(bare)
        .output()
        .is_ok_and(|told| told.status.success())
    {
        println!("SKIPPED: this machine has no bubblewrap, or it may make no namespaces");
        return;
    }
    let (project, _beside, file) = exported();
    let new = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(new.path().join("docs")).expect("it is made");
    let mut command = Command::new("bwrap");
    command.env_clear().args([
        "--unshare-all",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
    ]);
    for path in ["/usr", "/bin", "/lib", "/lib64"] {
        match std::fs::read_link(path) {
            Ok(target) => command.arg("--symlink").arg(target).arg(path),
            Err(_) => command.args(["--ro-bind-try", path, path]),
        };
    }
    command.args([
        "--ro-bind",
        env!("CARGO_BIN_EXE_adjutant"),
        "/adjutant",
        "--ro-bind",
        &file,
        "/ada",
    ]);
    command
        .args(["--setenv", "XDG_STATE_HOME", "/new/.state", "--bind"])
        .arg(new.path())
        .args(["/new", "--chdir", "/new"]);
    let script = format!(
        "test ! -e '{}' && /adjutant agent import /ada --root . --trust && /adjutant agent start ada \
         && /adjutant agent prompt ada Hello. -q && /adjutant agent provenance ada --verify && /adjutant agent stop ada",
        project.path().display()
    );
    let told = command
        .args(["--", "/bin/sh", "-c", &script])
        .output()
        .expect("it is there");
    let (out, err) = (
        String::from_utf8_lossy(&told.stdout),
        String::from_utf8_lossy(&told.stderr),
    );
    assert!(
        told.status.success()
            && out.contains("ada: ready\n")
            && out.contains("tools/greet/greet.sh"),
        "{out}\n{err}"
    );
}

#[test]
fn provenance_tells_what_was_changed_and_the_agent_is_not_started() {
    let project = Project::of("name: ada\nmodel: offline/planner\ncontext:\n  - facts.md\n");
    std::fs::write(project.path().join("facts.md"), "Facts.").expect("it is written");
    project.done(&["agent", "create"]);
    assert_eq!(project.run(&["agent", "provenance", "ada"]).code, Some(2));
    project.done(&["agent", "start", "ada"]);
    project.done(&["agent", "stop", "ada"]);
    let told = project.done(&["agent", "provenance", "ada", "--verify"]);
    assert!(
        told.contains("facts.md") && told.contains("adjutant.yaml"),
        "{told}"
    );
    // It forbids no start; but something was changed.
    std::fs::write(project.path().join("adjutant.yaml"), "name: ada\n").expect("it is written");
    assert_eq!(
        project
            .run(&["agent", "provenance", "ada", "--verify"])
            .code,
        Some(1)
    );
    let copies = walk(&project.path().join(".adjutant/run"), "");
    let copy = copies
        .iter()
        .find(|path| path.to_string_lossy().contains("/context/"))
        .expect("it was copied");
    std::fs::write(copy, "Lies.").expect("it is written");
    let seen = project.run(&["agent", "provenance", "ada", "--verify"]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert!(seen.stderr.starts_with("changed: "), "{}", seen.stderr);
    let seen = project.run(&["agent", "start", "ada"]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("is not what was made"),
        "{}",
        seen.stderr
    );
}
