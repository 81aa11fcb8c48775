//! The launcher of the example `bubblewrap` passes the suite of lifecycles. This program is its host too.

#[path = "../examples/bubblewrap/launcher.rs"]
mod launcher;

use std::{process::ExitCode, sync::Arc};

use adjutant::runtime::backend::{Process, ProcessOptions};
use adjutant_testing::lifecycle_suite;
use launcher::Bubblewrap;

fn main() -> ExitCode {
    if let Some(code) = launcher::inside().or_else(lifecycle_suite::host) {
        return code;
    }
    if !Bubblewrap::is_there() {
        println!("SKIPPED: this machine has no bubblewrap, or it may make no namespaces");
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for shares_network in [false, true] {
        let lab = lifecycle_suite::lab_fn(move |home| {
            let launcher = Bubblewrap::new(
                std::env::current_exe().expect("this program"),
                shares_network,
            );
            let options = ProcessOptions::new()
                .grace(lifecycle_suite::GRACE)
                .launcher(launcher);
            Arc::new(Process::new(home, None, options).expect("this program is the host"))
        });
        let report = runtime.block_on(lifecycle_suite::check(&lab));
        println!("{report}");
        if report.broken().next().is_some() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
