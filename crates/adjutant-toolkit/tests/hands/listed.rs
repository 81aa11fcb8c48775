//! Commands that may reach the hosts of a list, and nothing else.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ToolError, Tools};
use adjutant_toolkit::{ErrorKind, Hosts, Network, Sandbox, Shell, sandbox_helper};
use serde_json::{Value, json};

use super::{escapes, who};

pub(super) fn run() {
    sandbox_helper();
    who::by_everyone(&[], |who| {
        let sandbox = with(&["127.0.0.1:1"]);
        if let Some(why) = sandbox.refuses() {
            return tell(format_args!("SKIPPED: {who}: {why}"));
        }
        hosts_of_a_list_are_reached_and_no_other(who);
        tunnels_end_with_their_call();
        commands_inherit_nothing_of_the_helper();
        published_port_leads_to_servers_of_the_commands();
        assert_eq!(
            escapes::table(
                who,
                &["files", "races", "proc"],
                &[("bwrap with hosts", sandbox, &escapes::LOOPBACK)]
            ),
            Vec::<String>::new()
        );
    });
}

fn with(hosts: &[&str]) -> Sandbox {
    Sandbox::bwrap().network(Network::Hosts(Hosts::new(hosts).expect("a list")))
}

/// A server on loopback that answers each request; tells when one of its clients is gone.
fn server() -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (gone, is_gone) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, gone) = (stream.expect("a client"), gone.clone());
            thread::spawn(move || {
                let (mut got, mut shown) = ([0; 4096], String::new());
                while let Ok(read @ 1..) = stream.read(&mut got) {
                    shown = (shown + &String::from_utf8_lossy(&got[..read])).replace("\r\n", "|");
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                        shown.len()
                    );
                    if shown.ends_with("||") && stream.write_all((head + &shown).as_bytes()).is_ok()
                    {
                        break;
                    }
                }
                let _ = gone.send(());
            });
        }
    });
    (port, is_gone)
}

/// What a request through the proxy is answered, as `sh` prints it.
fn asks(request: &str) -> String {
    format!("bash -c 'exec 5<>/dev/tcp/127.0.0.1/3128; printf \"{request}\" >&5; cat <&5'")
}

fn hosts_of_a_list_are_reached_and_no_other(who: &str) {
    let (port, _gone) = server();
    let own = format!("127.0.0.1:{port}");
    let lists = [
        vec![&*own],
        vec![&own, "localhost"],
        vec!["localhost", "*.example.org"],
        vec!["127.0.0.1:1"],
    ];
    let [by_address, by_name, name_alone, other] = &lists;
    let get = |host: &str| {
        asks(&format!(
            r"GET http://{host}:{port}/a?b HTTP/1.1\r\nHost: x\r\nProxy-Secret: a\r\nA: b\r\n\r\n"
        ))
    };
    let tunnel = |host: &str| {
        asks(&format!(
            r"CONNECT {host}:{port} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        ))
    };
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    let curl = |more: &str| format!("curl -s {more} http://127.0.0.1:{port}/; echo \" rc $?\"");
    let flood = r#"perl -MIO::Socket::INET -e 'for(1..80){push @s, IO::Socket::INET->new("127.0.0.1:3128")} for(@s){$_->timeout(1); $r=""; vec($r,fileno($_),1)=1; $n++ if select($r,undef,undef,0.02) && sysread($_,$b,99) && $b=~/ 503 /} print "refused" if $n>=16'"#;
    let table = [
        (
            by_address,
            get("127.0.0.1"),
            format!("GET /a?b HTTP/1.1|Host: {own}|Connection: close|A: b||"),
        ),
        (
            by_address,
            tunnel("127.0.0.1"),
            "200 Connection established\n\nHTTP/1.1 200 OK".into(),
        ),
        (
            by_address,
            curl(""),
            "Connection: close|User-Agent: curl".into(),
        ),
        (
            by_address,
            curl("-p"),
            "GET / HTTP/1.1|Host: 127.0.0.1".into(),
        ),
        (by_name, get("localhost"), "HTTP/1.1 200 OK".into()),
        (by_name, tunnel("LOCALHOST."), "HTTP/1.1 200 OK".into()),
        // A name of the list that leads to an address of this machine.
        (
            name_alone,
            get("localhost"),
            "403 Forbidden\nContent-Type: text/plain".into(),
        ),
        (name_alone, tunnel("localhost"), "which is private".into()),
        (
            name_alone,
            get("example.org"),
            "example.org:".to_owned() + &format!("{port} is not in the list of hosts"),
        ),
        (name_alone, get("2130706433"), "403 Forbidden".into()),
        (name_alone, tunnel("0x7f.1"), "403 Forbidden".into()),
        (
            name_alone,
            tunnel("[::ffff:127.0.0.1]"),
            "403 Forbidden".into(),
        ),
        (
            name_alone,
            tunnel("169.254.169.254"),
            "403 Forbidden".into(),
        ),
        (name_alone, get("u@localhost"), "403 Forbidden".into()),
        (other, get("127.0.0.1"), "403 Forbidden".into()),
        (other, curl("-p"), "rc 56".into()),
        (other, tunnel("127.0.0.1"), "403 Forbidden".into()),
        (
            other,
            asks(r"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n"),
            "502 Bad Gateway".into(),
        ),
        (
            by_address,
            format!("curl -s --noproxy '*' http://{own}/; echo rc $?"),
            "rc 7\n".into(),
        ),
        (
            by_address,
            format!("bash -c 'exec 5<>/dev/tcp/127.0.0.1/{port}' 2>/dev/null || echo refused"),
            "refused\n".into(),
        ),
        (
            by_address,
            "bash -c 'echo a >/dev/udp/9.9.9.9/53' 2>/dev/null || echo refused".into(),
            "refused\n".into(),
        ),
        (by_address, asks(r"HELLO\r\n\r\n"), "400 Bad Request".into()),
        (
            by_address,
            asks(r"GET / HTTP/1.1\r\n\r\n"),
            "400 Bad Request".into(),
        ),
        (
            by_address,
            asks(r"GET https://a/ HTTP/1.1\r\n\r\n"),
            "400 Bad Request".into(),
        ),
        (
            by_address,
            asks(r"CONNECT a HTTP/1.1\r\n\r\n"),
            "400 Bad Request".into(),
        ),
        (
            by_address,
            asks(r"GET http://a/ HTTP/1.1\r\n folded: a\r\n\r\n"),
            "400 Bad Request".into(),
        ),
        (
            by_address,
            asks("GET http://a/ HTTP/1.1\\r\\nA: %020000d"),
            "431 Request Header Fields".into(),
        ),
        (by_address, flood.into(), "refused".into()),
    ];
    for (hosts, command, expect) in table {
        if command.contains("curl") && !has_curl {
            tell(format_args!("SKIPPED: {command}: there is no curl"));
            continue;
        }
        let place = tempfile::tempdir().expect("a folder");
        let shell = Shell::new(place.path(), with(hosts)).expect("a shell");
        let shown = said(
            &shell.toolbox(),
            "run_command",
            json!({ "command": command, "timeout_secs": 20 }),
        );
        assert!(
            shown.contains(&expect),
            "{who}: {hosts:?}: {command}: {shown}"
        );
    }
}

fn published_port_leads_to_servers_of_the_commands() {
    const SERVER: &str = "perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(LocalAddr => \"127.0.0.1:{port}\", Listen => 5); \
                          while ($c = $l->accept) { $line = <$c>; print $c \"got $line\"; close $c }'";
    let place = tempfile::tempdir().expect("a directory");
    let publish = |sandbox: Sandbox, port: u16| {
        Shell::new(place.path(), sandbox)
            .expect("a shell")
            .publish(port)
    };
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let refused = [
        (Sandbox::bwrap(), "another program uses it"),
        (Sandbox::landlock(), "hint: install bubblewrap"),
        (Sandbox::bwrap().network(Network::All), "already open"),
        (with(&["example.org"]), "its own network"),
    ];
    for (sandbox, why) in refused {
        let error = publish(sandbox, port).expect_err(why);
        assert_eq!(error.kind(), ErrorKind::Port);
        assert!(error.message().contains(why), "{error}");
    }
    drop(taken);
    let shell = publish(Sandbox::bwrap(), port).expect("a free port");
    let ask = || {
        let mut client = TcpStream::connect(("127.0.0.1", port))?;
        client.write_all(b"hello\n")?;
        let mut answer = String::new();
        client.read_to_string(&mut answer).map(|_| answer)
    };
    // Without a server the connection is closed.
    assert!(ask().is_ok_and(|answer| answer.is_empty()) || ask().is_err());
    let tools = shell.toolbox();
    let command = SERVER.replace("{port}", &port.to_string());
    said(
        &tools,
        "run_command",
        json!({ "command": command, "background": true }),
    );
    let until = Instant::now() + Duration::from_secs(20);
    while ask().unwrap_or_default() != "got hello\n" {
        assert!(Instant::now() < until, "no answer of the server");
    }
    drop((shell, tools));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

fn tunnels_end_with_their_call() {
    let (port, gone) = server();
    let own = format!("127.0.0.1:{port}");
    let place = tempfile::tempdir().expect("a folder");
    let shell = Shell::new(place.path(), with(&[&own])).expect("a shell");
    let request = asks(&format!(r"CONNECT {own} HTTP/1.1\r\n\r\n"));
    let shown = said(
        &shell.toolbox(),
        "run_command",
        json!({ "command": request, "timeout_secs": 1 }),
    );
    assert!(
        shown.contains("200 Connection established")
            && shown.ends_with("[killed: it took longer than 1 s]"),
        "{shown}"
    );
    gone.recv_timeout(Duration::from_secs(20))
        .expect("the connection ends");
}

fn commands_inherit_nothing_of_the_helper() {
    let place = tempfile::tempdir().expect("a folder");
    let shell = Shell::new(place.path(), with(&["a.test"])).expect("a shell");
    let run = |command: &str| {
        said(
            &shell.toolbox(),
            "run_command",
            json!({ "command": command }),
        )
    };
    assert_eq!(
        run("cat; for fd in 3 4 5 6; do test -e /proc/$$/fd/$fd && echo $fd; done; echo $no_proxy"),
        "localhost,127.0.0.1,::1\n[exit code 0]"
    );
    // What the helper does by hand: nothing.
    let mut own = Command::new(std::env::current_exe().expect("a program"));
    let output = own
        .args(["adjutant-sandbox-helper", "echo", "ran"])
        .stdin(std::process::Stdio::null())
        .output();
    let output = output.expect("it starts");
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(126), &b""[..])
    );
}

/// What the model is shown, whether it failed or not.
pub(super) fn said(tools: &Tools, tool: &str, args: Value) -> String {
    let tool = tools
        .toolset()
        .get(tool)
        .expect("the toolbox holds the tool")
        .clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let done: Result<CallResult, ToolError> =
        runtime.block_on(tool.call(args, CallContext::detached()));
    done.map_or_else(|error| error.message.to_string(), |result| result.text())
}

/// Shows a row of a table, whoever looks.
pub(super) fn tell(row: std::fmt::Arguments<'_>) {
    // A closed output is no failure of what is tested.
    let _ = writeln!(std::io::stdout(), "{row}");
}
