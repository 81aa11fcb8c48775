//! Files that mean harm, and files that are broken: they are refused, and nothing panics.

use std::{fs, sync::LazyLock};

use adjutant_runtime::Manifest;
use proptest::prelude::*;

use crate::folder::{FULL, Folder, SHORT, lookup};

/// What is told first.
fn first(text: &str) -> String {
    let folder = Folder::new();
    let problems = folder.wrong(text);
    problems.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn yaml_bombs_are_refused() {
    let mut bomb =
        "name: a\noptions:\n  extra:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let before = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb += &format!("    a{n}: &a{n} [{before}]\n");
    }
    assert_eq!(
        first(&bomb),
        "adjutant.yaml:8:24: there are more than 50000 values, those that anchors and aliases repeat included"
    );
    let deep = format!("name: {}{}", "[".repeat(100), "]".repeat(100));
    assert_eq!(
        first(&deep),
        "adjutant.yaml:1:39: values stand in each other more than 32 levels deep"
    );
    let anchors: String = (0..200).map(|n| format!("    a{n}: &a{n} x\n")).collect();
    assert_eq!(
        first(&format!("name: a\noptions:\n  extra:\n{anchors}")),
        "adjutant.yaml:132:17: there are more than 128 anchors"
    );
    let aliases: String = (0..600).map(|n| format!("    b{n}: *a\n")).collect();
    let text = format!("name: a\noptions:\n  extra:\n    a: &a x\n{aliases}");
    assert_eq!(
        first(&text),
        "adjutant.yaml:517:11: there are more than 512 aliases"
    );
    let long = format!(
        "name: a\noptions: {{extra: [&a {}, {}]}}\n",
        "x".repeat(1 << 19),
        "*a, ".repeat(500)
    );
    assert!(first(&long).ends_with(
        "there are more than 50000 values, those that anchors and aliases repeat included"
    ));
    let itself = "name: a\noptions: {extra: &x {y: *x}}\n";
    assert_eq!(
        first(itself),
        "adjutant.yaml:2:25: an alias cannot stand for the value that it is in"
    );
    let many = format!("name: a\nexpertise: [{}]\n", "x, ".repeat(60_000));
    assert!(first(&many).ends_with(
        "there are more than 50000 values, those that anchors and aliases repeat included"
    ));
}

#[test]
fn huge_file_is_refused() {
    assert_eq!(
        first(&format!("name: a\n# {}\n", "x".repeat(1 << 20))),
        "adjutant.yaml: it has more than 1048576 bytes"
    );
}

#[test]
fn problems_are_told_up_to_a_number() {
    let folder = Folder::new();
    let fields: String = (0..80).map(|n| format!("field{n}: 1\n")).collect();
    let problems = folder
        .read(&format!("name: a\nmodel: offline/planner\n{fields}"))
        .expect_err("it is wrong");
    assert_eq!(problems.iter().len(), 50);
}

#[cfg(unix)]
#[test]
fn paths_are_refused_when_they_lead_elsewhere() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new();
    symlink("/etc/passwd", folder.path("link.md")).expect("a link");
    symlink("..", folder.path("up")).expect("a link");
    symlink("docs/style.md", folder.path("inner.md")).expect("a link");
    symlink("/dev/zero", folder.path("zero.md")).expect("a link");
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("pipe.md"))
        .status()
        .expect("it is there");
    assert!(made.success());
    fs::write(folder.path("huge.md"), vec![b'x'; (1 << 20) + 1]).expect("a file");
    let paths = [
        "/etc/passwd",
        "../x.md",
        "docs/../../x.md",
        "link.md",
        "up/nobody-made-this.md",
        "up",
        "zero.md",
        "pipe.md",
        "huge.md",
        "docs",
        "none.md",
        "''",
        "\"a\\0b\"",
        "docs/style.md/x",
    ];
    let list: String = paths.iter().map(|path| format!("  - {path}\n")).collect();
    insta::assert_snapshot!(folder.wrong(&format!("name: a\ncontext:\n{list}")), @r#"
    adjutant.yaml:3:5: "/etc/passwd": it is absolute; it must be relative and stay in the folder
    adjutant.yaml:4:5: "../x.md": `..` leads out of the folder
    adjutant.yaml:5:5: "docs/../../x.md": `..` leads out of the folder
    adjutant.yaml:6:5: "link.md": a link leads out of the manifest's folder
    adjutant.yaml:7:5: "up/nobody-made-this.md": there is no such file
    adjutant.yaml:8:5: "up": a link leads out of the manifest's folder
    adjutant.yaml:9:5: "zero.md": a link leads out of the manifest's folder
    adjutant.yaml:10:5: "pipe.md": it is no file
    adjutant.yaml:11:5: "huge.md": it has more than 1048576 bytes
    adjutant.yaml:12:5: "docs": it is no file
    adjutant.yaml:13:5: "none.md": there is no such file
    adjutant.yaml:14:5: "": it is empty
    adjutant.yaml:15:5: "a\0b": a path has at most 1024 bytes and no control characters
    adjutant.yaml:16:5: "docs/style.md/x": it stands in what is no folder
    "#);
    let text = "name: a\ninstructions: {file: ../lead.md}\ninclude: [/etc/x.md, ../*.md, none/*.md, docs/none.md]\n\
                skill_folders: [../skills, docs/style.md, none]\n\
                data:\n  - {file: /etc/passwd}\n  - {file: pipe.md}\n  - {file: data/birds.csv, to: ../x}\n  \
                - {file: data/birds.csv, to: /x}\n  - {file: docs/style.md, to: t}\n  - {file: docs/terms.md, to: ./t/u}\n\
                toolboxes: [{name: files, root: ..}]\nsessions: {store: {path: ../../agent.db}}\nreflections: {folder: /tmp}\n\
                process_tools:\n  - {name: a, description: A., binary: docs/style.md}\n  - {name: b, description: B., binary: ./none}\n  \
                - {name: c, description: C., binary: ./docs}\n  - {name: d, description: D., binary: ''}\n";
    insta::assert_snapshot!(folder.wrong(text), @r#"
    adjutant.yaml:2:22: "../lead.md": `..` leads out of the folder
    adjutant.yaml:3:11: "/etc/x.md": it is absolute; it must be relative and stay in the folder
    adjutant.yaml:3:22: "../*.md": `..` leads out of the folder
    adjutant.yaml:3:31: "none/*.md": there is no such folder
    adjutant.yaml:3:42: "docs/none.md": there is no such file
    adjutant.yaml:4:17: "../skills": `..` leads out of the folder
    adjutant.yaml:4:28: "docs/style.md": it is no folder
    adjutant.yaml:4:43: "none": there is no such folder
    adjutant.yaml:6:12: "/etc/passwd": it is absolute; it must be relative and stay in the folder
    adjutant.yaml:7:12: "pipe.md": it is no file
    adjutant.yaml:8:32: "../x": `..` leads out of the folder
    adjutant.yaml:9:32: "/x": it is absolute; it must be relative and stay in the folder
    adjutant.yaml:11:5: "t" and "t/u" are laid over each other
    adjutant.yaml:12:33: "..": `..` leads out of the folder
    adjutant.yaml:13:26: "../../agent.db": `..` leads out of the folder
    adjutant.yaml:14:23: "/tmp": it is absolute; it must be relative and stay in the folder
    adjutant.yaml:16:40: "docs/style.md": it may not be executed
    adjutant.yaml:17:40: "./none": there is no such file
    adjutant.yaml:18:40: "./docs": it is no file
    adjutant.yaml:19:40: "": it is no path of a program
    "#);
    let loaded = folder
        .read("name: a\ncontext: [inner.md]\ndata: [{file: inner.md}]\n")
        .expect("a link inside is no harm");
    let context = folder.plain(
        &serde_json::to_string(&loaded.manifest.agents[0].context).expect("it can be written"),
    );
    let data =
        folder.plain(&serde_json::to_string(&loaded.manifest.data).expect("it can be written"));
    assert_eq!(context, r#"[{"file":"docs/style.md","name":"inner.md"}]"#);
    assert_eq!(data, r#"[{"file":"docs/style.md","to":"inner.md"}]"#);
}

#[cfg(unix)]
#[test]
fn manifest_is_refused_when_it_is_no_file() {
    let folder = Folder::new();
    let says = |name: &str| folder.plain(&folder.load(name).expect_err("it is none").to_string());
    assert_eq!(says("none.yaml"), "none.yaml: there is no such file");
    assert_eq!(says("docs"), "docs: it is no file");
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("pipe.yaml"))
        .status()
        .expect("it is there");
    assert!(made.success());
    assert_eq!(says("pipe.yaml"), "pipe.yaml: it is no file");
    fs::write(folder.path("bytes.yaml"), b"name: \xff\n").expect("a file");
    assert_eq!(says("bytes.yaml"), "bytes.yaml: it is no UTF-8");
    let error = Manifest::load("/dev/zero", lookup)
        .expect_err("it is none")
        .to_string();
    assert_eq!(error, "/dev/zero: it is no file");
}

#[test]
fn manifest_cannot_extend_itself() {
    let folder = Folder::new();
    folder.write("a.yaml", "name: a\nextends: b.yaml\n");
    folder.write("b.yaml", "extends: ./a.yaml\n");
    let error = folder
        .load("a.yaml")
        .expect_err("it is a circle")
        .to_string();
    let expect =
        "b.yaml:1:10: \"./a.yaml\": a manifest cannot extend itself, not by way of others either";
    assert_eq!(folder.plain(&error), expect);
}

/// A text with some of its bytes or lines changed.
fn mutated(text: &str, changes: &[(prop::sample::Index, u8, String)]) -> String {
    let mut text = text.to_owned();
    for (at, how, what) in changes {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        if places.is_empty() {
            break;
        }
        let place = places[at.index(places.len())];
        let end = text[place..]
            .chars()
            .next()
            .map_or(place, |c| place + c.len_utf8());
        match how % 4 {
            0 => text.replace_range(place..end, ""),
            1 => text.replace_range(place..end, what),
            2 => text.insert_str(place, what),
            _ => {
                let lines: Vec<&str> = text.lines().collect();
                let (from, to) = (
                    at.index(lines.len().max(1)),
                    usize::from(*how) % lines.len().max(1),
                );
                let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
                if !lines.is_empty() {
                    lines.swap(from, to);
                }
                text = lines.join("\n");
            }
        }
    }
    text
}

/// What all broken manifests stand in.
static FOLDER: LazyLock<Folder> = LazyLock::new(Folder::new);

proptest! {
    #[test]
    fn reading_never_panics_when_a_manifest_is_broken(
        is_full in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), "[ -~\\n]{0,6}|&a|\\*a|\\$\\{|- |: |\\PC"), 0..12),
    ) {
        let text = mutated(if is_full { FULL } else { SHORT }, &changes);
        match Manifest::parse(&text, FOLDER.path("adjutant.yaml"), lookup) {
            Ok(loaded) => {
                let resolved = loaded.resolve(adjutant_runtime::Overrides::default()).expect("it was right before");
                let yaml = resolved.to_yaml().expect("it can be written");
                prop_assert_eq!(adjutant_runtime::Resolved::from_yaml(&yaml).expect("it can be read"), resolved);
            }
            Err(problems) => prop_assert!(problems.iter().len() > 0),
        }
    }
}
