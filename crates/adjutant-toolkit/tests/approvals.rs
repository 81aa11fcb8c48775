//! Approvals that last: they mean what was shown, whatever the tool is, and each call is decided about again before it starts.

use std::sync::Arc;

use adjutant_llm::CallResult;
use adjutant_tool::{
    Ask, CallAdmission, CallContext, ToolErrorKind, ToolSpec, Toolbox, Tools,
    serde_json::{Value, json},
    tool_fn,
};
use adjutant_toolkit::{AccessMode, Decision, Lasting, Rules};

fn spec(tool: &str) -> ToolSpec {
    ToolSpec::new(tool, "Does it.", json!({ "type": "object" }))
}

fn run(command: &str) -> (&'static str, Value) {
    ("run_command", json!({ "command": command }))
}

#[test]
fn approval_of_a_call_means_just_this_call() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("it is there");
    for name in ["a", "b"] {
        std::fs::create_dir(root.join(name)).expect("a directory");
    }
    let at = |command: &str, cwd: &str| {
        (
            "run_command",
            json!({ "command": command, "cwd": cwd, "timeout_secs": 9 }),
        )
    };
    let file = |tool: &'static str, path: &str| (tool, json!({ "path": path, "content": "x" }));
    let moved = |from: &str, to: &str| ("move_file", json!({ "from": from, "to": to }));
    let patch = |body: &str| {
        let patch = format!("*** Begin Patch\n{body}\n*** End Patch");
        ("apply_patch", json!({ "patch": patch }))
    };
    let fetch = |url: &str| ("fetch", json!({ "url": url }));
    let same = root.join("a").to_string_lossy().into_owned();
    // (the call that is always approved, calls that it means, calls that it does not mean)
    let table = vec![
        (
            run("make x"),
            vec![run("make x"), at("make x", "."), at("make x", "")],
            vec![
                run("make"),
                run("make x y"),
                run("make  x"),
                at("make x", "a"),
                run("make x > out"),
                run("make x < in"),
                run("make x; make x"),
                run("A=1 make x"),
                ("run_command", json!({ "argv": ["make", "x"] })),
                (
                    "run_command",
                    json!({ "command": "make x", "background": true }),
                ),
                ("run_in_terminal", json!({ "command": "make x" })),
            ],
        ),
        (
            at("./run.sh", "a"),
            vec![
                at("./run.sh", "a"),
                at("./run.sh", "a/"),
                at("./run.sh", "b/../a"),
                at("./run.sh", &same),
            ],
            vec![
                run("./run.sh"),
                at("./run.sh", "b"),
                run("a/run.sh"),
                run("cd a && ./run.sh"),
            ],
        ),
        (
            run("cat x | sh"),
            vec![run("cat x | sh")],
            vec![
                run("sh"),
                run("cat y | sh"),
                run("sh < x"),
                run("cat x; sh"),
                run("sh | cat x"),
            ],
        ),
        (
            run("sh < a.sh"),
            vec![run("sh < a.sh")],
            vec![run("sh < b.sh"), run("sh"), run("sh a.sh")],
        ),
        (
            run("make a && make b > out/x"),
            vec![run("make a && make b > out/x")],
            vec![
                run("make b > out/x"),
                run("make b && make a > out/x"),
                run("make a"),
                run("make b > out/y"),
                file("write_file", "out/x"),
            ],
        ),
        (
            run("for f in *.py; do python3 $f; done"),
            vec![run("for f in *.py; do python3 $f; done")],
            vec![run("for f in *.sh; do python3 $f; done"), run("python3 $f")],
        ),
        (
            file("write_file", "src/a"),
            vec![
                file("write_file", "src/a"),
                file("edit_file", "./src/a"),
                patch("*** Update File: src/a"),
            ],
            vec![
                file("delete_file", "src/a"),
                moved("src/a", "b"),
                moved("b", "src/a"),
                file("write_file", "src/b"),
                file("write_file", "src/a/b/../c"),
                run("echo x > src/a"),
                run("rm src/a"),
                patch("*** Delete File: src/a"),
                patch("*** Update File: src/a\n*** Move to: c"),
                patch("*** Update File: src/a\n*** Add File: c"),
            ],
        ),
        (
            file("delete_file", "x"),
            vec![file("delete_file", "x")],
            vec![
                file("write_file", "x"),
                moved("x", "y"),
                file("delete_file", "y"),
                run("rm x"),
            ],
        ),
        (
            moved("x", "y"),
            vec![moved("x", "y")],
            vec![
                moved("y", "x"),
                moved("x", "z"),
                file("delete_file", "x"),
                file("write_file", "y"),
            ],
        ),
        (
            patch("*** Add File: p\n*** Delete File: q"),
            vec![file("write_file", "p"), file("delete_file", "q")],
            vec![file("delete_file", "p"), file("write_file", "q")],
        ),
        (
            patch("*** Update File: x\n*** Move to: y"),
            vec![],
            vec![
                patch("*** Update File: x\n*** Move to: y"),
                file("write_file", "y"),
            ],
        ),
        (
            fetch("https://a.example/x"),
            vec![fetch("https://a.example/x")],
            vec![
                fetch("https://a.example/y"),
                fetch("http://a.example/x"),
                fetch("https://b.example/x"),
            ],
        ),
        (
            ("send_mail", json!({ "to": "a" })),
            vec![("send_mail", json!({ "to": "a" }))],
            vec![
                ("send_mail", json!({ "to": "b" })),
                ("send_mail", json!({})),
                ("send_mails", json!({ "to": "a" })),
            ],
        ),
    ];
    for ((tool, args), means, others) in table {
        let rules = Rules::new(&root);
        let added = rules.always(&spec(tool), &args).expect("there is room");
        let again = Rules::new(&root);
        let texts: Vec<String> = added.iter().map(ToString::to_string).collect();
        again.restore("rules.added", &json!({ "rules": texts }));
        for rules in [rules, again] {
            for (tool, args) in &means {
                let decision = rules.decide(&spec(tool), args).decision;
                assert_eq!(decision, Decision::Allow, "{texts:?} means {tool} {args}");
            }
            for (tool, args) in &others {
                let decision = rules.decide(&spec(tool), args).decision;
                assert_eq!(
                    decision,
                    Decision::Ask,
                    "{texts:?} does not mean {tool} {args}"
                );
            }
        }
    }
}

#[test]
fn rule_for_first_words_is_offered_only_where_no_argument_is_a_program_or_code() {
    let offered = [
        ("cargo test", "allow shell(cargo test *)"),
        ("cargo test -p x --lib", "allow shell(cargo test *)"),
        ("npm test", "allow shell(npm test *)"),
        ("npm run build -- -x", "allow shell(npm run build *)"),
        ("make test", "allow shell(make test *)"),
        ("go test ./...", "allow shell(go test *)"),
        ("pytest -x tests", "allow shell(pytest *)"),
        ("python3 -m pytest -q", "allow shell(python3 -m pytest *)"),
        ("python3 tools/x.py a", "allow shell(python3 tools/x.py *)"),
        ("node build.js", "allow shell(node build.js *)"),
        (
            "bash scripts/test.sh a",
            "allow shell(bash scripts/test.sh *)",
        ),
        ("./scripts/test.sh a", "allow shell(./scripts/test.sh *)"),
        ("FOO=1 cargo test", "allow shell(FOO=1 cargo test *)"),
        ("git -C sub status -s", "allow shell(git -C sub status *)"),
        ("ruff check *.py", "allow shell(ruff check '*.py' *)"),
        ("git commit -m 'a b'", "allow shell(git commit *)"),
    ];
    let refused = [
        "env cargo test",
        "xargs rm",
        "sudo make test",
        "sh -c 'make test'",
        "bash -c make",
        "python3 -c 'x'",
        "python3 -m timeit x",
        "python3 -m pdb x.py",
        "find . -exec rm {} \\;",
        "find . -delete",
        "python3",
        "python3 -",
        "node -e 1",
        "perl -e 1",
        "eval make",
        "make -f x test",
        "make -C .. test",
        "cargo --config x test",
        "PATH=. cargo test",
        "LD_PRELOAD=x make test",
        "GIT_SSH_COMMAND=x git fetch",
        "RUSTC_WRAPPER=x cargo build",
        "NODE_OPTIONS=x npm test",
        "git -c a=b status",
        "git -C .. status",
        "git -C /etc status",
        "git -C ~ status",
        "git config a b",
        "cargo test; make",
        "cargo test > x",
        "cargo test < x",
        "$x",
        "unknown x",
        "npx x",
        "uvx x",
        "curl https://a.example",
        "ssh host x",
        "docker run x",
        "timeout 5 cargo test",
        "/usr/bin/python3 -c x",
        "npm exec x",
        "awk 1 x",
        "sed -i x y",
        "../x.sh",
        "ssh-agent make",
    ];
    let rules = Rules::new("/root/of/it").in_sandbox(true);
    let spec = spec("run_command");
    let prefix = |line: &str| {
        let rule = rules.prefix(&spec, &json!({ "command": line }));
        rule.map(|rule| rule.to_string())
    };
    for (line, expect) in offered {
        assert_eq!(prefix(line).as_deref(), Some(expect), "{line}");
        let agreed = Rules::new("/root/of/it").with(expect, "x").expect("a rule");
        let again = agreed.decide(&spec, &json!({ "command": line })).decision;
        assert_eq!(again, Decision::Allow, "{line} by {expect}");
    }
    for line in refused {
        assert_eq!(prefix(line), None, "{line}");
    }
    let bare = Rules::new("/root/of/it");
    assert!(
        bare.prefix(&spec, &json!({ "command": "cargo test" }))
            .is_none(),
        "without a sandbox"
    );
    let apart = json!({ "command": "cargo test", "cwd": "sub" });
    assert!(rules.prefix(&spec, &apart).is_none());
}

#[test]
fn rule_for_first_words_allows_no_more_than_it_says() {
    let table = [
        ("cargo test *", "cargo test -p x", true),
        ("cargo test *", "cargo test --config x", false),
        ("cargo test *", "FOO=1 cargo test", false),
        ("cargo test *", "cargo run", false),
        ("FOO=1 cargo test *", "FOO=1 cargo test -q", true),
        ("FOO=1 cargo test *", "FOO=2 cargo test", false),
        ("FOO=1 cargo test *", "FOO=1 BAR=2 cargo test", false),
        ("python3 -m pytest *", "python3 -m pytest a", true),
        ("python3 -m pytest *", "python3 -c x", false),
        ("python3 *", "python3 -m pytest", false),
        ("python3 *", "python3 x.py", false),
        ("bash x.sh *", "bash x.sh -c", true),
        ("bash *", "bash x.sh", false),
        ("git -C sub status *", "git -C sub status -s", true),
        ("git -C sub status *", "git -C other status", false),
        ("git status *", "git -c x=y status", false),
        ("ruff check '*.py' *", "ruff check *.py", true),
        ("ruff check *", "ruff check *.py", false),
        ("make test *", "make test SHELL=x", false),
        ("tar *", "tar --use-compress-program=x -xf a", false),
        ("scp *", "scp -S x a b", false),
        ("gcc *", "gcc -wrapper x a.c", false),
        ("curl *", "curl -o x https://a.example", false),
        ("curl *", "curl --output-dir x https://a.example", false),
        ("perl5.36 *", "perl5.36 -e x", false),
        ("setarch *", "setarch x86_64 rm", false),
        ("[ *", "[ -v 'a[$(x)]' ]", false),
    ];
    for (rule, line, expect) in table {
        let rules = Rules::new("/root/of/it");
        let rules = rules
            .with(&format!("allow shell({rule})"), "x")
            .expect("a rule");
        let ruling = rules.decide(&spec("run_command"), &json!({ "command": line }));
        assert_eq!(
            ruling.decision == Decision::Allow,
            expect,
            "{line} by {rule}: {}",
            ruling.why
        );
    }
}

#[test]
fn only_rules_that_the_question_showed_are_agreed_to() {
    let rules = Rules::new("/root/of/it").in_sandbox(true);
    let (spec, args) = (spec("run_command"), json!({ "command": "cargo test" }));
    let shown = |data: Value| Ask {
        data,
        ..Ask::approval("run?")
    };
    let call = r#"allow call(run_command {"command":"cargo test"})"#;
    let table = [
        (json!(null), Lasting::Call, 0),
        (json!({ "always": [] }), Lasting::Call, 0),
        (json!({ "always": ["allow shell(*)"] }), Lasting::Call, 0),
        (
            json!({ "prefix": "allow shell(cargo test *)" }),
            Lasting::Call,
            0,
        ),
        (json!({ "always": [call] }), Lasting::Prefix, 0),
        (
            json!({ "prefix": "allow shell(cargo *)" }),
            Lasting::Prefix,
            0,
        ),
        (json!({ "always": [call] }), Lasting::Call, 1),
        (
            json!({ "prefix": "allow shell(cargo test *)" }),
            Lasting::Prefix,
            1,
        ),
    ];
    for (data, lasting, count) in table {
        let added = rules.agree(&spec, &args, (&shown(data.clone()), lasting));
        assert_eq!(
            added.expect("there is room").len(),
            count,
            "{data} {lasting:?}"
        );
    }
}

#[test]
fn redirect_is_judged_in_every_directory_that_the_line_may_be_in() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("it is there");
    std::fs::create_dir_all(root.join("dir/sub")).expect("a directory");
    std::os::unix::fs::symlink("dir", root.join("link")).expect("a link");
    let denied = [
        "cd dir && echo x > file",
        "cd dir; echo x > file",
        "cd dir || echo x > file",
        "(cd dir && echo x > file)",
        "cd dir/sub && echo x > ../file",
        "cd -P dir && echo x > file",
        "cd -- dir && echo x > file",
        "pushd dir && echo x > file",
        "cd ./dir && echo x >> file",
        "cd other/../dir && echo x > file",
        "cd link && echo x > file",
        "echo x > link/file",
        "builtin cd dir && echo x > file",
        "command cd dir && echo x > file",
        "cd dir && cd sub && echo x > file",
        "echo x > dir/file",
        "echo x | tee dir/file",
        "cp a dir/file",
        "dd if=a of=dir/file",
        "rm dir/file",
        "touch dir/x",
        "install a dir/x",
        "ln a dir/x",
        "truncate -s 0 dir/x",
        "sed -i s/a/b/ dir/x",
        "cd dir && tee file",
        "cd dir && rm file",
        "echo a >&dir/file",
        "echo a &>dir/file",
        "echo a <>dir/file",
        "echo a >|dir/file",
        "cd 'dir' && echo x > file",
        "cd d\"ir\" && echo x > file",
        "if cd dir; then echo x > file; fi",
        "$'cd' dir && echo x > $'file'",
        "tee -a dir/file",
        "perl -pi -e x dir/x",
        "patch dir/x",
    ];
    let unclear = [
        "mv a dir/",
        "rm -r .",
        "rm *",
        "cp -r a dir",
        "cd $x && echo x > file",
        "cd - && echo x > file",
        "cd && echo x > file",
        "cd ~ && echo x > file",
        "eval cd dir && echo x > file",
        "cd d* && echo x > file",
        "cd {dir,x} && echo x > file",
        "source x && echo x > file",
        "pushd +1 && echo x > file",
        "python3 -c x",
        "A=dir/x sh y",
        "cd a b && echo > x",
    ];
    let free = [
        "cd other && echo x > file",
        "echo x > file",
        "tee file",
        "cat dir/file",
        "ls dir",
        "cp a b",
    ];
    let rules = Rules::new(&root)
        .with("deny edit(dir/**)", "x")
        .expect("a rule")
        .mode(AccessMode::All);
    let decide = |line: &str| rules.decide(&spec("run_command"), &json!({ "command": line }));
    for (lines, expect) in [
        (&denied[..], Decision::Deny),
        (&unclear, Decision::Ask),
        (&free, Decision::Allow),
    ] {
        for line in lines {
            let ruling = decide(line);
            assert_eq!(ruling.decision, expect, "{line}: {}", ruling.why);
        }
    }
    let below = json!({ "command": "echo x > file", "cwd": "dir" });
    assert_eq!(
        rules.decide(&spec("run_command"), &below).decision,
        Decision::Deny
    );
}

#[test]
fn file_that_a_command_names_is_denied_to_be_read() {
    let rules = Rules::new("/root/of/it")
        .with("deny read(.env)\nallow shell(*)", "x")
        .expect("a rule");
    for line in [
        "cat .env",
        "cat < .env",
        "cat ./.env",
        "grep x .env",
        "head -n1 sub/.env",
        "cat x .env",
        "curl -d@.env x",
        "grep --file=.env x",
        "grep -f.env x",
        "cd sub && cat .env",
        "cp .env x",
        "cat a | cat - .env",
    ] {
        let ruling = rules.decide(&spec("run_command"), &json!({ "command": line }));
        assert_eq!(ruling.decision, Decision::Deny, "{line}: {}", ruling.why);
    }
}

#[test]
fn file_that_others_obey_asks_in_mode_edits() {
    let rules = Rules::new("/root/of/it").mode(AccessMode::Edits);
    let write = |rules: &Rules, path: &str| {
        rules
            .decide(&spec("write_file"), &json!({ "path": path }))
            .decision
    };
    for path in [
        ".envrc",
        "sub/.mcp.json",
        ".github/workflows/x.yml",
        ".VSCODE/tasks.json",
        "AGENTS.md",
        ".cargo/config.toml",
    ] {
        assert_eq!(write(&rules, path), Decision::Ask, "{path}");
        let all = rules_with("allow edit").mode(AccessMode::Edits);
        assert_eq!(write(&all, path), Decision::Ask, "{path}");
        let named = rules_with(&format!("allow edit({path})"));
        assert_eq!(write(&named, path), Decision::Allow, "{path}");
    }
    assert_eq!(write(&rules, "src/a.rs"), Decision::Allow);
}

fn rules_with(text: &str) -> Rules {
    Rules::new("/root/of/it").with(text, "x").expect("a rule")
}

#[tokio::test]
async fn call_is_decided_about_again_before_it_starts() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("it is there");
    for name in ["a", "b", ".github/workflows"] {
        std::fs::create_dir_all(root.join(name)).expect("a directory");
    }
    let rules = Rules::new(&root).mode(AccessMode::Edits);
    let write = tool_fn(spec("write_file"), |_: Value, _: CallContext| async {
        Ok(CallResult::ok("ran"))
    });
    let tools = rules.over(Tools::new("edits").tool(write));
    let set = tools
        .resolve(&CallContext::detached().who)
        .await
        .expect("a set");
    let tool = set.get("write_file").expect("it is there");
    let started = |asked: Option<Ask>, path: &str| {
        let cx = CallContext::detached().put(Arc::new(CallAdmission { asked }));
        tool.call(json!({ "path": path, "content": "x" }), cx)
    };
    let (inside, outside) = ("a/x.yml", json!({ "path": "a/x.yml", "content": "x" }));
    assert!(tool.approval(&outside).is_none(), "mode `edits` allows it");
    assert!(started(None, inside).await.is_ok());
    // An earlier call of the same reply puts a link in its way.
    std::fs::remove_dir(root.join("a")).expect("it is removed");
    std::os::unix::fs::symlink(".github/workflows", root.join("a")).expect("a link");
    let error = started(None, inside).await.expect_err("it leads elsewhere");
    assert_eq!(error.kind, ToolErrorKind::Denied);
    // Approved where it leads now, it runs until it leads elsewhere.
    let ask = tool.approval(&outside).expect("it asks");
    assert_eq!(
        ask.data["leads_to"],
        json!([root.join(".github/workflows/x.yml")])
    );
    assert!(started(Some(ask.clone()), inside).await.is_ok());
    std::fs::remove_file(root.join("a")).expect("it is removed");
    std::os::unix::fs::symlink(".github", root.join("a")).expect("a link");
    rules.set_mode(AccessMode::Ask);
    assert!(started(Some(ask), inside).await.is_err());
}

#[tokio::test]
async fn command_without_a_command_fails_before_anyone_is_asked() {
    let rules = Rules::new("/root/of/it");
    let run = tool_fn(spec("run_command"), |_: Value, _: CallContext| async {
        Ok(CallResult::ok("ran"))
    });
    let tools = rules.over(Tools::new("shell").tool(run));
    let set = tools
        .resolve(&CallContext::detached().who)
        .await
        .expect("a set");
    let tool = set.get("run_command").expect("it is there");
    for args in [
        json!({}),
        json!({ "command": "ls", "argv": ["ls"] }),
        json!({ "cmd": "rm x" }),
    ] {
        assert!(tool.approval(&args).is_none(), "{args}");
        let error = tool
            .call(args, CallContext::detached())
            .await
            .expect_err("it fails");
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    }
}

#[test]
fn harmless_commands_need_no_approval_in_the_sandbox() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("it is there");
    std::fs::create_dir_all(root.join("src")).expect("a directory");
    std::fs::create_dir(root.join(".git")).expect("a directory");
    let settings = |text: &str| std::fs::write(root.join(".git/config"), text).expect("a file");
    settings("[core]\n\tbare = false\n");
    std::os::unix::fs::symlink("/etc", root.join("out")).expect("a link");
    let harmless = [
        "ls",
        "ls -la src",
        "ls *.rs",
        "cat a",
        "cat a | head -5",
        "head -n 3 a; tail -3 b",
        "wc -l src/*.rs",
        "grep -rn fn src",
        "find . -name x",
        "sort a | uniq",
        "cd src && ls",
        "pwd",
        "echo a",
        "diff a b",
        "ls 2>/dev/null",
        "ls 2>&1 | cat",
        "test -f a",
        "[ -d src ]",
        "stat a",
        "git status",
        "git log --oneline -5",
        "git diff HEAD",
        "git branch -a",
        "git show HEAD:a",
        "git --no-pager log",
        "cat ./src/../a",
        "command -v ls",
        "cut -d: -f1 a",
        "ls && git status",
        "printf x",
        "true",
        "git stash list",
    ];
    let asked = [
        "cat /etc/passwd",
        "cat ../x",
        "cat ~/x",
        "ls > a",
        "ls >> a",
        "cat < a",
        "sort -o x a",
        "sort --output=x a",
        "sort --outp x a",
        "uniq a b",
        "find . -delete",
        "find . -exec rm {} +",
        "rg --pre x y",
        "rg --pre=x y",
        "cat out/passwd",
        "ls $HOME",
        "echo $(ls)",
        "make",
        "rm a",
        "./ls",
        "/bin/ls /etc",
        "A=1 ls",
        "cat -- /etc/passwd",
        "grep -f/etc/passwd a",
        "grep --file=/etc/passwd a",
        "git -c a=b status",
        "git -C .. status",
        "git config -l",
        "git branch new",
        "git branch -D x",
        "git diff --ext-diff",
        "git diff --textconv",
        "git log --output=x",
        "git diff --no-index /etc/passwd a",
        "git grep -Ovi x",
        "git log --format=%G?",
        "git tag x",
        "git stash",
        "git remote add a b",
        "git push",
        "date -s x",
        "tree -o x",
        "cd /etc && ls",
        "cd .. && ls",
        "cd && ls",
        "cd src && cd .. && cd .. && ls",
        "printf -v x y",
        "test -v 'a[$(x)]'",
        "ls &",
        "file -C",
        "env",
        "tail -f a",
        "git submodule status",
        "git bisect log",
        "git help log",
        "wc --files0-from=/x",
        "python3 -c x",
        "git log -p > x",
        "for f in a; do cat $f; done",
        "cat <<E<NL>x<NL>E",
        "cat <(ls)",
        "curl x",
        "tee x",
        "cat /proc/self/environ",
    ];
    let rules = Rules::new(&root).in_sandbox(true);
    let decide = |rules: &Rules, line: &str| {
        let line = line.replace("<NL>", "\n");
        rules
            .decide(&spec("run_command"), &json!({ "command": line }))
            .decision
    };
    for line in harmless {
        // Not every machine has every program.
        if line.contains("git") && !std::path::Path::new("/usr/bin/git").exists() {
            continue;
        }
        assert_eq!(decide(&rules, line), Decision::Allow, "{line}");
        assert_eq!(
            decide(&Rules::new(&root), line),
            Decision::Ask,
            "{line} without a sandbox"
        );
        let plan = Rules::new(&root).in_sandbox(true).mode(AccessMode::Plan);
        assert_eq!(decide(&plan, line), Decision::Deny, "{line} in mode `plan`");
    }
    for line in asked {
        if line == "ls &" {
            continue;
        }
        assert_eq!(decide(&rules, line), Decision::Ask, "{line}");
    }
    // A rule decides first.
    let careful = rules
        .clone()
        .with("ask shell(ls *)\ndeny read(secret)", "x")
        .expect("rules");
    assert_eq!(decide(&careful, "ls"), Decision::Ask);
    assert_eq!(decide(&careful, "cat secret"), Decision::Deny);
    for text in [
        "[core]\n\tfsmonitor = ./x\n",
        "[diff \"a\"]\n\ttextconv = x\n",
        "[filter \"a\"]\n\tclean = x\n",
        "[include]\n\tpath = x\n",
        "[core]\n\tpager = x\n",
        "[diff]\n\texternal = x\n",
        "[diff \"a\"]\n\tcommand = x\n",
        "[alias]\n\tstatus = !x\n",
        "[core]\n\tHooksPath = x\n",
        "[gpg]\n\tprogram = x\n",
    ] {
        settings(text);
        assert_eq!(decide(&rules, "git status"), Decision::Ask, "{text}");
    }
}
