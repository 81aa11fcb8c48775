//! Nothing leads out of a sandbox: every attack, in both sandboxes, as root, as nobody, and as root without capabilities.
//!
//! An attack that fails without a sandbox too proves nothing, and is shown as skipped. What the kernel cannot hold is shown as
//! not enforced; neither counts as refused.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::{UnixDatagram, UnixListener},
        process::CommandExt,
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use adjutant_toolkit::{Sandbox, Shell};
use serde_json::json;
use tempfile::TempDir;

use super::{rows::ROWS, said, tell};

/// A root beside what must not be reached, with a process and listeners outside.
pub(super) struct Scene {
    pub(super) place: TempDir,
    victim: Child,
    id: u32,
    port: u16,
    _sockets: (
        std::net::TcpListener,
        UnixListener,
        UnixDatagram,
        UnixListener,
    ),
}

impl Scene {
    pub(super) fn new(id: u32) -> Self {
        use std::os::linux::net::SocketAddrExt;
        let place = tempfile::tempdir().expect("a folder");
        let (root, out) = (place.path().join("root"), place.path().join("outside"));
        fs::create_dir_all(root.join(".git/hooks")).expect("a folder");
        fs::create_dir(&out).expect("a folder");
        fs::write(root.join(".git/config"), "").expect("a file");
        fs::write(out.join("secret"), "s3cret\n").expect("a file");
        fs::write(out.join("tool"), "#!/bin/sh\necho ESCAPED\n").expect("a file");
        fs::set_permissions(out.join("tool"), fs::Permissions::from_mode(0o755)).expect("a mode");
        fs::copy("/bin/echo", out.join("echo")).expect("a program");
        symlink("s3cret", out.join("mark")).expect("a link");
        symlink("../outside/secret", root.join("link")).expect("a link");
        symlink("../outside", root.join("folder")).expect("a link");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = tcp.local_addr().expect("an address").port();
        let name = std::os::unix::net::SocketAddr::from_abstract_name(format!("adj-{id}"))
            .expect("a name");
        let sockets = (
            tcp,
            UnixListener::bind(out.join("sock")).expect("a socket"),
            UnixDatagram::bind(out.join("gram")).expect("a socket"),
            UnixListener::bind_addr(&name).expect("a socket"),
        );
        let mut victim = Command::new("sleep");
        victim
            .arg("600")
            .env("SECRET", "s3cret")
            .current_dir(&out)
            .process_group(0)
            .stdin(Stdio::null());
        Self {
            victim: victim.spawn().expect("a process"),
            place,
            id,
            port,
            _sockets: sockets,
        }
    }

    /// True if the attack came through.
    pub(super) fn attack(&self, sandbox: Sandbox, script: &str) -> bool {
        let script = self.script(script);
        let shell = Shell::new(self.place.path().join("root"), sandbox).expect("a shell");
        let said = said(
            &shell.toolbox(),
            "run_command",
            json!({ "command": script, "timeout_secs": 20 }),
        );
        // The filter kills a process that calls by another interface.
        let has_ended = said.contains("[exit code ") || said.contains("[ended by signal ");
        assert!(has_ended, "{script}: {said}");
        let state = fs::read_to_string(format!("/proc/{}/stat", self.victim.id()));
        let has_ended = state.is_ok_and(|state| state.contains(") Z "));
        said.contains("ESCAPED") || self.leaves_a_trace() || has_ended
    }

    pub(super) fn script(&self, script: &str) -> String {
        let out = self.place.path().join("outside");
        let script = script.replace("{out}", out.to_str().expect("a plain name"));
        let script = script
            .replace("{pid}", &self.victim.id().to_string())
            .replace("{id}", &self.id.to_string());
        let script = script
            .replace("{port}", &self.port.to_string())
            .replace("{me}", &std::process::id().to_string());
        match script
            .strip_prefix("{sys ")
            .and_then(|call| call.strip_suffix('}'))
        {
            None => script,
            Some(call) => {
                let (number, arguments) = call.split_once(' ').expect("a number and arguments");
                // Refused is EPERM; ENOSYS is what is said not to be there.
                format!(
                    "perl -e '$!=0; $r=syscall({number},{arguments}); print \"ESCAPED\" unless $r==-1 && ($!==1||$!==38||$!==95)'"
                )
            }
        }
    }

    pub(super) fn leaves_a_trace(&self) -> bool {
        let files = ["/tmp/adj-", "/dev/shm/adj-", "/var/tmp/adj-"]
            .map(|path| PathBuf::from(format!("{path}{}", self.id)));
        let is_left = files.iter().any(|path| fs::remove_file(path).is_ok());
        let sleeper = format!("sleep\09{}\0", self.id);
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let stayed = processes.filter(|it| {
            fs::read(it.path().join("cmdline")).is_ok_and(|line| line == sleeper.as_bytes())
        });
        let stayed: Vec<_> = stayed.collect();
        for process in &stayed {
            let _ = Command::new("kill")
                .arg("-9")
                .arg(process.file_name())
                .status();
        }
        let key = self.id.cast_signed().to_string();
        let memory = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        let is_shared = memory
            .lines()
            .any(|line| line.split_whitespace().next() == Some(&key));
        if is_shared {
            let remove = Command::new("ipcrm")
                .args(["-M", &self.id.to_string()])
                .status();
            assert!(remove.is_ok_and(|status| status.success()), "{key} stays");
        }
        is_left || is_shared || !stayed.is_empty()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Runs the table without some groups as whoever this process is, in each of these sandboxes, with what each cannot hold;
/// returns what came through.
pub(super) fn table(
    who: &str,
    without: &[&str],
    sandboxes: &[(&str, Sandbox, &[&str])],
) -> Vec<String> {
    let mut through = Vec::new();
    let mut id = std::process::id().wrapping_mul(1_000);
    let mut next = || {
        id = id.wrapping_add(1);
        Scene::new(id)
    };
    let rows: Vec<_> = ROWS
        .iter()
        .filter(|(group, ..)| !without.contains(group))
        .collect();
    let control: Vec<bool> = rows
        .iter()
        .map(|(_, _, script)| next().attack(Sandbox::danger_without_any(), script))
        .collect();
    for (name, sandbox, gaps) in sandboxes {
        if let Some(why) = sandbox.refuses() {
            tell(format_args!("SKIPPED: {who}, {name}: {why}"));
            continue;
        }
        let (mut refused, mut skipped, mut missing) = (0, 0, 0);
        for ((group, attack, script), is_real) in rows.iter().zip(&control) {
            // Those end without a sandbox too, by the same mark.
            let is_real = *is_real || *group == "processes";
            let is_through = next().attack(sandbox.clone(), script);
            let row = format!("{who}, {name}: {group}: {attack}");
            match (is_through, is_real) {
                (true, _) if gaps.contains(attack) => {
                    missing += 1;
                    tell(format_args!("not enforced: {row}"));
                }
                (true, _) => {
                    tell(format_args!("ESCAPED: {row}"));
                    through.push(row);
                }
                (false, true) => refused += 1,
                (false, false) => {
                    skipped += 1;
                    tell(format_args!(
                        "SKIPPED: {row}: it fails without a sandbox too"
                    ));
                }
            }
        }
        tell(format_args!(
            "{who}, {name}: {refused} refused, {missing} not enforced, {skipped} skipped of {}",
            rows.len()
        ));
        tell(format_args!("{}", sandbox.report()));
    }
    through
}

/// Socket families of a command in a separate network, which reaches no other host.
pub(super) const LOOPBACK: [&str; 5] = [
    "listen",
    "send a datagram",
    "a socket of IPv6",
    "a netlink socket",
    "listen on a socket",
];

#[test]
fn nothing_leads_out_whoever_attacks() {
    // What Landlock cannot hold, and says so in its report.
    const GAPS: [&str; 8] = [
        "see that a file is there by its name",
        "read where a link outside leads",
        "watch when a file outside is used",
        "change the mode of a file",
        "change the times of a file",
        "plant a hook of git",
        "put another folder in the place of .git",
        "change the settings of git",
    ];
    super::who::by_everyone(
        &[
            "--exact",
            "escapes::nothing_leads_out_whoever_attacks",
            "--nocapture",
        ],
        |who| {
            let sandboxes = [
                ("landlock", Sandbox::landlock(), &GAPS[..]),
                ("bwrap", Sandbox::bwrap(), &LOOPBACK[..]),
            ];
            assert_eq!(table(who, &[], &sandboxes), Vec::<String>::new());
        },
    );
}
