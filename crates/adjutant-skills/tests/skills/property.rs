//! Whatever stands in a skill's folder: it is read or refused, within bounds, and never panics.

use adjutant_skills::{check, limits};
use proptest::{prelude::*, test_runner::Config};

use crate::stage::Den;

/// Bytes that are like a skill in parts.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"---\n".to_vec()),
        Just(b"---\r\n".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        Just(b"name: heron\n".to_vec()),
        Just(b"description: ".to_vec()),
        Just(b"metadata:\n  a: &a [*a, {b: *a}]\n".to_vec()),
        Just(b"allowed-tools: [1, ~, {a: b}]\n".to_vec()),
        Just(b"? [a]\n: !!binary x\n<<: *a\n".to_vec()),
        "[-:&*!|>'\"%@`{}\\[\\],#?~ \t\n\r0-9a-zé\u{0}\u{feff}\u{2028}\u{1f600}]{0,40}"
            .prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    #[test]
    fn load_reads_or_refuses_when_bytes_are_random(bytes in bytes()) {
        let den = Den::new().skill("skills/heron", &bytes).plain("skills/kestrel", "Hover.");
        let skills = den.load();
        prop_assert!(skills.get("kestrel").is_some());
        match skills.get("heron") {
            Some(skill) => {
                prop_assert!(skill.body().len() <= bytes.len());
                let chars = skill.description().map_or(0, |text| text.chars().count());
                prop_assert!(chars <= limits::MAX_DESCRIPTION_CHARS);
            }
            None => prop_assert!(!skills.findings().is_empty()),
        }
        let checked = check(&den.path("skills")).expect("the folder can be read");
        // A check is stricter than a load, which reads some wrong texts with a warning.
        prop_assert!(checked.skills.len() <= skills.all().len());
    }

    #[test]
    fn body_is_what_stands_behind_the_front_matter(body in "[a-z#<>\n é]{0,200}") {
        let den = Den::new().skill("skills/heron", format!("---\nname: heron\n---\n{body}"));
        let skills = den.load();
        let skill = skills.get("heron").expect("it is used");
        prop_assert_eq!(skill.body(), body.trim_matches('\n').trim_end());
    }
}
