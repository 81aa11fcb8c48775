//! What a run of the command costs on the offline model, and with `--build` a build of the smallest agent from nothing.

use std::{collections::BTreeSet, env, fs, path::Path, process::Command, process::ExitCode};

use adjutant_benches::Rows;
use tempfile::TempDir;

/// How many runs are timed together: the system tells the time of children in hundredths of a second.
const RUNS: usize = 50;
/// What a run may compute, in milliseconds.
const RUN: f64 = 7.0;
/// What hello may need in debug: crates of others, seconds of CPU, megabytes.
const CRATES: f64 = 120.0;
const SECONDS: f64 = 120.0;
const MEGABYTES: f64 = 120.0;
const TREE: &str = "tree --package adjutant --edges normal,build --prefix none --locked --offline";
const HELLO: &str = r#"
use adjutant::{Agent, tool};

/// Adds two whole numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::new(adjutant::model("anthropic/claude-sonnet-5")?).tool(add);
    println!("{}", agent.run("What is 17 plus 25?").await?.text());
    Ok(())
}
"#;

fn main() -> ExitCode {
    let (mut rows, root) = (
        Rows::default(),
        Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
    );
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    if env::args().any(|arg| arg == "--build") {
        build(&root, &mut rows);
    } else {
        run(&root, &built, &mut rows);
    }
    rows.end()
}

fn run(root: &Path, built: &Path, rows: &mut Rows) {
    let program = built.join("release/adjutant");
    if !program.is_file() {
        return rows.skipped(
            "a run of the command on the offline model",
            "`cargo xtask bench` builds it",
        );
    }
    let home = TempDir::new().expect("a folder");
    let mut command = Command::new(program);
    command
        .args([
            "run",
            "What is this directory, and which crates does it hold?",
        ])
        .current_dir(root);
    // Without keys it takes the offline model.
    command.env_clear().env("HOME", home.path());
    done(&mut command);
    let before = computed();
    (0..RUNS).for_each(|_| done(&mut command));
    let ms = (computed() - before) * 1e3 / RUNS as f64;
    rows.row(
        "a run of the command on the offline model, ms of CPU",
        &format!("mean of {RUNS}"),
        ms,
        RUN,
    );
}

fn build(root: &Path, rows: &mut Rows) {
    let tree = cargo()
        .current_dir(root)
        .args(TREE.split(' '))
        .output()
        .expect("cargo runs")
        .stdout;
    let tree = String::from_utf8_lossy(&tree);
    // Members of the workspace are shown with their folder.
    let others = tree
        .lines()
        .filter(|line| !line.contains("(/"))
        .filter_map(|line| line.split(' ').next());
    rows.row(
        "hello: crates of others",
        "",
        others.collect::<BTreeSet<_>>().len() as f64,
        CRATES,
    );
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let at = |file: &str| folder.path().join(file);
    let manifest = format!(
        "[package]\nname = \"hello\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         adjutant.path = {:?}\ntokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n",
        root.join("crates/adjutant")
    );
    fs::create_dir(at("src")).expect("a folder");
    fs::write(at("Cargo.toml"), manifest).expect("a file");
    fs::write(at("src/main.rs"), HELLO).expect("a file");
    fs::copy(root.join("Cargo.lock"), at("Cargo.lock")).expect("a file");
    let before = computed();
    done(cargo().current_dir(folder.path()).args([
        "build",
        "--quiet",
        "--offline",
        "--target-dir",
        "target",
    ]));
    rows.row(
        "hello: a debug build, s of CPU",
        "",
        computed() - before,
        SECONDS,
    );
    let bytes = fs::metadata(at("target/debug/hello"))
        .expect("it is built")
        .len();
    rows.row(
        "hello: the debug binary, MB",
        "",
        bytes as f64 / 1e6,
        MEGABYTES,
    );
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
}

fn done(command: &mut Command) {
    let output = command.output().expect("a program starts");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// How many seconds the children that have ended computed, and theirs.
///
/// Source: proc_pid_stat(5): `cutime` and `cstime`, in hundredths of a second.
fn computed() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("a Linux machine");
    let (_, fields) = stat.rsplit_once(')').expect("the name is told");
    let fields = fields.split_whitespace().skip(13).take(2);
    fields
        .map(|field| field.parse::<f64>().expect("a number"))
        .sum::<f64>()
        / 100.0
}
