//! Records as the database has them, a page at a time; no connection is held between pages.

use std::{collections::VecDeque, sync::Arc};

use adjutant_core::{
    Attachment, Digest, JournalError, JournalErrorKind, LogId, RecordStream, Seq, StoredRecord,
    StoredStream,
};
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt, future, stream};
use tokio_postgres::Row;

use crate::postgres::{
    database::Database,
    fault::Fault,
    row::{digest, read_u64, to_i64},
};

/// The largest number of records in a page.
const PAGE_RECORDS: i64 = 4_096;

/// The largest number of bytes in a page, if it has more than one record.
const PAGE_BYTES: i64 = 4 * 1024 * 1024;

const BEGIN: &str = "select logs.id, logs.seq, records.link from logs \
    left join records on records.log = logs.id and records.seq = $2 where logs.name = $1";

const PAGE: &str = "select seq, link, bytes, attached from ( \
        select seq, link, bytes, attached, \
            sum(octet_length(bytes)) over (order by seq) - octet_length(bytes) as before \
        from (select * from records where log = $1 and seq > $2 order by seq limit $3) as page \
    ) as sized where before < $4 order by seq";

const ATTACHED: &str = "select attachments.digest, attachments.bytes from attached \
    join attachments on attachments.digest = attached.digest where log = $1 and seq = $2 order by place";

/// The records after a place, checked and read.
pub(super) fn read(database: &Arc<Database>, log: &LogId, after: Seq) -> RecordStream {
    let records = read_linked(Arc::clone(database), log.clone(), after);
    Box::pin(records.and_then(|(record, before)| future::ready(record.open(&before))))
}

/// The records after a place.
pub(super) fn read_stored(database: &Arc<Database>, log: &LogId, after: Seq) -> StoredStream {
    Box::pin(read_linked(Arc::clone(database), log.clone(), after).map_ok(|(record, _)| record))
}

/// The records after a place, each with the link before it.
pub(super) fn read_linked(
    database: Arc<Database>,
    log: LogId,
    after: Seq,
) -> impl Stream<Item = Result<(StoredRecord, Digest), JournalError>> + Send {
    let reader = LogReader {
        database,
        log,
        place: None,
        last: after.0,
        page: VecDeque::new(),
    };
    stream::try_unfold(reader, async |mut reader| {
        let next = reader.next().await?;
        Ok(next.map(|next| (next, reader)))
    })
}

/// The progress of reading a log.
struct LogReader {
    database: Arc<Database>,
    log: LogId,
    place: Option<ReadPosition>,
    last: u64,
    page: VecDeque<(StoredRecord, i32)>,
}

#[derive(Clone, Copy)]
struct ReadPosition {
    row: i64,
    /// The head of the log when reading began.
    head: u64,
    /// The link of the last record.
    link: Digest,
}

impl LogReader {
    async fn next(&mut self) -> Result<Option<(StoredRecord, Digest)>, JournalError> {
        let place = match self.place {
            Some(place) => place,
            None => match self.begin().await? {
                Some(place) => place,
                None => return Ok(None),
            },
        };
        if self.page.is_empty() {
            if self.last >= place.head {
                return Ok(None);
            }
            self.page = self
                .page(place.row)
                .await
                .map_err(|fault| self.read_error(fault))?;
        }
        let Some((mut record, attached)) = self
            .page
            .pop_front()
            .filter(|(record, _)| record.seq.0 == self.last + 1)
        else {
            return Err(self.gap(place.row).await);
        };
        if attached > 0 {
            record.attachments = self
                .attachments(place.row, record.seq, attached)
                .await
                .map_err(|fault| self.read_error(fault))?;
        }
        self.last = record.seq.0;
        self.place = Some(ReadPosition {
            link: record.link,
            ..place
        });
        Ok(Some((record, place.link)))
    }

    /// Finds the log and the link from which it continues; `None` if the position is after its end.
    async fn begin(&mut self) -> Result<Option<ReadPosition>, JournalError> {
        let values = [&self.log.0.as_bytes() as _, &to_i64(self.last) as _];
        let row = self
            .database
            .row(BEGIN, &values)
            .await
            .map_err(|fault| self.read_error(fault))?;
        let row = row.ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, &self.log))?;
        let head = read_u64(&row, 1).map_err(|fault| self.read_error(fault))?;
        if self.last > head {
            return Ok(None);
        }
        let has_link = self.last > 0 && row.get::<_, Option<&[u8]>>(2).is_some();
        let link = match self.last {
            0 => Digest::GENESIS,
            _ if has_link => digest(&row, 2).map_err(|fault| self.read_error(fault))?,
            _ => return Err(self.missing_error(self.last)),
        };
        let place = ReadPosition {
            row: row.get(0),
            head,
            link,
        };
        self.place = Some(place);
        Ok(Some(place))
    }

    async fn page(&self, log: i64) -> Result<VecDeque<(StoredRecord, i32)>, Fault> {
        let rows = self
            .database
            .rows(
                PAGE,
                &[&log, &to_i64(self.last), &PAGE_RECORDS, &PAGE_BYTES],
            )
            .await?;
        rows.iter().map(record).collect()
    }

    async fn attachments(&self, log: i64, seq: Seq, count: i32) -> Result<Vec<Attachment>, Fault> {
        let rows = self
            .database
            .rows(ATTACHED, &[&log, &to_i64(seq.0)])
            .await?;
        if usize::try_from(count) != Ok(rows.len()) {
            return Err(Fault::Stored("the number of attachments of a record"));
        }
        let attachment = |row: &Row| {
            let bytes: &[u8] = row.try_get(1)?;
            Ok(Attachment {
                digest: digest(row, 0)?,
                bytes: Bytes::copy_from_slice(bytes),
            })
        };
        rows.iter().map(attachment).collect()
    }

    /// A record is missing: the log may have been deleted in the meantime.
    async fn gap(&self, row: i64) -> JournalError {
        match self
            .database
            .row("select 1 from logs where id = $1", &[&row])
            .await
        {
            Ok(None) => JournalError::for_log(JournalErrorKind::Missing, &self.log),
            Ok(Some(_)) => self.missing_error(self.last + 1),
            Err(fault) => self.read_error(fault),
        }
    }

    fn missing_error(&self, seq: u64) -> JournalError {
        let message = format!("record {seq} of log {:?} is missing", self.log.0);
        JournalError::new(JournalErrorKind::Corrupt, message)
    }

    fn read_error(&self, fault: Fault) -> JournalError {
        fault.journal(format_args!("read log {:?}", self.log.0))
    }
}

fn record(row: &Row) -> Result<(StoredRecord, i32), Fault> {
    let bytes: &[u8] = row.try_get(2)?;
    let seq = Seq(read_u64(row, 0)?);
    let record = StoredRecord {
        seq,
        bytes: Bytes::copy_from_slice(bytes),
        link: digest(row, 1)?,
        attachments: Vec::new(),
    };
    Ok((record, row.try_get(3)?))
}
