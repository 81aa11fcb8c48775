//! A journal in one file: a line for each record. No fence and no repair: it shows the trait, not how to keep data.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant::agent::{
    Flush, Head, Journal, JournalError, JournalErrorKind, Log, LogId, Owner, RecordStream, Seq,
    Stamped,
};
use async_trait::async_trait;
use futures_util::stream;

/// A journal in one file.
#[derive(Debug)]
pub(crate) struct FileJournal {
    path: PathBuf,
}

#[derive(Debug)]
struct FileLog {
    file: File,
    head: Head,
}

impl FileJournal {
    pub(crate) fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
        }
    }

    fn records(&self) -> Result<Vec<Arc<Stamped>>, JournalError> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => text.lines().map(read).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(file_error(error)),
        }
    }
}

#[async_trait]
impl Journal for FileJournal {
    async fn own(&self, _: &LogId, _: &Owner) -> Result<Box<dyn Log>, JournalError> {
        let seq = Seq(self.records()?.len() as u64);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)
            .map_err(file_error)?;
        Ok(Box::new(FileLog {
            file,
            head: Head {
                seq,
                ..Head::default()
            },
        }))
    }

    fn read(&self, _: &LogId, after: Seq) -> RecordStream {
        let records = self.records();
        let newer = |stamped: &Result<Arc<Stamped>, _>| {
            stamped.as_ref().map_or(true, |stamped| stamped.seq > after)
        };
        let items: Vec<_> = match records {
            Ok(records) => records.into_iter().map(Ok).filter(newer).collect(),
            Err(error) => vec![Err(error)],
        };
        Box::pin(stream::iter(items))
    }
}

#[async_trait]
impl Log for FileLog {
    fn head(&self) -> Head {
        self.head
    }

    async fn append(&mut self, batch: &[Arc<Stamped>], flush: Flush) -> Result<Head, JournalError> {
        let mut lines = Vec::new();
        for stamped in batch {
            lines.extend_from_slice(stamped.bytes()?);
            lines.push(b'\n');
        }
        self.file.write_all(&lines).map_err(file_error)?;
        if flush == Flush::Now {
            self.file.sync_data().map_err(file_error)?;
        }
        self.head.seq.0 += batch.len() as u64;
        Ok(self.head)
    }
}

fn read(line: &str) -> Result<Arc<Stamped>, JournalError> {
    let stamped = serde_json::from_str(line).map(Arc::new);
    stamped.map_err(|error| {
        JournalError::new(JournalErrorKind::Corrupt, "a line is no record").with_source(error)
    })
}

fn file_error(error: io::Error) -> JournalError {
    JournalError::new(JournalErrorKind::Io, "the file cannot be used").with_source(error)
}
