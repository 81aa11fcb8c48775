//! The images of a prompt: each `@path` of one is sent with it.

use std::{fs::File, io::Read, path::Path};

use adjutant::llm::{Content, Image, Source, UserMessage, media};
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{exit::Exit, problem::Problem};

/// The maximum number of bytes of an image file.
const MAX_BYTES: u64 = 32 * 1_024 * 1_024;
/// The maximum number of images of a prompt.
const MAX_IMAGES: usize = 20;
/// The file extensions of images.
const ENDS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// Returns the message of a prompt: its text, followed by the images that it names. Paths are relative to `root`.
///
/// An image that models cannot read is replaced by a text, which `note` also receives.
///
/// # Errors
/// `Usage` if an image cannot be read, or if there are too many.
pub(crate) fn message(
    text: &str,
    root: &Path,
    mut note: impl FnMut(&str),
) -> Result<UserMessage, Problem> {
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
        if !ENDS.contains(&end.as_str()) {
            continue;
        }
        if content.len() > MAX_IMAGES {
            return Err(Problem::new(
                Exit::Usage,
                format!("a prompt may name {MAX_IMAGES} images"),
            ));
        }
        let data = read(&root.join(path), path)?;
        let source = Source::Base64 {
            data: STANDARD.encode(data).into(),
        };
        let image = Content::Image(Image {
            media_type: format!("image/{end}").into(),
            source,
        });
        // Decoding takes up to a second.
        let checked = tokio::task::block_in_place(|| media::check(image));
        content.push(checked.unwrap_or_else(|mut unfit| {
            unfit.name = Some(path.into());
            note(&format!("not sent: {unfit}"));
            unfit.into()
        }));
    }
    Ok(content.into())
}

fn read(file: &Path, path: &str) -> Result<Vec<u8>, Problem> {
    let wrong =
        |error| Problem::new(Exit::Usage, format!("cannot read the image: {path}")).cause(&error);
    // A pipe would block.
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
            format!("longer than the 32 MiB that an image may have: {path}"),
        ));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PNG of one pixel.
    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

    #[test]
    fn message_holds_images_when_the_prompt_names_them() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let pixel = STANDARD.decode(PIXEL).expect("base64");
        std::fs::write(folder.path().join("a.jpg"), pixel).expect("it can be written");
        std::fs::write(folder.path().join("b.jpg"), b"text").expect("it can be written");
        let mut notes = Vec::new();
        let mut message = |text: &str| message(text, folder.path(), |it| notes.push(it.to_owned()));
        let found = message("compare @a.jpg, and @notes.txt with me@b.jpg").expect("all is well");
        let image = Image {
            media_type: "image/png".into(),
            source: Source::Base64 { data: PIXEL.into() },
        };
        assert_eq!(found.content[1..], [Content::Image(image)]);
        let broken = message("what is wrong with @b.jpg?").expect("all is well");
        let why =
            "image \"b.jpg\" of 4 bytes: its format is unknown; PNG, JPEG, GIF and WebP are taken";
        assert_eq!(broken.content[1], Content::text(format!("[omitted {why}]")));
        let missing = message("@c.gif")
            .expect_err("it does not exist")
            .to_string();
        assert!(
            missing.starts_with("error: cannot read the image: c.gif"),
            "{missing}"
        );
        assert_eq!(notes, [format!("not sent: {why}")]);
    }
}
