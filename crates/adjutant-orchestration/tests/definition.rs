//! Agents described in files: what is read, and what is told of what cannot be.

use std::{fs, path::Path};

use adjutant_orchestration::{Definition, ErrorKind, Profile};
use proptest::prelude::*;

fn parse(text: &str) -> Result<Definition, String> {
    Definition::parse(text, Path::new("agents/scout.md")).map_err(|error| error.to_string())
}

#[track_caller]
fn check(text: &str, expect: &str) {
    let error = parse(text).expect_err("it cannot be read");
    assert!(error.starts_with(expect), "{error}");
}

#[test]
fn agent_is_read_when_its_file_is_whole() {
    let text = "---\r\nname: Scout\r\ndescription: Looks around.\r\nmodel: offline/planner\r\ntoolboxes: [files]\r\n\
                skills: [maps]\r\nmax_turns: 9\r\ndelegation: { depth: 2, handoffs: 1 }\r\nexpertise: [maps, roads]\r\n\
                estimated_cost: low\r\nmax_concurrency: 3\r\nprefix: S\r\n---\r\n\r\nLook.\r\n---\r\nAlways.\r\n";
    let read = parse(text).expect("it is whole");
    assert_eq!(
        (&*read.name, &*read.description, read.model.as_deref()),
        ("Scout", "Looks around.", Some("offline/planner"))
    );
    assert_eq!(
        (read.toolboxes.len(), read.skills.len(), read.max_turns),
        (1, 1, Some(9))
    );
    assert_eq!(
        (
            read.depth,
            read.handoffs,
            read.expertise.len(),
            read.max_concurrency
        ),
        (2, 1, 2, Some(3))
    );
    assert_eq!(
        (read.estimated_cost.as_deref(), read.prefix.as_deref()),
        (Some("low"), Some("S"))
    );
    assert_eq!(&*read.instructions, "Look.\r\n---\r\nAlways.");
}

#[test]
fn agent_has_the_name_of_its_file_when_it_names_none() {
    let read = parse("\u{feff}---\ndescription: Looks.\n---").expect("it is whole");
    assert_eq!(
        (&*read.name, &*read.instructions, read.depth, read.model),
        ("scout", "", 0, None)
    );
}

#[test]
fn place_is_told_when_a_file_cannot_be_read() {
    check(
        "Look.",
        "agents/scout.md:1:1: it does not begin with front matter",
    );
    check(
        "---\ndescription: Looks.\n",
        "agents/scout.md:1:1: its front matter does not end",
    );
    check(
        "---\n---\n",
        "agents/scout.md:1:1: `description` is missing",
    );
    check(
        "---\ndescription: ' '\n---\n",
        "agents/scout.md:2:1: `description` is missing",
    );
    check(
        "---\ndescription: x\nname: a/b\n---\n",
        "agents/scout.md:3:1: a name has 1 to 64 letters",
    );
    check(
        "---\ndescription: x\nmax_turns: 0\n---\n",
        "agents/scout.md:3:1: `max_turns` and `max_concurrency` are at least 1",
    );
    check(
        "---\ndescription: x\ntoolbox: files\n---\n",
        "agents/scout.md:3:1: ",
    );
    check(
        "---\ndescription: x\nmax_turns: many\n---\n",
        "agents/scout.md:3:12: ",
    );
    check(
        "---\ndescription: x\ndelegation: { deep: 1 }\n---\n",
        "agents/scout.md:3:",
    );
    check(
        "---\ndescription: x\ndescription: y\n---\n",
        "agents/scout.md:3:1: ",
    );
    check(
        "---\ndescription: x\ndelegation: { depth: 1, depth: 2 }\n---\n",
        "agents/scout.md:3:25: ",
    );
    check("---\na: &a [1]\ndescription: *a\n---\n", "agents/scout.md");
    check(
        &format!("---\ndescription: {}\n---\n", "[".repeat(100_000)),
        "agents/scout.md",
    );
    let unknown = parse("---\ndescription: x\ntoolbox: files\n---\n").expect_err("it is unknown");
    assert!(
        unknown.contains("toolbox") && unknown.contains("toolboxes"),
        "{unknown}"
    );
}

#[test]
fn profile_tells_what_others_choose_by() {
    let text = "---\ndescription: Looks.\nexpertise: [maps]\nestimated_cost: low\nmax_concurrency: 3\n\
                delegation: { depth: 2, handoffs: 1 }\n---\n";
    let profile = parse(text).expect("it is whole").profile();
    let expect = Profile::new("scout", "Looks.")
        .skill("maps")
        .cost_estimate("low")
        .max_concurrency(3);
    assert_eq!(profile, expect.max_depth(2).max_handoffs(1));
    assert_eq!(
        parse("---\ndescription: x\n---\n")
            .expect("it is whole")
            .profile(),
        Profile::new("scout", "x")
    );
}

#[test]
fn folder_gives_what_it_can_when_some_files_are_broken() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).expect("it is written");
    write("b.md", b"---\ndescription: B.\n---\nB.");
    write("a.md", b"---\ndescription: A.\n---\nA.");
    write("c.md", b"---\ndescription: C.\nname: A\n---\n");
    write("d.md", &[0xff, 0xfe]);
    write("note.txt", b"not an agent");
    write("e.md", &vec![b'x'; (1 << 20) + 1]);
    fs::create_dir(folder.path().join("f.md")).expect("it is made");
    let (read, problems) = Definition::folder(folder.path()).expect("the folder is there");
    assert_eq!(
        read.iter().map(|it| &*it.name).collect::<Vec<_>>(),
        ["a", "b"]
    );
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(
        told[0].contains("another agent \"A\"") && told[1].contains("no UTF-8"),
        "{told:?}"
    );
    assert!(
        told[2].contains("more than 1048576 bytes") && told[3].contains("is no file"),
        "{told:?}"
    );
    let missing = Definition::folder(&folder.path().join("none")).expect_err("there is none");
    assert_eq!(missing.kind(), ErrorKind::Missing);
}

proptest! {
    #[test]
    fn file_is_read_or_refused_whatever_it_holds(text in "(---\n)?(.|\n){0,200}(\n---\n)?(.|\n){0,50}") {
        let _ = parse(&text);
    }
}
