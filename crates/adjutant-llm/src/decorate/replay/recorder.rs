//! Records the requests to a model and its answers as they happen.

use std::{
    fmt,
    io::Write,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use serde::Serialize;

use super::{
    Ending, Fingerprint,
    cassette::{CassetteHeader, MAX_LINE, VERSION},
};
use crate::{Chunk, ChunkStream, Error, ErrorKind, Model, ModelId, ModelInfo, Request};

/// A model whose exchanges are recorded as lines of a [`crate::Cassette`].
///
/// Each exchange is one write of a whole line, followed by a flush, when its stream ends or is dropped; the write
/// happens within the poll that ends the stream. The header precedes the first one. A failed write ends the stream
/// with an error of the kind `Config`, and every later stream too: a recording is never silently incomplete.
///
/// Cancel: dropping a stream records its chunks so far.
///
/// # Example
/// ```
/// use adjutant_llm::{Cassette, Recorder, Replay, Request, Script, ScriptedModel, complete};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let (recording, sink) = std::io::pipe().expect("a pipe, where a file would do as well");
/// let model = Recorder::new(ScriptedModel::new([Script::new().text("Hello.")]), sink);
/// complete(&model, Request::new().user("Hi!")).await?;
/// drop(model);
///
/// let replay = Replay::new(Cassette::read(std::io::BufReader::new(recording))?);
/// assert_eq!(complete(&replay, Request::new().user("Hi!")).await?.text(), "Hello.");
/// # Ok::<(), adjutant_llm::Error>(())
/// # }).expect("the recording is played");
/// ```
#[derive(Debug)]
pub struct Recorder {
    model: Arc<dyn Model>,
    tape: Arc<Tape>,
}

/// The output that all streams of a recorder write to.
struct Tape {
    state: Mutex<State>,
}

struct State {
    sink: Box<dyn Write + Send>,
    /// There until it was written.
    header: Option<Vec<u8>>,
    /// The models whose headers were written.
    told: Vec<ModelId>,
    /// The error after which nothing more is written.
    broken: Option<Error>,
}

impl Recorder {
    /// The model, written down to the sink. A sink that buffers is flushed after each exchange.
    pub fn new(model: impl Model + 'static, sink: impl Write + Send + 'static) -> Self {
        let mut header = Vec::new();
        // Writing to a vector cannot fail, and all map keys of an info are texts.
        let _ = put(
            &mut header,
            &CassetteHeader {
                cassette: VERSION,
                info: model.info(),
            },
        );
        let state = State {
            sink: Box::new(sink),
            header: Some(header),
            told: vec![model.info().id.clone()],
            broken: None,
        };
        Self {
            model: Arc::new(model),
            tape: Arc::new(Tape {
                state: Mutex::new(state),
            }),
        }
    }
}

impl Model for Recorder {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        self.model.info_of(model)
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let mut line = format!(
            "{{\"fingerprint\":\"{}\",\"request\":",
            Fingerprint::from_request(&request)
        )
        .into_bytes();
        let failed = put(&mut line, &request)
            .err()
            .or_else(|| self.tape.broken());
        line.extend_from_slice(b",\"chunks\":[");
        let stream = failed.is_none().then(|| self.model.stream(request));
        let (model, tape) = (Arc::clone(&self.model), Arc::clone(&self.tape));
        Box::pin(Recording {
            stream,
            failed,
            line,
            chunks: false,
            model,
            others: Vec::new(),
            tape,
        })
    }
}

impl Tape {
    fn broken(&self) -> Option<Error> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .broken
            .clone()
    }

    /// An exchange is missing: nothing more is written.
    fn spoil(&self, error: &Error) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.broken.get_or_insert_with(|| error.clone());
    }

    fn write(&self, others: &[ModelInfo], line: &[u8]) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        let written = state
            .tell(others)
            .and_then(|headers| state.write(&[&headers, line].concat()));
        if let Err(error) = &written {
            state.broken = Some(error.clone());
        }
        written
    }
}

impl State {
    /// Returns the headers of models without one so far: a model may combine several, each with its own price.
    fn tell(&mut self, others: &[ModelInfo]) -> Result<Vec<u8>, Error> {
        let mut headers = Vec::new();
        for info in others {
            if !self.told.contains(&info.id) {
                self.told.push(info.id.clone());
                put(
                    &mut headers,
                    &CassetteHeader {
                        cassette: VERSION,
                        info,
                    },
                )?;
                headers.push(b'\n');
            }
        }
        Ok(headers)
    }

    fn write(&mut self, line: &[u8]) -> Result<(), Error> {
        if line.len() > MAX_LINE {
            return Err(too_long());
        }
        let mut write = |bytes: &[u8]| self.sink.write_all(bytes).and_then(|()| self.sink.flush());
        let header = self.header.take().map(|mut header| {
            header.push(b'\n');
            write(&header)
        });
        header
            .unwrap_or(Ok(()))
            .and_then(|()| write(line))
            .map_err(|error| {
                Error::new(
                    ErrorKind::Config,
                    format!("could not write to a cassette: {error}"),
                )
                .with_source(error)
            })
    }
}

struct Recording {
    /// There until it has ended.
    stream: Option<ChunkStream>,
    /// The error because of which the request was not sent.
    failed: Option<Error>,
    /// The exchange so far.
    line: Vec<u8>,
    /// True if the line has a chunk.
    chunks: bool,
    model: Arc<dyn Model>,
    /// The models that answered.
    others: Vec<ModelInfo>,
    tape: Arc<Tape>,
}

impl Recording {
    fn take(&mut self, chunk: &Chunk) -> Result<(), Error> {
        if std::mem::replace(&mut self.chunks, true) {
            self.line.push(b',');
        }
        if let Chunk::Start { model, .. } = chunk
            && *model != self.model.info().id
        {
            self.others.push(self.model.info_of(model).clone());
        }
        put(&mut self.line, chunk)?;
        if self.line.len() > MAX_LINE {
            return Err(too_long());
        }
        if let Chunk::Done(_) = chunk {
            self.end(&Ending::Done)
        } else {
            Ok(())
        }
    }

    /// The stream has ended: the line is finished and written.
    fn end(&mut self, ending: &Ending) -> Result<(), Error> {
        self.stream = None;
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(b"],\"ending\":");
        put(&mut line, ending)?;
        line.extend_from_slice(b"}\n");
        self.tape.write(&self.others, &line)
    }

    fn handle_end(&mut self, item: Option<Error>) -> Option<Result<Chunk, Error>> {
        match item {
            Some(error) => {
                // The failure of the stream matters more than that it was not written; the tape keeps the latter.
                let _ = self.end(&Ending::Failed {
                    error: error.clone(),
                });
                Some(Err(error))
            }
            None => self.end(&Ending::Cut).err().map(Err),
        }
    }
}

impl Stream for Recording {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(this.failed.take().map(Err));
        };
        let chunk = match ready!(stream.as_mut().poll_next(cx)) {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Poll::Ready(this.handle_end(Some(error))),
            None => return Poll::Ready(this.handle_end(None)),
        };
        match this.take(&chunk) {
            Ok(()) => Poll::Ready(Some(Ok(chunk))),
            Err(error) => {
                this.stream = None;
                this.tape.spoil(&error);
                Poll::Ready(Some(Err(error)))
            }
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.stream.is_some() {
            // The tape keeps that it is broken.
            let _ = self.end(&Ending::Dropped);
        }
    }
}

fn put(line: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(line, value).map_err(|error| {
        Error::new(ErrorKind::Config, "could not serialize an exchange").with_source(error)
    })
}

fn too_long() -> Error {
    Error::new(
        ErrorKind::Config,
        format!("an exchange of more than {MAX_LINE} bytes does not fit a cassette"),
    )
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape")
            .field("broken", &self.broken())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("bytes", &self.line.len())
            .field("tape", &self.tape)
            .finish_non_exhaustive()
    }
}
