//! Records as bytes: made once, read by every later version, large texts beside them.

use std::sync::Arc;

use adjutant_agent::{
    Attachment, Digest, JournalErrorKind, Limits, Record, RunNo, Seq, Stamped, TurnNo,
};
use adjutant_llm::{CallId, CallResult, Entry, ThreadId, UserMessage};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

const LARGE: usize = 64 * 1024;

fn stamped(record: Record) -> Stamped {
    Stamped::new(Seq(7), 1_700_000_000_000, ThreadId::from("main"), record)
}

fn noted(value: Value) -> Stamped {
    stamped(Record::App {
        kind: "test".into(),
        version: 1,
        data: value,
    })
}

fn again(stamped: &Stamped) -> Stamped {
    let bytes = stamped.bytes().expect("it can be written").clone();
    let attachments = stamped.attachments().expect("it can be written").to_vec();
    Stamped::read(bytes, attachments).expect("it can be read")
}

#[test]
fn record_is_one_json_object_when_it_is_written() {
    let record = stamped(Record::Opened {
        turn: TurnNo(3),
        last: None,
    });
    let expected =
        r#"{"v":2,"seq":7,"at_ms":1700000000000,"thread":"main","record":{"opened":{"turn":3}}}"#;
    assert_eq!(record.bytes().expect("it can be written"), expected);
    assert_eq!(again(&record), record);
}

#[test]
fn bytes_stay_what_they_were_when_a_record_is_read() {
    // Spaces and an unknown field: what was stored is what is chained, whatever this program would write.
    let bytes = Bytes::from(
        r#"{"v":2, "seq":7,"at_ms":1,"thread":"main","record":{"opened":{"turn":3}},"later":true}"#,
    );
    let read = Stamped::read(bytes.clone(), Vec::new()).expect("it can be read");
    assert_eq!(read.bytes().expect("it was read"), &bytes);
    assert_eq!(
        read.record,
        Record::Opened {
            turn: TurnNo(3),
            last: None
        }
    );
}

#[test]
fn record_of_version_one_is_read_when_an_old_log_is_opened() {
    let old = r#"{"v":1,"seq":1,"at_ms":5,"thread":"main","record":{"record":"began","run":1,"prompts":[{"entry":"user","content":[{"type":"text","text":"Hi"}]}],"limits":{"max_turns":50,"max_parallel_tools":8,"sequential":false,"deadline_ms":null}}}"#;
    let read = Stamped::read(Bytes::from(old), Vec::new()).expect("it can be read");
    let prompts = vec![Entry::User(UserMessage::text("Hi"))];
    assert_eq!(
        read.record,
        Record::began(RunNo(1), prompts, Limits::default())
    );
    assert_eq!(read.bytes().expect("it was read"), old);
}

#[test]
fn record_is_refused_when_a_newer_program_wrote_it() {
    for newer in [
        r#"{"v":3,"seq":9,"at_ms":5,"thread":"main","record":{"dreamt":{}}}"#,
        r#"{"v":3,"seq":9,"at_ms":5,"thread":"main","record":{"opened":{"turn":3}}}"#,
        r#"{"v":4000000000,"seq":9}"#,
    ] {
        let error = Stamped::read(Bytes::from(newer), Vec::new()).expect_err("it is newer");
        assert_eq!(error.kind, JournalErrorKind::Version, "{newer}");
        assert!(
            error.to_string().contains("record 9 has version"),
            "{error}"
        );
    }
}

#[test]
fn bytes_are_corrupt_when_they_are_no_record() {
    for bytes in [
        "",
        "{",
        "null",
        "[]",
        r#"{"v":2}"#,
        r#"{"v":0,"seq":1}"#,
        r#"{"v":1,"seq":1,"record":7}"#,
    ] {
        let error = Stamped::read(Bytes::from(bytes), Vec::new()).expect_err("it is no record");
        assert_eq!(error.kind, JournalErrorKind::Corrupt, "{bytes:?}");
    }
}

#[test]
fn large_texts_stand_beside_their_record_when_it_is_written() {
    let (large, small) = ("x".repeat(LARGE + 1), "y".repeat(LARGE));
    let record = noted(json!({"a/b~": [large, small, large], "deep": {"": large}}));
    let attachments = record.attachments().expect("it can be written");
    assert_eq!(
        attachments,
        [Attachment {
            digest: Digest::compute(large.as_bytes()),
            bytes: Bytes::from(large.clone())
        }]
    );
    let bytes = record.bytes().expect("it can be written");
    assert!(bytes.len() < LARGE + 1_000, "{} bytes", bytes.len());
    let written: Value = serde_json::from_slice(bytes).expect("it is JSON");
    let places: Vec<_> = written["attached"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["at"].clone())
        .collect();
    assert_eq!(
        places,
        [
            "/app/data/a~1b~0/0",
            "/app/data/a~1b~0/2",
            "/app/data/deep/"
        ]
    );
    assert_eq!(again(&record), record);
}

#[test]
fn record_is_corrupt_when_an_attachment_is_missing_or_no_text() {
    let record = noted(json!(["x".repeat(LARGE + 1)]));
    let bytes = record.bytes().expect("it can be written").clone();
    let mut attachments = record.attachments().expect("it can be written").to_vec();
    attachments[0].bytes = Bytes::from_static(&[0xff]);
    for attachments in [Vec::new(), attachments] {
        let error = Stamped::read(bytes.clone(), attachments).expect_err("it is not whole");
        assert_eq!(error.kind, JournalErrorKind::Corrupt);
    }
}

#[test]
fn large_result_is_shared_when_two_records_have_it() {
    let result = Arc::new(CallResult::ok("r".repeat(200_000)));
    let call = CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    };
    let returned = stamped(Record::Returned {
        call,
        result: Arc::clone(&result),
        shown: None,
    });
    let appended = noted(json!({"copy": "r".repeat(200_000)}));
    let digests = |it: &Stamped| {
        it.attachments()
            .expect("it can be written")
            .iter()
            .map(|it| it.digest)
            .collect::<Vec<_>>()
    };
    assert_eq!(digests(&returned), digests(&appended));
    assert_eq!(again(&returned), returned);
}

#[test]
fn record_is_invalid_when_it_could_not_be_read_again() {
    let nest = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(again(&noted(nest(100))), noted(nest(100)));
    let error = noted(nest(125)).bytes().expect_err("it is too deep").kind;
    assert_eq!(error, JournalErrorKind::Invalid);
    // Brackets in a text are no levels.
    let text = noted(json!("[\"{\\".repeat(500)));
    assert_eq!(again(&text), text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn record_is_the_same_when_it_was_written_and_read(
        texts in proptest::collection::vec((".{0,20}", 0_usize..3), 0..5),
        number in any::<i64>(),
        unsigned in any::<u64>(),
        float in any::<f64>().prop_filter("JSON has finite numbers", |it| it.is_finite()),
    ) {
        let texts: Vec<String> = texts.into_iter().map(|(text, times)| text.repeat(times * 4_000 + 1)).collect();
        let record = noted(json!({"texts": texts, "numbers": [number, unsigned, float]}));
        prop_assert_eq!(again(&record), record);
    }

    #[test]
    fn digest_is_the_same_when_it_was_written_and_read(bytes in any::<[u8; 32]>()) {
        let digest = Digest(bytes);
        prop_assert_eq!(digest.to_string().parse::<Digest>(), Ok(digest));
        prop_assert!(digest.to_string().to_uppercase().parse::<Digest>().is_err() || digest.to_string().bytes().all(|it| it.is_ascii_digit()));
    }
}
