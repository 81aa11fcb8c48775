//! What breaks the specification, with its place.

use adjutant_skills::{ErrorKind, FindingKind, Severity, check};

use crate::stage::Den;

/// Checks one skill in `skills/heron`.
#[track_caller]
fn told(text: &str, expect: &[(&str, FindingKind)]) {
    let den = Den::new().skill("skills/heron", text);
    let checked = check(&den.path("skills/heron")).expect("it can be read");
    let found: Vec<_> = checked
        .findings
        .iter()
        .map(|it| (den.at(it), it.kind))
        .collect();
    let expect: Vec<_> = expect
        .iter()
        .map(|(at, kind)| (format!("skills/heron/SKILL.md{at}"), *kind))
        .collect();
    assert_eq!(found, expect, "{:#?}", checked.findings);
    assert!(
        checked
            .findings
            .iter()
            .all(|it| (it.severity == Severity::Error) != (it.kind == FindingKind::BodyEmpty))
    );
}

#[test]
fn check_finds_nothing_when_a_skill_follows_the_specification() {
    told(
        "---\nname: heron\ndescription: Stands.\nmetadata:\n  v: '1'\nallowed-tools: Read Grep\n---\nBody\n",
        &[],
    );
}

#[test]
fn check_tells_all_that_breaks_the_specification() {
    told("Body\n", &[(":1", FindingKind::NoFrontMatter)]);
    told(
        "---\nname: heron\ndescription: x\n",
        &[(":1:1", FindingKind::UnclosedFrontMatter)],
    );
    told(
        "---\nname: heron\n---\nBody\n",
        &[(":1", FindingKind::DescriptionMissing)],
    );
    told(
        "---\ndescription: x\n---\nBody\n",
        &[(":1", FindingKind::NameMissing)],
    );
    told(
        "---\nname: kestrel\ndescription: x\n---\nBody\n",
        &[(":2:7", FindingKind::NameMismatch)],
    );
    told(
        "---\nname: A--b\ndescription: x\n---\nBody\n",
        &[(":2:7", FindingKind::NameInvalid)],
    );
    told(
        "---\nname: heron\ndescription: x\nmodel: big\n---\nBody\n",
        &[(":4:1", FindingKind::UnknownField)],
    );
    told(
        "---\nname: heron\ndescription: x\nlicense: [MIT]\n---\nBody\n",
        &[(":4:10", FindingKind::FieldType)],
    );
    told(
        "---\nname: heron\ndescription: x\n---\n",
        &[("", FindingKind::BodyEmpty)],
    );
    let long = "x".repeat(1_025);
    told(
        &format!("---\nname: heron\ndescription: {long}\n---\nBody\n"),
        &[(":3:14", FindingKind::TooLong)],
    );
    told(
        "---\nname: heron\nname: heron\n---\nBody\n",
        &[(":3:1", FindingKind::Yaml)],
    );
}

#[test]
fn check_takes_a_file_a_skill_or_a_folder_of_skills() {
    let den = Den::new()
        .plain("skills/heron", "Stand.")
        .plain("skills/kestrel", "Hover.")
        .file("empty/x.txt", "x");
    for (path, count) in [
        ("skills", 2),
        ("skills/heron", 1),
        ("skills/heron/SKILL.md", 1),
        ("empty", 0),
    ] {
        let checked = check(&den.path(path)).expect("it can be read");
        assert_eq!(
            (checked.skills.len(), checked.findings.len()),
            (count, usize::from(count == 0)),
            "{path}"
        );
    }
    let none = check(&den.path("empty")).expect("it can be read");
    assert_eq!(
        (none.findings[0].severity, none.findings[0].kind),
        (Severity::Error, FindingKind::Missing)
    );
    assert_eq!(
        check(&den.path("nowhere"))
            .expect_err("there is none")
            .kind(),
        ErrorKind::Missing
    );
}

#[test]
fn check_tells_of_a_folder_whose_name_is_no_name() {
    let den = Den::new().skill(
        "skills/My_Heron",
        "---\nname: heron\ndescription: x\n---\nBody\n",
    );
    let checked = check(&den.path("skills")).expect("it can be read");
    let kinds: Vec<_> = checked.findings.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [FindingKind::NameMismatch, FindingKind::FolderName]);
}

#[test]
fn check_advises_when_a_body_is_long() {
    let den = Den::new().plain("skills/heron", &"line\n".repeat(501));
    let checked = check(&den.path("skills")).expect("it can be read");
    assert_eq!(
        (checked.findings[0].severity, checked.findings[0].kind),
        (Severity::Warning, FindingKind::BodyLong)
    );
    assert!(den.load().findings().is_empty());
}
