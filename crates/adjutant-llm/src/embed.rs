//! Embeddings: texts as vectors. Providers implement the trait elsewhere.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Estimate, ModelId, Price, Usage};

/// Makes vectors of texts.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an embedder",
    note = "embedders come from `adjutant_providers`, from `HashEmbedder`, or from `embedder_fn`"
)]
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Returns the abilities of the embedder, as data.
    fn info(&self) -> &EmbedderInfo;

    /// Makes one vector of each text, in order. The texts keep to the limits of [`EmbedderInfo`]; see [`embed_all`].
    ///
    /// Cancel: dropping the future ends the request.
    ///
    /// # Errors
    /// The refusal or failure of the provider.
    async fn embed(&self, texts: &[Arc<str>], purpose: Purpose) -> Result<Embeddings, Error>;
}

/// The purpose of vectors; some providers make different ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// To be found.
    #[default]
    Document,
    /// To find.
    Query,
}

/// One vector for each text, in order, and their usage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Embeddings {
    /// The vectors.
    pub vectors: Vec<Vec<f32>>,
    /// The usage.
    #[serde(default)]
    pub usage: Usage,
}

/// The abilities, limits and price of an embedder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbedderInfo {
    /// The model, as `provider/model`.
    pub id: ModelId,
    /// The number of dimensions of a vector.
    pub dimensions: usize,
    /// The largest number of texts in a request.
    pub max_inputs: usize,
    /// The largest number of tokens in one text.
    pub max_input_tokens: u64,
    /// The largest number of tokens that the texts of a request may have together.
    pub max_request_tokens: u64,
    /// The price, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl EmbedderInfo {
    /// An embedder of 96 texts in a request, 8,192 tokens in a text and 100,000 in a request, at an unknown price.
    pub fn new(id: impl Into<ModelId>, dimensions: usize) -> Self {
        Self {
            id: id.into(),
            dimensions,
            max_inputs: 96,
            max_input_tokens: 8_192,
            max_request_tokens: 100_000,
            price: None,
        }
    }
}

/// Makes one vector of each text, in sequential requests within the limits of the embedder.
///
/// Tokens are estimated; a text that alone seems too long is sent alone, so that the provider decides.
/// Cancel: dropping the future loses the vectors made so far.
///
/// # Errors
/// The error of a request; `Protocol` if an answer contains another number of vectors or dimensions than requested.
pub async fn embed_all(
    embedder: &(impl Embedder + ?Sized),
    texts: &[Arc<str>],
    purpose: Purpose,
) -> Result<Embeddings, Error> {
    let info = embedder.info();
    let mut all = Embeddings {
        vectors: Vec::with_capacity(texts.len()),
        usage: Usage::default(),
    };
    let mut rest = texts;
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch(info, rest));
        let made = embedder.embed(batch, purpose).await?;
        check(info, batch.len(), &made.vectors)?;
        all.vectors.extend(made.vectors);
        all.usage += made.usage;
        rest = later;
    }
    Ok(all)
}

/// Returns the number of texts that go into the next request: at least one.
fn batch(info: &EmbedderInfo, texts: &[Arc<str>]) -> usize {
    let mut tokens = 0_u64;
    let fits = |text: &&Arc<str>| {
        tokens = tokens.saturating_add(Estimate.count(text));
        tokens <= info.max_request_tokens
    };
    texts
        .iter()
        .take(info.max_inputs)
        .take_while(fits)
        .count()
        .max(1)
}

fn check(info: &EmbedderInfo, texts: usize, vectors: &[Vec<f32>]) -> Result<(), Error> {
    if vectors.len() != texts {
        let message = format!(
            "{} gave {} vectors for {texts} texts",
            info.id,
            vectors.len()
        );
        return Err(Error::new(ErrorKind::Protocol, message));
    }
    match vectors
        .iter()
        .find(|vector| vector.len() != info.dimensions)
    {
        None => Ok(()),
        Some(vector) => {
            let message = format!(
                "{} gave a vector of {} numbers, not {}",
                info.id,
                vector.len(),
                info.dimensions
            );
            Err(Error::new(ErrorKind::Protocol, message))
        }
    }
}

/// An embedder made of a function.
pub fn embedder_fn<F, Fut>(info: EmbedderInfo, embed: F) -> FnEmbedder<F>
where
    F: Fn(Vec<Arc<str>>, Purpose) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Embeddings, Error>> + Send,
{
    FnEmbedder { info, embed }
}

/// An embedder made of a function; see [`embedder_fn`].
pub struct FnEmbedder<F> {
    info: EmbedderInfo,
    embed: F,
}

#[async_trait]
impl<F, Fut> Embedder for FnEmbedder<F>
where
    F: Fn(Vec<Arc<str>>, Purpose) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Embeddings, Error>> + Send,
{
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    async fn embed(&self, texts: &[Arc<str>], purpose: Purpose) -> Result<Embeddings, Error> {
        (self.embed)(texts.to_vec(), purpose).await
    }
}

#[async_trait]
impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn info(&self) -> &EmbedderInfo {
        (**self).info()
    }

    async fn embed(&self, texts: &[Arc<str>], purpose: Purpose) -> Result<Embeddings, Error> {
        (**self).embed(texts, purpose).await
    }
}

/// An embedder for tests: texts that share words are near each other. It stores its requests.
///
/// Each word counts in one dimension, which its hash chooses; case and punctuation do not matter. Vectors have the
/// length 1, and vectors of texts without words the length 0. Usage is the estimated number of tokens.
pub struct HashEmbedder {
    /// The description that the embedder gives of itself.
    pub info: EmbedderInfo,
    requests: Mutex<Vec<Vec<Arc<str>>>>,
}

impl HashEmbedder {
    /// An embedder called `scripted/hash`; its vectors have at least one dimension.
    pub fn new(dimensions: usize) -> Self {
        Self {
            info: EmbedderInfo::new("scripted/hash", dimensions.max(1)),
            requests: Mutex::default(),
        }
    }

    /// The texts of each request so far, in order.
    pub fn requests(&self) -> Vec<Vec<Arc<str>>> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0_f32; self.info.dimensions];
        for word in text
            .split(|it: char| !it.is_alphanumeric())
            .filter(|it| !it.is_empty())
        {
            let at = hash(&word.to_lowercase()) % (self.info.dimensions.max(1) as u64);
            if let Some(number) = vector.get_mut(at as usize) {
                *number += 1.0;
            }
        }
        let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|it| *it /= length);
        }
        vector
    }
}

#[async_trait]
impl Embedder for HashEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    async fn embed(&self, texts: &[Arc<str>], _purpose: Purpose) -> Result<Embeddings, Error> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(texts.to_vec());
        let vectors = texts.iter().map(|text| self.vector(text)).collect();
        let input_uncached = texts.iter().map(|text| Estimate.count(text)).sum();
        Ok(Embeddings {
            vectors,
            usage: Usage {
                input_uncached,
                ..Usage::default()
            },
        })
    }
}

/// FNV-1a, because it is the same on every machine and in every version.
fn hash(word: &str) -> u64 {
    word.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

impl<F> fmt::Debug for FnEmbedder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnEmbedder")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HashEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashEmbedder")
            .field("info", &self.info)
            .field("requests", &self.requests().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<Arc<str>> {
        texts.iter().map(|text| Arc::from(*text)).collect()
    }

    #[tokio::test]
    async fn embed_all_keeps_the_order_when_it_splits_by_count_and_tokens() {
        let info = EmbedderInfo {
            max_inputs: 3,
            max_request_tokens: 5,
            ..EmbedderInfo::new("scripted/hash", 64)
        };
        let embedder = HashEmbedder {
            info,
            requests: Mutex::default(),
        };
        let long = "z".repeat(400);
        let all = texts(&["a", "b", "c", "d", "eeee eeee eee", "ffff ffff", &long, "g"]);
        let made = embed_all(&embedder, &all, Purpose::Document)
            .await
            .expect("the limits are kept");
        let batches: Vec<usize> = embedder.requests().iter().map(Vec::len).collect();
        assert_eq!(batches, [3, 2, 1, 1, 1]);
        assert_eq!(embedder.requests().concat(), all);
        let one_by_one: Vec<Vec<f32>> = all.iter().map(|text| embedder.vector(text)).collect();
        let usage = Usage {
            input_uncached: 4 + 4 + 3 + 100 + 1,
            ..Usage::default()
        };
        assert_eq!(
            made,
            Embeddings {
                vectors: one_by_one,
                usage
            }
        );
        let none = embed_all(&embedder, &[], Purpose::Query).await;
        assert_eq!(
            (none, embedder.requests().len()),
            (Ok(Embeddings::default()), 5)
        );
    }

    #[tokio::test]
    async fn embed_all_refuses_when_an_answer_has_the_wrong_shape() {
        let answer = |vectors: Vec<Vec<f32>>| {
            let embeddings = Embeddings {
                vectors,
                usage: Usage::default(),
            };
            embedder_fn(EmbedderInfo::new("x/y", 2), move |_, _| {
                std::future::ready(Ok(embeddings.clone()))
            })
        };
        for (vectors, expect) in [
            (vec![], "x/y gave 0 vectors for 1 texts"),
            (vec![vec![1.0]], "x/y gave a vector of 1 numbers, not 2"),
        ] {
            let error = embed_all(&answer(vectors), &texts(&["a"]), Purpose::Query)
                .await
                .expect_err("wrong shape");
            assert_eq!(
                (error.kind(), error.message()),
                (ErrorKind::Protocol, expect)
            );
        }
        let good = embed_all(
            &answer(vec![vec![0.0, 1.0]]),
            &texts(&["a"]),
            Purpose::Query,
        )
        .await;
        assert_eq!(good.map(|it| it.vectors), Ok(vec![vec![0.0, 1.0]]));
    }

    #[test]
    fn hash_embedder_puts_texts_near_when_they_share_words() {
        let embedder = HashEmbedder::new(256);
        let near = |a: &str, b: &str| -> f32 {
            embedder
                .vector(a)
                .iter()
                .zip(embedder.vector(b))
                .map(|(a, b)| a * b)
                .sum()
        };
        assert!((near("The cat, sat!", "the CAT sat") - 1.0).abs() < 1e-6);
        assert!(near("the cat sat", "the cat ran") > near("the cat sat", "dogs bark loudly"));
        assert_eq!(embedder.vector("..."), vec![0.0; 256]);
    }
}
