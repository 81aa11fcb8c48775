//! Planted credentials cannot be read by commands, and tools still find their settings.

use std::{
    env,
    ffi::OsString,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use adjutant_tool::CallContext;
use serde_json::json;
use tempfile::TempDir;

use super::Shell;
use crate::{
    Network, Sandbox,
    sandbox::secrets::{COPIED, HIDDEN, NAMED, without_credentials},
};

/// Marks the process that has a home of its own.
const HOME_IS_PLANTED: &str = "ADJUTANT_TEST_HOME";

fn tell(row: std::fmt::Arguments<'_>) {
    // A closed output is no failure of the test.
    let _ = writeln!(std::io::stdout(), "{row}");
}

/// Runs a test in a process with another home and more variables.
fn in_home(test: &str, variables: &[(&str, &str)], act: impl Fn(&Path)) {
    if env::var_os(HOME_IS_PLANTED).is_some() {
        return act(&env::home_dir().expect("a home"));
    }
    let place = tempfile::tempdir().expect("a directory");
    let home = place.path().canonicalize().expect("a path").join("home");
    fs::create_dir(&home).expect("a directory");
    let real = env::home_dir().expect("a home");
    let mut own = Command::new(env::current_exe().expect("a program"));
    own.args([
        "--exact",
        &format!("shell::secrets_tests::{test}"),
        "--nocapture",
    ]);
    for name in [
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "CARGO_HOME",
    ]
    .iter()
    .chain(NAMED)
    {
        own.env_remove(name);
    }
    own.env("HOME", &home)
        .env(HOME_IS_PLANTED, "1")
        .env("PATH", path_of(&real));
    for (name, value) in variables {
        own.env(name, value.replace("{home}", home.to_str().expect("text")));
    }
    let output = own.output().expect("it starts");
    let shown =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    tell(format_args!("{}", shown.concat()));
    assert!(output.status.success(), "{}", shown.concat());
}

/// The programs of this machine without the wrappers that look into the real home.
fn path_of(real: &Path) -> OsString {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let toolchain = sysroot.ok().map(|root| PathBuf::from(root).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let other = env::split_paths(&path).filter(|path| !path.starts_with(real));
    let all: Vec<PathBuf> = toolchain.into_iter().chain(other).collect();
    env::join_paths(all).expect("a path")
}

fn plant(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, text).expect("a file");
}

fn sandboxes() -> Vec<(&'static str, Sandbox)> {
    let all = [
        ("bwrap", Sandbox::bwrap()),
        ("landlock", Sandbox::landlock()),
    ];
    let works = |(name, sandbox): &(&str, Sandbox)| {
        let why = sandbox.refuses();
        if let Some(why) = why {
            tell(format_args!("SKIPPED: {name}: {why}"));
        }
        why.is_none()
    };
    all.into_iter().filter(works).collect()
}

fn run(sandbox: Sandbox, root: &Path, command: &str) -> String {
    let shell = Shell::new(root, sandbox).expect("a shell");
    let tools = shell.toolbox();
    let tool = tools.toolset().get("run_command").expect("a tool").clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let done = runtime.block_on(tool.call(json!({ "command": command }), CallContext::detached()));
    done.map_or_else(|error| error.message.to_string(), |result| result.text())
}

/// A script that prints the places below which a planted text can be read.
fn search(places: &[PathBuf]) -> String {
    let line = |place: &PathBuf| {
        format!(
            "grep -rqs s3cret '{0}' && echo 'READ {0}'\n",
            place.display()
        )
    };
    places.iter().map(line).collect::<String>() + "true"
}

#[test]
fn no_row_can_be_read_where_its_directory_can() {
    in_home("no_row_can_be_read_where_its_directory_can", &[], |home| {
        let rows = HIDDEN.iter().chain(COPIED.iter().map(|(row, _)| row));
        let places: Vec<PathBuf> = rows.map(|row| home.join(row)).collect();
        // Each row as a file, and as a directory.
        for is_folder in [false, true] {
            for place in &places {
                let _ = fs::remove_file(place);
                plant(
                    &if is_folder {
                        place.join("in/it")
                    } else {
                        place.clone()
                    },
                    "token = s3cret\n",
                );
            }
            plant(&home.join("notes/plain"), "s3cret");
            plant(&home.join(".config/other/plain"), "s3cret");
            let root = TempDir::new().expect("a root");
            let script = search(&places);
            let control = run(Sandbox::danger_without_any(), root.path(), &script);
            assert_eq!(control.matches("READ ").count(), places.len(), "{control}");
            for (name, sandbox) in sandboxes() {
                assert_eq!(
                    run(sandbox.clone(), root.path(), &script),
                    "[no output]\n[exit code 0]",
                    "{name}"
                );
                let sandbox = sandbox.read(home);
                assert_eq!(
                    run(sandbox.clone(), root.path(), &script),
                    "[no output]\n[exit code 0]",
                    "{name}"
                );
                let plain = search(&[home.join("notes"), home.join(".config/other")]);
                assert_eq!(
                    run(sandbox.clone(), root.path(), &plain)
                        .matches("READ ")
                        .count(),
                    2,
                    "{name}"
                );
                // A row that is named is open, and only that.
                let aws = home.join(".aws");
                let shown = run(sandbox.read(&aws), root.path(), &script);
                assert_eq!(
                    shown,
                    format!("READ {}\n[exit code 0]", aws.display()),
                    "{name}"
                );
            }
        }
        // In the home itself.
        for (name, sandbox) in sandboxes() {
            let shown = run(
                sandbox,
                home,
                &format!("{}; rm -rf .ssh; echo x >.netrc", search(&places)),
            );
            if name == "bwrap" {
                assert!(!shown.contains("READ "), "{shown}");
                assert!(home.join(".ssh/in/it").is_file());
            } else {
                assert!(
                    shown.contains("no command runs: Landlock cannot hide "),
                    "{shown}"
                );
                assert!(shown.contains("; hint: install bubblewrap"), "{shown}");
            }
        }
    });
}

#[test]
fn no_way_of_reading_reaches_a_credential() {
    in_home("no_way_of_reading_reaches_a_credential", &[], |home| {
        let table = include_str!("../../tests/attacks/8-secrets.txt");
        let (mut real, mut through) = (0, Vec::new());
        for row in table.lines().filter(|row| !row.starts_with('#')) {
            let (name, script) = row.split_once(" :: ").expect(row);
            let script = script.replace("{home}", home.to_str().expect("text"));
            let attack = |sandbox: Sandbox| {
                let _ = fs::remove_dir_all(home);
                for name in [".netrc", ".ssh/key", ".aws/credentials"] {
                    plant(&home.join(name), "s3cret\n");
                }
                plant(&home.join("root/a"), "a\n");
                fs::create_dir(home.join("dotfiles")).expect("a directory");
                std::os::unix::fs::symlink("../.netrc", home.join("dotfiles/netrc"))
                    .expect("a link");
                run(sandbox, &home.join("root"), &script).contains("s3cret")
            };
            if !attack(Sandbox::danger_without_any()) {
                tell(format_args!(
                    "SKIPPED: {name}: it reads nothing without a sandbox"
                ));
                continue;
            }
            real += 1;
            for (sandbox_name, sandbox) in sandboxes() {
                if attack(sandbox.read(home)) {
                    through.push(format!("{sandbox_name}: {name}"));
                }
            }
        }
        assert_eq!(through, Vec::<String>::new());
        assert!(real >= 20, "{real}");
    });
}

#[test]
fn credentials_of_variables_agents_and_links_are_hidden() {
    let variables = [
        ("KUBECONFIG", "{home}/work/a:{home}/work/b"),
        ("HISTFILE", "/dev/null"),
        ("DOCKER_CONFIG", "{home}"),
    ];
    in_home(
        "credentials_of_variables_agents_and_links_are_hidden",
        &variables,
        |home| {
            let root = home.join("root");
            let names = [
                "work/a",
                "work/b",
                "dotfiles/ssh/key",
                "root/.adjutant/run/a/host.json",
            ];
            for name in names {
                plant(&home.join(name), "s3cret");
            }
            std::os::unix::fs::symlink("dotfiles/ssh", home.join(".ssh")).expect("a link");
            let places = names.map(|name| home.join(name));
            for (name, sandbox) in sandboxes() {
                let shown = run(sandbox.read(home), &root, &search(&places));
                match name {
                    "bwrap" => assert_eq!(shown, "[no output]\n[exit code 0]"),
                    // Agents below a root that can be changed: without mounts they cannot be hidden.
                    _ => assert_eq!(shown.matches("READ ").count(), 1, "{shown}"),
                }
            }
        },
    );
}

#[test]
fn result_names_the_option_when_a_credential_is_refused() {
    in_home(
        "result_names_the_option_when_a_credential_is_refused",
        &[],
        |home| {
            plant(&home.join(".netrc"), "s3cret");
            let root = TempDir::new().expect("a root");
            for (name, sandbox) in sandboxes() {
                let command = format!("cat {}/.netrc", home.display());
                let shown = run(sandbox, root.path(), &command);
                assert!(
                    shown.contains("holds credentials of the user")
                        && shown.contains("--allow-read"),
                    "{name}: {shown}"
                );
            }
        },
    );
}

#[test]
fn variables_of_a_command_hold_no_credential() {
    let variables = [
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("ANTHROPIC_API_KEY", "s3cret"),
        ("NPM_TOKEN", "s3cret"),
        ("npm_config__auth", "s3cret"),
        ("CARGO_REGISTRY_TOKEN", "s3cret"),
        ("PIP_INDEX_URL", "https://u:s3cret@example.org"),
        ("UV_INDEX_URL", "https://u:s3cret@example.org"),
        ("LC_TOKEN", "s3cret"),
        ("LC_TIME", "C"),
        ("HTTPS_PROXY", "http://u:s3cret@proxy.example:3128"),
        ("SSH_AUTH_SOCK", "/run/s3cret"),
        ("GIT_CONFIG_COUNT", "1"),
    ];
    in_home(
        "variables_of_a_command_hold_no_credential",
        &variables,
        |_| {
            let root = TempDir::new().expect("a root");
            for (name, sandbox) in sandboxes() {
                let shown = run(sandbox.network(Network::All), root.path(), "env");
                assert!(
                    !shown.contains("s3cret") && !shown.contains("GIT_CONFIG"),
                    "{name}: {shown}"
                );
                assert!(
                    shown.contains("HTTPS_PROXY=http://proxy.example:3128\n")
                        && shown.contains("LC_TIME=C\n"),
                    "{name}: {shown}"
                );
            }
        },
    );
}

#[test]
fn tools_find_their_settings_without_the_credentials() {
    in_home(
        "tools_find_their_settings_without_the_credentials",
        &[],
        |home| {
            let texts = [
                (
                    ".npmrc",
                    "registry=https://u:s3cret@npm.example/\n//npm.example/:_authToken=s3cret\n",
                ),
                (
                    ".config/pip/pip.conf",
                    "[global]\nindex-url = https://u:s3cret@pip.example/simple\n",
                ),
                (
                    ".config/uv/uv.toml",
                    "[[index]]\nurl = \"https://s3cret@uv.example/simple\"\n",
                ),
                (
                    ".cargo/config.toml",
                    "[alias]\nshown = \"version\"\n[registries.a]\nindex = \"sparse+https://a.example/\"\ntoken = \"s3cret\"\n",
                ),
                (
                    ".gitconfig",
                    "[user]\nname = A Name\n[url \"https://u:s3cret@git.example/\"]\ninsteadOf = https://git.example/\n",
                ),
            ];
            for (row, text) in texts {
                plant(&home.join(row), text);
            }
            let root = TempDir::new().expect("a root");
            // (program, line, expected text)
            let table = [
                ("npm", "npm config get registry", "https://npm.example/"),
                (
                    "cat",
                    "cat ~/.config/pip/pip.conf",
                    "index-url = https://pip.example/simple",
                ),
                (
                    "cat",
                    "cat ~/.config/uv/uv.toml",
                    "https://uv.example/simple",
                ),
                ("cargo", "cargo shown", "cargo 1."),
                ("git", "git config user.name", "A Name"),
            ];
            for (name, sandbox) in sandboxes() {
                for (program, line, expect) in table {
                    if Command::new(program).arg("--version").output().is_err() {
                        tell(format_args!("SKIPPED: {program} is not installed"));
                        continue;
                    }
                    let shown = run(sandbox.clone(), root.path(), line);
                    assert!(shown.contains(expect), "{name}: {line}: {shown}");
                }
                let all = "cat $CARGO_HOME/config.toml ~/.npmrc ~/.gitconfig ~/.config/*/* 2>&1";
                let shown = run(sandbox.clone(), root.path(), all);
                assert!(
                    !shown.contains("s3cret") && shown.contains("a.example"),
                    "{name}: {shown}"
                );
                let direct = run(sandbox, root.path(), &search(&[home.to_owned()]));
                assert_eq!(direct, "[no output]\n[exit code 0]", "{name}");
            }
        },
    );
}

#[test]
fn settings_are_copied_without_credentials() {
    // (text, copy; empty: it has none, and stays as it is)
    let table = [
        ("registry=https://a.example/\n", ""),
        ("# a comment\nregistry=https://a.example/\n", ""),
        (
            "init-author-name=A\n@scope:registry=https://a.example/@scope\nGOPRIVATE=a.example/x\n",
            "",
        ),
        (
            "[build]\nrustflags = [\"-C\", \"target-cpu=x86-64-v3\"]\n[net]\ngit-fetch-with-cli = true\n",
            "",
        ),
        (
            "//a.example/:_authToken=x\nregistry=https://a.example/\n",
            "registry=https://a.example/\n",
        ),
        (
            "_auth=x\n_password=x\nkey=x\nusername=x\nproxy=http://u:p@h:1/\n",
            "proxy=http://h:1/\n",
        ),
        ("# token=x\na=b\n", "a=b\n"),
        (
            "[global]\nindex-url = https://u:p@h/simple\n",
            "[global]\nindex-url = https://h/simple\n",
        ),
        (
            "[global]\nextra-index-url =\n    https://u:p@h/a\n    https://t@i/b\ntimeout = 5\n",
            "[global]\nextra-index-url =\n    https://h/a\n    https://i/b\ntimeout = 5\n",
        ),
        (
            "[global]\nextra-index-url =\n    https://h/a?token=x\ntimeout = 5\n",
            "[global]\ntimeout = 5\n",
        ),
        (
            "[registries.a]\n  index = \"i\"\n  token = \"x\"\n",
            "[registries.a]\n  index = \"i\"\n",
        ),
        (
            "[registry]\ntoken = \"\"\"\nx\"\"\"\ndefault = \"a\"\n",
            "[registry]\ndefault = \"a\"\n",
        ),
        (
            "[registry]\nglobal-credential-providers = [\n  \"cargo:x\",\n]\ndefault = \"a\"\n",
            "[registry]\ndefault = \"a\"\n",
        ),
        (
            "registries = { a = { index = \"i\", token = \"x\" } }\nb = 1\n",
            "b = 1\n",
        ),
        (
            "[http]\nproxy = \"u:p@h:1\"\ntimeout = 1\n",
            "[http]\ntimeout = 1\n",
        ),
        (
            "index = \"https://h/a1b2c3d4e5f6g7h8i9j0/simple\"\nb = 1\n",
            "b = 1\n",
        ),
        (
            "[private-auth]\na = 1\ntoken = 2\n",
            "[private-auth]\na = 1\n",
        ),
        ("token = x", ""),
    ];
    for (text, expect) in table {
        let expect = match expect {
            "" if text.contains("token = x") => Some(String::new()),
            "" => None,
            expect => Some(expect.to_owned()),
        };
        assert_eq!(without_credentials(text), expect, "{text}");
    }
}
