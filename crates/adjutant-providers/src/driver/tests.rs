//! Plays answers through the driver without a network: conformance of both wires, timeouts, and broken bodies.

use std::{collections::VecDeque, fmt::Write, path::PathBuf};

use adjutant_llm::{Collector, ErrorKind};
use http_body::Frame as BodyFrame;

use super::*;

#[path = "garbled.rs"]
mod garbled;

pub(crate) use garbled::survive;

/// A body that gives these pieces and then ends, breaks or hangs.
pub(crate) struct Pieces {
    pub(crate) pieces: VecDeque<Vec<u8>>,
    pub(crate) end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Clean,
    Broken,
    Hangs,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, std::io::Error>>> {
        match (self.pieces.pop_front(), self.end) {
            (Some(piece), _) => Poll::Ready(Some(Ok(BodyFrame::data(piece.into())))),
            (None, End::Clean) => Poll::Ready(None),
            (None, End::Broken) => Poll::Ready(Some(Err(std::io::Error::other("reset")))),
            (None, End::Hangs) => Poll::Pending,
        }
    }
}

/// Returns the chunks and errors that a wire makes of an answer that comes in these pieces.
pub(crate) async fn play<W: Driven>(
    wire: &Arc<W>,
    pieces: &[&[u8]],
    end: End,
) -> Vec<Result<Chunk, Error>> {
    let pieces = pieces.iter().map(|it| it.to_vec()).collect();
    let mut driver = Driver::new(
        Arc::clone(wire),
        State::Reading(reqwest::Body::wrap(Pieces { pieces, end })),
    );
    driver.deadline = Instant::now() + wire.endpoint().timeouts().first_byte;
    driver.decoder = Some(Joined::new(
        wire.decoder(CallIdSeed {
            turn: 3,
            attempt: 0,
        }),
        Default::default(),
    ));
    driver.start = Some(Start {
        attempt: 0,
        limits: Box::default(),
        warnings: Vec::new(),
    });
    let mut stream = Box::pin(driver);
    let mut items = Vec::new();
    while let Some(item) = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        items.push(item);
    }
    check_grammar(&items);
    items
}

/// A stream obeys the grammar, and ends in exactly one terminal.
#[track_caller]
fn check_grammar(items: &[Result<Chunk, Error>]) {
    let mut collector = Collector::default();
    for (at, item) in items.iter().enumerate() {
        let last = at + 1 == items.len();
        match item {
            Ok(chunk) => {
                let reply = collector.push(chunk).expect("the grammar holds");
                assert_eq!(
                    reply.is_some(),
                    last,
                    "only the last item is a terminal: {items:?}"
                );
            }
            Err(_) => assert!(last, "nothing follows an error: {items:?}"),
        }
    }
    assert!(!items.is_empty());
}

/// The items as text: one line each.
fn render(items: &[Result<Chunk, Error>]) -> String {
    let mut text = String::new();
    for item in items {
        let line = match item {
            Ok(Chunk::Start { attempt, model, .. }) => format!("start {attempt} {model}"),
            Ok(Chunk::Open { block, kind }) => format!("open {block} {}", json(kind)),
            Ok(Chunk::Delta { block, text }) => format!("delta {block} {text:?}"),
            Ok(Chunk::Close { block, content }) => format!("close {block} {}", json(&**content)),
            Ok(Chunk::Usage { usage, raw }) => format!("usage {} raw {}", json(usage), **raw),
            Ok(Chunk::Warned { warning }) => format!("warned {}", json(warning)),
            Ok(Chunk::Done(reply)) => format!("done {}", json(&**reply)),
            Ok(other) => format!("{other:?}"),
            Err(error) => {
                let (code, id) = (
                    error.details().code.as_deref().unwrap_or("-"),
                    error.details().request_id.as_deref().unwrap_or("-"),
                );
                format!("error {:?} code {code} request {id}: {error}", error.kind())
            }
        };
        writeln!(text, "{line}").expect("a string takes every line");
    }
    text
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our types are JSON")
}

/// The hazards that every wire has a fixture for.
const HAZARDS: [&str; 16] = [
    "abort",
    "empty",
    "error_after_200",
    "error_first",
    "garbage",
    "missing_finish",
    "parallel_calls",
    "ping",
    "refusal",
    "split_utf8",
    "thinking",
    "truncated_call",
    "unknown_event",
    "unknown_finish_call",
    "unknown_finish_nothing",
    "unknown_finish_text",
];

/// Plays every fixture of a wire: whole, cut in two, byte by byte, and with other line ends and a mark.
pub(crate) async fn conform<W: Driven>(wire: &Arc<W>, folder: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(folder);
    let files = std::fs::read_dir(&folder).expect("the fixtures are there");
    let mut names: Vec<String> = files
        .filter_map(|file| {
            Some(
                file.ok()?
                    .file_name()
                    .to_str()?
                    .strip_suffix(".sse")?
                    .to_owned(),
            )
        })
        .collect();
    names.sort();
    for hazard in HAZARDS.iter().chain(&["usage_without_choices"]) {
        assert!(
            names.iter().any(|name| name == hazard),
            "no fixture for {hazard}"
        );
    }
    for name in names {
        let read =
            |extension: &str| std::fs::read_to_string(folder.join(format!("{name}.{extension}")));
        let answer = read("sse").expect("a fixture is text");
        let expect = read("expect").unwrap_or_default();
        let whole = play(wire, &[answer.as_bytes()], End::Clean).await;
        assert_eq!(render(&whole), expect, "{name}");
        let bytes = answer.as_bytes();
        for cut in (0..=bytes.len()).step_by(5) {
            let items = play(wire, &[&bytes[..cut], &bytes[cut..]], End::Clean).await;
            assert_eq!(items, whole, "{name} cut at {cut}");
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(
            play(wire, &single, End::Clean).await,
            whole,
            "{name} byte by byte"
        );
        for other in [
            answer.replace('\n', "\r"),
            answer.replace('\n', "\r\n"),
            format!("\u{feff}{answer}"),
            answer.replace("\n\n", "\n\n: comment\n\n"),
            answer.replace("\n\n", "\nretry: 5\nid: 7\n\n"),
        ] {
            assert_eq!(
                render(&play(wire, &[other.as_bytes()], End::Clean).await),
                expect,
                "{name}"
            );
        }
    }
}

/// A wire whose events are texts: each is a delta, `.` ends the reply, and the body's end does too after `whole`.
#[derive(Debug)]
struct Plain {
    info: ModelInfo,
    endpoint: Endpoint,
}

#[derive(Default)]
struct PlainDecoder {
    whole: bool,
    counts: bool,
}

impl Driven for Plain {
    type Decoder = PlainDecoder;

    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn encode(&self, _: &Request) -> Prepared {
        let (head, marks) = (Bytes::new(), Default::default());
        Prepared {
            body: Segmented::new(head, Arc::default(), "{}".into(), 0, marks),
            warnings: Vec::new(),
            prefix: None,
            renamed: Arc::default(),
        }
    }

    fn decoder(&self, _: CallIdSeed) -> PlainDecoder {
        PlainDecoder::default()
    }
}

impl Decode for PlainDecoder {
    fn frame(&mut self, frame: Frame<'_>, _: &mut VecDeque<Chunk>) -> Result<Flow, Error> {
        match frame.data {
            "." => {
                self.whole = true;
                return Ok(Flow::Finished);
            }
            "whole" => self.whole = true,
            "counts" => {
                self.whole = true;
                self.counts = true;
            }
            "secret" => {
                return Err(Error::new(ErrorKind::Invalid, "sk-secret is no good")
                    .with(|it| it.body = Some("sk-secret".into())));
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    fn is_whole(&self) -> bool {
        self.whole
    }

    fn awaits_usage(&self) -> bool {
        self.counts
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<Reply, Error> {
        if !self.whole {
            return Err(Error::new(ErrorKind::Protocol, "not whole"));
        }
        Ok(Reply::new("x/y".into(), adjutant_llm::FinishReason::End))
    }
}

fn plain(base_url: &str) -> Arc<Plain> {
    let endpoint = Endpoint::new(base_url, Address::new("/p"), "sk-secret".into());
    Arc::new(Plain {
        info: ModelInfo::new("x/y"),
        endpoint,
    })
}

/// Checks the last item of an answer; `seconds` is how far the paused clock moved.
async fn check(pieces: &[&str], end: End, expect: Result<(), (ErrorKind, &str)>, seconds: f64) {
    let wire = plain("https://a.example/");
    let begun = Instant::now();
    let pieces: Vec<_> = pieces.iter().map(|it| it.as_bytes()).collect();
    let items = play(&wire, &pieces, end).await;
    let last = items.last().expect("a terminal").as_ref();
    let got = last
        .map(|_| ())
        .map_err(|error| (error.kind(), error.message()));
    assert_eq!(got, expect);
    let moved = begun.elapsed().as_secs_f64();
    assert!(
        (moved - seconds).abs() < 0.01,
        "{moved} s instead of {seconds} s"
    );
}

#[tokio::test(start_paused = true)]
async fn stream_times_out_when_nothing_comes() {
    let late = "no answer came from a.example within 600s";
    check(&[], End::Hangs, Err((ErrorKind::Timeout, late)), 600.0).await;
    let pause = "nothing more came from a.example within 300s";
    for piece in ["data: a\n\n", ": wait\n\n", "\n"] {
        check(
            &[piece],
            End::Hangs,
            Err((ErrorKind::Timeout, pause)),
            300.0,
        )
        .await;
    }
}

/// A body that says something every second, for ever.
struct Drip(&'static [u8], Pin<Box<Sleep>>);

impl Body for Drip {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, std::io::Error>>> {
        if self.1.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let next = Instant::now() + Duration::from_secs(1);
        self.1.as_mut().reset(next);
        Poll::Ready(Some(Ok(BodyFrame::data(Bytes::from_static(self.0)))))
    }
}

/// A driver that reads what drips.
fn drip_driver(wire: &Arc<Plain>, said: &'static str) -> Driver<Plain> {
    let drip = Drip(
        said.as_bytes(),
        Box::pin(tokio::time::sleep(Duration::from_secs(1))),
    );
    let mut driver = Driver::new(Arc::clone(wire), State::Reading(reqwest::Body::wrap(drip)));
    driver.deadline = Instant::now() + wire.endpoint().timeouts().first_byte;
    driver.clock.end = wire.endpoint().timeouts().total.map(after);
    driver.decoder = Some(Joined::new(
        wire.decoder(CallIdSeed {
            turn: 1,
            attempt: 0,
        }),
        Default::default(),
    ));
    driver
}

#[tokio::test(start_paused = true)]
async fn stream_reports_a_silent_server_until_the_silence_is_too_long() {
    for said in [
        ": still here\n\n",
        "x",
        "\n",
        "data:\n\n",
        "event: ping\ndata: {}\n\n",
    ] {
        let wire = plain("https://a.example/");
        let begun = Instant::now();
        let mut stream = Box::pin(drip_driver(&wire, said));
        let mut reports = Vec::new();
        let error = loop {
            let item = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await;
            match item.expect("an item") {
                Ok(Chunk::Pending { silent }) => reports.push(silent.as_secs()),
                Ok(other) => unreachable!("no content came: {other:?}"),
                Err(error) => break error,
            }
        };
        let expect = "a.example sent no content within 1800s";
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Timeout, expect)
        );
        assert_eq!(begun.elapsed().as_secs(), 1_800, "{said:?}");
        assert_eq!(reports[..3], [15, 30, 45], "{said:?}");
        assert_eq!(reports.len(), 120, "{said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn stream_times_out_when_the_whole_answer_takes_too_long() {
    let mut wire = plain("https://a.example/");
    let timeouts = Timeouts::default().total(Duration::from_secs(60));
    if let Some(wire) = Arc::get_mut(&mut wire) {
        wire.endpoint.set_timeouts(timeouts);
    }
    let mut stream = Box::pin(drip_driver(&wire, "data: a\n\n"));
    let error = loop {
        let item = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await;
        if let Err(error) = item.expect("an item") {
            break error;
        }
    };
    assert_eq!(
        (error.kind(), error.message()),
        (
            ErrorKind::Timeout,
            "the answer of a.example was not whole within 60s"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn usage_is_waited_for_longer_when_it_was_requested() {
    check(&["data: counts\n\n"], End::Hangs, Ok(()), 5.0).await;
}

#[tokio::test(start_paused = true)]
async fn stream_ends_well_when_only_the_rest_of_the_body_is_missing() {
    check(&["data: .\n\n"], End::Clean, Ok(()), 0.0).await;
    check(&["data: .\n\n"], End::Hangs, Ok(()), 0.02).await;
    check(&["data: .\n\n", "data: junk"], End::Broken, Ok(()), 0.0).await;
    check(&["data: whole\n\n"], End::Broken, Ok(()), 0.0).await;
    check(&["data: whole\n\n"], End::Hangs, Ok(()), 2.0).await;
}

#[tokio::test(start_paused = true)]
async fn stream_fails_when_the_body_breaks() {
    let broke = "the connection to a.example broke in the middle of the answer";
    check(
        &["data: a\n\n"],
        End::Broken,
        Err((ErrorKind::Network, broke)),
        0.0,
    )
    .await;
    check(
        &["data: a\n\n"],
        End::Clean,
        Err((ErrorKind::Protocol, "not whole")),
        0.0,
    )
    .await;
    check(
        &[],
        End::Clean,
        Err((ErrorKind::Protocol, "not whole")),
        0.0,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn stream_says_what_came_when_it_is_no_event_stream() {
    let html = "x/y answered at https://a.example/p with something else than an event stream: <html>hi</html>";
    check(
        &["<html>", "hi</html>"],
        End::Clean,
        Err((ErrorKind::Protocol, html)),
        0.0,
    )
    .await;
    check(
        &["<html>hi</html>"],
        End::Hangs,
        Err((ErrorKind::Protocol, html)),
        300.0,
    )
    .await;
    let json = r#"{"error":{"type":"overloaded_error","message":"busy"}}"#;
    let busy = "x/y answered with an error (overloaded_error): busy";
    check(
        &[&json[..9], &json[9..]],
        End::Clean,
        Err((ErrorKind::Overloaded, busy)),
        0.0,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn errors_hold_no_key_when_a_server_repeats_it() {
    let items = play(
        &plain("https://a.example"),
        &[b"data: secret\n\n"],
        End::Clean,
    )
    .await;
    let error = items
        .last()
        .expect("a terminal")
        .as_ref()
        .expect_err("an error");
    assert_eq!(
        (error.message(), error.details().body.as_deref()),
        ("[key] is no good", Some("[key]"))
    );
}

#[tokio::test]
async fn stream_fails_at_once_when_the_endpoint_is_wrong() {
    let expect = "the base URL cannot be used: it does not have the form https://host/path, without a user, a query or a \
                  fragment";
    for base_url in [
        "a.example",
        "file:///etc",
        "http://",
        "http:localhost",
        "https:///v1",
        "https://me:pa55word@a.example",
        "https://a.example/v1?api-version=3",
        "https://a.example/#v1",
        "sk-a-key-in-the-wrong-place",
    ] {
        let mut stream = stream(&plain(base_url), Request::new());
        let item = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx))
            .await
            .expect("an item");
        let error = item.expect_err("no request can be sent");
        assert_eq!((error.kind(), error.message()), (ErrorKind::Config, expect));
        assert!(
            std::future::poll_fn(|cx| stream.as_mut().poll_next(cx))
                .await
                .is_none()
        );
    }
}

#[test]
fn stream_fails_when_there_is_no_runtime() {
    let mut stream = stream(&plain("https://a.example"), Request::new());
    let item = stream
        .as_mut()
        .poll_next(&mut Context::from_waker(std::task::Waker::noop()));
    let Poll::Ready(Some(Err(error))) = item else {
        unreachable!("it fails at once: {item:?}")
    };
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[test]
fn debug_prints_no_key_when_a_model_is_printed() {
    let text = format!("{:?}", plain("https://me:password@a.example"));
    assert!(
        !text.contains("sk-secret") && !text.contains("password") && text.contains("redacted"),
        "{text}"
    );
}

/// The blocks, the usage and the stop of an answer.
fn describe_reply(items: &[Result<Chunk, Error>]) -> Vec<String> {
    let reply = match items.last() {
        Some(Ok(Chunk::Done(reply))) => reply,
        other => unreachable!("it is a success: {other:?}"),
    };
    let blocks = reply.blocks.iter().map(|block| json(&**block));
    let usage = [json(&reply.usage), json(&reply.stop)];
    blocks.chain(usage).collect()
}

/// Checks that an answer says the same as a stream, as one document, and as a list of one.
pub(crate) async fn document_says_the_same<W: Driven>(
    wire: &Arc<W>,
    document: &str,
    events: &[&str],
) {
    let stream: String = events.iter().map(|it| format!("data: {it}\n\n")).collect();
    let expect = describe_reply(&play(wire, &[stream.as_bytes()], End::Clean).await);
    for body in [
        document.to_owned(),
        format!(" \r\n{document}\n"),
        format!("[{document}]"),
    ] {
        let bytes = body.as_bytes();
        for cut in [0, 1, bytes.len() / 2] {
            let items = play(wire, &[&bytes[..cut], &bytes[cut..]], End::Clean).await;
            assert_eq!(describe_reply(&items), expect, "{body} cut at {cut}");
        }
    }
    let half = &document[..document.len() / 2];
    let items = play(wire, &[half.as_bytes()], End::Clean).await;
    let last = items.last().expect("a terminal");
    assert_eq!(
        last.as_ref().expect_err("it is cut").kind(),
        ErrorKind::Protocol
    );
}
