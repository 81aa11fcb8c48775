//! Sizes are estimated by what an entry holds, and corrected by what providers report.

use std::sync::Arc;

use adjutant_llm::{
    CallResult, Content, Custom, Document, Entry, EntryId, Estimate, FinishReason, Image, Meter,
    Reply, Source, Summary, Transcript, Turn, Usage, UserMessage,
};
use serde_json::json;

/// What an entry has beside its content.
const FRAME: u64 = 4;

fn user(content: Content) -> Entry {
    Entry::User(UserMessage::from(vec![content]))
}

fn base64(bytes: &[u8]) -> Arc<str> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let wide = group
            .iter()
            .fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(wide >> (18 - 6 * place) & 0x3F) as usize];
            text.push(if place <= group.len() {
                digit as char
            } else {
                '='
            });
        }
    }
    text.into()
}

#[track_caller]
fn check_image(head: &[u8], expect: u64) {
    let source = Source::Base64 { data: base64(head) };
    let image = Image {
        media_type: "image/png".into(),
        source,
    };
    assert_eq!(
        Estimate::entry(&user(Content::Image(image))),
        FRAME + expect
    );
}

fn png(width: u32, height: u32) -> Vec<u8> {
    [
        &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
        &width.to_be_bytes(),
        &height.to_be_bytes(),
        b"\x08\x06",
    ]
    .concat()
}

#[test]
fn entry_counts_a_picture_by_its_size_when_its_head_is_readable() {
    check_image(&png(200, 200), 54);
    check_image(&png(1_000, 1_000), 1_334);
    check_image(&png(8_000, 8_000), 1_600);
    check_image(&png(3_136, 300), 314);
    check_image(&png(1, 1), 1);
    check_image(&png(0, 7), 1_600);
    check_image(b"GIF89a\x2c\x01\xc8\x00", 80);
    check_image(
        b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x2c\x01\xc8\x00",
        80,
    );
    // 299 and 199 in 14 bits each.
    check_image(b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x2b\xc1\x31\x00", 80);
    check_image(
        b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x2b\x01\x00\xc7\x00\x00",
        80,
    );
    let jpeg = [
        &b"\xff\xd8\xff\xe0\x00\x10"[..],
        &[7; 14],
        b"\xff\xff\xc0\x00\x11\x08\x00\xc8\x01\x2c\x03",
    ]
    .concat();
    check_image(&jpeg, 80);
}

#[test]
fn entry_takes_a_picture_for_a_large_one_when_its_head_is_not_readable() {
    let heads: [&[u8]; 8] = [
        b"",
        b"\x89PN",
        b"\x89PNG\r\n\x1a\n\0\0",
        b"BM012345",
        b"RIFF\0\0\0\0WAVE",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xda\x00\x02entropy",
        b"\xff\xd8\xff\xe0\xff\xff",
    ];
    for head in heads {
        check_image(head, 1_600);
    }
    check_image(&[&b"\xff\xd8"[..], &[0xFF; 4_000]].concat(), 1_600);
    for data in ["!!!!!!!!!!!!", "日本語日本語"] {
        let image = Image {
            media_type: "image/png".into(),
            source: Source::Base64 { data: data.into() },
        };
        assert_eq!(Estimate::entry(&user(Content::Image(image))), FRAME + 1_600);
    }
    let image = Image {
        media_type: "image/png".into(),
        source: Source::Url {
            url: "https://a.example".into(),
        },
    };
    assert_eq!(Estimate::entry(&user(Content::Image(image))), FRAME + 1_600);
}

#[test]
fn entry_counts_a_document_by_its_bytes_when_it_holds_them() {
    let tokens = |media_type: &str, bytes: usize| {
        let source = Source::Base64 {
            data: "A".repeat(bytes / 3 * 4).into(),
        };
        let document = Document {
            media_type: media_type.into(),
            name: None,
            source,
        };
        Estimate::entry(&user(Content::Document(document))) - FRAME
    };
    assert_eq!(tokens("text/plain", 1_200), 300);
    assert_eq!(tokens("application/json", 1_200), 300);
    assert_eq!(tokens("application/pdf", 1_200), 2_000);
    assert_eq!(tokens("application/pdf", 480_000), 30_000);
    assert_eq!(tokens("application/pdf", 30_000_000), 200_000);
    let source = Source::Url {
        url: "https://a.example".into(),
    };
    let document = Document {
        media_type: "application/pdf".into(),
        name: None,
        source,
    };
    assert_eq!(
        Estimate::entry(&user(Content::Document(document))),
        FRAME + 4_000
    );
}

#[test]
fn estimate_counts_scripts_and_pictographs() {
    assert_eq!(Estimate.count("naïve 日本 👍"), 6);
}

#[cfg(feature = "tiktoken")]
#[test]
fn tiktoken_counts_exactly_when_the_vocabulary_is_known() {
    use adjutant_llm::Tiktoken;
    let o200k = Tiktoken::O200k;
    // Source: OpenAI, "How to count tokens with tiktoken" (2024).
    let texts = [
        "antidisestablishmentarianism",
        "2 + 2 = 4",
        "お誕生日おめでとう",
    ];
    assert_eq!(texts.map(|text| o200k.count(text)), [6, 7, 8]);
    assert_eq!(texts.map(|text| Tiktoken::Cl100k.count(text)), [6, 7, 9]);
    assert_eq!([o200k.count(""), o200k.count("<|endoftext|>")], [0, 7]);
}

#[test]
fn meter_follows_reports_when_they_differ_from_estimates() {
    let mut meter = Meter::default();
    assert_eq!(meter.correct_estimate(1_000), 1_000);
    meter.observe(0, 5);
    meter.observe(5, 0);
    assert_eq!(meter, Meter::default());
    meter.observe(100, 150);
    assert_eq!(
        [
            meter.correct_estimate(0),
            meter.correct_estimate(1),
            meter.correct_estimate(1_000)
        ],
        [0, 2, 1_500]
    );
    meter.observe(100, 100);
    assert_eq!(meter.correct_estimate(1_000), 1_167);
    for _ in 0..64 {
        meter.observe(u64::MAX, 1);
    }
    assert_eq!(
        [
            meter.correct_estimate(1_000),
            meter.correct_estimate(u64::MAX)
        ],
        [250, u64::MAX.div_ceil(4)]
    );
    let mut meter = Meter::default();
    meter.observe(1, u64::MAX);
    assert_eq!(
        [
            meter.correct_estimate(1_000),
            meter.correct_estimate(u64::MAX)
        ],
        [4_000, u64::MAX]
    );
    let stored = serde_json::to_value(meter).expect("it can be stored");
    assert_eq!(stored, json!({"estimated": 1, "reported": u64::MAX}));
}

#[test]
fn context_used_adds_what_came_after_the_report_when_there_is_one() {
    let mut reply = Reply::new("vendor/model".into(), FinishReason::Calls);
    let id = adjutant_llm::CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    };
    let call = adjutant_llm::Call::new(id, "look", "{}");
    reply.blocks.push(Arc::new(adjutant_llm::Block::Call(call)));
    let mut open = Turn::open(Arc::new(reply));
    open.put(id, Arc::new(CallResult::ok("x".repeat(400))))
        .expect("the call waits for its result");
    let mut entries = Transcript::new();
    entries.push(user("y".repeat(4_000).into()));
    entries.push(Entry::Turn(
        open.close().expect("every call has its result"),
    ));
    entries.push(Entry::Custom(Custom {
        kind: "note".into(),
        value: json!(1),
    }));
    entries.push(user("z".repeat(40).into()));
    let usage = Usage {
        input_uncached: 600,
        cache_read: 300,
        output: 100,
        ..Usage::default()
    };
    let mut meter = Meter::default();
    let after = (FRAME + 100) + (FRAME + 10);
    assert_eq!(
        meter.context_used(&entries, EntryId(1), &usage),
        1_000 + after
    );
    let all = entries.tokens();
    assert_eq!(
        meter.context_used(&entries, EntryId(1), &Usage::default()),
        all
    );
    assert_eq!(meter.context_used(&entries, EntryId(0), &usage), all);
    assert_eq!(meter.context_used(&entries, EntryId(9), &usage), all);
    let folded: Transcript = [Entry::Summary(Summary {
        text: "s".into(),
        covers: 2,
    })]
    .into_iter()
    .collect();
    assert_eq!(meter.context_used(&folded, EntryId(1), &usage), FRAME + 1);
    meter.observe(1, 2);
    assert_eq!(
        meter.context_used(&entries, EntryId(1), &usage),
        1_000 + 2 * after
    );
    assert_eq!(meter.context_used(&entries, EntryId(9), &usage), 2 * all);
}
