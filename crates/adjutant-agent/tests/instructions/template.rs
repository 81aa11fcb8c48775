//! Instructions made of a template.

use adjutant_agent::instructions::{
    InstructionContext, InstructionErrorKind, Instructions, Template,
};
use serde_json::{Value, json};

use super::{cx, map};

#[track_caller]
fn check(template: &str, state: Value, expect: &str) {
    let template = Template::new(template).expect("the template compiles");
    let rendered = template
        .render(&map(state))
        .map_err(|error| error.explain());
    assert_eq!(rendered.as_deref(), Ok(expect));
}

#[track_caller]
fn check_error(template: Template, state: Value, kind: InstructionErrorKind, message: &str) {
    let error = template
        .render(&map(state))
        .expect_err("the template does not render");
    assert_eq!((error.kind, error.to_string().as_str()), (kind, message));
}

fn knowing(state: Value) -> InstructionContext {
    InstructionContext {
        state: map(state).into(),
        ..cx()
    }
}

fn compile(source: &str) -> Template {
    Template::new(source).expect("the template compiles")
}

#[tokio::test]
async fn template_is_rendered_from_the_state_of_each_run() {
    let instructions = Instructions::from("text").template(compile("You help {{ user.name }}.\n"));
    for name in ["Ada", "<Bob & Co>"] {
        let resolved = instructions
            .resolve(knowing(json!({"user": {"name": name}})))
            .await;
        assert_eq!(
            *resolved.expect("the template renders"),
            format!("You help {name}.\n")
        );
    }
}

#[test]
fn template_shows_the_state_when_it_is_given() {
    let template = "You are {{ role }}.{% if user.admin %} Root.{% else %} Guest.{% endif %}\
        {% for tool in user.tools %} {{ loop.index }}:{{ tool.name }}{% endfor %}";
    let state = |admin: bool| json!({"role": "a scout", "user": {"admin": admin, "tools": [{"name": "ls"}, {"name": "cat"}]}});
    check(template, state(true), "You are a scout. Root. 1:ls 2:cat");
    check(template, state(false), "You are a scout. Guest. 1:ls 2:cat");
}

#[tokio::test]
async fn template_error_names_variable_and_line_when_resolved() {
    let instructions = Instructions::from(compile("one\n{{ user.nick }}"));
    let error = instructions
        .resolve(knowing(json!({"user": {}})))
        .await
        .expect_err("it is strict");
    let what =
        "the template could not be rendered at line 2: undefined value: `user.nick` is undefined";
    assert_eq!((error.to_string().as_str(), error.line), (what, Some(2)));
}

#[test]
fn strict_template_fails_when_a_variable_is_undefined_or_null() {
    let missing = InstructionErrorKind::Missing;
    let at = "the template could not be rendered at line 1: undefined value: ";
    for source in [
        "{{ x }}",
        "{{ x | upper }}",
        "{% if x %}a{% endif %}",
        "{% for y in x %}a{% endfor %}",
        "{{ x.y }}",
    ] {
        check_error(
            compile(source),
            json!({"y": 1}),
            missing,
            &format!("{at}`x` is undefined"),
        );
    }
    check_error(
        compile("{{ x }}"),
        json!({"x": null}),
        missing,
        &format!("{at}what is to be printed is null"),
    );
    check(
        r#"{{ x | default("-") }}{% if x is defined %}a{% endif %}"#,
        json!({}),
        "-",
    );
}

#[test]
fn lenient_template_prints_nothing_when_a_variable_is_undefined_or_null() {
    let template =
        compile("[{{ x }}{{ x.y.z }}{{ n }}{% if x %}a{% endif %}{% for y in x %}b{% endfor %}]")
            .lenient();
    assert_eq!(
        template
            .render(&map(json!({"n": null})))
            .as_deref()
            .expect("it is lenient"),
        "[]"
    );
}

#[test]
fn required_variables_are_all_named_when_missing() {
    let template = compile("{{ a }}")
        .lenient()
        .with_required(["a", "b", "c", "d"]);
    let state = json!({"b": null, "c": ""});
    check_error(
        template,
        state,
        InstructionErrorKind::Missing,
        "missing required variables: a, b, d",
    );
    let template = compile("{{ a }}").with_required(["a"]);
    assert_eq!(
        template
            .render(&map(json!({"a": 1})))
            .as_deref()
            .expect("it is there"),
        "1"
    );
}

#[test]
fn template_is_refused_with_its_line_when_it_does_not_parse() {
    let error = Template::new("one\ntwo\n{% if x %}").expect_err("it is open");
    assert_eq!(
        (error.kind, error.line),
        (InstructionErrorKind::Template, Some(3))
    );
    let message = error.to_string();
    assert!(
        message.starts_with("the template could not be compiled at line 3: syntax error: "),
        "{message}"
    );
    let error =
        Template::new("{% include \"/etc/passwd\" %}").expect_err("no template loads another");
    assert_eq!(error.kind, InstructionErrorKind::Template);
}

#[test]
fn template_fails_when_a_filter_is_unknown() {
    let what =
        "the template could not be rendered at line 1: unknown filter: filter nope is unknown";
    check_error(
        compile("{{ 1 | nope }}"),
        json!({}),
        InstructionErrorKind::Template,
        what,
    );
}

#[test]
fn template_fails_when_it_does_not_end_or_grows() {
    let limit = InstructionErrorKind::Limit;
    let nested = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    let steps = "the template could not be rendered at line 1: it takes more than 1000000 steps";
    check_error(compile(nested), json!({}), limit, steps);
    let bytes = "the rendered template is longer than its limit: 1048576 bytes";
    check_error(
        compile("{{ x * 1048577 }}"),
        json!({"x": "y"}),
        limit,
        bytes,
    );
    let full = compile("{{ x * 1048576 }}")
        .render(&map(json!({"x": "y"})))
        .expect("it fits");
    assert_eq!(full.len(), 1_048_576);
}

#[test]
fn state_is_never_taken_for_a_template() {
    check(
        "{{ x }}",
        json!({"x": "{{ y }}{% raw %}"}),
        "{{ y }}{% raw %}",
    );
}

#[test]
fn template_keeps_integers_and_the_order_of_keys() {
    let state = json!({"n": u64::MAX, "m": {"z": 1, "a": 2}});
    check(
        "{{ n }}{% for k, v in m | items %} {{ k }}{{ v }}{% endfor %}",
        state,
        "18446744073709551615 z1 a2",
    );
}

#[test]
fn builtins_cover_what_other_template_languages_have() {
    let state = || json!({"t": "hello big World", "l": ["a", "b", "c"], "e": "", "n": null, "p": "src/main.rs"});
    check(
        "{{ 1 == 1 }} {{ 1 != 1 }} {{ 1 < 2 }} {{ 2 <= 1 }} {{ t is eq(t) }}",
        state(),
        "True False True False True",
    );
    check(
        "{{ t | upper }} {{ t | lower }} {{ t | title }}",
        state(),
        "HELLO BIG WORLD hello big world Hello Big World",
    );
    check(
        "{{ '  a ' | trim }}{{ t | replace('o', '0') }}",
        state(),
        "ahell0 big W0rld",
    );
    check(
        "{{ p | trim_prefix('src/') }} {{ p | trim_suffix('.rs') }}",
        state(),
        "main.rs src/main",
    );
    check(
        "{{ p | trim_prefix('x') }} {{ p | trim_suffix('x') }}",
        state(),
        "src/main.rs src/main.rs",
    );
    check(
        "{{ 'big' in t }} {{ p is startingwith('src') }} {{ p is endingwith('c') }}",
        state(),
        "True True False",
    );
    check(
        "{{ l | join(', ') }} {{ 'a-b' | split('-') | last }} {{ l | first }}",
        state(),
        "a, b, c b a",
    );
    check(
        "{{ x | default('d') }} {{ e | default('d', true) }} {{ coalesce(x, n, e, 'd') }}|",
        state(),
        "d d |",
    );
    check(
        "{{ e is empty }} {{ [] is empty }} {{ n is empty }} {{ l is empty }}",
        state(),
        "True True True False",
    );
    check("{{ 'yes' if l else 'no' }}", state(), "yes");
    check(
        "{{ 'a\nb' | indent(2) }}{{ 'a\n\nb' | nindent(2) }}",
        state(),
        "a\n  b\n  a\n\n  b",
    );
    check(
        r#"{{ 'a"b\\c' | quote }} {{ "it's" | squote }} {{ l | tojson }}"#,
        state(),
        r#""a\"b\\c" 'it\'s' ["a", "b", "c"]"#,
    );
}

#[test]
fn nindent_is_refused_when_it_indents_too_far() {
    let what = "the template could not be rendered at line 1: invalid operation: \
                `nindent` indents by 256 spaces at most, not by 257";
    check_error(
        compile("{{ 'a' | nindent(257) }}"),
        json!({}),
        InstructionErrorKind::Template,
        what,
    );
}

#[test]
fn clone_of_a_template_keeps_its_strictness_when_the_other_becomes_lenient() {
    let strict = compile("{{ x }}");
    let lenient = strict.clone().lenient();
    assert_eq!(
        lenient
            .render(&map(json!({})))
            .as_deref()
            .expect("it is lenient"),
        ""
    );
    assert_eq!(
        strict
            .render(&map(json!({})))
            .expect_err("it is strict")
            .kind,
        InstructionErrorKind::Missing
    );
}
