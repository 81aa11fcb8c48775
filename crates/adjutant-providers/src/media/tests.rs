//! Tests of the limits on media.

use adjutant_llm::{Image, Transcript, UserMessage};

use super::*;

/// The head of a PNG with sides of so many pixels, in base64 of so many bytes.
fn image(edge: u32, bytes: usize) -> Content {
    use base64::{Engine, engine::general_purpose::STANDARD};

    let mut head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    head.extend(edge.to_be_bytes());
    head.extend(edge.to_be_bytes());
    let mut data = STANDARD.encode(head);
    data.extend(std::iter::repeat_n('A', bytes.saturating_sub(data.len())));
    let source = Source::Base64 { data: data.into() };
    Content::Image(Image {
        media_type: "image/png".into(),
        source,
    })
}

/// A model of this provider with a context window of 128,000 tokens.
fn info(provider: &str) -> ModelInfo {
    ModelInfo {
        inputs: Inputs {
            images: true,
            documents: true,
            audio: false,
        },
        ..ModelInfo::new(format!("{provider}/m"))
    }
}

/// Shows each medium as `i`, or `-` if a request to this provider leaves it out; one entry for each.
fn shown(provider: &str, media: &[Content]) -> String {
    let entries = media
        .iter()
        .map(|medium| UserMessage::from(vec![medium.clone()]).into());
    let transcript = Transcript::from_iter(entries);
    let mut kept = KeptMedia::default();
    kept.add(transcript.iter(), &info(provider));
    let mut warnings = Vec::new();
    let show = |stored: &Arc<Stored>| match kept.project(&stored.entry, &mut warnings) {
        Some(_) => '-',
        None => 'i',
    };
    transcript.iter().map(show).collect()
}

#[test]
fn request_leaves_out_the_oldest_media_when_there_are_too_many() {
    let images = |count: usize| vec![image(100, 100); count];
    for (provider, count, expected) in [
        ("groq", 5, "iiiii".to_owned()),
        ("groq", 6, "--iiii".to_owned()),
        ("groq", 7, "--iiiii".to_owned()),
        ("groq", 8, "----iiii".to_owned()),
        ("mistral", 9, "----iiiii".to_owned()),
        (
            "bedrock",
            21,
            format!("{}{}", "-".repeat(10), "i".repeat(11)),
        ),
        (
            "azure-chat",
            51,
            format!("{}{}", "-".repeat(25), "i".repeat(26)),
        ),
        ("anthropic", 100, "i".repeat(100)),
        (
            "anthropic",
            101,
            format!("{}{}", "-".repeat(50), "i".repeat(51)),
        ),
        (
            "anthropic",
            150,
            format!("{}{}", "-".repeat(50), "i".repeat(100)),
        ),
        ("unknown", 400, "i".repeat(400)),
    ] {
        assert_eq!(
            shown(provider, &images(count)),
            expected,
            "{provider} {count}"
        );
    }
}

#[test]
fn request_leaves_out_media_when_they_are_too_large() {
    let small = image(100, 100);
    let many = |other: &Content, count: usize| {
        let mut media = vec![small.clone(); count];
        media.push(other.clone());
        media
    };
    assert_eq!(shown("anthropic", &many(&image(9_000, 100), 1)), "i-");
    assert_eq!(shown("anthropic", &many(&image(8_000, 100), 1)), "ii");
    assert_eq!(
        shown("anthropic", &many(&image(3_000, 100), 19)),
        "i".repeat(20)
    );
    assert_eq!(
        shown("anthropic", &many(&image(3_000, 100), 20)),
        format!("{}-", "i".repeat(20))
    );
    assert_eq!(shown("anthropic", &many(&image(100, 6 * MB), 1)), "i-");
    assert_eq!(shown("groq", &vec![image(100, MB); 5]), "--iii");
    assert_eq!(shown("gemini", &vec![image(100, 25 * MB); 4]), "-iii");
    assert_eq!(shown("xai", &[image(100, 21 * MB)]), "-");
    assert_eq!(shown("deepseek", &vec![image(100, 15 * MB); 4]), "--ii");
}

#[test]
fn claude_models_with_a_large_window_take_more_images() {
    let images = |window| limits_of("anthropic", window).map(|limits| limits.images);
    assert_eq!(images(0), Some(100));
    assert_eq!(images(200_000), Some(100));
    assert_eq!(images(1_000_000), Some(600));
}

#[test]
fn choice_seldom_changes_when_media_are_added() {
    let info = info("anthropic");
    let mut changes = 0;
    let mut kept = KeptMedia::default();
    let mut warnings = Vec::new();
    for _ in 0..400 {
        let entry = UserMessage::from(vec![image(100, 100)]).into();
        let transcript = Transcript::from_iter([entry]);
        changes += u32::from(kept.add(transcript.iter(), &info));
        for stored in transcript.iter() {
            kept.project(&stored.entry, &mut warnings);
        }
    }
    // Also when the count goes over what is a crowd.
    assert_eq!(changes, 7);
}
