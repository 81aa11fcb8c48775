//! What the agent core costs by itself, without a socket: building an agent, a turn early and late, many children of
//! one parent, compaction; and of its parts, a transcript and the admission of arguments.
#![expect(clippy::print_stdout, clippy::panic, reason = "a benchmark")]

#[path = "overhead/around.rs"]
mod around;
#[path = "core/caller.rs"]
mod caller;
#[path = "core/children.rs"]
mod children;
#[path = "core/compaction.rs"]
mod compaction;
#[path = "core/measure.rs"]
mod measure;
#[path = "core/parts.rs"]
mod parts;
#[path = "core/turn.rs"]
mod turn;

use std::{
    env,
    process::{Command, ExitCode, Stdio},
};

use adjutant_benches::{Rows, median};
use tokio::runtime::{Builder, Runtime};

use measure::Report;

/// What can be measured alone.
const PARTS: [&str; 6] = ["build", "turn", "calls", "children", "compaction", "parts"];
/// How many processes are asked about children; the median counts.
const ROUNDS: usize = 5;
/// How many children are few, and how many are many.
const CHILDREN: [usize; 2] = [100, 1_000];
/// By how much a child may cost more when there are many.
const LINEAR: f64 = 1.2;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["child", together, n] = words[..] {
        let Report { us, kb } = children::run(together == "together", n.parse().expect("a number"));
        println!("{us} {kb}");
        return ExitCode::SUCCESS;
    }
    let mut rows = Rows::default();
    let chosen = words.iter().any(|word| PARTS.contains(word));
    let wanted = |name: &str| !chosen || words.contains(&name);
    if wanted("build") {
        turn::build(&mut rows);
    }
    if wanted("turn") {
        turn::around(&mut rows);
        turn::flat(&mut rows);
    }
    if wanted("calls") {
        turn::calls(&mut rows);
    }
    if wanted("children") {
        ["one after the other", "together"]
            .into_iter()
            .for_each(|how| children(how, &mut rows));
    }
    if wanted("compaction") {
        compaction::compare(&mut rows);
    }
    if wanted("parts") {
        parts::measure(&mut rows);
    }
    rows.end()
}

/// Few children beside many, each time in a process of its own.
fn children(how: &str, rows: &mut Rows) {
    let once = |n: usize| {
        let program = env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command
            .args(["child", how, &n.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        let output = command.output().expect("a child starts");
        let line = String::from_utf8_lossy(&output.stdout);
        Report::parse(line.trim()).unwrap_or_else(|| panic!("a report, not {line:?}"))
    };
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        few.push(once(CHILDREN[0]));
        many.push(once(CHILDREN[1]));
    }
    for (what, unit, figure) in [
        ("time", "us", time as fn(&Report) -> f64),
        ("memory", "KB", memory),
    ] {
        let of = |all: &[Report]| median(all.iter().map(figure));
        let (few, many) = (of(&few), of(&many));
        let what = format!(
            "{what} of a child among {} over one among {}, {how}",
            CHILDREN[1], CHILDREN[0]
        );
        rows.row(
            &what,
            &format!("{many:.1} and {few:.1} {unit}"),
            many / few,
            LINEAR,
        );
    }
}

fn time(report: &Report) -> f64 {
    report.us
}

fn memory(report: &Report) -> f64 {
    report.kb
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}
