//! Tests of the splitter: line ends, odd events, cuts at every byte, and bounds.

use proptest::prelude::*;

use super::*;

/// The events of a stream that comes in these pieces.
fn split<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<(String, String)>, Error> {
    let mut splitter = Splitter::default();
    let mut events = Vec::new();
    for piece in pieces {
        splitter.push(piece);
        while let Some(frame) = splitter.next()? {
            events.push((frame.event.to_owned(), frame.data.to_owned()));
        }
    }
    if let Some(frame) = splitter.last()? {
        events.push((frame.event.to_owned(), frame.data.to_owned()));
    }
    Ok(events)
}

/// Checks the events of a stream: whole, cut in two at every byte, and byte by byte.
#[track_caller]
fn check(stream: &str, expect: &[(&str, &str)]) {
    let expect: Vec<(String, String)> = expect
        .iter()
        .map(|(e, d)| ((*e).to_owned(), (*d).to_owned()))
        .collect();
    let bytes = stream.as_bytes();
    assert_eq!(split([bytes]).expect("the stream is text"), expect, "whole");
    for cut in 0..=bytes.len() {
        assert_eq!(
            split([&bytes[..cut], &bytes[cut..]]).expect("the stream is text"),
            expect,
            "cut at {cut}"
        );
    }
    assert_eq!(
        split(bytes.chunks(1)).expect("the stream is text"),
        expect,
        "byte by byte"
    );
}

#[test]
fn next_lends_events_when_they_are_plain() {
    check("event: a\ndata: 1\n\ndata:2\n\n", &[("a", "1"), ("", "2")]);
    check(
        "data: grüße 🦀\n\nevent:b\ndata:  x\n\n",
        &[("", "grüße 🦀"), ("b", " x")],
    );
    check(
        "data:\n\nevent: lonely\n\ndata: 1\n\n",
        &[("", ""), ("", "1")],
    );
}

#[test]
fn next_lends_an_error_when_it_is_a_field() {
    check(
        "data: {\"a\":1}\n\nerror: {\"code\":400}\n\n",
        &[("", "{\"a\":1}"), ("error", "{\"code\":400}")],
    );
}

#[test]
fn next_takes_every_line_end_when_they_are_mixed() {
    check(
        "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n",
        &[("a", "1"), ("", "2")],
    );
    check("event: a\rdata: 1\r\rdata: 2\r\r", &[("a", "1"), ("", "2")]);
    check(
        "data: 1\r\n\rdata: 2\n\r\ndata: 3\r\r\n",
        &[("", "1"), ("", "2"), ("", "3")],
    );
    check("\n\n\r\n\r\rdata: 1\n\n", &[("", "1")]);
}

#[test]
fn next_asks_the_full_parser_when_an_event_is_odd() {
    check(": hello\n\ndata: 1\n\n", &[("", "1")]);
    check("data: a\ndata: b\n\n", &[("message", "a\nb")]);
    check(
        "id: 7\nevent: e\r\ndata: a\rretry: 3\n\ndata: 2\n\n",
        &[("e", "a"), ("", "2")],
    );
    check("data\ndata: x\nnonsense\n\n", &[("message", "\nx")]);
    check("event: a\nevent: b\ndata: 1\n\n", &[("b", "1")]);
}

#[test]
fn next_drops_the_mark_when_the_stream_begins_with_it() {
    check("\u{feff}data: 1\n\n", &[("", "1")]);
    check("\u{feff}", &[]);
    check(
        "data: 0\n\n\u{feff}data: 1\ndata: 2\n\n",
        &[("", "0"), ("message", "2")],
    );
}

#[test]
fn last_gives_the_open_event_when_the_stream_ends() {
    check("data: 1\n\ndata: [DONE]", &[("", "1"), ("", "[DONE]")]);
    check("data: [DONE]\r", &[("", "[DONE]")]);
    check("event: a\n", &[]);
}

#[test]
fn push_replaces_bytes_when_they_are_not_text() {
    for bytes in [
        &b"data: a\xffb\n\n"[..],
        b"data: \xe2\x82x\n\n",
        b"data: \xf0\x9f\x9f\xff\xf0\x9f\xa6\x80\n\n",
        b"data: \xed\xa0\xbd\xed\xb8\x80\xc3\n\n",
    ] {
        let text = String::from_utf8_lossy(bytes);
        let expect = text.trim().strip_prefix("data: ").expect("an event");
        for size in 1..=bytes.len() {
            let events = split(bytes.chunks(size)).expect("events");
            assert_eq!(events, [(String::new(), expect.to_owned())], "{size}");
        }
    }
}

#[test]
fn next_refuses_when_an_event_is_giant() {
    let line = format!("data: {}", "x".repeat(MAX_EVENT));
    let error = split(line.as_bytes().chunks(1 << 16)).expect_err("the event is too large");
    assert_eq!(
        error.message(),
        "the stream holds an event of more than 16 MiB"
    );
    let error = split([format!("{line}\n\n").as_bytes()]).expect_err("the event is too large");
    assert_eq!(
        error.message(),
        "the stream holds an event of more than 16 MiB"
    );
    let fits = format!("data: {}\n\n", "x".repeat(MAX_EVENT - 16));
    assert_eq!(
        split(fits.as_bytes().chunks(1_400)).expect("it fits").len(),
        1
    );
}

proptest! {
    #[test]
    fn cuts_make_no_difference_when_the_stream_is_arbitrary(
        stream in "(data|event|id|:|x|\u{feff}|é|\r|\n|\r\n|: |🦀){0,24}",
        cuts in prop::collection::vec(1_usize..5, 0..12),
    ) {
        let bytes = stream.as_bytes();
        let whole = split([bytes]).expect("it is text");
        let mut rest = bytes;
        let mut pieces = Vec::new();
        for cut in cuts {
            let (piece, tail) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        pieces.push(rest);
        prop_assert_eq!(split(pieces).expect("it is text"), whole);
    }
}

#[test]
fn next_reads_events_alike_when_they_have_many_lines() {
    let lines = |count: usize| {
        (0..count)
            .map(|n| format!("data: {n}\n: note\nid: 7\ndata\n"))
            .collect::<String>()
    };
    for head in ["", "event: a\n", "event\n"] {
        let [short, long] = [MAX_LINES / 4 - 2, MAX_LINES].map(|count| {
            let events = split([format!("{head}{}\n", lines(count)).as_bytes()])
                .expect("the stream is text");
            let [(event, data)] = &events[..] else {
                unreachable!("one event: {events:?}")
            };
            let expect: Vec<String> = (0..count).map(|n| format!("{n}\n")).collect();
            assert_eq!(*data, expect.join("\n"));
            event.clone()
        });
        assert_eq!(short, long);
    }
}
