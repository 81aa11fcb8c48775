//! An owned log: appends under the lock of the log, until another owner takes over.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_core::{
    Epoch, Flush, Folded, Head, JournalError, JournalErrorKind, Log, LogId, Owner, PostNo, Seq,
    Stamped,
};
use async_trait::async_trait;

use crate::folds::FOLD_EVERY;

use super::{
    blobs, flushed, fold,
    line::{self, LogEnd},
    meta, off_thread,
    owner::{self, HeldOwnership},
    place::{JournalFolder, LogFolder, io_error},
    posts,
    scan::{self, Scan},
};

/// A log that is owned as long as this lives.
#[derive(Debug)]
pub(super) struct JsonlLog {
    head: Head,
    /// An append was dropped or failed: what the file holds is not known.
    is_unknown: bool,
    writer: Arc<Mutex<Writer>>,
}

#[derive(Debug)]
pub(super) struct Writer {
    place: JournalFolder,
    log: LogFolder,
    held: HeldOwnership,
    end: LogEnd,
    /// The file of the end that was flushed.
    head: File,
    /// The length of the file of records when it was flushed last.
    flushed: u64,
}

impl Writer {
    /// Takes a log, creates it if it does not exist, and cuts off an incomplete batch.
    pub(super) fn own(
        place: &JournalFolder,
        log: &LogId,
        owner: &Owner,
        now_ms: u64,
    ) -> Result<Self, JournalError> {
        log.check()?;
        let at = place.log(log);
        let _locked = at.lock()?;
        if at.exists()? {
            meta::check_version(&at)?;
        } else {
            meta::make(place, &at, now_ms)?;
        }
        let before = owner::before(&at, owner)?;
        // Before it is taken: a failed attempt must not fence the owner.
        let mut scan = Scan::open(&at.records(), fold::before(&at, u64::MAX)?, 0)?;
        while !scan.batch()?.is_empty() {}
        let (end, flushed) = (scan.end, scan.flushed.map_or(0, |flushed| flushed.length));
        let held = owner::take(&at, owner, before)?;
        let records = cut(&at.records(), end.length)?;
        meta::keep_head(&at)?;
        let head = flushed::open(&at)?;
        let mut own = Self {
            place: place.clone(),
            log: at,
            held,
            end,
            head,
            flushed,
        };
        own.flush(&records)?;
        Ok(own)
    }

    fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<(), JournalError> {
        // Serializes the bytes before other tasks have to wait, and takes the lock that protects blobs before the one
        // of the log.
        let large = batch
            .iter()
            .map(|stamped| Ok(stamped.attachments()?.len()))
            .sum::<Result<usize, JournalError>>()?;
        let _blobs = if large > 0 {
            Some(self.place.keep_blobs()?)
        } else {
            None
        };
        let locked = self.log.lock()?;
        self.held.check(&self.log)?;
        let follows = (self.end.seq + 1..)
            .zip(batch)
            .all(|(seq, stamped)| stamped.seq.0 == seq);
        if !follows {
            let message = format!(
                "a batch does not follow record {} of log {:?}",
                self.end.seq, self.log.log.0
            );
            return Err(JournalError::new(JournalErrorKind::Corrupt, message));
        }
        let (text, end) = line::lines(self.end.clone(), batch)?;
        blobs::keep(&self.place, batch.iter().map(|stamped| &**stamped))?;
        let path = self.log.records();
        let file = self.write(&path, &text)?;
        self.end = end;
        // Others need not wait for the disk.
        drop(locked);
        match flush {
            Flush::Lazy => Ok(()),
            Flush::Now => self.flush(&file),
        }
    }

    /// Flushes the records, and then writes their end: the stored end is never ahead of the disk.
    fn flush(&mut self, records: &File) -> Result<(), JournalError> {
        if self.flushed == self.end.length {
            return Ok(());
        }
        records
            .sync_data()
            .map_err(|error| io_error("flush", &self.log.records(), error))?;
        match flushed::write(&self.head, &self.end) {
            Ok(()) => self.flushed = self.end.length,
            // The records are durable; only the stored end is older than necessary.
            Err(error) => {
                tracing::warn!(%error, log = %self.log.log, "the head of a log cannot be written")
            }
        }
        Ok(())
    }

    /// Writes after the end; an incomplete write is undone.
    fn write(&self, path: &Path, text: &[u8]) -> Result<File, JournalError> {
        let file = OpenOptions::new().append(true).open(path);
        let mut file = file.map_err(|error| io_error("open", path, error))?;
        let length = file
            .metadata()
            .map_err(|error| io_error("read", path, error))?
            .len();
        if length != self.end.length {
            let message = format!(
                "{} has {length} bytes, not {}",
                path.display(),
                self.end.length
            );
            return Err(JournalError::new(
                JournalErrorKind::Io,
                format!("{message}; hint: own the log again"),
            ));
        }
        if let Err(error) = file.write_all(text) {
            // If this fails too, the next owner does it.
            let _ = file.set_len(length);
            return Err(io_error("write", path, error));
        }
        Ok(file)
    }

    fn keep(&self, folded: &Folded) -> Result<(), JournalError> {
        let _locked = self.log.lock()?;
        self.held.check(&self.log)?;
        if folded.seq.0 == self.end.seq {
            return fold::keep(&self.log, &self.end, folded);
        }
        let before = fold::before(&self.log, folded.seq.0)?;
        let end = scan::end_of(&self.log.records(), folded.seq.0, before)?.ok_or_else(|| {
            let message = format!(
                "log {:?} has no record {} that could be folded",
                self.log.log.0, folded.seq
            );
            JournalError::new(JournalErrorKind::Invalid, message)
        })?;
        fold::keep(&self.log, &end, folded)
    }

    fn mark_consumed(&self, upto: PostNo) -> Result<(), JournalError> {
        let _locked = self.log.lock()?;
        self.held.check(&self.log)?;
        posts::forget(&self.log, upto)
    }
}

/// Opens a file, and cuts it to this length if it is longer.
fn cut(path: &Path, length: u64) -> Result<File, JournalError> {
    let file = OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(|error| io_error("open", path, error))?;
    let has = file
        .metadata()
        .map_err(|error| io_error("read", path, error))?
        .len();
    if has != length {
        tracing::warn!(path = %path.display(), bytes = has - length, "the end of a log was torn and is cut off");
        file.set_len(length)
            .and_then(|()| file.sync_all())
            .map_err(|error| io_error("cut", path, error))?;
    }
    Ok(file)
}

impl JsonlLog {
    pub(super) fn new(writer: Writer) -> Self {
        let head = Head {
            seq: Seq(writer.end.seq),
            epoch: Epoch(writer.held.owned.epoch),
        };
        Self {
            head,
            is_unknown: false,
            writer: Arc::new(Mutex::new(writer)),
        }
    }

    /// Runs a file operation on a thread that may block; it completes even if its future is dropped.
    async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Writer) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let writer = Arc::clone(&self.writer);
        off_thread(move || act(&mut writer.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

#[async_trait]
impl Log for JsonlLog {
    fn head(&self) -> Head {
        self.head
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        if self.is_unknown {
            let message = "an append was dropped or failed, and what the log holds is not known; hint: own it again";
            return Err(JournalError::new(JournalErrorKind::Io, message));
        }
        if batch.is_empty() && flush == Flush::Lazy {
            return Ok(self.head);
        }
        let batch = batch.to_vec();
        self.is_unknown = true;
        let appended = self
            .with(move |writer| {
                writer.append(&batch, flush)?;
                Ok(writer.end.seq)
            })
            .await;
        // Fenced stays fenced, and a batch that does not follow has changed nothing.
        self.is_unknown = appended
            .as_ref()
            .is_err_and(|error| error.kind == JournalErrorKind::Io);
        self.head.seq = Seq(appended?);
        Ok(self.head)
    }

    fn keeps(&self) -> Option<u64> {
        Some(FOLD_EVERY)
    }

    async fn keep(&mut self, folded: Folded) -> Result<(), JournalError> {
        self.with(move |writer| writer.keep(&folded)).await
    }

    async fn mark_consumed(&mut self, upto: PostNo) -> Result<(), JournalError> {
        self.with(move |writer| writer.mark_consumed(upto)).await
    }
}
