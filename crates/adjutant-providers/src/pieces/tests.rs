//! Tests of content and calls: what is left out, renamed or repaired.

use adjutant_llm::{CallId, Source};

use super::*;

#[test]
fn pieces_collapse_runs_when_the_model_takes_no_media() {
    let source = Source::Url {
        url: "https://a.example/x".into(),
    };
    let image = Content::Image(Image {
        media_type: "image/png".into(),
        source: source.clone(),
    });
    let document = Content::Document(Document {
        media_type: "application/pdf".into(),
        name: None,
        source,
    });
    let content = [
        image.clone(),
        image.clone(),
        Content::text(" \n"),
        Content::text("a"),
        image.clone(),
        document.clone(),
        document.clone(),
    ];
    let mut warnings = Vec::new();
    let expect = [
        Piece::Text(NO_IMAGES),
        Piece::Text("a"),
        Piece::Text(NO_IMAGES),
        Piece::Text(NO_DOCUMENTS),
    ];
    assert_eq!(
        pieces(&content, Inputs::default(), &mut warnings)
            .into_iter()
            .collect::<Vec<_>>(),
        expect
    );
    assert_eq!(warnings.len(), 2);
    let mut inputs = Inputs::default();
    (inputs.images, inputs.documents) = (true, true);
    assert_eq!(pieces(&content, inputs, &mut Vec::new()).iter().count(), 6);
}

/// Checks the text that replaces one image or document, if it is left out.
#[track_caller]
fn left_out(content: &Content, expect: Option<&str>) {
    let mut inputs = Inputs::default();
    (inputs.images, inputs.documents) = (true, true);
    let mut warnings = Vec::new();
    let text = match pieces(std::slice::from_ref(content), inputs, &mut warnings).only() {
        Some(Piece::Text(text)) => Some(*text),
        _ => None,
    };
    assert_eq!(text, expect, "{content:?}");
    let told: Vec<_> = expect
        .map(|it| Warning {
            kind: WarningKind::ContentChanged,
            message: it.into(),
        })
        .into_iter()
        .collect();
    assert_eq!(warnings, told);
}

fn data(data: &str) -> Source {
    Source::Base64 { data: data.into() }
}

fn url(url: &str) -> Source {
    Source::Url { url: url.into() }
}

#[test]
fn pieces_leave_images_out_when_vendors_do_not_take_them() {
    let check = |media_type: &str, source, expect| {
        left_out(
            &Content::Image(Image {
                media_type: media_type.into(),
                source,
            }),
            expect,
        );
    };
    for media_type in [
        "image/jpeg",
        "image/jpg",
        "image/png",
        "image/gif",
        "image/webp",
        "IMAGE/PNG",
    ] {
        check(media_type, data("AAAA"), None);
    }
    for media_type in [
        "image/svg+xml",
        "image/bmp",
        "image/tiff",
        "image/heic",
        "application/pdf",
        "",
    ] {
        check(media_type, data("AAAA"), Some(OTHER_IMAGE));
    }
    check(
        "image/svg+xml",
        url("https://a.example/x"),
        Some(OTHER_IMAGE),
    );
    check("", url("https://a.example/x"), None);
    check("image/png", data(" "), Some(EMPTY_IMAGE));
    check("image/png", url(""), Some(EMPTY_IMAGE));
}

#[test]
fn pieces_leave_documents_out_when_vendors_do_not_take_them() {
    let check = |media_type: &str, name: Option<&str>, source, expect| {
        let name = name.map(Into::into);
        left_out(
            &Content::Document(Document {
                media_type: media_type.into(),
                name,
                source,
            }),
            expect,
        );
    };
    for media_type in ["application/pdf", "text/plain", "text/csv; charset=utf-8"] {
        check(media_type, Some("a"), data("AAAA"), None);
    }
    for media_type in [
        "application/json",
        "application/xml",
        "application/zip",
        "image/png",
        "Text/x",
        "",
    ] {
        check(media_type, None, data("AAAA"), Some(OTHER_DOCUMENT));
    }
    check("application/json", None, url("https://a.example/x"), None);
    check("application/pdf", None, data(""), Some(EMPTY_DOCUMENT));
    check("application/pdf", None, url(" "), Some(EMPTY_DOCUMENT));
    check(
        "application/pdf",
        Some(" "),
        data("AAAA"),
        Some(NAMELESS_DOCUMENT),
    );
}

#[test]
fn media_type_is_as_vendors_spell_it_when_it_is_spelled_otherwise() {
    let cases = [
        ("image/jpg", "image/jpeg"),
        (" Image/PNG", "image/png"),
        ("text/x", "text/x"),
        ("a/B", "a/B"),
    ];
    for (said, expect) in cases {
        assert_eq!(media_type(said), expect);
    }
}

#[track_caller]
fn check(raw: &str, ran: Option<&str>, expect: &str) {
    let id = CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    };
    let call = Call {
        id,
        wire_id: None,
        name: "t".into(),
        args: raw.into(),
        extra: Default::default(),
    };
    let mut result = CallResult::ok("done");
    result.args = ran.map(Into::into);
    assert_eq!(
        serde_json::to_string(&Args::from_call(&call, &result)).expect("JSON"),
        expect
    );
}

#[test]
fn args_are_an_object_when_the_model_wrote_none() {
    check("", None, "{}");
    check(
        " {\"n\": 9007199254740993} ",
        None,
        "{\"n\": 9007199254740993}",
    );
    check("{\"a\":1}", Some("{\"b\":2}"), "{\"b\":2}");
    check("{\"a\":", None, r#"{"INVALID_JSON":"{\"a\":"}"#);
    check("[1]", None, r#"{"INVALID_JSON":"[1]"}"#);
}

#[test]
fn format_name_is_as_vendors_take_it_when_it_is_anything() {
    assert_eq!(format_name("in-voice_2"), Cow::Borrowed("in-voice_2"));
    assert_eq!(format_name(""), "answer");
    assert_eq!(format_name("Große Rechnung.v1"), "Gro_e_Rechnung_v1");
    assert_eq!(format_name(&"é".repeat(70)), "_".repeat(64));
    assert_eq!(format_name(&"x".repeat(65)), "x".repeat(64));
}
