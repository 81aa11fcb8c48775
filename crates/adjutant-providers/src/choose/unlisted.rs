//! A model that the catalogue does not list: its abilities are assumed until its server reports them.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use adjutant_llm::{
    Chunk, ChunkStream, Content, Entry, Error, LimitSource, Model, ModelInfo, Request, Transcript,
    Warning, WarningKind,
};
use futures_util::{FutureExt, StreamExt};
use tokio::runtime::Handle;

use super::server_report::{self, Listing};
use crate::{
    catalogue::{Catalogue, info_from_name},
    credentials::Key,
    gemini::escape_segment,
    provider::{Provider, WireKind},
};

/// The longest time that a server may take to report its models.
const LIMIT: Duration = Duration::from_secs(2);
/// The age from which a stored report is no longer used.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum number of bytes of a stored report.
const MAX_STORED: u64 = 64 * 1024;
/// The maximum number of bytes in the name of a stored report.
const MAX_NAME: usize = 200;
/// The window of a model that Ollama has not loaded yet. Source: "Context length", docs.ollama.com, 2026-11: 4k with less
/// than 24 GiB of VRAM; the models of its cloud have their full window.
const OLLAMA_WINDOW: u64 = 4_096;
/// The number of latest entries in which a picture is looked for.
const LATEST: usize = 8;

/// A model that the catalogue does not list. Cloning is cheap.
#[derive(Clone)]
pub(super) struct Unlisted {
    shared: Arc<Shared>,
}

struct Shared {
    place: Place,
    /// The model with the abilities that are assumed.
    assumed: Arc<dyn Model>,
    /// The model with the abilities that its server reported.
    reported: OnceLock<Arc<dyn Model>>,
    /// The same, after Ollama reported that the model takes pictures.
    seeing: OnceLock<Arc<dyn Model>>,
    was_asked: AtomicBool,
    has_warned: AtomicBool,
    /// The models that may have been meant.
    hint: String,
    cache: Option<PathBuf>,
}

/// The place of a model, and its credentials.
pub(super) struct Place {
    pub(super) provider: Provider,
    pub(super) key: Key,
    pub(super) base_url: String,
}

impl Unlisted {
    /// Creates the model with abilities that are assumed.
    ///
    /// # Errors
    /// `Config` if the provider cannot build it.
    pub(super) fn new(
        place: Place,
        info: ModelInfo,
        hint: String,
        cache: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let shared = Shared {
            assumed: place.model(info)?,
            place,
            reported: OnceLock::new(),
            seeing: OnceLock::new(),
            was_asked: AtomicBool::new(false),
            has_warned: AtomicBool::new(false),
            hint,
            cache,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Queries the server for the abilities of the model, for 2 s at most. If it does not report them, they stay
    /// assumed.
    ///
    /// Cancel: nothing is lost.
    pub(super) async fn ask(&self) {
        self.shared.ask().await;
    }
}

impl Place {
    fn model(&self, info: ModelInfo) -> Result<Arc<dyn Model>, Error> {
        self.provider.model(info, self.key.clone(), &self.base_url)
    }

    fn listing(&self) -> Listing<'_> {
        Listing {
            provider: &self.provider,
            key: &self.key,
            base_url: match self.base_url.trim() {
                "" => &self.provider.base_url,
                base_url => base_url,
            },
        }
    }
}

impl Shared {
    fn model(&self) -> &Arc<dyn Model> {
        let reported = self.reported.get().unwrap_or(&self.assumed);
        let seeing = self.seeing.get();
        // The latest knows what the other one knew.
        seeing
            .filter(|seeing| seeing.info().limits == reported.info().limits)
            .unwrap_or(reported)
    }

    async fn ask(&self) {
        let info = match self.read_stored() {
            Some(info) => Some(info),
            // Without a runtime, the request itself fails with a clear error.
            None if Handle::try_current().is_err() => return,
            None => {
                let listing = self.place.listing();
                let asked = server_report::ask(&listing, self.assumed.info());
                let reported = tokio::time::timeout(LIMIT, asked).await.ok().flatten();
                reported.inspect(|info| self.store(info))
            }
        };
        self.was_asked.store(true, Ordering::Release);
        let sees = |seeing: &Arc<dyn Model>| seeing.info().inputs.images;
        let info = info.map(|mut info| {
            info.inputs.images |= self.seeing.get().is_some_and(sees);
            info
        });
        if let Some(Ok(model)) = info.map(|info| self.place.model(info)) {
            let _another_task_was_faster = self.reported.set(model);
        }
    }

    /// Queries Ollama whether the model accepts images: only `POST /api/show` reports that.
    async fn ask_for_sight(&self) {
        let (listing, info) = (self.place.listing(), self.model().info());
        let asked = server_report::takes_pictures(&listing, info);
        let mut info = info.clone();
        info.inputs.images = tokio::time::timeout(LIMIT, asked).await.unwrap_or(false);
        if let Ok(model) = self.place.model(info) {
            let _another_task_was_faster = self.seeing.set(model);
        }
    }

    /// The file of the server's report: of hosted models only, because a local server may be started in another way.
    fn file(&self) -> Option<PathBuf> {
        let is_hosted = !self.place.provider.is_local();
        let cache = self.cache.as_deref().filter(|_| is_hosted)?;
        let listing = self.place.listing();
        let id = self.assumed.info().id.as_str();
        let name = format!("{} {id}", listing.base_url);
        let name = escape_segment(&name) + ".json";
        (name.len() <= MAX_NAME).then(|| cache.join(name))
    }

    fn read_stored(&self) -> Option<ModelInfo> {
        let file = self.file()?;
        let about = fs::metadata(&file).ok()?;
        let age = SystemTime::now().duration_since(about.modified().ok()?);
        if about.len() > MAX_STORED || age.is_ok_and(|age| age >= MAX_AGE) {
            return None;
        }
        let info: ModelInfo = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        (info.id == self.assumed.info().id).then_some(info)
    }

    /// Stores what the server reported. A failure only costs a question at the next start.
    fn store(&self, info: &ModelInfo) {
        if let Some(file) = self.file().filter(|_| info.limits == LimitSource::Server) {
            let _failure = write(&file, info);
        }
    }

    /// Returns the warning about unknown abilities of the model, if they matter.
    fn warning(&self) -> Option<Warning> {
        let info = self.model().info();
        let id = &info.id;
        let text = match (info.limits, info.window()) {
            (LimitSource::Server, _) if self.place.provider.any_model => return None,
            (LimitSource::Server, Some(tokens)) => format!(
                "the catalogue does not list {id}; its server reports a context window of {tokens} tokens{}",
                self.hint
            ),
            (_, Some(tokens)) => format!(
                "the server has not reported the context window of {id}; {tokens} tokens are assumed until then{}",
                self.hint
            ),
            (_, None) => format!(
                "the catalogue does not list {id}, and its server did not report its limits: the context window is \
                 unknown{}",
                self.hint
            ),
        };
        Some(Warning {
            kind: WarningKind::Degraded,
            message: text.into(),
        })
    }

    fn must_ask_for_sight(&self, entries: &Transcript) -> bool {
        if self.place.provider.alike() != "ollama" || self.seeing.get().is_some() {
            return false;
        }
        let is_first = !self.has_warned.load(Ordering::Acquire);
        let most = if is_first { entries.len() } else { LATEST };
        let mut latest = entries.iter().rev().take(most);
        latest.any(|stored| holds_picture(&stored.entry))
    }
}

impl Model for Unlisted {
    fn info(&self) -> &ModelInfo {
        self.shared.model().info()
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let shared = Arc::clone(&self.shared);
        let asks = !shared.was_asked.load(Ordering::Acquire);
        let looks = shared.must_ask_for_sight(&request.entries);
        if asks || looks {
            let this = self.clone();
            let asked = async move {
                if asks {
                    shared.ask().await;
                }
                if looks {
                    shared.ask_for_sight().await;
                }
                this.answer(request)
            };
            return Box::pin(asked.into_stream().flatten());
        }
        self.answer(request)
    }

    fn with_info(&self, info: &ModelInfo) -> Option<Arc<dyn Model>> {
        let is_same = info.id == self.info().id;
        is_same
            .then(|| self.shared.place.model(info.clone()).ok())
            .flatten()
    }
}

impl Unlisted {
    fn answer(&self, request: Request) -> ChunkStream {
        let shared = Arc::clone(&self.shared);
        let answer = shared.model().stream(request);
        let is_open = shared.reported.get().is_none() && shared.place.provider.loads_models();
        if shared.has_warned.load(Ordering::Acquire) && !is_open {
            return answer;
        }
        Box::pin(answer.map(move |mut item| {
            if let Ok(Chunk::Start { warnings, .. }) = &mut item {
                if !shared.has_warned.swap(true, Ordering::AcqRel) {
                    warnings.extend(shared.warning());
                }
                if is_open && let Ok(runtime) = Handle::try_current() {
                    // By now the server has loaded the model, and knows its window.
                    let shared = Arc::clone(&shared);
                    runtime.spawn(async move { shared.ask().await });
                }
            }
            item
        }))
    }
}

/// Returns the abilities that are assumed: the limits are unknown, the rest is as the closest relative has it.
pub(super) fn assume_info(provider: &Provider, name: &str, catalogue: &Catalogue) -> ModelInfo {
    let mut info = info_from_name(&format!("{}/{name}", provider.name));
    let relative = (!provider.any_model)
        .then(|| relative(provider, name, catalogue))
        .flatten();
    let Some(relative) = relative else {
        if provider.alike() == "ollama" && !name.ends_with("cloud") {
            info.context_window = OLLAMA_WINDOW;
        }
        return info;
    };
    info = ModelInfo {
        id: info.id,
        context_window: 0,
        limits: LimitSource::Assumed,
        thinking_binding: info.thinking_binding,
        price: None,
        ..relative.clone()
    };
    if provider.wire != WireKind::Messages {
        info.max_output_tokens = 0;
    }
    info
}

/// Returns the listed model of the same vendor that shares the longest prefix of words with the name.
fn relative<'c>(
    provider: &Provider,
    name: &str,
    catalogue: &'c Catalogue,
) -> Option<&'c ModelInfo> {
    let is_own = |info: &&ModelInfo| {
        info.provider() == provider.name || provider.twins().contains(&info.provider())
    };
    let common = |info: &ModelInfo| {
        let both = words(name).zip(words(info.name()));
        both.take_while(|(one, other)| one == other).count()
    };
    let mut closest = None;
    for info in catalogue.models().filter(is_own) {
        let common = common(info);
        if common > closest.map_or(0, |(most, _)| most) {
            closest = Some((common, info));
        }
    }
    closest.map(|(_, info)| info)
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(['-', '.', ':', '/', '_'])
}

fn holds_picture(entry: &Entry) -> bool {
    let is_picture = |content: &Content| matches!(content, Content::Image(_));
    match entry {
        Entry::User(message) => message.content.iter().any(is_picture),
        Entry::Turn(turn) => turn
            .results()
            .iter()
            .any(|result| result.content.iter().any(is_picture)),
        _ => false,
    }
}

/// Writes a report in one step, so that another process never reads a part of it.
fn write(file: &Path, info: &ModelInfo) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&temporary, serde_json::to_vec(info)?)?;
    fs::rename(&temporary, file)
}

impl fmt::Debug for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unlisted")
            .field(self.shared.model())
            .finish()
    }
}

#[cfg(test)]
mod tests;
