//! Provenance: every byte is pinned, and every change is found.

use std::fs;

use adjutant_runtime::{Backend, ErrorKind, Provenance, provenance::FileKind};
use serde_json::json;
use uuid::Uuid;

use super::desk::{GOOD, in_process, resolved, write_host};

/// Each file is found when it was changed, when it is missing, and when one was added.
#[tokio::test]
async fn every_change_of_a_file_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("skills/sums/scripts")).expect("it can be made");
    for (name, text) in [
        ("adjutant.yaml", "name: clerk"),
        ("guide.md", "Be brief."),
        ("role.md", "You are a clerk."),
        ("table.csv", "a,b"),
        (
            "skills/sums/SKILL.md",
            "---\nname: sums\ndescription: Adds.\n---\n",
        ),
        ("skills/sums/scripts/add.sh", "#!/bin/sh"),
    ] {
        fs::write(at(name), text).expect("it can be written");
    }
    write_host(&at("tool"), &GOOD);
    let manifest = json!({
        "name": "clerk", "entry_agent": "clerk",
        "agents": [{"name": "clerk", "context": [at("guide.md")], "instructions": {"file": at("role.md")}, "tools": ["look"]}],
        "data": [{"file": at("table.csv"), "to": "in/table.csv"}], "skill_folders": [at("skills")],
        "process_tools": [{"name": "look", "description": "Looks.", "binary": at("tool")}],
    });
    let source = at("adjutant.yaml");
    let backend = in_process(&at("home"));
    let agent = backend
        .create(Uuid::new_v4(), resolved(manifest, &[&source]))
        .await
        .expect("it is created");
    agent.prepare().await.expect("it is made");
    let workspace = agent.workspace();
    let provenance = Provenance::collect(&workspace).expect("it is made");
    assert_eq!(provenance.verify(&workspace), []);
    let known: Vec<(FileKind, u64)> = provenance
        .files
        .iter()
        .map(|file| (file.kind, file.bytes))
        .collect();
    assert_eq!(
        known[..6],
        [
            (FileKind::Manifest, 11),
            (FileKind::Instructions, 16),
            (FileKind::Context, 9),
            (FileKind::Skill, 38),
            (FileKind::Skill, 9),
            (FileKind::Data, 3),
        ]
    );
    assert_eq!(
        known[6..].iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [FileKind::Tool, FileKind::Host]
    );
    // The digest of `a,b`, by another program.
    let digest = "1eb7c54d52831bbfe8942af0b1c56b7409523a59ed6ca99c1174fef7eb32c1b5";
    assert_eq!(provenance.files[5].sha256, digest);
    for file in provenance
        .files
        .iter()
        .filter(|file| file.kind != FileKind::Host)
    {
        let path = workspace.file("").join(&file.path);
        let (before, mode) = (
            fs::read(&path).expect("it is there"),
            fs::metadata(&path).expect("it is there").permissions(),
        );
        let found = || {
            let findings = provenance.verify(&workspace);
            findings
                .iter()
                .map(|finding| (finding.to_string(), finding.forbids_start()))
                .collect::<Vec<_>>()
        };
        let told = |what: &str| {
            let forbids = !matches!(file.kind, FileKind::Manifest | FileKind::Data);
            vec![(
                format!(
                    "the {} file {} {what}",
                    file.kind.word(),
                    file.path.display()
                ),
                forbids,
            )]
        };
        // The same length, other bytes.
        let changed: Vec<u8> = before.iter().map(|byte| byte ^ 1).collect();
        fs::write(&path, changed).expect("it can be written");
        assert_eq!(found(), told("was changed"));
        fs::remove_file(&path).expect("it can be deleted");
        assert_eq!(found(), told("is missing"));
        if file.kind != FileKind::Tool {
            std::os::unix::fs::symlink(at("guide.md"), &path).expect("it can be made");
            assert_eq!(found(), told("is missing"), "a link is no file");
            fs::remove_file(&path).expect("it can be deleted");
        }
        fs::write(&path, before).expect("it can be written");
        fs::set_permissions(&path, mode).expect("it can be changed");
        assert_eq!(found(), []);
    }
    let made = workspace.file("prepared.json");
    let before = fs::read_to_string(&made).expect("it is there");
    fs::write(&made, before.replacen("Looks.", "Looks!", 1)).expect("it can be written");
    let found = provenance.verify(&workspace).pop().expect("it is found");
    assert_eq!(
        (&*found.to_string(), found.forbids_start()),
        ("the manifest file prepared.json was changed", true)
    );
    fs::write(&made, before).expect("it can be written");
    fs::write(workspace.skills().join("0/skills/sums/more.md"), "more").expect("it can be written");
    let found: Vec<String> = provenance
        .verify(&workspace)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        ["the skill file skills/0/skills/sums/more.md was added"]
    );
    assert_eq!(
        agent.start().await.expect_err("a file was added").kind(),
        ErrorKind::Config
    );
}
