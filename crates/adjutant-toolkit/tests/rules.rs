//! Rules: a table of command lines, files, hosts and modes, and that no compound of a denied command is ever allowed.

use std::sync::{Arc, atomic::Ordering};

use adjutant_llm::CallResult;
use adjutant_tool::{
    Answer, CallContext, Cancel, Replay, ToolErrorKind, ToolHints, ToolSpec, Toolbox, Tools,
    serde_json::{Value, json},
    tool_fn,
};
use adjutant_toolkit::{AccessMode, Decision, ErrorKind, Rule, Rules};
use proptest::prelude::*;

use super::log::Watched;

const RULES: &str = "
# what a careful person might say
allow shell(git log *)
allow shell(git status)
allow shell(ls *)
allow shell(cat *)
allow shell(echo *)
allow shell(cargo test *)
allow shell(grep *)
allow shell(find *)
allow shell(cd *)
allow shell(python3 *)
allow shell(sudo apt update)
allow edit(out/**)
ask shell(git push *)
deny shell(rm *)
deny shell(git push --force *)
deny edit(secrets/**)
";

fn rules() -> Rules {
    Rules::new("/root/of/it")
        .with(RULES, "rules")
        .expect("they are right")
}

fn spec(tool: &str) -> ToolSpec {
    ToolSpec::new(tool, "Does it.", json!({ "type": "object" }))
}

fn shell(rules: &Rules, line: &str) -> Decision {
    rules
        .decide(&spec("run_command"), &json!({ "command": line }))
        .decision
}

#[test]
fn command_line_is_decided_about_as_the_table_says() {
    let names = [
        ("<NL>", "\n"),
        ("<ZWSP>", "\u{200b}"),
        ("<NBSP>", "\u{a0}"),
        ("<RLO>", "\u{202e}"),
        ("<ESC>", "\u{1b}"),
        ("<CR>", "\r"),
        ("<NUL>", "\0"),
        ("<BOM>", "\u{feff}"),
        ("<EMPTY>", ""),
        ("<SPACE>", " "),
    ];
    let (rules, mut wrong, mut lines) = (rules(), Vec::new(), 0);
    for row in include_str!("rules/lines.txt")
        .lines()
        .filter(|row| !row.starts_with('#') && !row.is_empty())
    {
        let (expect, line) = row.split_once(' ').expect("a verdict and a line");
        let line = names.iter().fold(line.to_owned(), |line, (name, text)| {
            line.replace(name, text)
        });
        let found = rules.decide(&spec("run_command"), &json!({ "command": line }));
        if json!(found.decision) != json!(expect) {
            wrong.push(format!(
                "{row}: {:?}, because {}",
                found.decision, found.why
            ));
        }
        lines += 1;
    }
    assert!(
        wrong.is_empty(),
        "{} of {lines}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(lines >= 200, "{lines}");
}

/// Command lines that run what is put into them, whatever stands around it.
fn compound() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "rm -rf x",
        "rm",
        "'rm' x",
        "r\\m x",
        "\"rm\" x",
        "/bin/rm -f x",
        "r''m y",
        "rm \"a b\"",
        "git push --force",
    ]);
    let around = [
        "ls && {}",
        "{} && ls",
        "ls; {}",
        "ls | {}",
        "ls || {}",
        "ls & {}",
        "({})",
        "{ {}; }",
        "ls\n{}",
        "if ls; then {}; fi",
        "for f in a b; do {}; done",
        "while ls; do {}; done",
        "! {}",
        "f() { {}; }; f",
        "A=1 {}",
        "{} > out/x",
        "{} 2>&1",
        "echo $({})",
        "echo \"$({})\"",
        "cat <({})",
        "${x:-$({})}",
        "ls \\\n && {}",
        "sudo {}",
        "env A=1 {}",
        "timeout 5 {}",
        "xargs {}",
        "nohup {} &",
        "time {}",
        "command {}",
        "find . -exec {} \\;",
        "case x in a) {};; esac",
        "ls # x\n{}",
        "echo 'a' \"b\"; {}",
        "{}; exit",
        "(cd src; {})",
        "[[ -f x ]] && {}",
    ];
    leaf.prop_map(str::to_owned)
        .prop_recursive(4, 16, 2, move |inner| {
            (prop::sample::select(around.to_vec()), inner)
                .prop_map(|(around, inner)| around.replacen("{}", &inner, 1))
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_compound_of_a_denied_command_is_ever_allowed(line in compound(), all in any::<bool>()) {
        let rules = rules().with("allow shell(*)\nallow shell\n", "more").expect("they are right");
        let rules = if all { rules.mode(AccessMode::All) } else { rules };
        prop_assert_ne!(shell(&rules, &line), Decision::Allow, "{}", line);
    }

    #[test]
    fn any_text_is_decided_about(line in any::<String>(), words in prop::collection::vec(any::<String>(), 0..5)) {
        let rules = rules();
        shell(&rules, &line);
        rules.decide(&spec("run_command"), &json!({ "argv": words }));
        let _ = line.parse::<Rule>();
    }
}

#[test]
fn mode_decides_where_no_rule_does() {
    let read = ToolSpec {
        replay: Replay::Pure,
        ..spec("read_file")
    };
    let fetch = json!({ "url": "https://Docs.Example.org:443/x" });
    let patch =
        json!({ "patch": "*** Begin Patch\n*** Update File: a\n*** Move to: ../b\n*** End Patch" });
    use Decision::{Allow, Ask, Deny};
    // (tool, arguments, plan, ask, edits, all)
    let table = [
        (
            read.clone(),
            json!({ "path": "a" }),
            [Allow, Allow, Allow, Allow],
        ),
        (spec("update_plan"), json!({}), [Allow, Allow, Allow, Allow]),
        (
            spec("write_file"),
            json!({ "path": "a" }),
            [Deny, Ask, Allow, Allow],
        ),
        (
            spec("write_file"),
            json!({ "path": "/root/of/it/a" }),
            [Deny, Ask, Allow, Allow],
        ),
        (
            spec("write_file"),
            json!({ "path": "../a" }),
            [Deny, Ask, Ask, Allow],
        ),
        (
            spec("move_file"),
            json!({ "from": "a", "to": "/etc/a" }),
            [Deny, Ask, Ask, Allow],
        ),
        (spec("apply_patch"), patch, [Deny, Ask, Ask, Allow]),
        (
            spec("run_command"),
            json!({ "command": "make" }),
            [Deny, Ask, Ask, Allow],
        ),
        (
            spec("run_command"),
            json!({ "argv": ["make", "$x"] }),
            [Deny, Ask, Ask, Allow],
        ),
        (
            spec("run_command"),
            json!({ "command": "make > a" }),
            [Deny, Ask, Ask, Allow],
        ),
        (spec("run_command"), json!({}), [Deny, Ask, Ask, Allow]),
        (spec("fetch"), fetch, [Deny, Ask, Ask, Allow]),
        (spec("send_mail"), json!({}), [Deny, Ask, Ask, Allow]),
    ];
    for (spec, args, expect) in table {
        let rules = Rules::new("/root/of/it");
        let found = [
            AccessMode::Plan,
            AccessMode::Ask,
            AccessMode::Edits,
            AccessMode::All,
        ]
        .map(|mode| {
            rules.set_mode(mode);
            rules.decide(&spec, &args).decision
        });
        assert_eq!(found, expect, "{} {args}", spec.name());
    }
}

#[test]
fn rule_is_about_the_tool_and_its_arguments() {
    use Decision::{Allow, Ask, Deny};
    // (rules, tool, arguments, decision in mode `ask`, in mode `all`)
    let table = [
        (
            "allow edit(src/**)",
            "write_file",
            json!({ "path": "src/a/b.rs" }),
            Allow,
            Allow,
        ),
        (
            "allow edit(src/**)",
            "write_file",
            json!({ "path": "./src/../src/a" }),
            Allow,
            Allow,
        ),
        (
            "allow edit(src/**)",
            "write_file",
            json!({ "path": "src/../a" }),
            Ask,
            Allow,
        ),
        (
            "allow edit(src/**)",
            "move_file",
            json!({ "from": "src/a", "to": "a" }),
            Ask,
            Allow,
        ),
        (
            "allow edit",
            "write_file",
            json!({ "path": "/etc/a" }),
            Ask,
            Allow,
        ),
        (
            "deny edit",
            "write_file",
            json!({ "path": "/etc/a" }),
            Deny,
            Deny,
        ),
        (
            "deny edit(*.lock)\nallow edit",
            "edit_file",
            json!({ "path": "a/Cargo.lock" }),
            Deny,
            Deny,
        ),
        (
            "deny read(.env)",
            "read_file",
            json!({ "path": "a/.env" }),
            Deny,
            Deny,
        ),
        (
            "deny read(.env)",
            "run_command",
            json!({ "command": "cat < .env" }),
            Deny,
            Deny,
        ),
        (
            "allow fetch(example.org)",
            "fetch",
            json!({ "url": "http://example.org./x" }),
            Allow,
            Allow,
        ),
        (
            "allow fetch(example.org)",
            "fetch",
            json!({ "url": "http://a.example.org" }),
            Ask,
            Allow,
        ),
        (
            "allow fetch(*.example.org)",
            "fetch",
            json!({ "url": "http://a.example.org" }),
            Allow,
            Allow,
        ),
        (
            "allow fetch(example.org)",
            "fetch",
            json!({ "url": "http://example.org@evil.org" }),
            Ask,
            Allow,
        ),
        (
            "allow fetch(example.org)",
            "fetch",
            json!({ "url": "http://evil.org\\@example.org" }),
            Ask,
            Allow,
        ),
        (
            "deny fetch(example.org)",
            "fetch",
            json!({ "url": "HTTPS://EXAMPLE.org:8080" }),
            Deny,
            Deny,
        ),
        (
            "deny fetch(example.org)",
            "fetch",
            json!({ "url": "http://ex%61mple.org" }),
            Deny,
            Deny,
        ),
        (
            "deny fetch(*)",
            "fetch",
            json!({ "url": "http://[2606:4700::1111]/" }),
            Deny,
            Deny,
        ),
        (
            "ask fetch(*)",
            "fetch",
            json!({ "url": "http:example.org" }),
            Ask,
            Ask,
        ),
        (
            "deny fetch(93.184.216.34)",
            "fetch",
            json!({ "url": "http://1572395042/" }),
            Deny,
            Deny,
        ),
        (
            "deny read(.env)",
            "move_file",
            json!({ "from": ".env", "to": "b" }),
            Deny,
            Deny,
        ),
        (
            "deny shell(rm *)",
            "run_command",
            json!({ "argv": ["env", "bash -c 'a;b;c' ".repeat(100_000)] }),
            Ask,
            Ask,
        ),
        ("allow send_mail", "send_mail", json!({}), Allow, Allow),
        ("ask send_mail", "send_mail", json!({}), Ask, Ask),
        (
            "deny send_mail\nallow send_mail",
            "send_mail",
            json!({}),
            Deny,
            Deny,
        ),
        (
            "ask edit(a)\nallow edit",
            "write_file",
            json!({ "path": "a" }),
            Ask,
            Ask,
        ),
        (
            "allow run_command",
            "run_command",
            json!({ "command": "make" }),
            Ask,
            Allow,
        ),
        (
            "deny run_command",
            "run_command",
            json!({ "command": "ls" }),
            Deny,
            Deny,
        ),
        (
            "deny shell(rm *)",
            "run_in_terminal",
            json!({ "command": "ls; rm -r a" }),
            Deny,
            Deny,
        ),
        (
            "allow shell(make *)",
            "run_command",
            json!({ "argv": ["make", "a b"] }),
            Allow,
            Allow,
        ),
        (
            "allow shell(make *)",
            "run_command",
            json!({ "command": "make", "argv": ["make"] }),
            Ask,
            Allow,
        ),
        (
            "allow edit(out/**)\nallow shell(ls)",
            "run_command",
            json!({ "command": "ls > a", "cwd": "out" }),
            Allow,
            Allow,
        ),
        (
            "deny shell(a*c x *)",
            "run_command",
            json!({ "command": "abbc x" }),
            Deny,
            Deny,
        ),
        (
            "deny shell(a *)",
            "run_command",
            json!({ "command": "python3 x" }),
            Ask,
            Ask,
        ),
    ];
    for (text, tool, args, asking, all) in table {
        let rules = Rules::new("/root/of/it")
            .with(text, "rules")
            .expect("they are right");
        let found = [AccessMode::Ask, AccessMode::All].map(|mode| {
            rules.set_mode(mode);
            rules.decide(&spec(tool), &args).decision
        });
        assert_eq!(found, [asking, all], "{text}: {tool} {args}");
    }
}

#[test]
fn link_is_judged_by_where_it_leads_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("it is there");
    std::fs::create_dir(root.join("secrets")).expect("a folder");
    std::fs::write(root.join("secrets/k"), "k").expect("a file");
    std::os::unix::fs::symlink("secrets", root.join("sl")).expect("a link");
    let rules = Rules::new(&root)
        .with("deny read(secrets/**)\ndeny edit(secrets/**)", "rules")
        .expect("they are right");
    rules.set_mode(AccessMode::All);
    for (tool, path) in [
        ("read_file", "sl/k"),
        ("write_file", "sl/new"),
        ("read_file", "secrets/k"),
    ] {
        assert_eq!(
            rules.decide(&spec(tool), &json!({ "path": path })).decision,
            Decision::Deny,
            "{tool} {path}"
        );
    }
}

#[test]
fn rules_are_refused_with_their_line_when_they_are_none() {
    for text in [
        "permit shell(ls)",
        "allow",
        "allow shell(ls",
        "allow shell()",
        "allow sh ell(x)",
        "allow tool(x)",
        "allow edit(!x)",
        "allow shell('x)",
        "deny (x)",
    ] {
        let error = Rules::new("/")
            .with(&format!("# one\n{text}"), ".adjutant/rules")
            .expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Rule);
        assert!(
            error
                .to_string()
                .starts_with(".adjutant/rules:2: not a rule: "),
            "{error}"
        );
    }
    let many = "allow a\n".repeat(1_001);
    assert!(Rules::new("/").with(&many, "x").is_err());
}

#[tokio::test]
async fn question_shows_title_and_hints_of_a_tool_that_is_not_known_here() {
    let long = format!("Send\n{}", "x".repeat(200));
    let destroys = ToolHints {
        destructive: Some(true),
        open_world: Some(true),
        ..ToolHints::default()
    };
    let reads = ToolHints {
        reads_only: Some(true),
        destructive: Some(true),
        ..ToolHints::default()
    };
    let bare = ToolHints::default();
    let table = [
        ("send", None, bare, "mode `ask` asks"),
        (
            "send",
            Some("Send"),
            bare,
            "mode `ask` asks; titled \"Send\"",
        ),
        (
            "send",
            Some("Send"),
            destroys,
            "; titled \"Send\"; by its author's word it may delete or overwrite, reaches the outside world",
        ),
        (
            "send",
            Some(&*long),
            bare,
            &*format!("; titled \"Send\\n{}\"", "x".repeat(95)),
        ),
        // It is still asked about: nothing of it is believed.
        (
            "send",
            None,
            reads,
            "; by its author's word it changes nothing",
        ),
        ("run_command", Some("Run"), destroys, "mode `ask` asks"),
    ];
    for (name, title, hints, expect) in table {
        let told = ToolSpec {
            title: title.map(Into::into),
            hints,
            ..spec(name)
        };
        let tool = tool_fn(told, |_: Value, _: CallContext| async {
            Ok(CallResult::ok("ran"))
        });
        let set = rules()
            .over(Tools::new("any").tool(tool))
            .resolve(&CallContext::detached().who)
            .await
            .expect("a set");
        let ask = set
            .get(name)
            .expect("it is there")
            .approval(&json!({ "command": "make" }))
            .expect("it asks");
        assert!(ask.prompt.ends_with(expect), "{}", ask.prompt);
        assert!(
            ask.data["why"]
                .as_str()
                .is_some_and(|why| why.ends_with(expect)),
            "{}",
            ask.data
        );
    }
}

#[tokio::test]
async fn call_that_is_allowed_always_asks_no_more_and_denied_ones_do_not_run() {
    let rules = Rules::new("/root/of/it")
        .with("deny shell(rm *)", "x")
        .expect("they are right");
    let run = tool_fn(spec("run_command"), |_: Value, _: CallContext| async {
        Ok(CallResult::ok("ran"))
    });
    let set = rules
        .over(Tools::new("shell").tool(run))
        .resolve(&CallContext::detached().who)
        .await
        .expect("a set");
    let tool = set.get("run_command").expect("it is there");
    let args = json!({ "command": "make 'a b' && bash -c 'ls -l' > out/x" });
    let ask = tool.approval(&args).expect("it asks");
    assert!(ask.prompt.starts_with(
        "run: make 'a b' && bash -c 'ls -l' > out/x; no rule allows the command `make a b`"
    ));
    assert!(Answer::approve().fits(&ask).is_ok());
    let added = rules.always(tool.spec(), &args).expect("there is room");
    let texts: Vec<String> = added.iter().map(Rule::to_string).collect();
    assert_eq!(
        texts,
        [r#"allow call(run_command {"command":"make 'a b' && bash -c 'ls -l' > out/x"})"#]
    );
    assert_eq!(ask.data["always"], json!(texts), "the question shows it");
    assert!(tool.approval(&args).is_none(), "exactly this is allowed");
    assert!(tool.approval(&json!({ "command": "make 'a c'" })).is_some());
    // What was noted is known again.
    let again = Rules::new("/root/of/it");
    assert!(
        again.restore("rules.added", &json!({ "rules": texts }))
            && !again.restore("other", &json!({}))
    );
    assert_eq!(again.decide(tool.spec(), &args).decision, Decision::Allow);

    // A rule is noted once, and not forgotten by a call that cannot note it.
    let log = Arc::new(Watched::default());
    let cx = || CallContext::new(CallContext::detached().who, Cancel::new(), log.clone());
    log.is_full.store(true, Ordering::Relaxed);
    tool.call(args.clone(), cx())
        .await
        .expect_err("the log is full");
    log.is_full.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        assert_eq!(
            tool.call(args.clone(), cx()).await.expect("it runs").text(),
            "ran"
        );
    }
    let noted: Vec<_> = texts
        .iter()
        .map(|text| ("rules.added".to_owned(), json!({ "rules": [text] })))
        .collect();
    assert_eq!(log.told(), noted);
    let denied = json!({ "command": "make; rm x" });
    assert!(tool.approval(&denied).is_none(), "nobody is asked in vain");
    let error = tool
        .call(denied, CallContext::detached())
        .await
        .expect_err("it is denied");
    assert_eq!(error.kind, ToolErrorKind::Denied);
    assert!(
        error
            .to_string()
            .contains("the command `rm x`: rule `deny shell(rm *)` of x:1"),
        "{error}"
    );
}
