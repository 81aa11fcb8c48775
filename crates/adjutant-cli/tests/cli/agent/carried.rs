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
    assert!(seen.stderr.contains("the agent ada runs"), "{}", seen.stderr);
    project.done(&["agent", "stop", "ada"]);
    let told = project.done(&["agent", "export", "ada"]);
    assert!(told.starts_with("exported ada into ada.adjutant-agent: "), "{told}");
    let file = project.path().join("ada.adjutant-agent");
    let other = Project::new();
    let imported = other.done(&["agent", "import", &file.to_string_lossy(), "--name", "grace"]);
    assert!(imported.starts_with("imported grace: "), "{imported}");
    assert_eq!(other.done(&["agent", "start", "grace"]), "grace: ready\n");
    let database = walk(&other.path().join(".adjutant/run"), "agent.db");
    let bytes: Vec<u8> = database.iter().flat_map(|path| std::fs::read(path).expect("it is there")).collect();
    assert!(bytes.windows(9).any(|it| it == b"the heron"), "the session went along");
    // A file that was changed by one byte is refused.
    let mut bytes = std::fs::read(&file).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("it is written");
    let seen = other.run(&["agent", "import", &file.to_string_lossy(), "--name", "eve"]);
    assert_eq!(seen.code, Some(2));
    assert!(seen.stderr.contains("is damaged: its digest is not that of its bytes"), "{}", seen.stderr);
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

#[test]
fn provenance_tells_what_was_changed_and_the_agent_is_not_started() {
    let project = Project::of("name: ada\nmodel: offline/planner\ncontext:\n  - facts.md\n");
    std::fs::write(project.path().join("facts.md"), "Facts.").expect("it is written");
    project.done(&["agent", "create"]);
    assert_eq!(project.run(&["agent", "provenance", "ada"]).code, Some(2));
    project.done(&["agent", "start", "ada"]);
    project.done(&["agent", "stop", "ada"]);
    let told = project.done(&["agent", "provenance", "ada", "--verify"]);
    assert!(told.contains("facts.md") && told.contains("adjutant.yaml"), "{told}");
    let copies = walk(&project.path().join(".adjutant/run"), "");
    let copy = copies.iter().find(|path| path.to_string_lossy().contains("/context/")).expect("it was copied");
    std::fs::write(copy, "Lies.").expect("it is written");
    let seen = project.run(&["agent", "provenance", "ada", "--verify"]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert!(seen.stderr.starts_with("changed: "), "{}", seen.stderr);
    let seen = project.run(&["agent", "start", "ada"]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert!(seen.stderr.contains("is not what was made"), "{}", seen.stderr);
}
