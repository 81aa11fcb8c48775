//! The server of a measurement: canned Chat Completions streams, from a process of its own.

use std::io::{BufRead, stdin};

use adjutant_testing::{Latch, Loopback};
use bytes::Bytes;

/// Serves until the parent ends this process.
pub(crate) fn run(kind: &str, n: usize) {
    let latch = Latch::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let setup = match kind {
            "short" => {
                Loopback::from_bodies((1..crate::SHORT_TURNS).map(call).chain([text(&["Done."])]))
            }
            "turns" => Loopback::from_bodies((1..n).map(call).chain([text(&["Done."])])),
            "deltas" => Loopback::from_bodies([text(&vec![" word"; n])]),
            "waiting" => Loopback::from_bodies([text(&["Done."])]).latch(&latch),
            other => panic!("no measurement is called {other}"),
        };
        let server = setup
            .forget_requests()
            .start()
            .await
            .expect("a port is free");
        println!("{}", server.addr().port());
        if kind == "waiting" {
            latch.wait_for(n).await;
            println!("reached");
            let line = tokio::task::spawn_blocking(|| stdin().lock().lines().next());
            line.await.expect("the parent speaks");
            latch.open();
            while server.request_count() < n {
                tokio::task::yield_now().await;
            }
            println!("{}", server.connections());
        }
        std::future::pending::<()>().await;
    });
}

fn frame(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"bench\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

fn end(finish: &str) -> String {
    let usage = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"bench\",\
         \"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10,\"total_tokens\":110}}\n\n";
    format!(
        "{}{usage}data: [DONE]\n\n",
        frame("{}", &format!("\"{finish}\""))
    )
}

fn call(n: usize) -> Bytes {
    let open = format!(
        "{{\"role\":\"assistant\",\"tool_calls\":[{{\"index\":0,\"id\":\"call_{n}\",\"type\":\"function\",\
         \"function\":{{\"name\":\"fetch\",\"arguments\":\"\"}}}}]}}"
    );
    let args = |text: &str| {
        format!("{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{text}\"}}}}]}}")
    };
    let frames = [
        frame(&open, "null"),
        frame(&args("{\\\"n\\\":"), "null"),
        frame(&args(&format!("{n}}}")), "null"),
    ];
    Bytes::from(frames.concat() + &end("tool_calls"))
}

fn text(words: &[&str]) -> Bytes {
    let frames: String = words
        .iter()
        .map(|word| frame(&format!("{{\"content\":\"{word}\"}}"), "null"))
        .collect();
    Bytes::from(frames + &end("stop"))
}
