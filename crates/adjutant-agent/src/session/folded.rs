//! The fold of a log as bytes. Derived data: what cannot be read is passed over, and the log is read instead.

use std::{future, sync::Arc};

use adjutant_core::{Digest, Events, Frozen, Run, json};
use adjutant_llm::{Stored, ThreadId, Transcript};
use adjutant_tool::Identity;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::{runtime::Handle, task::spawn_blocking};

use crate::scope::{RecordedThread, Threads};

/// The format of the bytes: the program's version, and the number of the shape that is described at [`write`].
pub(super) const FORMAT: &str = concat!("adjutant-agent ", env!("CARGO_PKG_VERSION"), " shape 2");

/// The most bytes that a fold has; a log with more is read whole.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// About how many bytes of entries stand in one part.
const PART: usize = 1024 * 1024;

/// The parts of a fold that are no entries of the history.
#[derive(Serialize, Deserialize)]
struct Head {
    thread: ThreadId,
    run: Frozen,
    events: Events,
    threads: Vec<RecordedThread>,
    parts: Vec<HistoryPart>,
}

/// Some entries of the history.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct HistoryPart {
    bytes: usize,
    digest: Digest,
}

/// Makes the bytes of a fold.
///
/// Shape: the digest of the head and a line feed, the head and a line feed, the parts; a part is one JSON object for each
/// entry, with a line feed behind it. A large one is made on another thread.
///
/// # Errors
/// Why there can be none.
pub(super) async fn write(
    thread: &ThreadId,
    run: &Run,
    events: Events,
    threads: Vec<RecordedThread>,
) -> Result<Bytes, &'static str> {
    let (thread, run) = (thread.clone(), run.clone());
    let is_large = run.history().tokens() > (PART / 4) as u64;
    let make = move || {
        let mut parts = BytesMut::new();
        let lengths = entries(run.history(), &mut parts)?;
        let mut at = 0;
        let part = |bytes: usize| {
            let part = HistoryPart {
                bytes,
                digest: Digest::compute(&parts[at..at + bytes]),
            };
            at += bytes;
            part
        };
        let parts_of = lengths.into_iter().map(part).collect();
        let head = Head {
            thread,
            run: run.frozen(),
            events,
            threads,
            parts: parts_of,
        };
        let head = serde_json::to_vec(&head).map_err(|_| "it is no JSON")?;
        if json::depth(&head) > json::MAX_DEPTH {
            return Err("it is nested too deep");
        }
        if head.len() + parts.len() > MAX_BYTES {
            return Err("it is too large");
        }
        let digest = Digest::compute(&head).to_string();
        let mut bytes = BytesMut::with_capacity(digest.len() + head.len() + parts.len() + 2);
        for part in [digest.as_bytes(), b"\n", &head, b"\n", &parts] {
            bytes.put_slice(part);
        }
        Ok(bytes.freeze())
    };
    aside(is_large, make)
        .await
        .unwrap_or(Err("it was given up"))
}

/// Writes the entries, and returns the length of each part.
fn entries(history: &Transcript, into: &mut BytesMut) -> Result<Vec<usize>, &'static str> {
    let (mut lengths, mut began) = (Vec::new(), 0);
    for stored in history.iter() {
        serde_json::to_writer((&mut *into).writer(), &**stored)
            .map_err(|_| "an entry is not JSON")?;
        into.put_u8(b'\n');
        if into.len() > MAX_BYTES {
            return Err("it is too large");
        }
        if into.len() - began >= PART {
            lengths.push(into.len() - began);
            began = into.len();
        }
    }
    if into.len() > began {
        lengths.push(into.len() - began);
    }
    Ok(lengths)
}

/// Reads a fold; a large one on as many threads as there are.
///
/// # Errors
/// Why it cannot be used.
pub(super) async fn read(
    bytes: Bytes,
    who: &Arc<Identity>,
) -> Result<(Run, Events, Threads), &'static str> {
    let (head, mut parts) = open(bytes).ok_or("its head is not what was written")?;
    if head.thread != who.thread {
        return Err("it is of another thread");
    }
    let mut given = Vec::with_capacity(head.parts.len());
    for part in &head.parts {
        if part.bytes > parts.len() {
            return Err("it ends too early");
        }
        given.push((parts.split_to(part.bytes), part.digest));
    }
    if !parts.is_empty() {
        return Err("it ends too late");
    }
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    let share = given.len().div_ceil(threads).max(1);
    let is_large = given.len() > 1;
    let shares: Vec<Vec<(Bytes, Digest)>> = given.chunks(share).map(<[_]>::to_vec).collect();
    let read = join_all(
        shares
            .into_iter()
            .map(|share| aside(is_large, move || parse_parts(share))),
    )
    .await;
    let mut entries = Vec::new();
    for share in read {
        entries.extend(share.unwrap_or(Err("it was given up"))?);
    }
    let run = head
        .run
        .with(entries)
        .ok_or("its parts do not fit together")?;
    Ok((
        run,
        head.events.by(Arc::clone(who)),
        Threads::from_recorded(head.threads),
    ))
}

fn open(mut bytes: Bytes) -> Option<(Head, Bytes)> {
    let digest: Digest =
        line(&mut bytes).and_then(|line| std::str::from_utf8(&line).ok()?.parse().ok())?;
    let head = line(&mut bytes).filter(|head| Digest::compute(head) == digest)?;
    Some((serde_json::from_slice(&head).ok()?, bytes))
}

/// Takes a line off.
fn line(bytes: &mut Bytes) -> Option<Bytes> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = bytes.split_to(end);
    let _ = bytes.split_to(1);
    Some(line)
}

fn parse_parts(parts: Vec<(Bytes, Digest)>) -> Result<Vec<Arc<Stored>>, &'static str> {
    let mut entries = Vec::new();
    for (part, digest) in parts {
        if Digest::compute(&part) != digest {
            return Err("a part is not what was written");
        }
        for stored in serde_json::Deserializer::from_slice(&part).into_iter::<Arc<Stored>>() {
            entries.push(stored.map_err(|_| "an entry cannot be read")?);
        }
    }
    Ok(entries)
}

/// Moves large work to another thread; `None` if it failed.
fn aside<T: Send + 'static>(
    is_much: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Option<T>> + Send {
    use futures_util::future::Either;
    if is_much && Handle::try_current().is_ok() {
        let work = spawn_blocking(work);
        Either::Left(async move { work.await.ok() })
    } else {
        Either::Right(future::ready(Some(work())))
    }
}
