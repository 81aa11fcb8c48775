//! Tests of the prompt cache: where marks stand, and that each request meets those of the one before.

use super::*;

/// The offsets of marks in a body, in the body without any.
fn marks_of(body: &str) -> Vec<usize> {
    let at = |(n, (at, _)): (usize, (usize, &str))| at - n * MARK.len();
    body.match_indices(MARK).enumerate().map(at).collect()
}

#[test]
fn marks_are_set_when_they_are_asked_for() {
    let count = |model: &Anthropic, options: Options, mark: &str| {
        let entries = [
            Entry::User(UserMessage::text("a")),
            turn(ID, FinishReason::End, vec![Block::text("b")], vec![]),
            Entry::User(UserMessage::text("c")),
        ];
        let request = Request::from_entries(Transcript::from_iter(entries))
            .system("s")
            .tools([tool("read")])
            .options(options);
        let text = marked(model, &request);
        (
            text.matches(mark).count(),
            text.matches("cache_control").count(),
        )
    };
    let long = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;
    assert_eq!(count(&model(), Options::default(), MARK), (4, 4));
    assert_eq!(
        count(
            &model(),
            Options {
                cache: Cache::Long,
                ..Options::default()
            },
            long
        ),
        (4, 4)
    );
    assert_eq!(
        count(
            &model(),
            Options {
                cache: Cache::Off,
                ..Options::default()
            },
            MARK
        ),
        (0, 0)
    );
    let theirs = Options::default().extra("cache_control", json!({"type": "ephemeral"}));
    assert_eq!(count(&model(), theirs, MARK), (1, 1));
    let elsewhere = model().base_url("https://a.example");
    assert_eq!(count(&elsewhere, Options::default(), MARK), (0, 0));
    assert_eq!(
        count(&elsewhere.cache_marks(), Options::default(), MARK),
        (4, 4)
    );
    assert_eq!(
        count(
            &model().base_url("https://api.anthropic.com/"),
            Options::default(),
            MARK
        ),
        (4, 4)
    );
}

#[test]
fn marks_stand_before_blocks_that_take_none_when_those_are_last() {
    let check = |last: Block, is_marked: bool| {
        let entries = [
            Entry::User(UserMessage::text("a")),
            turn(
                ID,
                FinishReason::Paused,
                vec![Block::text("b"), last],
                vec![],
            ),
        ];
        let text = marked(
            &model(),
            &Request::from_entries(Transcript::from_iter(entries)),
        );
        let at = text.find(r#""assistant""#).expect("the reply is shown");
        assert_eq!(text[at..].contains(MARK), is_marked, "{text}");
        assert!(text[..at].contains(MARK), "{text}");
    };
    let opaque = |value: Value| Block::Opaque {
        issuer: "anthropic".into(),
        value,
    };
    check(Block::text("c"), true);
    check(
        opaque(json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "x", "input": {}})),
        true,
    );
    check(opaque(json!({"type": "compaction", "content": null})), true);
    check(
        opaque(json!({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}})),
        false,
    );
    check(thinking("hm", Some("s"), false), false);
    check(thinking("", Some("s"), true), false);
}

#[test]
fn marks_meet_those_of_the_request_before_when_turns_go_on() {
    let model = model();
    let mut request = Request::new()
        .system("s")
        .tools([tool("read")])
        .user("begin");
    let mut newest = None;
    for at in 0..50_usize {
        let marks = marks_of(&marked(&model, &request));
        assert!(marks.len() <= 4);
        if let Some(newest) = newest {
            assert!(
                marks.contains(&newest),
                "the mark of the request before is set again in turn {at}"
            );
        }
        newest = marks.last().copied();
        // More blocks than the API looks back over.
        let calls: Vec<_> = (0..at as u32).map(|block| call(block, "{}")).collect();
        let results = calls
            .iter()
            .map(|_| CallResult::ok("x".repeat(3_000)))
            .collect();
        let said = [thinking("hm", Some("s"), false), Block::text("b")];
        request.entries.push(turn(
            ID,
            FinishReason::Calls,
            said.into_iter().chain(calls).collect(),
            results,
        ));
        for _ in 0..at % 3 {
            request
                .entries
                .push(Entry::User(UserMessage::text("go on")));
        }
    }
}
