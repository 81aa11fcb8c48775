//! Files beside a `SKILL.md`: which are listed, how they are read, and what cannot be reached.

use adjutant_llm::{CallResult, Status};
use adjutant_skills::limits;
use serde_json::json;

use crate::stage::{Den, run};

fn den() -> Den {
    Den::new()
        .plain("skills/heron", "Stand.")
        .file("skills/heron/legs.md", "Two.\nLong.\n")
        .file("skills/heron/scripts/wade.py", "print('wade')")
        .file("skills/heron/.hidden", "x")
        .file("skills/kestrel/SKILL.md", "Hover.")
        .file("outside.txt", "secret")
}

async fn read(den: &Den, path: &str, start_line: u64) -> CallResult {
    let args = json!({"skill": "heron", "path": path, "start_line": start_line});
    run(&den.load(), &[("read_skill_file", args)])
        .await
        .0
        .remove(0)
}

#[test]
fn files_are_listed_when_they_are_regular_and_not_hidden() {
    let den = den();
    let skills = den.load();
    let files = skills.get("heron").expect("it is used").files();
    let shown: Vec<(&str, u64)> = files.iter().map(|file| (&*file.path, file.size)).collect();
    assert_eq!(shown, [("legs.md", 11), ("scripts/wade.py", 13)]);
}

#[tokio::test]
async fn files_listed_are_bounded_and_it_is_told() {
    let den = (0..200).fold(den(), |den, at| {
        den.file(&format!("skills/heron/data/{at:03}.txt"), "x")
    });
    let skills = den.load();
    assert_eq!(
        skills.get("heron").expect("it is used").files().len(),
        limits::MAX_LISTED_FILES
    );
    let (results, _) = run(&skills, &[("load_skill", json!({"name": "heron"}))]).await;
    assert!(
        results[0]
            .text()
            .contains("/049.txt (1 B), and more. Paths"),
        "{}",
        results[0].text()
    );
}

#[test]
fn files_are_listed_to_a_depth_and_it_is_told() {
    let deep = "d/".repeat(limits::MAX_LISTED_DEPTH);
    let den = den()
        .file(&format!("skills/heron/{deep}here.md"), "x")
        .file(&format!("skills/heron/{deep}d/not.md"), "x");
    let skills = den.load();
    let files = skills.get("heron").expect("it is used").files();
    assert_eq!(
        files
            .iter()
            .filter(|file| file.path.starts_with("d/"))
            .count(),
        1,
        "{files:?}"
    );
}

#[test]
fn folders_beyond_the_limit_are_told_and_not_looked_at() {
    let most = limits::MAX_FOLDERS;
    let den = (0..most + 5).fold(Den::new(), |den, at| {
        den.file(&format!("skills/f{at:05}/x"), "x")
    });
    let den = den.plain("skills/a", "First.").plain("skills/z", "Last.");
    let skills = den.load();
    let names: Vec<&str> = skills.iter().map(|skill| skill.name()).collect();
    assert_eq!((names, skills.findings().len()), (vec!["a"], 1));
    assert_eq!(
        skills.findings()[0].kind,
        adjutant_skills::FindingKind::TooMany
    );
}

#[tokio::test]
async fn file_is_read_relative_to_its_skill() {
    let den = den();
    assert_eq!(
        read(&den, "legs.md", 1).await.text(),
        "Two.\nLong.\n[end of `legs.md`, 11 B]"
    );
    assert_eq!(
        read(&den, "./legs.md", 2).await.text(),
        "Long.\n[end of `./legs.md`, 11 B]"
    );
    assert_eq!(
        read(&den, "scripts/wade.py", 1).await.text(),
        "print('wade')\n[end of `scripts/wade.py`, 13 B]"
    );
    let result = read(&den, "legs.md", 1).await;
    assert_eq!(
        (result.pinned, &result.details["file"]),
        (false, &json!("legs.md"))
    );
}

#[tokio::test]
async fn file_is_refused_when_it_is_outside_or_no_text() {
    let den = den()
        .file("skills/heron/photo.png", b"\x89PNG\0\xff")
        .file("skills/heron/latin.txt", b"\xF6");
    let absolute = den.path("outside.txt").display().to_string();
    let outside = "is not in the skill's folder; paths are relative to it and stay inside";
    let cases = [
        ("../../outside.txt", Status::Denied, outside),
        ("../kestrel/SKILL.md", Status::Denied, outside),
        ("scripts/../../kestrel/SKILL.md", Status::Denied, outside),
        ("/etc/passwd", Status::Denied, outside),
        (&absolute, Status::Denied, outside),
        ("", Status::Denied, outside),
        ("legs.md\0", Status::Denied, outside),
        (".", Status::Failed, "is a folder; name a file in it"),
        ("scripts", Status::Failed, "is a folder; name a file in it"),
        (
            "nothing.md",
            Status::Failed,
            "the skill has no file `nothing.md`",
        ),
        (
            "legs.md/x",
            Status::Failed,
            "the skill has no file `legs.md/x`",
        ),
        (
            "photo.png",
            Status::Failed,
            "`photo.png` is a binary file of 6 B, not text",
        ),
        ("latin.txt", Status::Failed, "is a binary file"),
    ];
    for (path, status, part) in cases {
        let result = read(&den, path, 1).await;
        assert!(
            result.status == status && result.text().contains(part),
            "{path:?}: {result:?}"
        );
    }
    let result = read(&den, "legs.md", 9).await;
    assert_eq!(
        (result.status, result.text().as_str()),
        (Status::Failed, "`legs.md` has no line 9")
    );
}

#[tokio::test]
async fn file_is_shown_in_parts_when_it_is_long() {
    let lines: String = (1..=10_000).map(|at| format!("line {at}\n")).collect();
    let den = den().file("skills/heron/long.txt", &lines);
    let (mut next, mut all) = (1, String::new());
    loop {
        let text = read(&den, "long.txt", next).await.text();
        let (part, footer) = text.rsplit_once('\n').expect("there is a footer");
        assert!(part.len() <= limits::MAX_SHOWN_BYTES);
        all += part;
        all.push('\n');
        let Some((_, line)) = footer.split_once("; read on with start_line=") else {
            break;
        };
        next = line.trim_end_matches(']').parse().expect("it is a number");
    }
    assert_eq!(all, lines);
}

#[tokio::test]
async fn file_is_cut_clearly_when_it_or_a_line_is_huge() {
    let den = den().file("skills/heron/line.txt", "é".repeat(100_000) + "\nend");
    let text = read(&den, "line.txt", 1).await.text();
    assert!(
        text.ends_with(
            "\n[line 1 is cut: it is longer than 65536 bytes; read on with start_line=2]"
        ),
        "{text}"
    );
    assert!(
        read(&den, "line.txt", 2)
            .await
            .text()
            .starts_with("end\n[end of ")
    );
    let huge = "x\n".repeat(limits::MAX_READ_BYTES as usize / 2 + 10);
    let den = den.file("skills/heron/huge.txt", huge);
    let text = read(&den, "huge.txt", limits::MAX_READ_BYTES / 2 - 1)
        .await
        .text();
    assert_eq!(
        text,
        "x\nx\n[cut after line 2097152: a file of 4096.0 KB is read up to 4096.0 KB]"
    );
}

#[tokio::test]
async fn tool_is_not_there_when_no_skill_has_files() {
    let den = Den::new().plain("skills/heron", "Stand.");
    let (results, requests) = run(
        &den.load(),
        &[("read_skill_file", json!({"skill": "heron", "path": "x"}))],
    )
    .await;
    assert_eq!(results[0].status, Status::UnknownTool);
    let names: Vec<&str> = requests[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["load_skill"]);
}

#[tokio::test]
async fn files_of_inline_skills_are_named_and_read() {
    let den = den().file("skills/kestrel/wings.md", "Two.");
    let args = json!({"skill": "kestrel", "path": "wings.md"});
    let (results, requests) = run(&den.load(), &[("read_skill_file", args)]).await;
    assert_eq!(results[0].text(), "Two.\n[end of `wings.md`, 4 B]");
    assert!(
        requests[0]
            .system
            .contains("[Files in the skill's folder kestrel: wings.md (4 B).")
    );
}

#[cfg(unix)]
#[tokio::test]
async fn file_is_refused_when_it_is_a_link_out_or_no_regular_file() {
    use std::os::unix::fs::symlink;
    let den = den();
    let at = |name: &str| den.path("skills/heron").join(name);
    symlink("../../outside.txt", at("out.txt")).expect("links can be made");
    symlink(den.path("outside.txt"), at("absolute.txt")).expect("links can be made");
    symlink("..", at("up")).expect("links can be made");
    symlink("loop.txt", at("loop.txt")).expect("links can be made");
    symlink("/dev/zero", at("zero")).expect("links can be made");
    symlink("legs.md", at("inside.md")).expect("links can be made");
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU)
        .expect("a pipe can be made");
    for (path, status) in [
        ("out.txt", Status::Denied),
        ("absolute.txt", Status::Denied),
        ("up/kestrel/SKILL.md", Status::Denied),
        ("zero", Status::Denied),
        ("loop.txt", Status::Failed),
        ("pipe", Status::Failed),
        ("inside.md", Status::Ok),
    ] {
        let result = read(&den, path, 1).await;
        assert_eq!(result.status, status, "{path}: {result:?}");
    }
    let skills = den.load();
    assert_eq!(
        skills.get("heron").expect("it is used").files().len(),
        2,
        "links and pipes are not listed"
    );
}
