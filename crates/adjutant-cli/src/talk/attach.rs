//! The images of a prompt: each `@path` of one is sent with it.

use std::{fs::File, io::Read, path::Path};

use adjutant::llm::{Content, Image, Source, UserMessage};
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{exit::Exit, problem::Problem};

/// The largest number of bytes of an image.
const MAX_BYTES: u64 = 10 * 1_024 * 1_024;
/// The largest number of images of a prompt.
const MAX_IMAGES: usize = 20;
/// The kinds of images, by the ends of their names, with the bytes that they begin with.
const KINDS: [(&str, &str, &[u8]); 5] = [
    ("png", "image/png", b"\x89PNG"),
    ("jpg", "image/jpeg", b"\xff\xd8"),
    ("jpeg", "image/jpeg", b"\xff\xd8"),
    ("gif", "image/gif", b"GIF8"),
    ("webp", "image/webp", b"RIFF"),
];

/// The message of a prompt, its text whole, and behind it the images that it names; paths are relative to `root`.
///
/// # Errors
/// `Usage` if an image cannot be read, is none, or if there are too many.
pub(crate) fn message(text: &str, root: &Path) -> Result<UserMessage, Problem> {
    let mut content = vec![Content::text(text)];
    for word in text.split_whitespace() {
        let Some(path) = word
            .strip_prefix('@')
            .map(|path| path.trim_end_matches([',', ';', ':', '!', '?', ')']))
        else {
            continue;
        };
        let end = Path::new(path)
            .extension()
            .and_then(|end| end.to_str())
            .unwrap_or_default()
            .to_ascii_lowercase();
        let Some((_, media_type, head)) = KINDS.iter().find(|(kind, ..)| *kind == end) else {
            continue;
        };
        if content.len() > MAX_IMAGES {
            return Err(Problem::new(
                Exit::Usage,
                format!("a prompt may name {MAX_IMAGES} images"),
            ));
        }
        let data = read(&root.join(path), path, head)?;
        let source = Source::Base64 {
            data: STANDARD.encode(data).into(),
        };
        content.push(Content::Image(Image {
            media_type: (*media_type).into(),
            source,
        }));
    }
    Ok(content.into())
}

fn read(file: &Path, path: &str, head: &[u8]) -> Result<Vec<u8>, Problem> {
    let wrong =
        |error| Problem::new(Exit::Usage, format!("cannot read the image: {path}")).cause(&error);
    // A pipe would be waited for.
    if !file.metadata().map_err(wrong)?.is_file() {
        return Err(Problem::new(
            Exit::Usage,
            format!("no file, so no image: {path}"),
        ));
    }
    let mut data = Vec::new();
    File::open(file)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut data))
        .map_err(wrong)?;
    if data.len() as u64 > MAX_BYTES {
        return Err(Problem::new(
            Exit::Usage,
            format!("longer than the 10 MiB that an image may have: {path}"),
        ));
    }
    if !data.starts_with(head) {
        return Err(Problem::new(
            Exit::Usage,
            format!("not the image that its name says: {path}"),
        ));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_holds_images_when_the_prompt_names_them() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(folder.path().join("a.png"), b"\x89PNG\r\n").expect("it can be written");
        std::fs::write(folder.path().join("b.jpg"), b"text").expect("it can be written");
        let message = |text: &str| message(text, folder.path());
        let found = message("compare @a.png, and @notes.txt with me@b.jpg").expect("all is well");
        let image = Image {
            media_type: "image/png".into(),
            source: Source::Base64 {
                data: "iVBORw0K".into(),
            },
        };
        assert_eq!(found.content[1..], [Content::Image(image)]);
        for (text, expect) in [
            ("@b.jpg", "error: not the image that its name says: b.jpg"),
            ("@c.gif", "error: cannot read the image: c.gif"),
        ] {
            assert!(
                message(text)
                    .expect_err(text)
                    .to_string()
                    .starts_with(expect),
                "{text}"
            );
        }
    }
}
