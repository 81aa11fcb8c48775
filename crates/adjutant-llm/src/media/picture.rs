//! The check of an image by decoding it, and its reduction to the limits that all vendors share.

use std::{
    io::Cursor,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
};

use image::{
    AnimationDecoder, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits,
    RgbImage,
    codecs::{gif::GifDecoder, jpeg::JpegEncoder, webp::WebPDecoder},
    imageops::FilterType,
    metadata::Orientation,
};

use super::{
    admit::{MAX_EDGE, MAX_IMAGE_BYTES},
    size::{dimensions, jpeg_components},
};

/// The maximum number of pixels that are decoded: the time that it takes grows with them.
const MAX_PIXELS: u64 = 150_000_000;
/// The maximum number of bytes of a decoded image.
const MAX_DECODED: u64 = 512 * 1_024 * 1_024;
/// The qualities with which a JPEG is written, until it is small enough.
const QUALITIES: [u8; 3] = [85, 70, 50];

/// Images are decoded one at a time, so that only one of them is in memory.
static DECODING: Mutex<()> = Mutex::new(());

/// Returns the image as it can be sent if its bytes cannot be: smaller, upright, in eight bits of RGB, its first frame.
///
/// # Errors
/// The reason why it cannot be sent.
pub(super) fn fit(
    bytes: &[u8],
    base64: &str,
    media_type: &'static str,
) -> Result<Option<(&'static str, Vec<u8>)>, String> {
    let (width, height) = dimensions(base64)
        .ok_or_else(|| "it cannot be decoded: its size is not readable".to_owned())?;
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(format!(
            "it has {width} x {height} pixels, at most {MAX_PIXELS} are decoded"
        ));
    }
    let _one = DECODING.lock().unwrap_or_else(PoisonError::into_inner);
    let is_cmyk = media_type == "image/jpeg" && jpeg_components(base64) == Some(4);
    let fitted = catch_unwind(AssertUnwindSafe(|| {
        let decoded = Decoded::new(bytes, media_type)?;
        let is_small = width.max(height) <= MAX_EDGE && bytes.len() <= MAX_IMAGE_BYTES;
        if is_small && !decoded.is_odd && !is_cmyk && is_whole(bytes, media_type) {
            return Ok(None);
        }
        decoded.write(media_type).map(Some)
    }));
    match fitted {
        Ok(Ok(fitted)) => Ok(fitted),
        Ok(Err(error)) => Err(format!("it cannot be decoded: {error}")),
        Err(_) => Err("it cannot be decoded: the decoder failed".to_owned()),
    }
}

/// An image in memory.
struct Decoded {
    image: DynamicImage,
    orientation: Orientation,
    /// True if some vendors cannot read it as it is.
    is_odd: bool,
}

impl Decoded {
    fn new(bytes: &[u8], media_type: &str) -> Result<Self, ImageError> {
        let mut limits = Limits::default();
        limits.max_alloc = Some(MAX_DECODED);
        if media_type == "image/gif" {
            let mut decoder = GifDecoder::new(Cursor::new(bytes))?;
            decoder.set_limits(limits)?;
            // "Non-animated GIF" only. Source: "Images and vision", developers.openai.com, 2026-11.
            let mut frames = decoder.into_frames();
            let first = frames
                .next()
                .transpose()?
                .ok_or_else(|| ImageError::IoError(std::io::Error::other("it has no frame")))?;
            return Ok(Self {
                image: first.into_buffer().into(),
                orientation: Orientation::NoTransforms,
                is_odd: frames.next().is_some(),
            });
        }
        let is_animated =
            media_type == "image/webp" && WebPDecoder::new(Cursor::new(bytes))?.has_animation();
        let format = ImageFormat::from_mime_type(media_type).unwrap_or(ImageFormat::Png);
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        reader.limits(limits);
        let mut decoder = reader.into_decoder()?;
        let orientation = decoder.orientation()?;
        let color = decoder.color_type();
        let is_deep = color.bytes_per_pixel() > color.channel_count();
        Ok(Self {
            image: DynamicImage::from_decoder(decoder)?,
            orientation,
            is_odd: is_animated || is_deep || orientation != Orientation::NoTransforms,
        })
    }

    /// Writes the image within the limits: without loss if it is small enough, else as JPEG.
    fn write(self, media_type: &'static str) -> Result<(&'static str, Vec<u8>), ImageError> {
        let mut image = shrink(self.image, MAX_EDGE);
        image.apply_orientation(self.orientation);
        if media_type != "image/jpeg" {
            let eight_bits: DynamicImage = match image.color().has_alpha() {
                true => image.to_rgba8().into(),
                false => image.to_rgb8().into(),
            };
            let mut out = Vec::new();
            eight_bits.write_to(&mut Cursor::new(&mut out), ImageFormat::Png)?;
            if out.len() <= MAX_IMAGE_BYTES {
                return Ok(("image/png", out));
            }
        }
        loop {
            let flat = flatten(&image);
            for quality in QUALITIES {
                let mut out = Vec::new();
                flat.write_with_encoder(JpegEncoder::new_with_quality(&mut out, quality))?;
                if out.len() <= MAX_IMAGE_BYTES {
                    return Ok(("image/jpeg", out));
                }
            }
            image = shrink(image, flat.width().max(flat.height()) / 2);
        }
    }
}

/// Returns the image with a longer side of at most `edge` pixels.
fn shrink(image: DynamicImage, edge: u32) -> DynamicImage {
    let longer = image.width().max(image.height());
    if longer <= edge {
        return image;
    }
    // The fast filter first: the good one needs 16 bytes a pixel.
    let image = if longer > edge * 2 {
        image.thumbnail(edge * 2, edge * 2)
    } else {
        image
    };
    image.resize(edge, edge, FilterType::CatmullRom)
}

/// Returns the image without transparency, on white.
fn flatten(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let pixels = image.to_rgba8();
    RgbImage::from_fn(pixels.width(), pixels.height(), |x, y| {
        let [red, green, blue, alpha] = pixels.get_pixel(x, y).0;
        let mix = |part: u8| {
            let alpha = u16::from(alpha);
            ((u16::from(part) * alpha + 255 * (255 - alpha)) / 255) as u8
        };
        image::Rgb([red, green, blue].map(mix))
    })
}

/// True if a JPEG has its end: a decoder fills the missing part with gray, but vendors refuse it.
fn is_whole(bytes: &[u8], media_type: &str) -> bool {
    const END: usize = 4_096;
    media_type != "image/jpeg"
        || bytes[bytes.len().saturating_sub(END)..]
            .windows(2)
            .any(|marker| marker == b"\xFF\xD9")
}
