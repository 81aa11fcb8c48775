//! Where skills are looked for, which of one name counts, and who must be trusted.

use std::sync::{Arc, Mutex};

use adjutant_skills::{
    ErrorKind, FindingKind, Root, Scope, Severity, Skills, Status, Trust, limits,
};

use crate::stage::{Den, names};

#[test]
fn folders_are_passed_over_when_they_have_no_skill() {
    let den = Den::new()
        .plain("skills/group/heron", "Stand.")
        .file("skills/notes/readme.md", "No skill.")
        .file("skills/loose.md", "No skill.")
        .plain("skills/.git/hook", "Hidden.")
        .plain("skills/node_modules/left-pad", "Not ours.");
    let skills = den.load();
    assert_eq!((names(&skills), den.told(&skills)), (vec!["heron"], vec![]));
}

#[test]
fn skill_below_a_skill_is_a_file_of_it() {
    let den = Den::new()
        .plain("skills/heron", "Stand.")
        .plain("skills/heron/inner", "Sit.");
    let skills = den.load();
    assert_eq!(names(&skills), ["heron"]);
    assert_eq!(&*skills.all()[0].files()[0].path, "inner/SKILL.md");
}

#[test]
fn root_is_a_skill_when_it_has_a_file() {
    let den = Den::new()
        .plain("skills/heron", "Stand.")
        .file("skills/heron/x.txt", "x");
    let skills = Skills::load([Root::named(den.path("skills/heron"))]).expect("it can be read");
    assert_eq!(names(&skills), ["heron"]);
    assert_eq!(skills.all()[0].scope(), Scope::Named);
}

#[test]
fn missing_root_is_no_error_unless_it_was_named() {
    let den = Den::new().file("plain.txt", "no folder");
    let missing = den.path("nowhere");
    let skills =
        Skills::load([Root::user(&missing), Root::project(&missing)]).expect("they need not exist");
    assert!(skills.is_empty() && skills.findings().is_empty());
    let error = Skills::load([Root::named(&missing)]).expect_err("it must exist");
    let expect = format!("there is no folder of skills: {}", missing.display());
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Missing, expect)
    );
    let error = Skills::load([Root::user(&missing).required()]).expect_err("it must exist");
    assert_eq!(error.kind(), ErrorKind::Missing);
    let error = Skills::load([Root::named(den.path("plain.txt"))]).expect_err("it is no folder");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let skills =
        Skills::load([Root::project(den.path("plain.txt"))]).expect("it may be what it likes");
    assert_eq!(
        den.told(&skills),
        [(
            "plain.txt".into(),
            Severity::Warning,
            FindingKind::Unreadable
        )]
    );
}

/// A heron of the user and one of the project.
fn two() -> Den {
    Den::new()
        .plain("user/heron", "The user's.")
        .plain("project/heron", "The project's.")
}

fn load(den: &Den, trust: Trust) -> Skills {
    let roots = [
        Root::user(den.path("user")),
        Root::project(den.path("project")).trust(trust),
    ];
    Skills::load(roots).expect("they can be read")
}

#[test]
fn project_counts_over_the_user_when_it_is_trusted() {
    let den = two();
    let skills = load(&den, Trust::Allowed);
    assert_eq!(
        skills.get("heron").expect("it is used").body(),
        "The project's."
    );
    let all: Vec<_> = skills
        .all()
        .iter()
        .map(|skill| (skill.scope(), skill.status()))
        .collect();
    assert_eq!(
        all,
        [
            (Scope::Project, Status::Used),
            (Scope::User, Status::Shadowed)
        ]
    );
    assert_eq!(
        den.told(&skills),
        [(
            "user/heron/SKILL.md".into(),
            Severity::Warning,
            FindingKind::Shadowed
        )]
    );
}

#[test]
fn project_is_listed_and_not_used_when_nobody_trusts_it() {
    let den = two().plain("project/kestrel", "Hover.");
    let skills = load(&den, Trust::default());
    assert_eq!(
        skills.get("heron").expect("it is used").body(),
        "The user's.",
        "it takes nobody's place"
    );
    assert_eq!(names(&skills), ["heron"]);
    let idle: Vec<_> = skills
        .all()
        .iter()
        .filter(|skill| skill.status() == Status::Untrusted)
        .collect();
    assert_eq!(idle.len(), 2);
    assert_eq!(
        den.told(&skills),
        [("project".into(), Severity::Warning, FindingKind::Untrusted)]
    );
    assert_eq!(
        skills.tokens().on_demand,
        skills.get("heron").expect("it is used").body_tokens()
    );
}

#[test]
fn somebody_is_asked_once_when_trust_is_a_question() {
    for answer in [true, false] {
        let den = two().plain("project/kestrel", "Hover.");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        let trust = Trust::ask(move |ask| {
            kept.lock()
                .expect("nobody panics inside")
                .push((ask.path.clone(), ask.names.clone()));
            answer
        });
        let skills = load(&den, trust.clone());
        assert_eq!(skills.get("kestrel").is_some(), answer);
        let names = vec![Arc::from("heron"), Arc::from("kestrel")];
        assert_eq!(
            *asked.lock().expect("nobody panics inside"),
            [(den.path("project"), names)]
        );
        Skills::load([Root::project(den.path("nowhere")).trust(trust)]).expect("it need not exist");
        assert_eq!(
            asked.lock().expect("nobody panics inside").len(),
            1,
            "nothing is asked about nothing"
        );
    }
}

#[test]
fn named_root_counts_over_all_others() {
    let den = two().plain("named/heron", "The named one.");
    let roots = [
        Root::user(den.path("user")),
        Root::project(den.path("project")).trust(Trust::Allowed),
        Root::named(den.path("named")),
    ];
    let skills = Skills::load(roots).expect("they can be read");
    assert_eq!(
        skills.get("heron").expect("it is used").body(),
        "The named one."
    );
}

#[test]
fn first_root_counts_when_two_have_one_scope() {
    let den = two();
    let skills = Skills::load([
        Root::user(den.path("project")),
        Root::user(den.path("user")),
    ])
    .expect("they are read");
    assert_eq!(
        skills.get("heron").expect("it is used").body(),
        "The project's."
    );
}

#[test]
fn skills_too_deep_are_told_and_not_read() {
    let deep = "a/".repeat(limits::MAX_DEPTH);
    let den = Den::new()
        .plain(&format!("skills/{deep}heron"), "Stand.")
        .plain("skills/b/kestrel", "Hover.");
    let skills = den.load();
    assert_eq!(
        (names(&skills), skills.findings()[0].kind),
        (vec!["kestrel"], FindingKind::TooMany)
    );
    let deep = "a/".repeat(limits::MAX_DEPTH - 1);
    let den = Den::new().plain(&format!("skills/{deep}heron"), "Stand.");
    assert_eq!(names(&den.load()), ["heron"]);
}

#[test]
fn skills_beyond_the_limit_are_refused_and_the_others_used() {
    let most = limits::MAX_SKILLS;
    let den = (0..most + 2).fold(Den::new(), |den, at| {
        den.plain(&format!("skills/s{at:04}"), "x")
    });
    let skills = den.load();
    assert_eq!(skills.iter().count(), most);
    let told: Vec<_> = skills
        .findings()
        .iter()
        .map(|finding| finding.kind)
        .collect();
    assert_eq!(told, [FindingKind::TooMany; 2]);
}

#[test]
fn skills_are_left_out_when_the_prompt_has_no_room_for_more() {
    let body = "x".repeat(limits::MAX_BODY_BYTES);
    let den = (0..3).fold(Den::new(), |den, at| {
        den.skill(&format!("skills/s{at}"), &body)
    });
    let skills = den.load();
    assert_eq!(
        (skills.iter().count(), skills.all().len()),
        (1, 3),
        "two of them are longer than there is room"
    );
    let long = "y".repeat(limits::MAX_DESCRIPTION_CHARS);
    let text = format!("---\ndescription: {long}\n---\nx\n");
    let den = (0..60).fold(Den::new(), |den, at| {
        den.skill(&format!("skills/s{at:02}"), &text)
    });
    let skills = den.load();
    assert!(
        skills.iter().count() < 50
            && skills.tokens().listing * 4 <= limits::MAX_LISTING_BYTES as u64
    );
    assert!(
        skills
            .all()
            .iter()
            .any(|skill| skill.status() == Status::LeftOut)
    );
}
