//! The limits of vendors on the media of a request, and the choice of the media that are left out. Pure.

use std::sync::Arc;

use adjutant_llm::{
    Content, Entry, Inputs, MediaLimits, ModelInfo, Source, Stored, Warning,
    media::{dimensions, has_media, map_media, media_of},
};

use crate::pieces::warn_changed;

/// A megabyte as vendors count it.
const MB: usize = 1_000_000;
/// The maximum number of pixels of a side in a request with many images.
///
/// Source: "Vision", platform.claude.com, 2026-11.
const CROWDED_EDGE: u32 = 2_000;
/// A limit on bytes is reached in steps of this part of it, so that the start of a request seldom changes.
const STEPS: usize = 4;

/// The maximum number of images in a request to a Claude model whose context window is at most [`SMALL_WINDOW`].
///
/// Source: "Vision", platform.claude.com, 2026-11: 100 images for models with a window of 200,000 tokens, 600 for others.
const SMALL_WINDOW_IMAGES: usize = 100;
const SMALL_WINDOW: u64 = 200_000;

/// The limits of each provider. A provider that is not listed has no limits.
#[rustfmt::skip]
const LIMITS: [(&str, MediaLimits); 10] = [
    // Source: "Vision", platform.claude.com, 2026-11: 600 images of 8,000 px, 32 MB a request, 10 MB an image. Vertex AI
    // takes 5 MB an image on the same wire, so this is the limit here.
    ("anthropic", limits(600, 5 * 1_024 * 1_024, 8_000, 20, 30 * MB)),
    // Source: "Message", docs.aws.amazon.com/bedrock, 2026-11: 20 images of 3.75 MB and 8,000 px; "Claude on Amazon
    // Bedrock", platform.claude.com, 2026-11: 20 MB a request.
    ("bedrock", limits(20, 5 * MB, 8_000, 20, 18 * MB)),
    ("bedrock-mantle", limits(20, 5 * MB, 8_000, 20, 18 * MB)),
    // Source: "Images and vision", developers.openai.com, 2026-11: 1,500 images, 512 MB a request. The lower limit on
    // bytes keeps a request small in memory, and suits gateways.
    ("openai", limits(1_500, 20 * MB, 0, 0, 48 * MB)),
    // Source: "Azure OpenAI quotas and limits", learn.microsoft.com, 2026-11: 50 images of 20 MB.
    ("azure", limits(50, 20 * MB, 0, 0, 48 * MB)),
    // Source: "Vision", api-docs.deepseek.com, 2026-11: 48 MiB a request, 600 images.
    ("deepseek", limits(600, 0, 0, 0, 45 * MB)),
    // Source: "File input methods", ai.google.dev, 2026-11: 100 MB a request with inline data, 3,600 images; "Image
    // understanding", docs.cloud.google.com, 2026-11: 3,000 images on Vertex AI.
    ("gemini", limits(3_000, 0, 0, 0, 90 * MB)),
    // Source: "Vision", docs.mistral.ai, 2026-11: 8 images of 10 MB.
    ("mistral", limits(8, 10 * MB, 0, 0, 0)),
    // Source: "Images and vision", console.groq.com, 2026-11: 5 images, 4 MB a request with base64.
    ("groq", limits(5, 4 * MB, 0, 0, 38 * MB / 10)),
    // Source: "Image understanding", docs.x.ai, 2026-11: 20 MiB an image, no limit on their number.
    ("xai", limits(0, 20 * 1_024 * 1_024, 0, 0, 0)),
];

const fn limits(
    images: usize,
    image_bytes: usize,
    edge: u32,
    crowd: usize,
    bytes: usize,
) -> MediaLimits {
    MediaLimits {
        images,
        image_bytes,
        edge,
        crowd,
        bytes,
    }
}

/// Returns the limits of a provider for a model with this context window, if the provider is known to have limits.
pub(crate) fn limits_of(provider: &str, window: u64) -> Option<MediaLimits> {
    let vendor = provider.strip_suffix("-chat").unwrap_or(provider);
    let (_, limits) = LIMITS.iter().find(|(name, _)| *name == vendor)?;
    let mut limits = *limits;
    if vendor == "anthropic" && window <= SMALL_WINDOW {
        limits.images = SMALL_WINDOW_IMAGES;
    }
    Some(limits)
}

/// The media of a transcript, and the choice of the media that a request omits.
///
/// Depends on the transcript and the model only, so that every process sends the same bytes.
#[derive(Debug, Default)]
pub(crate) struct KeptMedia {
    media: Vec<Medium>,
    plan: Plan,
    /// The number of media that were written.
    written: usize,
}

#[derive(Debug)]
struct Medium {
    bytes: usize,
    edge: u32,
    is_image: bool,
    /// False if the model takes none of its kind.
    is_taken: bool,
}

/// The choice of the media that a request shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Plan {
    limits: MediaLimits,
    /// The media before this one are left out.
    first: usize,
    is_crowded: bool,
}

impl KeptMedia {
    /// Adds the media of new entries. Returns true if media that were written before are left out now.
    pub(crate) fn add<'a>(
        &mut self,
        entries: impl Iterator<Item = &'a Arc<Stored>>,
        info: &ModelInfo,
    ) -> bool {
        let known = self.media.len();
        for stored in entries.filter(|stored| has_media(&stored.entry)) {
            let media = media_of(&stored.entry);
            self.media
                .extend(media.map(|content| Medium::new(content, info.inputs)));
        }
        if self.media.len() == known {
            return false;
        }
        let limits = info
            .media
            .or_else(|| limits_of(info.provider(), info.context_window));
        let plan = Plan::new(&self.media, limits.unwrap_or_default());
        let has_changed = plan != self.plan && self.written > 0;
        self.plan = plan;
        has_changed
    }

    /// Starts to write from the first entry again.
    pub(crate) fn restart(self) -> Self {
        Self { written: 0, ..self }
    }

    /// Returns the next entry without the media that the request leaves out; `None` if it keeps all.
    pub(crate) fn project(&mut self, entry: &Entry, warnings: &mut Vec<Warning>) -> Option<Entry> {
        if self.media.is_empty() {
            return None;
        }
        let start = self.written;
        self.written += media_of(entry).count();
        let places = start..self.written;
        if !places
            .clone()
            .any(|at| self.plan.omission(at, &self.media[at]).is_some())
        {
            return None;
        }
        map_media(entry, |number, _| {
            let at = start + number;
            let reason = self.plan.omission(at, self.media.get(at)?)?;
            let kind = if self.media[at].is_image {
                "image"
            } else {
                "file"
            };
            let text = format!("[{kind} omitted: {reason}]");
            warn_changed(warnings, &text);
            Some(Content::text(text))
        })
    }
}

impl Medium {
    fn new(content: &Content, inputs: Inputs) -> Self {
        let (source, is_image, is_taken) = match content {
            Content::Image(image) => (Some(&image.source), true, inputs.images),
            Content::Document(document) => (Some(&document.source), false, inputs.documents),
            Content::Audio(audio) => (Some(&audio.source), false, inputs.audio),
            _ => (None, false, false),
        };
        let data = match source {
            Some(Source::Base64 { data }) if is_taken => &**data,
            _ => "",
        };
        let size = if is_image { dimensions(data) } else { None };
        Self {
            bytes: data.len(),
            edge: size.map_or(0, |(width, height)| width.max(height)),
            is_image,
            is_taken,
        }
    }
}

impl Plan {
    /// Leaves out the oldest media until the rest is within the limits, several at a time.
    fn new(media: &[Medium], limits: MediaLimits) -> Self {
        let mut plan = Self {
            limits,
            ..Self::default()
        };
        let fits =
            |plan: &Self, at: usize| media[at].is_taken && plan.omission(at, &media[at]).is_none();
        let images = |plan: &Self| {
            let fitting = (0..media.len()).filter(|at| media[*at].is_image && fits(plan, *at));
            fitting.collect::<Vec<_>>()
        };
        let shown = images(&plan);
        if let Some(over) = over(shown.len(), limits.images) {
            let batch = (limits.images / 2).max(1);
            let count = over.div_ceil(batch) * batch;
            plan.first = shown.get(count).copied().unwrap_or(media.len());
        }
        let bytes = |plan: &Self| -> usize {
            let fitting = (0..media.len()).filter(|at| fits(plan, *at));
            fitting.map(|at| media[at].bytes).sum()
        };
        let unlimited = Self {
            limits,
            ..Self::default()
        };
        if let Some(over) = over(bytes(&unlimited), limits.bytes) {
            let step = (limits.bytes / STEPS).max(1);
            let mut left = over.div_ceil(step) * step;
            let mut first = 0;
            while left > 0 && first < media.len() {
                if fits(&unlimited, first) {
                    left = left.saturating_sub(media[first].bytes);
                }
                first += 1;
            }
            plan.first = plan.first.max(first);
        }
        plan.is_crowded = over(images(&plan).len(), limits.crowd).is_some();
        plan
    }

    /// Returns the reason why a medium is left out, if it is.
    fn omission(&self, at: usize, medium: &Medium) -> Option<String> {
        let Medium {
            bytes,
            edge,
            is_image,
            is_taken,
        } = *medium;
        let max_edge = match self.limits.edge {
            0 => 0,
            edge if self.is_crowded => edge.min(CROWDED_EDGE),
            edge => edge,
        };
        // A note of the projection is in the place of what the model does not take.
        if !is_taken {
            return None;
        }
        if is_image && over(bytes, self.limits.image_bytes).is_some() {
            let max = self.limits.image_bytes;
            return Some(format!(
                "it has {bytes} bytes in base64, the provider accepts {max}"
            ));
        }
        if max_edge > 0 && edge > max_edge {
            return Some(format!(
                "it has {edge} pixels on a side, the provider accepts {max_edge}"
            ));
        }
        let is_old = at < self.first;
        is_old.then(|| {
            "the request already contains as many later ones as the provider accepts".to_owned()
        })
    }
}

/// Returns by how much a count is over a limit, if it is.
fn over(count: usize, limit: usize) -> Option<usize> {
    let over = count.checked_sub(limit)?;
    (limit > 0 && over > 0).then_some(over)
}

#[cfg(test)]
mod tests;
