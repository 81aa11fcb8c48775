//! Tests of the data: names, addresses, and changes of single fields.

use std::collections::BTreeSet;

use super::*;

#[test]
fn of_finds_a_dialect_when_the_provider_is_known() {
    let names: BTreeSet<_> = Dialect::all().map(|it| &*it.name).collect();
    assert_eq!(names.len(), DIALECTS.len(), "each name is there once");
    for name in names {
        assert_eq!(Dialect::for_provider(name).name, name);
    }
    assert_eq!(Dialect::for_provider("openai-chat"), &hosted::OPENAI);
    assert_eq!(Dialect::for_provider("azure-chat"), &hosted::AZURE);
    assert_eq!(Dialect::for_provider("groq-chat"), &GENERIC);
    assert_eq!(Dialect::for_provider("nobody"), &GENERIC);
    assert_eq!(Dialect::for_provider(""), &GENERIC);
}

#[test]
fn addresses_are_whole_when_a_provider_has_one() {
    for dialect in Dialect::all() {
        let name = &dialect.name;
        let is_url = dialect.base_url.starts_with("https://")
            || dialect.base_url.starts_with("http://127.0.0.1:");
        assert!(is_url || name == "azure", "{name}");
        assert!(
            !dialect.base_url.ends_with('/') && dialect.path.starts_with('/'),
            "{name}"
        );
        assert!(dialect.base_url_variable.ends_with("_BASE_URL"), "{name}");
        let is_local = dialect.base_url.starts_with("http://");
        assert!(
            is_local || !dialect.key_variables.is_empty(),
            "{name} wants a key"
        );
    }
}

#[test]
fn patched_changes_only_what_a_patch_sets() {
    let json = r#"{"limit":"max_tokens","efforts":{"max":"max"},"key_variables":["MY_KEY"],"tools":false}"#;
    let patch: DialectPatch = serde_json::from_str(json).expect("a patch");
    let patched = hosted::OPENAI.patched(patch.clone());
    let mut expect = hosted::OPENAI;
    expect.limit = LimitField::MaxTokens;
    expect.efforts.max = "max".into();
    expect.key_variables = vec![Cow::Borrowed("MY_KEY")].into();
    expect.tools = false;
    assert_eq!(patched, expect);
    let written = serde_json::to_string(&patch).expect("JSON");
    assert_eq!(
        serde_json::from_str::<DialectPatch>(&written).expect("a patch"),
        patch
    );
    let refused = serde_json::from_str::<DialectPatch>(r#"{"limits":"max_tokens"}"#)
        .expect_err("an unknown field");
    assert!(
        refused.to_string().starts_with("unknown field `limits`"),
        "{refused}"
    );
}

#[test]
fn dialects_are_the_same_when_they_were_stored() {
    for dialect in Dialect::all() {
        let json = serde_json::to_string(dialect).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Dialect>(&json).expect("a dialect"),
            *dialect
        );
    }
}

#[test]
fn name_is_none_when_a_vendor_has_no_such_effort() {
    let names = &hosted::PERPLEXITY.efforts;
    let expect = [
        None,
        Some("minimal"),
        Some("low"),
        Some("medium"),
        Some("high"),
        Some("high"),
        Some("high"),
    ];
    assert_eq!(Effort::ALL.map(|it| names.name(it)), expect);
    let names = &hosted::DEEPSEEK.efforts;
    let expect = ["none", "low", "low", "high", "high", "max", "max"];
    assert_eq!(Effort::ALL.map(|it| names.name(it)), expect.map(Some));
}
