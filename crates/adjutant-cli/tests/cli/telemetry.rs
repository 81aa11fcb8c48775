//! Telemetry of the command, to a collector that the environment names.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
};

use crate::command::{adjutant, seen};

/// A collector that takes everything, and the paths that are posted to it.
fn collector() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!(
        "http://{}",
        listener.local_addr().expect("it has an address")
    );
    let (paths, posted) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let paths = paths.clone();
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("it can be cloned"));
                loop {
                    let (mut line, mut length) = (String::new(), 0);
                    if reader.read_line(&mut line).unwrap_or_default() == 0 {
                        return;
                    }
                    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                    while line != "\r\n" {
                        line.clear();
                        reader.read_line(&mut line).expect("a header");
                        if let Some(value) =
                            line.to_ascii_lowercase().strip_prefix("content-length:")
                        {
                            length = value.trim().parse().expect("a length");
                        }
                    }
                    reader.read_exact(&mut vec![0; length]).expect("a body");
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    (&stream).write_all(answer).expect("it is answered");
                    let _ = paths.send(path);
                }
            });
        }
    });
    (address, posted)
}

#[test]
fn run_is_exported_when_the_environment_names_a_collector() {
    let (address, posted) = collector();
    let run = |variables: &[(&str, &str)]| {
        let mut command = adjutant(&[
            "run",
            "List the files.",
            "--model",
            "offline/planner",
            "--root",
            "src",
            "-q",
        ]);
        command
            .envs(variables.iter().copied())
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let seen = seen(command);
        assert_eq!(
            (seen.code, seen.stderr.as_str()),
            (Some(0), ""),
            "{seen:#?}"
        );
    };
    run(&[]);
    run(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &address),
        ("OTEL_SDK_DISABLED", "true"),
    ]);
    assert_eq!(posted.try_recv(), Err(mpsc::TryRecvError::Empty));
    run(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &address)]);
    assert!(posted.try_iter().any(|path| path == "/v1/traces"));
}
