//! What an agent costs beside a hand-written loop, as ratios of one run: server, floor and agent are processes of their own.
#![expect(clippy::print_stdout, clippy::panic, reason = "a benchmark")]

#[path = "overhead/agent.rs"]
mod agent;
#[path = "overhead/around.rs"]
mod around;
#[path = "overhead/floor.rs"]
mod floor;
#[path = "overhead/measure.rs"]
mod measure;
#[path = "overhead/serve.rs"]
mod serve;

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// How often a pair of floor and agent is measured; the median counts.
const ROUNDS: usize = 7;
/// What can be measured alone.
const PARTS: [&str; 6] = ["turn", "loaded", "turns", "deltas", "flat", "waiting"];
/// How many turns the long conversation has.
const TURNS: usize = 800;
/// How many deltas the long answer has.
const DELTAS: usize = 200_000;
/// How many agents wait.
const AGENTS: usize = 2_000;
/// How many short conversations are timed for the cost of one turn.
const SHORT: usize = 100;
/// How many turns a short conversation has.
const SHORT_TURNS: usize = 20;

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["child", "serve", kind, n] => serve::run(kind, number(n)),
        ["child", "floor", kind, port, n] => floor::run(kind, number(port), number(n)),
        ["child", "agent", kind, port, n] => agent::run(kind, number(port), number(n)),
        _ => compare(&words),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().expect("a number")
}

fn compare(words: &[&str]) {
    let chosen = words.iter().any(|word| PARTS.contains(word));
    let wanted = |name: &str| !chosen || words.contains(&name);
    let rounds = if words.contains(&"--quick") { 3 } else { ROUNDS };
    println!("medians of {rounds} rounds; floor: a hand-written reqwest and serde_json loop");
    if wanted("turn") {
        let (floor, agent) = pairs("short", SHORT, rounds, |report| report.wall_us / (SHORT_TURNS * SHORT) as f64);
        println!(
            "one turn: floor {floor:.1} us, agent {agent:.1} us, over the floor {:.1} us (limit 5)",
            agent - floor
        );
    }
    if wanted("loaded") {
        let per_turn = |report: &measure::Report| report.wall_us / (SHORT_TURNS * SHORT) as f64;
        let (floor, agent) = compared("short", "loaded", SHORT, rounds, per_turn);
        println!(
            "one turn with 5 effects, 3 hooks, 2 middlewares: floor {floor:.1} us, agent {agent:.1} us, over the floor \
             {:.1} us (limit 5)",
            agent - floor
        );
    }
    if wanted("turns") {
        let (floor, agent) = pairs("turns", TURNS, rounds, |report| report.cpu_us / 1_000.0);
        println!(
            "{TURNS} turns, CPU: floor {floor:.0} ms, agent {agent:.0} ms, ratio {:.2} (limit 1.5)",
            agent / floor
        );
    }
    if wanted("deltas") {
        let (floor, agent) = pairs("deltas", DELTAS, rounds, |report| report.cpu_us / 1_000.0);
        println!(
            "{DELTAS} deltas, CPU: floor {floor:.0} ms, agent {agent:.0} ms, ratio {:.2} (limit 1.5)",
            agent / floor
        );
    }
    if wanted("flat") {
        agent::flat();
    }
    if wanted("waiting") {
        waiting(rounds.min(3));
    }
}

/// The medians of a figure of floor and agent, measured in turns.
fn pairs(kind: &str, n: usize, rounds: usize, figure: impl Fn(&measure::Report) -> f64) -> (f64, f64) {
    compared(kind, kind, n, rounds, figure)
}

/// The same, where the agent has a kind of its own.
fn compared(kind: &str, loaded: &str, n: usize, rounds: usize, figure: impl Fn(&measure::Report) -> f64) -> (f64, f64) {
    let server = Process::start(&["serve", kind, &n.to_string()]);
    let port = server.port.clone();
    let once = |who: &str, kind: &str| figure(&Process::start(&[who, kind, &port, &n.to_string()]).report());
    let (mut floors, mut agents) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        floors.push(once("floor", kind));
        agents.push(once("agent", loaded));
    }
    (median(floors), median(agents))
}

fn waiting(rounds: usize) {
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
    let (mut floors, mut agents) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        floors.push(once("floor"));
        agents.push(once("agent"));
    }
    let figure = |of: fn(&(f64, f64, f64)) -> f64, all: &[(f64, f64, f64)]| median(all.iter().map(of).collect());
    let (floor_kb, agent_kb) = (figure(|it| it.0, &floors), figure(|it| it.0, &agents));
    let (floor_ms, agent_ms) = (figure(|it| it.1, &floors), figure(|it| it.1, &agents));
    println!(
        "{AGENTS} waiting agents: floor {floor_kb:.1} KB each, agent {agent_kb:.1} KB each, above the floor {:.1} KB (limit 8)",
        agent_kb - floor_kb
    );
    println!(
        "{AGENTS} waiting agents, CPU: floor {floor_ms:.0} ms, agent {agent_ms:.0} ms, ratio {:.2} (limit 1.5)",
        agent_ms / floor_ms
    );
    println!("{AGENTS} waiting agents, connections: {:.0} (limit {AGENTS})", figure(|it| it.2, &agents));
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
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
        command.arg("child").args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a child starts");
        let input = child.stdin.take().expect("the child's input is piped");
        let output = BufReader::new(child.stdout.take().expect("the child's output is piped"));
        Self { child, input, output, port: String::new() }
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

    fn report(&mut self) -> measure::Report {
        let line = self.line();
        measure::Report::parse(&line).unwrap_or_else(|| panic!("a report, not {line:?}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The child may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
