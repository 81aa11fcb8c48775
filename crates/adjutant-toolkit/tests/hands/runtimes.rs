//! Language runtimes start and work under the filter of system calls, and it refuses what it must.

use std::{fs, path::Path, process::Command};

use adjutant_toolkit::{Sandbox, Shell};
use serde_json::json;
use tempfile::TempDir;

use super::{said, tell, who::by_everyone};

fn sandboxes(who: &str) -> Vec<(&'static str, Sandbox)> {
    let mut all = vec![
        ("bwrap", Sandbox::bwrap()),
        ("landlock", Sandbox::landlock()),
    ];
    all.retain(|(name, sandbox)| match sandbox.refuses() {
        Some(why) => {
            tell(format_args!("SKIPPED: {who}: {name}: {why}"));
            false
        }
        None => true,
    });
    all
}

fn run(root: &Path, sandbox: &Sandbox, command: &str) -> String {
    let tools = Shell::new(root, sandbox.clone())
        .expect("a shell")
        .toolbox();
    said(&tools, "run_command", json!({ "command": command }))
}

const PYTHON: &str = r#"
import socket, threading
seen = []
all = [threading.Thread(target=seen.append, args=(n,)) for n in range(8)]
[t.start() for t in all]; [t.join() for t in all]
print("threads", len(seen))
open("f.txt", "w").write("text"); print("files", open("f.txt").read())
try:
    s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname(), 5)
    s.accept()[0].sendall(b"sent"); print("socket", c.recv(4).decode())
except OSError as e: print("socket refused")
"#;
const NODE: &str = r#"
const { Worker } = require("worker_threads"), fs = require("fs"), net = require("net");
const one = () => new Promise(done => new Worker("require('worker_threads').parentPort.postMessage(1)", { eval: true }).on("message", done));
Promise.all([one(), one(), one(), one(), one(), one(), one(), one()]).then(all => {
  console.log("threads", all.length);
  fs.writeFileSync("f.txt", "text"); console.log("files", fs.readFileSync("f.txt", "utf8"));
  const server = net.createServer(c => c.end("sent")).on("error", () => console.log("socket refused"));
  server.listen(0, "127.0.0.1", () => net.connect(server.address().port, "127.0.0.1").on("data", d => { console.log("socket", d.toString()); server.close(); }));
});
"#;
const RUST: &str = r#"
use std::{fs, io::{Read, Write}, net::{TcpListener, TcpStream}, thread};
fn main() {
    let all: Vec<_> = (0..8).map(|n| thread::spawn(move || n)).collect();
    println!("threads {}", all.into_iter().map(|t| t.join().unwrap()).count());
    fs::write("f.txt", "text").unwrap();
    println!("files {}", fs::read_to_string("f.txt").unwrap());
    let Ok(server) = TcpListener::bind("127.0.0.1:0") else { return println!("socket refused") };
    let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    server.accept().unwrap().0.write_all(b"sent").unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    println!("socket {text}");
}
"#;
const GO: &str = r#"
package main
import ("fmt"; "io"; "net"; "os"; "sync")
func main() {
	var all sync.WaitGroup; var lock sync.Mutex; n := 0
	for i := 0; i < 8; i++ { all.Add(1); go func() { lock.Lock(); n++; lock.Unlock(); all.Done() }() }
	all.Wait(); fmt.Println("threads", n)
	os.WriteFile("f.txt", []byte("text"), 0o644); text, _ := os.ReadFile("f.txt"); fmt.Println("files", string(text))
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { fmt.Println("socket refused"); return }
	go func() { c, _ := server.Accept(); c.Write([]byte("sent")); c.Close() }()
	c, err := net.Dial("tcp", server.Addr().String())
	if err != nil { fmt.Println(err); return }
	got, _ := io.ReadAll(c); fmt.Println("socket", string(got))
}
"#;
const JAVA: &str = r#"
import java.net.*; import java.nio.file.*; import java.util.concurrent.*;
class Main { public static void main(String[] a) throws Exception {
  var pool = Executors.newFixedThreadPool(8); var n = new java.util.concurrent.atomic.AtomicInteger();
  for (int i = 0; i < 8; i++) pool.submit(() -> n.incrementAndGet());
  pool.shutdown(); pool.awaitTermination(20, TimeUnit.SECONDS); System.out.println("threads " + n);
  Files.writeString(Path.of("f.txt"), "text"); System.out.println("files " + Files.readString(Path.of("f.txt")));
  try (var server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
    var c = new Socket(server.getInetAddress(), server.getLocalPort());
    server.accept().getOutputStream().write("sent".getBytes()); System.out.println("socket " + new String(c.getInputStream().readNBytes(4)));
  } catch (SocketException e) { System.out.println("socket refused"); } } }
"#;

#[test]
fn runtimes_start_threads_write_files_and_open_sockets() {
    // (program, file, text, line)
    let table = [
        ("python3", "main.py", PYTHON, "python3 main.py"),
        ("node", "main.js", NODE, "node main.js"),
        ("rustc", "main.rs", RUST, "rustc main.rs && ./main"),
        ("go", "main.go", GO, "GO111MODULE=off go run main.go"),
        ("javac", "Main.java", JAVA, "java Main.java"),
    ];
    for (program, file, text, line) in table {
        if Command::new(program).arg("--version").output().is_err() {
            tell(format_args!("SKIPPED: {program} is not installed"));
            continue;
        }
        for (name, sandbox) in sandboxes("this user") {
            let root = TempDir::new().expect("a root");
            fs::write(root.path().join(file), text).expect("a file");
            let socket = if name == "bwrap" { "sent" } else { "refused" };
            let shown = run(root.path(), &sandbox, line);
            let expect = format!("threads 8\nfiles text\nsocket {socket}\n[exit code 0]");
            assert!(shown.contains(&expect), "{name}: {line}: {shown}");
            tell(format_args!("{name}: {program} works"));
        }
    }
}

/// Calls, their numbers on x86_64 and on aarch64, their arguments, and the expected error (1: EPERM, 38: ENOSYS, 95: EOPNOTSUPP).
/// Sources: arch/x86/entry/syscalls/syscall_64.tbl and scripts/syscall.tbl, Linux 6.18, 2026-11.
const CALLS: &[(&str, u32, u32, &str, u32)] = &[
    ("setxattr", 188, 5, "$f,$n,$v,1,0", 95),
    ("lsetxattr", 189, 6, "$f,$n,$v,1,0", 95),
    ("fsetxattr", 190, 7, "0,$n,$v,1,0", 95),
    ("removexattr", 197, 14, "$f,$n", 95),
    ("lremovexattr", 198, 15, "$f,$n", 95),
    ("fremovexattr", 199, 16, "0,$n", 95),
    ("setxattrat", 463, 463, "-100,$f,0,$n,0,16", 95),
    ("removexattrat", 466, 466, "-100,$f,0,$n", 95),
    ("quotactl", 179, 60, "0,0,0,0", 1),
    ("quotactl_fd", 443, 443, "0,0,0,0", 1),
    ("open_tree", 428, 428, "-100,$f,0", 1),
    ("move_mount", 429, 429, "-1,0,-1,0,0", 1),
    ("fsopen", 430, 430, "$n,0", 1),
    ("fsconfig", 431, 431, "-1,0,0,0,0", 1),
    ("fsmount", 432, 432, "-1,0,0", 1),
    ("fspick", 433, 433, "-100,$f,0", 1),
    ("mount_setattr", 442, 442, "-1,$f,0,0,0", 1),
    ("statmount", 457, 457, "0,0,0,0", 1),
    ("listmount", 458, 458, "0,0,0,0", 1),
    ("lsm_set_self_attr", 460, 460, "0,0,0,0", 1),
    ("open_tree_attr", 467, 467, "-100,$f,0,0,0", 1),
    ("file_setattr", 469, 469, "-100,$f,0,0,0", 1),
    ("listns", 470, 470, "0,0,0,0", 38),
    ("rseq_slice_yield", 471, 471, "0", 38),
    ("a call that is not reviewed", 499, 499, "0", 38),
    ("clone3", 435, 435, "0,0", 38),
    ("openat2", 437, 437, "-100,$f,0,0", 38),
    ("mount", 165, 40, "0,0,0,0,0", 1),
    ("FS_IOC_SETFLAGS", 16, 29, "0,0x40086602,0", 1),
    ("FS_IOC32_SETFLAGS", 16, 29, "0,0x40046602,0", 1),
    ("FS_IOC_FSSETXATTR", 16, 29, "0,0x401C5820,0", 1),
];

#[test]
fn calls_that_change_attributes_and_mounts_are_refused() {
    let own = [
        "--exact",
        "runtimes::calls_that_change_attributes_and_mounts_are_refused",
        "--nocapture",
    ];
    by_everyone(&own, |who| {
        let lines = CALLS.iter().map(|(name, x86, arm, arguments, _)| {
            let number = if cfg!(target_arch = "aarch64") {
                arm
            } else {
                x86
            };
            format!("$!=0; syscall({number},{arguments}); print \"{name} \", $!+0, \"\\n\";")
        });
        let script = format!(
            "touch f; perl -e '$f=\"f\"; $n=\"user.a\"; $v=\"b\"; {}'",
            lines.collect::<String>()
        );
        let expect: String = CALLS
            .iter()
            .map(|(name, _, _, _, error)| format!("{name} {error}\n"))
            .collect();
        for (name, sandbox) in sandboxes(who) {
            let root = TempDir::new().expect("a root");
            assert_eq!(
                run(root.path(), &sandbox, &script),
                format!("{expect}[exit code 0]"),
                "{who}: {name}"
            );
        }
    });
}

#[test]
fn commands_have_no_capabilities_and_unpack_archives_of_others() {
    let own = [
        "--exact",
        "runtimes::commands_have_no_capabilities_and_unpack_archives_of_others",
        "--nocapture",
    ];
    by_everyone(&own, |who| {
        let capget = if cfg!(target_arch = "aarch64") {
            90
        } else {
            125
        };
        let prctl = if cfg!(target_arch = "aarch64") {
            167
        } else {
            157
        };
        // The three sets, the ambient one, and root's bounding set: no one else can get what is in it.
        let script = format!(
            "perl -e '$h=pack(\"LL\",0x20080522,0); $d=\"\\0\" x 24; syscall({capget},$h,$d)==0 or die; print unpack(\"H*\",$d), \" \"; \
             for (0..40) {{ print \"$_ \" if !$> && syscall({prctl},23,$_,0,0,0)==1 || syscall({prctl},47,1,$_,0,0)==1 }}'; \
             tar xf a.tar && cat f"
        );
        for (name, sandbox) in sandboxes(who) {
            let root = TempDir::new().expect("a root");
            fs::write(root.path().join("f"), "text").expect("a file");
            let tar = ["--owner=4711", "--group=4711", "-cf", "a.tar", "f"];
            let packed = Command::new("tar")
                .args(tar)
                .current_dir(root.path())
                .status();
            assert!(packed.expect("it starts").success());
            fs::remove_file(root.path().join("f")).expect("a file");
            let shown = run(root.path(), &sandbox, &script);
            assert_eq!(
                shown,
                format!("{} text\n[exit code 0]", "0".repeat(48)),
                "{who}: {name}"
            );
        }
    });
}
