//! What valgrind counts: instructions, the code that a turn runs, allocations. It is the same whatever else the machine
//! does; without valgrind, nothing is counted, and that is said.

use std::{collections::HashMap, env, fs, process::Command};

use adjutant_benches::Rows;

use crate::{Process, SHORT_TURNS};

/// How many short conversations are run, and how many deltas.
const CONVERSATIONS: usize = 10;
const DELTAS: usize = 20_000;
/// The bytes that a processor fetches at once.
const LINE: u64 = 64;

/// What one program ran while it was measured.
#[derive(Debug, Default)]
struct Count {
    instructions: u64,
    /// How often the instruction at an address was run.
    runs: HashMap<u64, u64>,
    /// The first instructions of the functions that allocate, by their names.
    entries: HashMap<String, u64>,
}

/// The functions that give memory; one that makes memory longer (`realloc`) is none.
const ALLOCATE: [&str; 5] = [
    "malloc",
    "calloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
];

pub(crate) fn compare(rows: &mut Rows) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return rows.skipped(
            "instructions, code and allocations of a turn and of a delta",
            "there is no valgrind",
        );
    }
    let turns = (CONVERSATIONS * SHORT_TURNS) as u64;
    let [floor, agent] = ["floor", "agent"].map(|who| Count::of(who, "short", CONVERSATIONS));
    let each = |count: &Count| count.instructions as f64 / turns as f64;
    let measured = format!("floor {:.0}, agent {:.0}", each(&floor), each(&agent));
    rows.row(
        "instructions of a turn over the floor",
        &measured,
        each(&agent) - each(&floor),
        50_000.0,
    );
    let (few, many) = (floor.code_kb(turns), agent.code_kb(turns));
    rows.row(
        "KB of code that most turns run",
        &format!("floor {few:.0}"),
        many,
        300.0,
    );
    let each = |count: &Count| count.allocations() as f64 / turns as f64;
    rows.row(
        "allocations of a turn",
        &format!("floor {:.1}", each(&floor)),
        each(&agent),
        110.0,
    );
    let [floor, agent] = ["floor", "agent"].map(|who| Count::of(who, "deltas", DELTAS));
    let each = |count: &Count| count.instructions as f64 / DELTAS as f64;
    rows.row(
        "instructions of a delta",
        &format!("floor {:.0}", each(&floor)),
        each(&agent),
        5_200.0,
    );
}

impl Count {
    fn of(who: &str, kind: &str, n: usize) -> Self {
        let server = Process::start(&["serve", kind, &n.to_string()]);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("counted");
        let mut command = Command::new("valgrind");
        command.args([
            "--tool=callgrind",
            "--dump-instr=yes",
            "--compress-pos=no",
            "--compress-strings=no",
        ]);
        command.args([
            "--collect-atstart=no",
            "--toggle-collect=*measure::measured*",
        ]);
        command.arg(format!("--callgrind-out-file={}", file.display()));
        command.arg(env::current_exe().expect("this program has a path"));
        let output = command
            .args(["child", who, kind, &server.port, &n.to_string()])
            .output()
            .expect("valgrind runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self::read(&fs::read_to_string(file).expect("valgrind has written what it counted"))
    }

    /// Source: "Callgrind Format Specification", valgrind.org, 3.19.
    fn read(text: &str) -> Self {
        let mut count = Self::default();
        let (mut function, mut is_call) = ("", false);
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                function = name;
            } else if line.starts_with("calls=") {
                // How often something was called is counted from the start of the program, whatever is measured.
                is_call = true;
            } else if let Some(at) = line.strip_prefix("0x") {
                let mut fields = at.split(' ');
                let at = fields
                    .next()
                    .and_then(|it| u64::from_str_radix(it, 16).ok());
                // What stands behind a call is what the called function took.
                let own = if std::mem::take(&mut is_call) {
                    None
                } else {
                    fields.next_back()
                };
                if let (Some(at), Some(runs)) = (at, own.and_then(|it| it.parse::<u64>().ok())) {
                    *count.runs.entry(at).or_default() += runs;
                    count.instructions += runs;
                    if ALLOCATE.contains(&function) {
                        let entry = count.entries.entry(function.to_owned()).or_insert(at);
                        *entry = at.min(*entry);
                    }
                }
            }
        }
        count
    }

    fn allocations(&self) -> u64 {
        self.entries
            .values()
            .filter_map(|at| self.runs.get(at))
            .sum()
    }

    /// The code that is run in half of the turns or more.
    fn code_kb(&self, turns: u64) -> f64 {
        let mut lines: Vec<u64> = self
            .runs
            .iter()
            .filter(|(_, runs)| **runs * 2 >= turns)
            .map(|(at, _)| at / LINE)
            .collect();
        lines.sort_unstable();
        lines.dedup();
        (lines.len() as u64 * LINE) as f64 / 1024.0
    }
}
