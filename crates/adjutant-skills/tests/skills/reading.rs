//! How a `SKILL.md` is read: every field, every way to be lenient, and what is told.

use adjutant_skills::{FindingKind, Root, Severity, Skills, Status, limits};

use crate::stage::{Den, names};

const WHOLE: &str = "\
---
name: pdf-tools
description: >
  Works with
  PDF files.
license: Apache-2.0
compatibility: Needs poppler.
metadata:
  author: ada
  version: 1.0
allowed-tools: Bash(pdftotext *) Read
---

# PDF

Steps.
";

#[test]
fn skill_has_every_field_when_its_file_is_whole() {
    let den = Den::new().skill("skills/pdf-tools", WHOLE);
    let skills = den.load();
    let skill = skills.get("pdf-tools").expect("it is used");
    assert_eq!(skill.description(), Some("Works with PDF files."));
    assert_eq!(
        (skill.license(), skill.compatibility()),
        (Some("Apache-2.0"), Some("Needs poppler."))
    );
    let metadata: Vec<(&str, &str)> = skill
        .metadata()
        .iter()
        .map(|(key, value)| (&**key, &**value))
        .collect();
    assert_eq!(metadata, [("author", "ada"), ("version", "1.0")]);
    let tools: Vec<&str> = skills
        .allowed_tools("pdf-tools")
        .iter()
        .map(|tool| &**tool)
        .collect();
    assert_eq!(tools, ["Bash(pdftotext *)", "Read"]);
    assert_eq!(
        (skill.body(), skill.is_inline(), skill.status()),
        ("# PDF\n\nSteps.", false, Status::Used)
    );
    assert_eq!(den.told(&skills), []);
}

#[test]
fn skill_is_the_same_when_lines_end_with_carriage_returns_behind_a_mark_of_byte_order() {
    let windows = format!("\u{feff}{}", WHOLE.replace('\n', "\r\n"));
    let den = Den::new().skill("skills/pdf-tools", windows);
    let skills = den.load();
    let skill = skills.get("pdf-tools").expect("it is used");
    assert_eq!(
        (skill.description(), skill.body()),
        (Some("Works with PDF files."), "# PDF\n\nSteps.")
    );
    assert_eq!(den.told(&skills), []);
}

/// Loads one skill in `skills/heron`; what is told of it, and its description and body.
#[track_caller]
fn check(text: &str, told: &[(&str, FindingKind)], expect: (Option<&str>, &str)) {
    let den = Den::new().skill("skills/heron", text);
    let skills = den.load();
    let expect_told: Vec<_> = told
        .iter()
        .map(|(at, kind)| {
            (
                format!("skills/heron/SKILL.md{at}"),
                Severity::Warning,
                *kind,
            )
        })
        .collect();
    assert_eq!(den.told(&skills), expect_told, "{:?}", skills.findings());
    let skill = skills.get("heron").expect("it is used");
    assert_eq!((skill.description(), skill.body()), expect);
}

#[test]
fn skill_is_called_as_its_folder_when_its_name_is_wrong() {
    let of = |name: &str| format!("---\nname: {name}\ndescription: Stands.\n---\nBody\n");
    let expect = (Some("Stands."), "Body");
    check(
        &of("kestrel"),
        &[(":2:7", FindingKind::NameMismatch)],
        expect,
    );
    check(&of("Heron"), &[(":2:7", FindingKind::NameInvalid)], expect);
    check(
        &of("../heron"),
        &[(":2:7", FindingKind::NameInvalid)],
        expect,
    );
    check(&of("her/on"), &[(":2:7", FindingKind::NameInvalid)], expect);
    check(&of("[a, b]"), &[(":2:7", FindingKind::FieldType)], expect);
    check("---\ndescription: Stands.\n---\nBody\n", &[], expect);
}

#[test]
fn skill_is_inline_when_it_has_no_description() {
    check("---\nname: heron\n---\nBody\n", &[], (None, "Body"));
    check(
        "---\nname: heron\ndescription:\n---\nBody\n",
        &[],
        (None, "Body"),
    );
    check(
        "---\nname: heron\ndescription: '  '\n---\nBody\n",
        &[],
        (None, "Body"),
    );
    check("---\n# nothing\n---\nBody\n", &[], (None, "Body"));
    check("---\n---\nBody\n", &[], (None, "Body"));
}

#[test]
fn whole_file_is_the_body_when_there_is_no_front_matter() {
    check(
        "Be brief.\n---\nReally.\n",
        &[],
        (None, "Be brief.\n---\nReally."),
    );
}

#[test]
fn whole_file_is_the_body_when_front_matter_has_no_end() {
    let text = "---\nname: heron\ndescription: Stands.\n\nBody\n";
    check(
        text,
        &[(":1:1", FindingKind::UnclosedFrontMatter)],
        (None, text.trim_end()),
    );
}

#[test]
fn unknown_fields_are_told_and_passed_over() {
    let text = "---\nname: heron\ndescription: Stands.\nversion: 2\ndisable-model-invocation: true\n---\nBody\n";
    let told = [
        (":4:1", FindingKind::UnknownField),
        (":5:1", FindingKind::UnknownField),
    ];
    check(text, &told, (Some("Stands."), "Body"));
}

#[test]
fn allowed_tools_are_read_when_they_are_a_list() {
    let text =
        "---\nname: heron\ndescription: Stands.\nallowed-tools: [Read, 'Bash(git *)']\n---\nBody\n";
    let den = Den::new().skill("skills/heron", text);
    let skills = den.load();
    assert_eq!(
        skills.allowed_tools("heron"),
        ["Read".into(), "Bash(git *)".into()]
    );
    assert_eq!(skills.findings()[0].kind, FindingKind::FieldType);
    assert_eq!(skills.allowed_tools("kestrel"), []);
}

#[test]
fn metadata_that_is_no_text_is_left_out() {
    let text = "---\nname: heron\ndescription: Stands.\nmetadata:\n  a: 1\n  b: {c: d}\n  e: x\n---\nBody\n";
    let den = Den::new().skill("skills/heron", text);
    let skills = den.load();
    let keys: Vec<&str> = skills.all()[0]
        .metadata()
        .keys()
        .map(|key| &**key)
        .collect();
    assert_eq!(keys, ["a", "e"]);
    assert_eq!(
        den.told(&skills)[0],
        (
            "skills/heron/SKILL.md:6:6".into(),
            Severity::Warning,
            FindingKind::FieldType
        )
    );
}

#[test]
fn texts_are_cut_when_they_are_too_long() {
    let (long, needs) = (
        "é".repeat(limits::MAX_DESCRIPTION_CHARS + 1),
        "x".repeat(limits::MAX_COMPATIBILITY_CHARS + 1),
    );
    let den = Den::new().skill(
        "skills/heron",
        format!("---\nname: heron\ndescription: {long}\ncompatibility: {needs}\n---\nBody\n"),
    );
    let skills = den.load();
    let skill = skills.get("heron").expect("it is used");
    let chars = [skill.description(), skill.compatibility()]
        .map(|text| text.map(|text| text.chars().count()));
    assert_eq!(
        chars,
        [
            Some(limits::MAX_DESCRIPTION_CHARS),
            Some(limits::MAX_COMPATIBILITY_CHARS)
        ]
    );
    assert!(
        skills
            .findings()
            .iter()
            .all(|finding| finding.kind == FindingKind::TooLong)
    );
}

#[test]
fn one_skill_is_refused_with_its_place_when_its_yaml_is_wrong() {
    let den = Den::new()
        .skill(
            "skills/heron",
            "---\nname: heron\ndescription: [Use when, always\n---\nBody\n",
        )
        .plain("skills/kestrel", "Hover.");
    let skills = den.load();
    assert_eq!(names(&skills), ["kestrel"]);
    let expect = (
        "skills/heron/SKILL.md:3:14".to_owned(),
        Severity::Error,
        FindingKind::Yaml,
    );
    assert_eq!(den.told(&skills), [expect]);
    let message = skills.findings()[0].to_string();
    assert!(
        message.contains("SKILL.md:3:14: error: the front matter is not YAML: "),
        "{message}"
    );
}

#[test]
fn tokens_are_counted_of_bodies_and_of_the_list() {
    let den = Den::new()
        .plain("skills/heron", &"word ".repeat(100))
        .skill("skills/kestrel", "Hover!");
    let skills = den.load();
    let (heron, kestrel) = (&skills.all()[0], &skills.all()[1]);
    assert_eq!((heron.body_tokens(), heron.listing_tokens()), (125, 6));
    assert_eq!((kestrel.body_tokens(), kestrel.listing_tokens()), (2, 0));
    let tokens = skills.tokens();
    assert_eq!(
        (tokens.inline, tokens.listing, tokens.on_demand),
        (2, 6, 125)
    );
    let by_bytes = |text: &str| text.len() as u64;
    assert_eq!(skills.tokens_by(&by_bytes).inline, 6);
}

#[test]
fn text_with_a_colon_is_read_with_a_warning() {
    let cases = [
        ("description: Use it: often", "Use it: often"),
        (
            "description: Use it when:\n  a user's\n  asks: now\nlicense: MIT",
            "Use it when: a user's asks: now",
        ),
        ("description: a: b\nmetadata:\n  author: ada", "a: b"),
        ("description: @team plans: short", "@team plans: short"),
    ];
    for (lines, expect) in cases {
        let text = format!("---\nname: heron\n{lines}\n---\nBody\n");
        let den = Den::new().skill("skills/heron", &text);
        let skills = den.load();
        let kinds: Vec<_> = skills
            .findings()
            .iter()
            .map(|it| (it.severity, it.kind))
            .collect();
        assert_eq!(kinds, [(Severity::Warning, FindingKind::Yaml)], "{lines}");
        let skill = skills.get("heron").expect("it is used");
        assert_eq!(skill.description(), Some(expect), "{lines}");
        let strict = adjutant_skills::check(&den.path("skills/heron")).expect("it can be read");
        assert_eq!(strict.findings[0].severity, Severity::Error, "{lines}");
    }
}

#[test]
fn skill_file_may_be_lowercase() {
    let den = Den::new()
        .file("skills/heron/skill.md", "Stand.")
        .file("skills/kestrel/SKILL.md", "Hover.")
        .file("skills/kestrel/skill.md", "Not this one.");
    let skills = den.load();
    assert_eq!(names(&skills), ["heron", "kestrel"]);
    assert_eq!(
        skills.get("kestrel").map(|skill| skill.body()),
        Some("Hover.")
    );
    assert!(
        skills
            .get("heron")
            .is_some_and(|skill| skill.files().is_empty())
    );
}

#[test]
fn plugin_root_has_only_children_that_follow_the_specification() {
    let den = Den::new()
        .plain("p/skills/heron", "Stand.")
        .plain("p/skills/group/deep", "Too deep.")
        .file("p/skills/lower/skill.md", "Lower.")
        .skill(
            "p/skills/extra",
            "---\nname: extra\ndescription: x\nmodel: big\n---\nB\n",
        )
        .skill("p/skills/bare", "No front matter.\n")
        .skill(
            "p/skills/other",
            "---\nname: another\ndescription: x\n---\nB\n",
        );
    let root = Root::user(den.path("p/skills")).plugin();
    let skills = Skills::load([root]).expect("it can be read");
    assert_eq!(names(&skills), ["extra", "heron"]);
    assert_eq!(skills.findings().len(), 3, "{:?}", skills.findings());
}
