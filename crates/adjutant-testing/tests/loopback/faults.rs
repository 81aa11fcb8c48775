//! Each fault, on every wire. `every_fault_has_a_test` holds the list.

use std::time::Duration;

use adjutant_llm::{Script, ScriptedModel, Usage};
use adjutant_testing::{Fault, FaultPosition, Loopback, Paused};
use bytes::Bytes;
use serde_json::json;

use crate::client::{Answer, Client, VENDORS, Vendor, ask, hello, request, run};

fn model(replies: usize) -> ScriptedModel {
    let usage = Usage {
        input_uncached: 7,
        output: 3,
        ..Usage::default()
    };
    ScriptedModel::new((0..replies).map(|_| {
        Script::new()
            .text("Grüße an die Welt")
            .delta_chars(3)
            .usage(usage)
    }))
}

async fn broken(fault: Fault) -> Loopback {
    // The clock stands still, so that two streams are the same bytes.
    let setup = Loopback::setup(model(4)).world(adjutant_llm::FixedWorld::at_ms(0));
    setup.fault(0, fault).start().await.expect("a port")
}

/// The body as it is without a fault.
async fn sound(vendor: Vendor) -> Vec<u8> {
    let setup = Loopback::setup(model(1)).world(adjutant_llm::FixedWorld::at_ms(0));
    let server = setup.start().await.expect("a port");
    ask(&server, vendor, &hello(vendor)).await.body()
}

/// Checks what a fault makes of the sound body.
#[track_caller]
fn check(fault: &Fault, expect: impl Fn(Vendor, Vec<u8>) -> (Vec<u8>, bool)) {
    run(async {
        for vendor in VENDORS {
            let server = broken(fault.clone()).await;
            let answer = ask(&server, vendor, &hello(vendor)).await;
            let (body, whole) = expect(vendor, sound(vendor).await);
            assert_eq!(
                String::from_utf8_lossy(&answer.body()),
                String::from_utf8_lossy(&body),
                "{vendor:?}"
            );
            assert_eq!((answer.body(), answer.whole), (body, whole), "{vendor:?}");
        }
    });
}

/// Checks that a connection stays open and silent after a part of the body.
async fn check_silence(fault: Fault, vendor: Vendor, bytes: usize) {
    let server = broken(fault).await;
    let mut client = Client::open(&server).await;
    client.send(&request(vendor, &hello(vendor))).await;
    let mut answer = client.answer_up_to(bytes).await;
    // A whole exchange beside it: a server that would go on or close would have done so by its end.
    assert_eq!(ask(&server, vendor, &hello(vendor)).await.status, 200);
    assert!(client.is_silent().await, "{vendor:?}");
    drop(server);
    assert!(!client.chunk(&mut answer).await);
    assert_eq!(
        (answer.body().len(), answer.whole),
        (bytes, false),
        "{vendor:?}"
    );
}

fn frames(body: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(body).into_owned();
    // One of the vendors ends its lines in another way.
    let end = if text.contains("\r\n\r\n") {
        "\r\n\r\n"
    } else {
        "\n\n"
    };
    text.split_inclusive(end)
        .map(|frame| frame.as_bytes().to_vec())
        .collect()
}

#[test]
fn every_fault_has_a_test() {
    let source = include_str!("faults.rs");
    let missing = |fault: &Fault| !source.contains(&format!("fn {}_", fault.name()));
    let missing: Vec<_> = Fault::all()
        .iter()
        .filter(|fault| missing(fault))
        .map(Fault::name)
        .collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn hangup_closes_when_nothing_was_sent() {
    run(async {
        for vendor in VENDORS {
            let server = broken(Fault::Hangup).await;
            assert_eq!(
                ask(&server, vendor, &hello(vendor)).await,
                Answer::default()
            );
            assert_eq!(ask(&server, vendor, &hello(vendor)).await.status, 200);
        }
    });
}

#[test]
fn cut_at_closes_when_the_byte_is_reached() {
    for at in [0, 1, 333] {
        check(&Fault::CutAt(at as u64), |_, body| {
            (body[..at].to_vec(), false)
        });
    }
    check(&Fault::CutAt(1_000_000), |_, body| (body, true));
}

#[test]
fn stall_at_falls_silent_when_the_byte_is_reached() {
    run(async {
        for vendor in VENDORS {
            check_silence(Fault::StallAt(333), vendor, 333).await;
        }
    });
}

#[test]
fn garbage_stands_between_bytes_and_frames() {
    let bytes = Bytes::from_static(b"\xF0\x9F??");
    let garbage = |at| Fault::Garbage {
        at,
        bytes: bytes.clone(),
    };
    check(&garbage(FaultPosition::Byte(5)), |_, body| {
        ([&body[..5], &bytes, &body[5..]].concat(), true)
    });
    check(&garbage(FaultPosition::Frame(2)), |_, body| {
        let mut frames = frames(&body);
        frames.insert(2, bytes.to_vec());
        (frames.concat(), true)
    });
}

#[test]
fn split_every_sends_pieces_when_letters_are_longer() {
    run(async {
        for vendor in VENDORS {
            let server = broken(Fault::SplitEvery(1)).await;
            let answer = ask(&server, vendor, &hello(vendor)).await;
            let expect: Vec<_> = sound(vendor)
                .await
                .into_iter()
                .map(|byte| vec![byte])
                .collect();
            assert_eq!((answer.chunks, answer.whole), (expect, true));
        }
    });
}

#[test]
fn status_answers_with_the_vendors_error() {
    run(async {
        let cases = [
            (
                Fault::rate_limited(7),
                429,
                429,
                "rate_limit_error",
                "requests",
            ),
            (
                Fault::auth_error(),
                401,
                401,
                "authentication_error",
                "invalid_request_error",
            ),
            (
                Fault::not_found(),
                404,
                404,
                "not_found_error",
                "invalid_request_error",
            ),
            (Fault::server_error(), 500, 500, "api_error", "server_error"),
            (
                Fault::overload_error(),
                529,
                503,
                "overloaded_error",
                "server_error",
            ),
        ];
        for (fault, anthropic, openai, anthropic_type, openai_type) in cases {
            let wait = (anthropic == 429).then_some("7");
            for (vendor, status, kind) in [
                (Vendor::Anthropic, anthropic, anthropic_type),
                (Vendor::OpenAi, openai, openai_type),
            ] {
                let server = broken(fault.clone()).await;
                let answer = ask(&server, vendor, &hello(vendor)).await;
                assert_eq!(
                    (answer.status, answer.header("retry-after")),
                    (status, wait)
                );
                assert_eq!(answer.json()["error"]["type"], kind);
            }
        }
    });
}

#[test]
fn status_answers_with_the_newer_wires_errors() {
    run(async {
        let cases = [
            (
                Fault::rate_limited(7),
                429,
                "rate_limit_exceeded",
                "RESOURCE_EXHAUSTED",
            ),
            (
                Fault::auth_error(),
                401,
                "invalid_api_key",
                "UNAUTHENTICATED",
            ),
            (Fault::server_error(), 500, "server_error", "INTERNAL"),
            (Fault::overload_error(), 503, "server_error", "UNAVAILABLE"),
        ];
        for (fault, status, code, word) in cases {
            let server = Loopback::setup(model(2))
                .fault_all(fault)
                .start()
                .await
                .expect("a port");
            let answer = ask(&server, Vendor::Responses, &hello(Vendor::Responses)).await;
            assert_eq!(
                (answer.status, &answer.json()["error"]["code"]),
                (status, &json!(code))
            );
            assert_eq!(answer.header("retry-after"), (status == 429).then_some("7"));
            let answer = ask(&server, Vendor::Gemini, &hello(Vendor::Gemini)).await;
            assert_eq!(
                (answer.status, &answer.json()["error"]["status"]),
                (status, &json!(word))
            );
            // How long to wait stands in the body here.
            assert_eq!(answer.header("retry-after"), None);
            let retry =
                json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]);
            assert_eq!(
                answer.json()["error"]["details"],
                if status == 429 { retry } else { json!(null) }
            );
        }
    });
}

#[test]
fn replace_sends_other_bytes_wherever_they_are_said() {
    let fault = Fault::Replace {
        what: "ü".into(),
        with: "\\ud83d".into(),
    };
    check(&fault, |_, body| {
        let text = String::from_utf8(body).expect("the body is UTF-8");
        assert!(text.contains('ü'));
        (text.replace('ü', "\\ud83d").into_bytes(), true)
    });
}

#[test]
fn status_answers_with_its_own_body_when_it_has_one() {
    run(async {
        let headers = vec![("x-should-retry".to_owned(), "false".to_owned())];
        let server = broken(Fault::Status {
            code: 502,
            headers,
            body: Some("bad".into()),
        })
        .await;
        let answer = ask(&server, Vendor::OpenAi, &hello(Vendor::OpenAi)).await;
        let shown = (
            answer.status,
            answer.header("x-should-retry"),
            answer.text(),
        );
        assert_eq!(shown, (502, Some("false"), "bad".to_owned()));
    });
}

#[test]
fn html_is_a_page_with_status_200() {
    run(async {
        let server = broken(Fault::Html).await;
        let answer = ask(&server, Vendor::OpenAi, &hello(Vendor::OpenAi)).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/html; charset=utf-8"))
        );
        assert!(answer.text().starts_with("<!DOCTYPE html>"));
    });
}

#[test]
fn error_after_ends_the_body_with_an_error() {
    for count in [0, 2] {
        check(
            &Fault::ErrorAfter {
                frames: count as u64,
            },
            |vendor, body| {
                let error = match vendor {
                    Vendor::Anthropic => {
                        let data = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
                        format!("event: error\ndata: {data}\n\n")
                    }
                    Vendor::OpenAi => {
                        let error = json!({"message": "Overloaded", "type": "server_error", "param": null, "code": null});
                        format!("data: {}\n\n", json!({"error": error}))
                    }
                    Vendor::Responses => {
                        let data = json!({"type": "error", "sequence_number": count, "code": "server_error",
                                      "message": "Overloaded", "param": null});
                        format!("event: error\ndata: {data}\n\n")
                    }
                    Vendor::Gemini => {
                        let error =
                            json!({"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"});
                        format!("data: {}\r\n\r\n", json!({"error": error}))
                    }
                };
                (
                    [frames(&body)[..count].concat(), error.into_bytes()].concat(),
                    true,
                )
            },
        );
    }
}

#[test]
fn endless_frame_goes_on_when_megabytes_were_sent() {
    run(async {
        for vendor in VENDORS {
            let server = broken(Fault::EndlessFrame).await;
            let mut client = Client::open(&server).await;
            client.send(&request(vendor, &hello(vendor))).await;
            let body = client.answer_up_to(4_000_000).await.body();
            let start = [frames(&sound(vendor).await)[0].as_slice(), b"data: "].concat();
            assert!(body.len() >= 4_000_000 && body.starts_with(&start));
            assert!(body[start.len()..].iter().all(|byte| *byte == b'a'));
        }
    });
}

#[test]
fn missing_finish_ends_the_body_before_the_stop() {
    check(&Fault::MissingFinish, |vendor, body| {
        let mut frames = frames(&body);
        let at = frames.len();
        match vendor {
            // message_delta and message_stop.
            Vendor::Anthropic => drop(frames.drain(at - 2..)),
            // finish_reason and [DONE]; the usage between them stays.
            Vendor::OpenAi => {
                frames.remove(at - 3);
                frames.pop();
            }
            // The last frame tells everything.
            Vendor::Responses | Vendor::Gemini => drop(frames.pop()),
        }
        (frames.concat(), true)
    });
}

#[test]
fn invalid_utf8_stands_in_the_place_of_a_byte() {
    check(&Fault::InvalidUtf8 { at: 300 }, |_, mut body| {
        body[300] = 0xFF;
        (body, true)
    });
}

#[test]
fn duplicate_usage_tells_the_usage_twice() {
    check(&Fault::DuplicateUsage, |vendor, body| {
        let mut frames = frames(&body);
        let last = matches!(vendor, Vendor::Responses | Vendor::Gemini);
        let at = frames.len() - if last { 1 } else { 2 };
        frames.insert(at, frames[at].clone());
        (frames.concat(), true)
    });
}

#[test]
fn pause_sends_its_bytes_before_the_frame() {
    let bytes = Bytes::from_static(b": keep-alive\n\n");
    let fault = Fault::Pause {
        before: Paused::Frame(1),
        times: 2,
        every: Duration::from_millis(1),
        bytes: bytes.clone(),
    };
    check(&fault, |_, body| {
        let mut frames = frames(&body);
        frames.insert(1, bytes.repeat(2));
        (frames.concat(), true)
    });
}

#[test]
fn content_type_replaces_that_of_the_wire() {
    run(async {
        for vendor in VENDORS {
            let server = broken(Fault::ContentType("text/plain".into())).await;
            let answer = ask(&server, vendor, &hello(vendor)).await;
            assert_eq!(answer.header("content-type"), Some("text/plain"));
            assert_eq!(answer.body(), sound(vendor).await, "{vendor:?}");
        }
    });
}

#[test]
fn slow_close_withholds_the_end_when_all_was_sent() {
    run(async {
        for vendor in VENDORS {
            let bytes = sound(vendor).await.len();
            check_silence(Fault::SlowClose, vendor, bytes).await;
        }
    });
}
