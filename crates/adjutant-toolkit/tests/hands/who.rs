//! A test as root, as nobody, and as root without capabilities.

use std::{
    env,
    process::{Child, Command, Stdio},
    thread,
};

use super::tell;

/// Who acts, and how a process becomes that.
const WHO: [(&str, &[&str]); 3] = [
    ("root", &[]),
    (
        "nobody",
        &["--reuid=65534", "--regid=65534", "--clear-groups"],
    ),
    (
        "root without capabilities",
        &["--bounding-set=-all", "--inh-caps=-all"],
    ),
];
const VARIABLE: &str = "ADJUTANT_TEST_ATTACKER";

/// Runs a test as all of them, each in a process of its own that runs this test alone, by these arguments.
pub(super) fn by_everyone(test: &[&str], act: impl Fn(&str)) {
    if let Ok(who) = env::var(VARIABLE) {
        return act(&who);
    }
    if !rustix::process::geteuid().is_root() {
        tell(format_args!(
            "SKIPPED: root, nobody: this test was not started by root"
        ));
        return act("this user");
    }
    let start = |(who, change): (&'static str, &[&str])| {
        let own = env::current_exe().expect("a program");
        let mut command = Command::new(if change.is_empty() {
            own.as_os_str()
        } else {
            "setpriv".as_ref()
        });
        if !change.is_empty() {
            command.args(change).arg(&own);
        }
        command.args(test).env(VARIABLE, who);
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        (who, command.spawn().and_then(Child::wait_with_output))
    };
    let all: Vec<_> = thread::scope(|scope| {
        WHO.map(|who| scope.spawn(move || start(who)))
            .map(|it| it.join().expect("a result"))
            .into()
    });
    for (who, output) in all {
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                tell(format_args!("SKIPPED: {who}: {error}"));
                continue;
            }
        };
        let said = [output.stdout, output.stderr]
            .map(|said| String::from_utf8_lossy(&said).into_owned())
            .concat();
        tell(format_args!("{said}"));
        if said.starts_with("setpriv: ") {
            tell(format_args!(
                "SKIPPED: {who}: the test cannot be started as that user"
            ));
            continue;
        }
        assert!(output.status.success(), "{who}: {said}");
    }
}
