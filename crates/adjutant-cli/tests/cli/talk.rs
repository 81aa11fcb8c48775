//! Conversations on a terminal: `adjutant` without a command.

use std::{
    fs,
    os::unix::fs::OpenOptionsExt,
    thread,
    time::{Duration, Instant},
};

use adjutant::llm::{Gate, Script};
use adjutant_testing::Loopback;
use serde_json::json;

use crate::{
    command::{says, seen, serve, usage},
    sessions::Desk,
    terminal::Terminal,
};

/// Source: open(2) on Linux: `O_NONBLOCK`.
const NONBLOCK: i32 = 0o4000;

/// A conversation on a desk with a server.
fn talk(desk: &Desk, server: &Loopback, args: &[&str]) -> Terminal {
    let mut command = desk.asking(server, args);
    command.env("XDG_DATA_HOME", desk.path("data"));
    Terminal::start(&command)
}

/// The screen without what differs from run to run.
fn normal(desk: &Desk, server: &Loopback, terminal: &Terminal) -> String {
    // What was printed last is below the line until that is drawn anew.
    let screen = terminal.wait_until("the line", |screen| screen.trim_end().ends_with('›'));
    let text = screen
        .replace(&desk.work(), "WORK")
        .replace(&desk.path("store.db"), "STORE");
    let text = text.replace(&server.addr().to_string(), "HOST");
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        // How long it takes differs.
        let line = match line.strip_suffix(" (Esc interrupts)") {
            Some(line) => {
                line.trim_end_matches(|it: char| it.is_ascii_digit() || matches!(it, ' ' | 's'))
            }
            None => line,
        };
        let is_number = |word: &str| word.parse::<f64>().is_ok();
        let words: Vec<&str> = line.split(' ').collect();
        let word = |at: usize| {
            let is_time = words
                .get(at + 1)
                .is_some_and(|next| next.trim_end_matches(':') == "ms");
            if is_time && is_number(words[at]) {
                "N".to_owned()
            } else {
                session(words[at])
            }
        };
        lines.push(
            (0..words.len())
                .map(word)
                .collect::<Vec<_>>()
                .join(" ")
                .trim_end()
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// A word, without the day and the id of a new session.
fn session(word: &str) -> String {
    match word.strip_prefix("work-2") {
        Some(rest) if rest.len() > 15 => "work-DAY-ID".to_owned(),
        _ => word.to_owned(),
    }
}

fn calls(tool: &str, args: serde_json::Value) -> Script {
    Script::new().call(tool, args).usage(usage())
}

/// Waits until this is asked, and may be answered.
#[track_caller]
fn asked(terminal: &Terminal, about: &str) {
    let is_asked = |screen: &str| {
        screen
            .rsplit_once(&format!("? {about}"))
            .is_some_and(|(_, it)| it.contains("? y(es)"))
    };
    terminal.wait_until(about, is_asked);
}

/// Waits until so many runs have ended.
#[track_caller]
fn ended(terminal: &Terminal, runs: usize) {
    terminal.wait_until(&format!("the end of run {runs}"), |screen| {
        screen.matches(", cost ").count() == runs
    });
}

#[test]
fn cost_counts_the_whole_session_after_it_is_continued() {
    let desk = Desk::new("store.db");
    let server = serve([says("One."), says("Two."), says("Three.")]);
    for prompt in ["Count", "Go on"] {
        desk.ask(&server, &["run", prompt, "--session", "s", "-q"]);
    }
    let mut terminal = talk(&desk, &server, &["--session", "s"]);
    terminal.wait("\n› ");
    terminal.line("And now?");
    terminal.wait("turns 1");
    terminal.line("/cost");
    terminal.wait("turns 3, calls 0");
    terminal.press("\u{4}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("in all: turns 3, calls 0"), "{screen}");
}

#[test]
fn paste_without_brackets_loses_no_line() {
    let desk = Desk::new("store.db");
    let server = serve((0..3).map(|_| says("Yes.")));
    let mut terminal = talk(&desk, &server, &[]);
    terminal.wait("\n› ");
    terminal.press("first line\rsecond line\rthird line\r");
    let has_all = || {
        let requests = server.requests();
        let last = requests.last().map(|request| request.json().to_string());
        last.is_some_and(|body| {
            ["first", "second", "third"]
                .iter()
                .all(|line| body.contains(line))
        })
    };
    terminal.wait_until("all lines", |_| has_all());
    terminal.kill();
}

#[test]
fn conversation_shows_markdown_tools_and_answers_when_one_converses() {
    let desk = Desk::new("store.db");
    let server = serve([
        calls("read_file", json!({"path": "notes.txt"})),
        says(
            "# Herons\nThey **stand**, says `notes.txt`:\n\n- quietly\n- long\n\n```text\nHerons stand.\n```\n",
        ),
        says("You are welcome."),
    ]);
    fs::write(desk.path("work/AGENTS.md"), "Be brief.\n").expect("it can be written");
    let mut terminal = talk(&desk, &server, &[]);
    terminal.wait("\n› ");
    terminal.line("What do herons do?");
    terminal.wait("turns 2");
    assert!(
        terminal.marked(vt100::Cell::bold).contains("Herons"),
        "{}",
        terminal.screen()
    );
    terminal.line("Thanks");
    terminal.wait("turns 1");
    terminal.line("/cost");
    terminal.wait("turns 3, calls 1");
    insta::assert_snapshot!(normal(&desk, &server, &terminal));
    terminal.press("\u{4}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("in all: turns 3, calls 1"), "{screen}");
    // Nothing is kept of a conversation in which nothing was said.
    let mut other = talk(&desk, &server, &[]);
    other.wait("\n› ");
    other.press("\u{4}");
    assert_eq!(other.end().0, 0);
    assert_eq!(desk.out(&["sessions", "list", "--json"]).lines().count(), 1);
    let first = String::from_utf8_lossy(&server.requests()[0].body).into_owned();
    assert!(
        first.contains("notes for agents, AGENTS.md:\\nBe brief."),
        "{first}"
    );
}

#[test]
fn call_runs_when_it_is_approved_in_place_and_not_when_it_is_denied() {
    let desk = Desk::new("store.db");
    let read = |path: &str| calls("read_file", json!({"path": path}));
    let server = serve([
        read("notes.txt"),
        read("other.txt"),
        read("third.txt"),
        says("Read."),
    ]);
    let mut terminal = talk(&desk, &server, &["--ask", "read_file"]);
    terminal.wait("\n› ");
    terminal.line("Read!");
    asked(&terminal, "read_file {\"path\":\"notes.txt\"}");
    terminal.line("y");
    asked(&terminal, "read_file {\"path\":\"other.txt\"}");
    terminal.line("n not that one");
    asked(&terminal, "read_file {\"path\":\"third.txt\"}");
    terminal.line("e");
    terminal.wait("› {\"path\":\"third.txt\"}");
    // Backwards over `}`, `"` and the name.
    terminal.press(&"\u{8}".repeat("third.txt\"}".len()));
    terminal.line("notes.txt\"}");
    terminal.wait("turns 4");
    insta::assert_snapshot!(normal(&desk, &server, &terminal));
    terminal.line("/quit");
    assert_eq!(terminal.end().0, 0);
    let bodies: Vec<String> = server
        .requests()
        .iter()
        .map(|it| String::from_utf8_lossy(&it.body).into_owned())
        .collect();
    assert!(
        bodies[1].contains("Herons stand.") && bodies[2].contains("not that one"),
        "{bodies:#?}"
    );
    assert_eq!(
        bodies[3].matches("Herons stand.").count(),
        2,
        "{}",
        bodies[3]
    );
}

#[test]
fn line_answers_no_question_when_it_was_begun_before_that_was_shown() {
    let desk = Desk::new("store.db");
    let gate = Gate::default();
    let read = |path: &str| json!({"path": path});
    let both = Script::new()
        .call("read_file", read("notes.txt"))
        .call("read_file", read("other.txt"));
    let server = serve([both.usage(usage()).wait_at(0, &gate), says("Read.")]);
    let mut terminal = talk(&desk, &server, &["--ask", "read_file"]);
    terminal.wait("\n› ");
    terminal.line("Read!");
    terminal.wait("(Esc interrupts)");
    terminal.press("y");
    terminal.wait("› y");
    gate.open();
    asked(&terminal, "read_file");
    // It goes to the model.
    terminal.line("");
    terminal.wait("it is read with the next request; the question is still open");
    // The second one is for a question that nobody has seen when it is typed.
    terminal.press("y\ry\r");
    asked(&terminal, "read_file {\"path\":\"other.txt\"}");
    terminal.line("n");
    ended(&terminal, 1);
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, 0);
    let last = String::from_utf8_lossy(&server.requests()[1].body).into_owned();
    assert!(
        last.contains("Herons stand.") && last.contains("a person refused the call"),
        "{last}"
    );
}

#[test]
fn run_is_steered_and_interrupted_when_one_types_meanwhile() {
    let (desk, gate) = (Desk::new("store.db"), Gate::default());
    let server = serve([
        says(&"So far so good. ".repeat(20))
            .delta_chars(100)
            .wait_at(2, &gate),
        says("As you wish."),
        says("Never said").wait_at(0, &Gate::default()),
        says("Back again."),
    ]);
    let mut terminal = talk(&desk, &server, &[]);
    terminal.wait("\n› ");
    terminal.line("Hi");
    terminal.wait("So far so good.");
    terminal.line("In short!");
    terminal.wait("it is read with the next request");
    gate.open();
    terminal.wait("turns 2");
    terminal.line("And now?");
    terminal.wait("(Esc interrupts)");
    terminal.press("kept text");
    // However often.
    terminal.press("\u{1b}");
    terminal.press("\u{1b}");
    terminal.wait("interrupted");
    terminal.wait("› kept text");
    terminal.line("");
    ended(&terminal, 3);
    assert!(
        terminal.screen().contains("Back again."),
        "{}",
        terminal.screen()
    );
    // The line is cleared, then it is told how to leave, then one leaves.
    terminal.press("x\u{3}");
    terminal.press("\u{3}");
    terminal.wait("Ctrl-C again leaves");
    terminal.press("\u{3}");
    assert_eq!(terminal.end().0, 0);
    let bodies: Vec<String> = server
        .requests()
        .iter()
        .map(|it| String::from_utf8_lossy(&it.body).into_owned())
        .collect();
    assert!(bodies[1].contains("In short!"), "{}", bodies[1]);
    assert!(bodies[3].contains("kept text"), "{}", bodies[3]);
}

#[test]
fn conversation_goes_on_when_it_was_killed_in_the_middle() {
    let (desk, gate) = (Desk::new("store.db"), Gate::default());
    let server = serve([
        says("So far so good, so far")
            .delta_chars(6)
            .wait_at(2, &gate),
        says("All is well."),
    ]);
    let mut terminal = talk(&desk, &server, &[]);
    terminal.wait("\n› ");
    terminal.line("Hi");
    while server.request_count() == 0 {
        terminal.wait("(Esc interrupts)");
    }
    terminal.kill();
    let mut terminal = talk(&desk, &server, &["-c"]);
    terminal.wait("All is well.");
    terminal.wait("turns 1");
    let screen = terminal.screen();
    assert!(
        screen.contains("the last run was left in its middle; it goes on"),
        "{screen}"
    );
    assert!(screen.contains("you: Hi"), "{screen}");
    let folder = desk.path("copied files");
    terminal.line(&format!("/fork copy --files {folder}"));
    terminal.wait("goes on in copy, a copy of work-");
    assert_eq!(
        fs::read_to_string(format!("{folder}/notes.txt")).expect("it is there"),
        "Herons stand.\n"
    );
    terminal.line("/sessions");
    terminal.wait("fork of work-");
    terminal.line("/model no/such");
    terminal.wait("error: ");
    terminal.line("/model");
    terminal.wait("model: anthropic/claude-sonnet-5");
    terminal.press("\u{4}");
    let (code, screen) = terminal.end();
    assert!(
        code == 0 && screen.contains("`adjutant -c --root '"),
        "{screen}"
    );
    gate.open();
}

#[test]
fn question_that_was_open_is_asked_again_when_the_command_was_killed() {
    let desk = Desk::new("store.db");
    let server = serve([
        calls("read_file", json!({"path": "notes.txt"})),
        says("They stand."),
    ]);
    let mut terminal = talk(&desk, &server, &["--ask", "read_file"]);
    terminal.wait("\n› ");
    terminal.line("Read!");
    terminal.wait("? read_file");
    terminal.kill();
    let mut terminal = talk(&desk, &server, &["-c"]);
    terminal.wait("? y(es), n(o) and why, e(dit), a(lways)");
    terminal.line("yes");
    terminal.wait("They stand.");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, 0);
}

/// What stands in the files of the desk.
fn files(desk: &Desk) -> Vec<(String, Vec<u8>)> {
    let folder = fs::read_dir(desk.path("work")).expect("it is there");
    let entries = folder
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.is_file());
    let named = entries.map(|path| {
        (
            path.display().to_string(),
            fs::read(&path).expect("it can be read"),
        )
    });
    let mut files: Vec<_> = named.collect();
    files.sort();
    files
}

#[test]
fn coding_task_survives_a_kill_and_is_undone_to_the_last_byte() {
    let desk = Desk::new("store.db");
    fs::write(
        desk.path("work/calc.py"),
        "def add(a, b):\r\n    return a - b\r\n",
    )
    .expect("it can be written");
    fs::write(
        desk.path("work/test_calc.py"),
        "from calc import add\nassert add(1, 2) == 4\n",
    )
    .expect("it can be written");
    fs::write(
        desk.path("work/README.md"),
        "# Calc\n\n`add` subtracts.  \n",
    )
    .expect("it can be written");
    let patch = "*** Begin Patch\n*** Update File: test_calc.py\n@@\n from calc import add\n\
                 -assert add(1, 2) == 4\n+assert add(1, 2) == 3\n*** End Patch\n";
    let edit =
        json!({"path": "calc.py", "old_text": "    return a - b", "new_text": "    return a + b"});
    let readme =
        json!({"path": "README.md", "old_text": "`add` subtracts.", "new_text": "`add` adds."});
    // Commands write into `out` alone, and cannot beside the directory. This one waits for ever: nobody writes into the pipe.
    let test = "sh test.sh && mkfifo out/pipe && echo waits && cat out/pipe";
    let script = "mkdir -p out; echo ran >> out/log\ntouch ../escaped 2>/dev/null && echo escaped\n\
                  grep -q 'a + b' calc.py && echo passed\n";
    fs::write(desk.path("work/test.sh"), script).expect("it can be written");
    let before = files(&desk);
    let server = serve([
        Script::new()
            .call("read_file", json!({"path": "calc.py"}))
            .call("read_file", json!({"path": "test_calc.py"}))
            .call("read_file", json!({"path": "README.md"}))
            .usage(usage()),
        calls("edit_file", edit),
        calls("apply_patch", json!({"patch": patch})),
        calls("edit_file", readme),
        calls("run_command", json!({"command": test})),
        calls(
            "write_file",
            json!({"path": "FIXED.md", "content": "`add` adds.\n"}),
        ),
        calls("run_command", json!({"command": "sh test.sh"})),
        says("It adds now, and the test says so."),
    ]);
    let mut terminal = talk(&desk, &server, &[]);
    terminal.wait("\n› ");
    terminal.line("Fix the bug in calc.py!");
    asked(&terminal, "edit_file");
    terminal.line("y");
    asked(&terminal, "apply_patch");
    insta::assert_snapshot!(
        normal(&desk, &server, &terminal)
            .split_once("? edit_file")
            .expect("it is asked")
            .1
    );
    let colour = |colour: u8| terminal.marked(|cell| cell.fgcolor() == vt100::Color::Idx(colour));
    assert!(
        colour(1).contains("-    return a - b") && colour(2).contains("+    return a + b"),
        "{}",
        terminal.screen()
    );
    terminal.line("y");
    asked(&terminal, "edit_file\n  @ README.md");
    terminal.line("y");
    asked(&terminal, "run_command");
    terminal.line("y");
    // It is in the middle of the command, which has seen the edit.
    let pipe = desk.path("work/out/pipe");
    terminal.wait_until("the pipe", |_| std::path::Path::new(&pipe).exists());
    terminal.kill();
    // What it ran ends with it: nobody holds the pipe for reading any more.
    let until = Instant::now() + Duration::from_secs(10);
    while fs::OpenOptions::new()
        .write(true)
        .custom_flags(NONBLOCK)
        .open(&pipe)
        .is_ok()
    {
        assert!(Instant::now() < until, "the command outlives the program");
        thread::yield_now();
    }
    let mut terminal = talk(&desk, &server, &["-c"]);
    asked(&terminal, "write_file");
    insta::assert_snapshot!("coding_task_goes_on", normal(&desk, &server, &terminal));
    terminal.line("y");
    asked(&terminal, "run_command");
    terminal.line("a");
    terminal.wait("rule of this session: allow call(run_command {");
    ended(&terminal, 1);
    let bodies: Vec<String> = server
        .requests()
        .iter()
        .map(|it| String::from_utf8_lossy(&it.body).into_owned())
        .collect();
    assert!(bodies[7].contains("passed"), "{}", bodies[7]);
    let changed = files(&desk)
        .into_iter()
        .filter(|file| !before.contains(file))
        .count();
    assert_eq!((files(&desk).len(), changed), (before.len() + 1, 4));
    terminal.line("/undo");
    terminal.wait("put back: FIXED.md, README.md, calc.py, test_calc.py");
    assert_eq!(files(&desk), before);
    // What commands wrote is theirs.
    terminal.wait("not put back: what commands changed; 2 ran since then");
    assert_eq!(
        fs::read_to_string(desk.path("work/out/log")).expect("it is there"),
        "ran\nran\n"
    );
    assert!(!std::path::Path::new(&desk.path("escaped")).exists());
    terminal.line("/undo");
    terminal.wait("nothing is to be put back");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, 0);
    desk.out(&["sessions", "verify", "--all"]);
}

#[test]
fn rules_decide_when_a_directory_and_its_user_have_some() {
    let desk = Desk::new("store.db");
    fs::create_dir_all(desk.path("work/.adjutant")).expect("it can be made");
    let rules = "# What the agent may do.\nallow shell(git log *)\ndeny read(secret*)\nask read(notes.txt)\n";
    fs::write(desk.path("work/.adjutant/rules"), rules).expect("it can be written");
    let read = |path: &str| calls("read_file", json!({"path": path}));
    let server = serve([
        read("secret.txt"),
        read("notes.txt"),
        says("Read."),
        read("notes.txt"),
        read("notes.txt"),
    ]);
    let mut terminal = talk(&desk, &server, &["--mode", "plan"]);
    terminal
        .wait("rules: .adjutant/rules: warning: nobody trusts what it allows: 1 not used; hint: read them, then say");
    terminal.line("Read!");
    asked(&terminal, "read_file");
    assert!(
        terminal
            .screen()
            .contains("this call is denied: a look at `secret.txt`: rule `deny"),
        "{}",
        terminal.screen()
    );
    terminal.line("a");
    terminal.wait(
        "only this once: a look at `notes.txt`: rule `ask read(notes.txt)` of .adjutant/rules:4",
    );
    ended(&terminal, 1);
    terminal.line("/mode edits");
    terminal.wait("mode: edits");
    terminal.line("/mode fast");
    terminal.wait("hint: there are plan, ask, edits and all");
    terminal.line("/rules");
    terminal.wait("deny read(secret*)  (.adjutant/rules:3)");
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, 0);
    // Without a terminal, what asks waits.
    let seen = desk.ask(&server, &["run", "Again", "--session", "s", "-q"]);
    seen.check(5, "", "");
    let unkept = desk.ask(&server, &["run", "--ephemeral", "Again"]);
    assert!(
        unkept.code == Some(5) && unkept.stderr.contains("hint: --session NAME keeps the run"),
        "{unkept:#?}"
    );
}

#[test]
fn command_leaves_when_it_is_asked_to_end_at_work() {
    let desk = Desk::new("store.db");
    let server = serve([says("Never said").wait_at(0, &Gate::default())]);
    let mut terminal = talk(&desk, &server, &[]);
    terminal.wait("\n› ");
    terminal.line("Hi");
    terminal.wait("(Esc interrupts)");
    terminal.terminate();
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(
        screen.contains("interrupted") && screen.contains("`adjutant -c` goes on"),
        "{screen}"
    );
}

#[test]
fn what_others_say_steers_no_terminal_and_nothing_is_kept_when_that_is_wished() {
    let desk = Desk::new("store.db");
    let server = serve([says("a\u{1b}[2J\u{1b}]0;x\u{7}b **never closed\n")]);
    let mut command = desk.asking(&server, &["--ephemeral"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(&command);
    terminal.wait("\n› ");
    terminal.line("Hi");
    terminal.wait("turns 1");
    let screen = terminal.screen();
    assert!(screen.contains("a[2J]0;xb **never closed"), "{screen}");
    assert_eq!(
        terminal.marked(|cell| cell.fgcolor() != vt100::Color::Default || cell.bold()),
        ""
    );
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, 0);
    // Nor was a store made.
    assert_eq!(desk.see(&["sessions", "list"]).code, Some(2));
}

#[test]
fn conversation_is_refused_when_there_is_no_terminal() {
    let desk = Desk::new("store.db");
    let hint = "hint: `adjutant run PROMPT` needs none; `adjutant --help` shows all commands\n";
    desk.see(&[]).check(
        2,
        "",
        &format!("error: a conversation needs a terminal\n{hint}"),
    );
    let script = seen(desk.command(&["completions", "bash"]));
    assert!(
        script.code == Some(0) && script.stdout.contains("complete -F _adjutant"),
        "{script:?}"
    );
}
