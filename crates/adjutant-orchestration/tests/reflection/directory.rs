//! Reflections in files: private, whole, inside their directory, beside whatever else lies there.

use std::{fs, path::Path, sync::Arc};

use adjutant_llm::FixedWorld;
use adjutant_orchestration::{
    ErrorKind, Reflections,
    reflection::{Failed, Outcome},
};
use tempfile::TempDir;

use super::{NOW_MS, failed, summaries};

fn place() -> (TempDir, Reflections) {
    let folder = tempfile::tempdir().expect("a folder");
    let reflections = at(folder.path());
    (folder, reflections)
}

fn at(path: &Path) -> Reflections {
    Reflections::in_dir(path).world(Arc::new(FixedWorld::at_ms(NOW_MS)))
}

/// The names of all files, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is a directory");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn file_is_markdown_that_people_can_read() {
    let (folder, reflections) = place();
    let failed = Failed {
        caveats: Some("Look first.".into()),
        files_modified: vec!["src/lib.rs".into()],
        ..failed("Build the parser", "The toolchain was too old.")
    };
    let id = reflections.record(&failed).await.expect("it is recorded");
    reflections
        .outcome(&[id], Outcome::Helped)
        .await
        .expect("it is counted");
    let file = fs::read_to_string(folder.path().join("coder-20000229-000000.md"))
        .expect("the file is there");
    let expect = "---\nagent: \"coder\"\ntask: \"Build the parser\"\ncreated_ms: 951782400000\nhelped: 1\nuseless: 0\n\
                  unknown: 0\nstate: active\n---\n\n## Task\n\nBuild the parser\n\n## Summary\n\n\
                  The toolchain was too old.\n\n## Caveats\n\nLook first.\n\n## Files Modified\n\n- src/lib.rs\n";
    assert_eq!(file, expect);
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_private_and_nothing_else_is_left() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, _) = place();
    let path = folder.path().join("new");
    let reflections = at(&path);
    let id = reflections
        .record(&failed("Build it", "No."))
        .await
        .expect("it is recorded");
    reflections
        .outcome(&[id], Outcome::Unknown)
        .await
        .expect("it is counted");
    assert_eq!(names(&path), [".lock", "coder-20000229-000000.md"]);
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(&path.join("coder-20000229-000000.md")), 0o600);
    assert_eq!((mode(&path.join(".lock")), mode(&path)), (0o600, 0o700));
}

#[tokio::test]
async fn nothing_leaves_the_directory_when_agents_have_hostile_names() {
    let (folder, _) = place();
    let path = folder.path().join("inside");
    let reflections = at(&path);
    for agent in [
        "../../evil",
        "/etc/passwd",
        "..",
        "a/b\0c",
        "C:\\evil",
        ".lock",
        "-rf",
        "日本",
        &"x".repeat(5_000),
    ] {
        let failed = Failed {
            agent: agent.into(),
            ..failed("Build it", agent)
        };
        reflections.record(&failed).await.expect("it is recorded");
    }
    assert_eq!(names(folder.path()), ["inside"]);
    let found = names(&path);
    assert_eq!(found.len(), 10, "{found:?}");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    assert!(
        found
            .iter()
            .all(|name| name.chars().all(is_plain) && name.len() < 100),
        "{found:?}"
    );
    assert_eq!(
        reflections.list().await.expect("a list").reflections.len(),
        9
    );
}

#[tokio::test]
async fn foreign_and_broken_files_are_passed_over_and_told() {
    let (folder, reflections) = place();
    let id = reflections
        .record(&failed("Build it", "No."))
        .await
        .expect("it is recorded");
    let good =
        fs::read_to_string(folder.path().join(format!("{id}.md"))).expect("the file is there");
    let put = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).expect("it is written")
    };
    put("README.md", b"# Hello");
    put("coder-20000229-000001.md", b"no front part");
    put("coder-20000229-000002.md", &[0xff, 0xfe]);
    put(
        "coder-20000229-000003.md",
        format!("{good}{}", "x".repeat(70_000)).as_bytes(),
    );
    put(
        "coder-20000229-000004.md",
        good.replace("helped: 0", "helped: -1").as_bytes(),
    );
    put(".coder-20000229-000005.md.swp", b"hidden");
    fs::create_dir(folder.path().join("coder-20000229-000006.md")).expect("it is made");
    let mut told = 6;
    if cfg!(unix) {
        told += 2;
        links(folder.path(), &id.0);
    }
    let listing = reflections.list().await.expect("a list");
    assert_eq!(summaries(&listing.reflections), ["No."]);
    assert_eq!(listing.skipped.len(), told, "{:#?}", listing.skipped);
    assert_eq!(
        reflections
            .recall("build it")
            .await
            .expect("it is recalled")
            .len(),
        1
    );
    // Counting leaves them alone, too.
    let ids: Vec<_> = (1..9)
        .map(|n| format!("coder-20000229-00000{n}").as_str().into())
        .collect();
    let before = names(folder.path());
    reflections
        .outcome(&ids, Outcome::Helped)
        .await
        .expect_err("they cannot be counted");
    assert_eq!(names(folder.path()), before);
}

#[cfg(unix)]
fn links(folder: &Path, id: &str) {
    use std::os::unix::fs::symlink;
    symlink(
        folder.join(format!("{id}.md")),
        folder.join("coder-20000229-000007.md"),
    )
    .expect("a link");
    symlink("/dev/zero", folder.join("coder-20000229-000008.md")).expect("a link");
}

#[cfg(not(unix))]
fn links(_: &Path, _: &str) {}

#[tokio::test]
async fn failure_is_an_error_value_when_the_directory_cannot_be_used() {
    let (folder, _) = place();
    let path = folder.path().join("file");
    fs::write(&path, "not a directory").expect("it is written");
    let reflections = at(&path.join("below"));
    let error = reflections
        .record(&failed("Build it", "No."))
        .await
        .expect_err("it is no directory");
    assert_eq!(error.kind(), ErrorKind::Store);
    let error = at(&path)
        .recall("build it")
        .await
        .expect_err("it is no directory");
    assert_eq!(error.kind(), ErrorKind::Store);
    let id = "coder-20000229-000000".into();
    at(&path)
        .outcome(&[id], Outcome::Helped)
        .await
        .expect("there is no such reflection");
}

#[tokio::test]
async fn edits_of_people_are_read_when_they_keep_the_form() {
    let (folder, reflections) = place();
    let file = "---\r\nagent: coder\r\ncreated_ms: 7\r\nhelped: 3\r\n---\r\n\r\n# Mine\r\n\r\n## Task\r\n\r\nBuild the \
                parser\r\n\r\n## Summary\r\nUse nightly.\r\n\r\n## Thoughts\r\n\r\nHm.\r\n";
    fs::write(folder.path().join("coder-20000101-000000.md"), file).expect("it is written");
    let found = reflections
        .recall("build parser")
        .await
        .expect("it is recalled");
    let [it] = found.as_slice() else {
        panic!("one is found: {found:?}")
    };
    assert_eq!(
        (&*it.summary, it.tally.helped, it.caveats.as_deref()),
        ("Use nightly.", 3, None)
    );
}
