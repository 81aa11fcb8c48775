//! Admission of images that other programs wrote: Pillow 12 made the files of `tests/media`.

use std::{fs, path::Path, time::Instant};

use adjutant_llm::{Audio, Content, Document, Image, Source, media};
use base64::{Engine, engine::general_purpose::STANDARD};

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/media")
        .join(name);
    fs::read(path).expect("the file is in the repository")
}

fn source(bytes: &[u8]) -> Source {
    Source::Base64 {
        data: STANDARD.encode(bytes).into(),
    }
}

fn image(media_type: &str, bytes: &[u8]) -> Content {
    Content::Image(Image {
        media_type: media_type.into(),
        source: source(bytes),
    })
}

/// Describes an admitted piece: its type and size, "same" if its bytes are unchanged, or the text in its place.
fn admitted(content: Content) -> String {
    let mut contents = [content.clone()];
    media::admit(&mut contents);
    let mut again = contents.clone();
    media::admit(&mut again);
    assert_eq!(again, contents, "admitting twice changes nothing");
    let [admitted] = contents;
    let (media_type, source) = match &admitted {
        Content::Text { text } => return text.to_string(),
        Content::Image(image) => (&image.media_type, &image.source),
        Content::Document(document) => (&document.media_type, &document.source),
        Content::Audio(audio) => (&audio.media_type, &audio.source),
        _ => unreachable!("no other kinds of content"),
    };
    let Source::Base64 { data } = source else {
        return "an address".to_owned();
    };
    let is_image = matches!(admitted, Content::Image(_));
    let size = media::dimensions(data)
        .filter(|_| is_image)
        .map(|(width, height)| format!(" {width}x{height}"));
    let sent = match &content {
        Content::Image(Image {
            source: Source::Base64 { data: sent },
            ..
        })
        | Content::Document(Document {
            source: Source::Base64 { data: sent },
            ..
        })
        | Content::Audio(Audio {
            source: Source::Base64 { data: sent },
            ..
        }) => sent,
        _ => return "not base64".to_owned(),
    };
    let same = if data == sent { " same" } else { "" };
    format!("{media_type}{}{same}", size.unwrap_or_default())
}

#[test]
fn admit_sends_an_image_as_it_is_only_when_every_vendor_reads_it() {
    for (name, expected) in [
        ("rgb.png", "image/png 64x48 same"),
        ("palette.png", "image/png 64x48 same"),
        ("gray-alpha.png", "image/png 64x48 same"),
        ("rgba.png", "image/png 64x48 same"),
        ("plain.jpg", "image/jpeg 64x48 same"),
        ("progressive.jpg", "image/jpeg 64x48 same"),
        ("gray.jpg", "image/jpeg 64x48 same"),
        ("still.gif", "image/gif 64x48 same"),
        ("lossy.webp", "image/webp 64x48 same"),
        ("lossless.webp", "image/webp 64x48 same"),
        ("deep.png", "image/png 40x30"),
        ("cmyk.jpg", "image/jpeg 64x48"),
        ("turned.jpg", "image/jpeg 48x64"),
        ("animated.gif", "image/png 64x48"),
        ("animated.webp", "image/png 64x48"),
        ("wide.png", "image/png 2000x15"),
        (
            "bomb.png",
            "[omitted image of 23859 bytes: it has 14000 x 14000 pixels, at most 150000000 are decoded]",
        ),
        (
            "x.bmp",
            "[omitted image of 306 bytes: it is BMP; PNG, JPEG, GIF and WebP are taken]",
        ),
        (
            "x.tiff",
            "[omitted image of 383 bytes: it is TIFF; PNG, JPEG, GIF and WebP are taken]",
        ),
    ] {
        // The declared type is wrong for most of them.
        assert_eq!(
            admitted(image("image/png", &file(name))),
            expected,
            "{name}"
        );
    }
}

#[test]
fn admit_names_the_reason_when_data_is_unusable() {
    let cut = |name: &str| {
        let bytes = file(name);
        bytes[..bytes.len() * 2 / 3].to_vec()
    };
    for (content, expected) in [
        (
            image("image/png", &cut("rgb.png")),
            "[omitted image of 489 bytes: it cannot be decoded",
        ),
        (
            image("image/gif", &cut("still.gif")),
            "[omitted image of 337 bytes: it cannot be decoded",
        ),
        (
            image("image/webp", &cut("lossy.webp")),
            "[omitted image of 392 bytes: it cannot be decoded",
        ),
        (
            image("image/jpeg", b"<html>"),
            "[omitted image of 6 bytes: its format is unknown",
        ),
        (
            image("image/svg+xml", b"<svg/>"),
            "[omitted image of 6 bytes: it is SVG",
        ),
        (
            image("image/heic", b"\0\0\0\x18ftypheic\0\0\0\0"),
            "[omitted image of 16 bytes: it is HEIC",
        ),
        (
            image("image/png", b""),
            "[omitted image of 0 bytes: it is empty]",
        ),
    ] {
        let text = admitted(content);
        assert!(text.starts_with(expected), "{text}");
    }
    let text = Content::Image(Image {
        media_type: "image/png".into(),
        source: Source::Base64 {
            data: "not base64!".into(),
        },
    });
    assert_eq!(
        admitted(text),
        "[omitted image of 6 bytes: its data is not base64]"
    );
}

#[test]
fn admit_finds_the_kind_of_a_file_when_the_declared_one_is_wrong() {
    let document = |media_type: &str, bytes: &[u8]| {
        Content::Document(Document {
            media_type: media_type.into(),
            name: Some("a".into()),
            source: source(bytes),
        })
    };
    let audio = |media_type: &str, bytes: &[u8]| {
        Content::Audio(Audio {
            media_type: media_type.into(),
            source: source(bytes),
        })
    };
    let pdf = b"%PDF-1.7\n%%EOF";
    let wav = b"RIFF\x04\0\0\0WAVEfmt ";
    for (content, expected) in [
        (
            document("application/octet-stream", &file("rgb.png")),
            "image/png 64x48 same",
        ),
        (image("image/png", pdf), "application/pdf same"),
        (document("application/pdf", pdf), "application/pdf same"),
        (
            document("application/pdf", b"hello"),
            "[omitted document \"a\" of 5 bytes: it is not a PDF]",
        ),
        (
            document("text/plain", b"GIF8 is a format, %PDF-1 too"),
            "text/plain same",
        ),
        (
            document("text/plain", b"\xff\xfe"),
            "[omitted document \"a\" of 2 bytes: it is not text in UTF-8]",
        ),
        (audio("audio/mpeg", wav), "audio/wav same"),
        (audio("audio/x-wav", wav), "audio/x-wav same"),
        (
            audio("audio/mpeg", b"hello"),
            "[omitted recording of 5 bytes: its format is unknown]",
        ),
        (
            audio("audio/pcm;rate=16000", b"hello"),
            "audio/pcm;rate=16000 same",
        ),
    ] {
        assert_eq!(admitted(content), expected);
    }
}

#[test]
fn admit_reads_base64_in_all_its_forms() {
    let bytes = file("plain.jpg");
    let standard = STANDARD.encode(&bytes);
    let (head, tail) = standard.split_at(100);
    for data in [
        standard.trim_end_matches('=').to_owned(),
        standard.replace('+', "-").replace('/', "_"),
        format!("{head}\r\n{tail}\n"),
    ] {
        let content = Content::Image(Image {
            media_type: "image/jpeg".into(),
            source: Source::Base64 { data: data.into() },
        });
        assert_eq!(media::check(content), Ok(image("image/jpeg", &bytes)));
    }
    let url = Source::Url {
        url: format!("data:image/png;base64,{standard}").into(),
    };
    let content = Content::Image(Image {
        media_type: "image/png".into(),
        source: url,
    });
    assert_eq!(media::check(content), Ok(image("image/jpeg", &bytes)));
}

/// Cuts and changes real images: each of them is sent in an allowed form, or becomes a text.
#[test]
fn admit_survives_mutated_images() {
    let names = [
        "rgb.png",
        "palette.png",
        "plain.jpg",
        "progressive.jpg",
        "animated.gif",
        "animated.webp",
        "lossless.webp",
        "turned.jpg",
    ];
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let started = Instant::now();
    for round in 0..500 {
        let mut bytes = file(names[round % names.len()]);
        match next(3) {
            0 => bytes.truncate(next(bytes.len())),
            1 => (0..=next(8)).for_each(|_| {
                let at = next(bytes.len());
                bytes[at] = next(256) as u8;
            }),
            // The size in the head, where a bomb would be.
            _ => (0..4).for_each(|_| {
                let at = next(bytes.len().min(40));
                bytes[at] = 0x7F;
            }),
        }
        let mut contents = [image("image/png", &bytes)];
        media::admit(&mut contents);
        if let [
            Content::Image(Image {
                source: Source::Base64 { data },
                ..
            }),
        ] = &contents
        {
            let (width, height) = media::dimensions(data).expect("its head is readable");
            assert!(
                width.max(height) <= media::MAX_EDGE,
                "round {round}: {width}x{height}"
            );
            assert!(
                data.len() / 4 * 3 <= media::MAX_IMAGE_BYTES + 3,
                "round {round}"
            );
        }
    }
    assert!(started.elapsed().as_secs() < 300, "{:?}", started.elapsed());
}
