//! A recording, and how it is stored: JSON lines, read within bounds.

use std::io::{BufRead, Read};

use serde::{Deserialize, Serialize};

use super::Fingerprint;
use crate::{Chunk, Error, ErrorKind, ModelId, ModelInfo, Request};

/// The format that cassettes are stored in.
pub(super) const VERSION: u32 = 1;
/// The largest number of bytes in one line.
pub(super) const MAX_LINE: usize = 128 * 1_024 * 1_024;
/// The largest number of exchanges in one cassette.
const MAX_EXCHANGES: usize = 100_000;
/// The maximum number of models in one cassette.
const MAX_MODELS: usize = 1_000;
/// The beginning of a header between exchanges, in concatenated cassettes.
const HEADER: &[u8] = br#"{"cassette""#;

/// A recording: requests, and how they were answered.
///
/// It contains the conversation in full. Headers of requests are never stored.
///
/// Shape: JSON lines: `{"cassette":1,"info":{…}}`, then one `Exchange` a line. Cassettes can be joined end to end; the
/// first header counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Cassette {
    /// The info of the recorded model.
    pub info: ModelInfo,
    /// Other models that answered, after the first one.
    others: Vec<ModelInfo>,
    /// The exchanges, in the order in which they ended.
    pub exchanges: Vec<Exchange>,
}

/// A request, and how it was answered.
///
/// Shape: `{"fingerprint":"<32 hexadecimal digits>","request":{…},"chunks":[…],"ending":{"type":"done"}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Exchange {
    /// Identifies the request; computed from the request when a cassette is read.
    pub fingerprint: Fingerprint,
    /// The request, without its headers.
    pub request: Request,
    /// The chunks of the stream, `Done` included.
    pub chunks: Vec<Chunk>,
    /// The ending of the stream.
    pub ending: Ending,
}

/// The ending of a recorded stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// In `Chunk::Done`.
    Done,
    /// In an error.
    Failed {
        /// The error.
        error: Error,
    },
    /// In neither, which is itself an error of the model.
    Cut,
    /// The reader dropped it.
    Dropped,
}

/// The first line of a cassette.
#[derive(Serialize, Deserialize)]
pub(super) struct CassetteHeader<I> {
    pub(super) cassette: u32,
    pub(super) info: I,
}

impl Cassette {
    /// A recording of this model.
    pub fn new(info: ModelInfo, exchanges: Vec<Exchange>) -> Self {
        Self {
            info,
            others: Vec::new(),
            exchanges,
        }
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// `Config` with the line number, if it cannot be read, is not a cassette of this version, or has more than
    /// 100,000 exchanges or a line of more than 128 MiB.
    pub fn read(reader: impl BufRead) -> Result<Self, Error> {
        Self::read_within(reader, MAX_LINE, MAX_EXCHANGES)
    }

    /// Returns the recorded info of the model with this name.
    pub(super) fn info_of(&self, model: &ModelId) -> Option<&ModelInfo> {
        std::iter::once(&self.info)
            .chain(&self.others)
            .find(|info| info.id == *model)
    }

    fn read_within(
        mut reader: impl BufRead,
        max_line: usize,
        max_exchanges: usize,
    ) -> Result<Self, Error> {
        let mut line = Vec::new();
        let mut cassette = None;
        for number in 1_u64.. {
            line.clear();
            let mut bounded = reader.by_ref().take(max_line as u64 + 1);
            let read = bounded.read_until(b'\n', &mut line);
            if read.map_err(|error| at(number, "it cannot be read").with_source(error))? == 0 {
                break;
            }
            if line.len() > max_line {
                return Err(at(number, &format!("it has more than {max_line} bytes")));
            }
            let Some(Cassette {
                exchanges,
                info: first,
                others,
            }) = &mut cassette
            else {
                cassette = Some(Self::new(header(number, &line)?, Vec::new()));
                continue;
            };
            if line.starts_with(HEADER) {
                let info = header(number, &line)?;
                if info.id != first.id && !others.contains(&info) && others.len() < MAX_MODELS {
                    others.push(info);
                }
                continue;
            }
            if exchanges.len() == max_exchanges {
                return Err(at(
                    number,
                    &format!("there are more than {max_exchanges} exchanges"),
                ));
            }
            exchanges.push(exchange(number, &line)?);
        }
        cassette.ok_or_else(|| at(1, "the header is missing"))
    }
}

impl Exchange {
    /// A request that was answered like this.
    pub fn new(request: Request, chunks: Vec<Chunk>, ending: Ending) -> Self {
        Self {
            fingerprint: Fingerprint::from_request(&request),
            request,
            chunks,
            ending,
        }
    }
}

fn header(number: u64, line: &[u8]) -> Result<ModelInfo, Error> {
    let header = serde_json::from_slice::<CassetteHeader<ModelInfo>>(line).map_err(|error| {
        at(
            number,
            &format!("it is not the header of a cassette: {error}"),
        )
    })?;
    if header.cassette != VERSION {
        return Err(at(
            number,
            &format!("version {}, this program reads {VERSION}", header.cassette),
        ));
    }
    Ok(header.info)
}

fn exchange(number: u64, line: &[u8]) -> Result<Exchange, Error> {
    if line.last() != Some(&b'\n') && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err()
    {
        return Err(at(number, "it is cut off"));
    }
    let mut exchange = serde_json::from_slice::<Exchange>(line)
        .map_err(|error| at(number, &format!("it is not an exchange: {error}")))?;
    exchange.fingerprint = Fingerprint::from_request(&exchange.request);
    Ok(exchange)
}

fn at(line: u64, what: &str) -> Error {
    Error::new(
        ErrorKind::Config,
        format!("line {line} of a cassette: {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expect: &str) {
        let error =
            Cassette::read_within(lines.concat().as_bytes(), 400, 2).expect_err("it does not load");
        assert_eq!((error.kind(), error.message()), (ErrorKind::Config, expect));
    }

    #[test]
    fn read_names_the_line_when_a_cassette_is_broken() {
        let info = serde_json::to_string(&ModelInfo::new("a/b")).expect("an info can be stored");
        let header = &format!("{{\"cassette\":1,\"info\":{info}}}\n")[..];
        let exchange = Exchange::new(Request::new(), Vec::new(), Ending::Dropped);
        let exchange = &format!(
            "{}\n",
            serde_json::to_string(&exchange).expect("an exchange can be stored")
        )[..];
        let read = Cassette::read_within(
            [header, exchange, header, exchange].concat().as_bytes(),
            400,
            2,
        );
        assert_eq!(read.expect("joined cassettes load").exchanges.len(), 2);
        check(&[], "line 1 of a cassette: the header is missing");
        check(
            &[&header.replace(":1,", ":2,")],
            "line 1 of a cassette: version 2, this program reads 1",
        );
        check(
            &[header, exchange, &exchange[..60]],
            "line 3 of a cassette: it is cut off",
        );
        let missing = "line 2 of a cassette: it is not an exchange: missing field `fingerprint` at line 1 column 2";
        check(&[header, "{}\n"], missing);
        check(
            &[header, &"x".repeat(401)],
            "line 2 of a cassette: it has more than 400 bytes",
        );
        check(
            &[header, exchange, exchange, exchange],
            "line 4 of a cassette: there are more than 2 exchanges",
        );
        let other = "line 1 of a cassette: it is not the header of a cassette: missing field `cassette` at line 1 column ";
        let error = Cassette::read(exchange.as_bytes()).expect_err("it has no header");
        assert!(error.message().starts_with(other), "{error}");
    }
}
