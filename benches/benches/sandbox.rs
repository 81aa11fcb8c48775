//! What a sandboxed call costs over starting the same program by hand.

use std::{
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use adjutant_benches::{Rows, median};
use adjutant_tool::CallContext;
use adjutant_toolkit::{Sandbox, Shell};
use serde_json::json;
use tokio::runtime::Builder;

/// What a call may cost over a plain start, in milliseconds. bubblewrap makes namespaces, which is no matter of ours.
const OVER: [(&str, f64); 2] = [("landlock", 2.0), ("bwrap", f64::INFINITY)];
const CALLS: usize = 201;

fn main() -> ExitCode {
    let mut rows = Rows::default();
    let place = tempfile::tempdir().expect("a folder");
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    for ((name, limit), sandbox) in OVER
        .into_iter()
        .zip([Sandbox::landlock(), Sandbox::bwrap()])
    {
        if let Some(why) = sandbox.refuses() {
            rows.skipped(&format!("a call in {name}"), why);
            continue;
        }
        let tools = Shell::new(place.path(), sandbox)
            .expect("a shell")
            .toolbox();
        let tool = tools
            .toolset()
            .get("run_command")
            .expect("the toolbox holds it")
            .clone();
        let plain = || {
            let mut command = Command::new("/bin/true");
            command
                .env_clear()
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.output().expect("it runs");
        };
        let held = || {
            let args = json!({ "argv": ["/bin/true"] });
            runtime
                .block_on(tool.call(args, CallContext::detached()))
                .expect("it runs");
        };
        // In turns, so that both see the same machine.
        let pairs: Vec<_> = (0..CALLS).map(|_| (ms(plain), ms(held))).collect();
        let (by_hand, call) = (
            median(pairs.iter().map(|it| it.0)),
            median(pairs.iter().map(|it| it.1)),
        );
        let measured = format!("{call:.2} ms, by hand {by_hand:.2} ms");
        rows.row(
            &format!("a call in {name} over a plain start, ms"),
            &measured,
            call - by_hand,
            limit,
        );
    }
    rows.end()
}

fn ms(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1_000.0
}
