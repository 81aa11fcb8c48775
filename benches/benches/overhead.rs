//! What an agent costs beside a hand-written loop, as ratios of one run: server, floor and agent are processes of their own.
#![expect(clippy::print_stdout, clippy::panic, reason = "a benchmark")]

#[path = "overhead/agent.rs"]
mod agent;
#[path = "overhead/around.rs"]
mod around;
#[path = "overhead/floor.rs"]
mod floor;
#[path = "overhead/instructions.rs"]
mod instructions;
#[path = "overhead/measure.rs"]
mod measure;
#[path = "overhead/serve.rs"]
mod serve;

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
};

use adjutant_benches::{Rows, median};
use measure::{Report, minimum};

/// How often a pair of floor and agent is measured; the median counts.
const ROUNDS: usize = 7;
/// What is counted, not timed.
const COUNTED: &str = "--instructions";
/// What can be measured alone.
const PARTS: [&str; 7] = [
    "turn", "loaded", "turns", "deltas", "flat", "waiting", COUNTED,
];
/// How many turns the long conversations have, and how much more CPU an agent may take for them.
const TURNS: [(usize, f64); 3] = [(200, 1.4), (800, 1.05), (3_200, 0.95)];
/// How many deltas the long answer has.
const DELTAS: usize = 200_000;
/// How many agents wait.
const AGENTS: usize = 2_000;
/// How many short conversations are timed for the cost of one turn.
const SHORT: usize = 100;
/// How many turns a short conversation has.
const SHORT_TURNS: usize = 20;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["child", "serve", kind, n] => serve::run(kind, number(n)),
        ["child", "floor", kind, port, n] => floor::run(kind, number(port), number(n)),
        ["child", "agent", kind, port, n] => agent::run(kind, number(port), number(n)),
        _ => return compare(&words),
    }
    ExitCode::SUCCESS
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().expect("a number")
}

fn compare(words: &[&str]) -> ExitCode {
    let chosen = words.iter().any(|word| PARTS.contains(word));
    let wanted = |name: &str| !chosen || words.contains(&name);
    let rounds = if words.contains(&"--quick") {
        3
    } else {
        ROUNDS
    };
    let mut rows = Rows::default();
    for (part, kind, limit) in [("turn", "short", 40.0), ("loaded", "loaded", 80.0)] {
        if wanted(part) {
            let what = match kind {
                "short" => "one turn, us of CPU over the floor",
                _ => "the same with 5 effects, 3 hooks, 2 middlewares",
            };
            let turns = (SHORT * SHORT_TURNS) as f64;
            Pair::of("short", kind, SHORT, rounds, |it| it.cpu_us / turns)
                .over(&mut rows, what, limit);
        }
    }
    if wanted("turns") {
        for (turns, limit) in TURNS {
            let pair = Pair::of("turns", "turns", turns, rounds, |it| it.cpu_us / 1_000.0);
            pair.ratio(&mut rows, &format!("{turns} turns, ratio of CPU"), limit);
        }
    }
    if wanted("deltas") {
        let pair = Pair::of("deltas", "deltas", DELTAS, rounds, |it| it.cpu_us / 1_000.0);
        pair.ratio(&mut rows, &format!("{DELTAS} deltas, ratio of CPU"), 1.2);
    }
    if wanted("flat") {
        let (early, late) = agent::flat();
        let measured = format!(
            "{early:.1} us at turn {}, {late:.1} us at turn {}",
            agent::EARLY,
            agent::LATE
        );
        rows.row(
            "one turn without a socket, late to early",
            &measured,
            late / early,
            1.2,
        );
    }
    if wanted("waiting") {
        waiting(rounds.min(3), &mut rows);
    }
    if wanted(COUNTED) {
        instructions::compare(&mut rows);
    }
    rows.end()
}

/// A figure of floor and agent, measured in turns.
struct Pair {
    floors: Vec<f64>,
    agents: Vec<f64>,
}

impl Pair {
    fn of(
        kind: &str,
        agents_kind: &str,
        n: usize,
        rounds: usize,
        figure: impl Fn(&Report) -> f64,
    ) -> Self {
        let server = Process::start(&["serve", kind, &n.to_string()]);
        let once = |who: &str, kind: &str| {
            figure(&Process::start(&[who, kind, &server.port, &n.to_string()]).report())
        };
        let rounds = 0..rounds;
        let (floors, agents) = rounds
            .map(|_| (once("floor", kind), once("agent", agents_kind)))
            .unzip();
        Self { floors, agents }
    }

    fn ratio(&self, rows: &mut Rows, what: &str, limit: f64) {
        let (floor, agent) = (median(self.floors.clone()), median(self.agents.clone()));
        let minima = minimum(&self.agents) / minimum(&self.floors);
        let measured =
            format!("floor {floor:.0} ms, agent {agent:.0} ms, ratio of the minima {minima:.2}");
        rows.row(what, &measured, agent / floor, limit);
    }

    fn over(&self, rows: &mut Rows, what: &str, limit: f64) {
        let (floor, agent) = (median(self.floors.clone()), median(self.agents.clone()));
        let minima = minimum(&self.agents) - minimum(&self.floors);
        let measured = format!("floor {floor:.1}, agent {agent:.1}, of the minima {minima:.1}");
        rows.row(what, &measured, agent - floor, limit);
    }
}

fn waiting(rounds: usize, rows: &mut Rows) {
    let once = |who: &str| {
        let mut server = Process::start(&["serve", "waiting", &AGENTS.to_string()]);
        let mut client = Process::spawn(&[who, "waiting", &server.port, &AGENTS.to_string()]);
        server.expect("reached");
        client.say("measure");
        client.expect("measured");
        server.say("open");
        let report = client.report();
        let connections: f64 = number(&server.line());
        (report.rss_kb, report.cpu_us / 1_000.0, connections)
    };
    let both: Vec<_> = (0..rounds)
        .map(|_| (once("floor"), once("agent")))
        .collect();
    let pair = |figure: fn(&(f64, f64, f64)) -> f64| {
        let (floors, agents) = both
            .iter()
            .map(|(floor, agent)| (figure(floor), figure(agent)))
            .unzip();
        Pair { floors, agents }
    };
    pair(|it| it.0).over(
        rows,
        &format!("KB of one of {AGENTS} waiting agents over the floor"),
        9.0,
    );
    pair(|it| it.1).ratio(rows, &format!("{AGENTS} waiting agents, ratio of CPU"), 1.6);
    let connections = median(pair(|it| it.2).agents);
    rows.row(
        &format!("connections of {AGENTS} waiting agents"),
        "",
        connections,
        AGENTS as f64,
    );
}

/// A child of this program.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    port: String,
}

impl Process {
    fn spawn(args: &[&str]) -> Self {
        let mut command = Command::new(env::current_exe().expect("this program has a path"));
        command
            .arg("child")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("a child starts");
        let input = child.stdin.take().expect("the child's input is piped");
        let output = BufReader::new(child.stdout.take().expect("the child's output is piped"));
        Self {
            child,
            input,
            output,
            port: String::new(),
        }
    }

    fn start(args: &[&str]) -> Self {
        let mut process = Self::spawn(args);
        if args[0] == "serve" {
            process.port = process.line();
        }
        process
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the child speaks");
        line.trim().to_owned()
    }

    fn expect(&mut self, word: &str) {
        assert_eq!(self.line(), word);
    }

    fn say(&mut self, word: &str) {
        writeln!(self.input, "{word}").expect("the child listens");
    }

    fn report(&mut self) -> Report {
        let line = self.line();
        Report::parse(&line).unwrap_or_else(|| panic!("a report, not {line:?}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The child may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
