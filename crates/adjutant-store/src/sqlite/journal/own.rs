//! Taking a log, and giving it up.

use adjutant_core::{Digest, Epoch, Head, JournalError, JournalErrorKind, LogId, Owner, Seq};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    super::{
        number,
        owners::{Owners, Tenure},
    },
    Fault, place,
};

/// A request of an owner to own a log.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) log: LogId,
    pub(super) owner: Owner,
    pub(super) now_ms: u64,
}

/// A log that is owned, with its end.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) tenure: Tenure,
    pub(super) head: Head,
    pub(super) link: Digest,
}

/// The holder of a log.
pub(super) struct Holder {
    pub(super) key: i64,
    epoch: i64,
    owner: Option<String>,
    instance: Option<String>,
}

/// Takes a log.
pub(super) fn own(db: &Connection, owners: &Owners, claim: &Claim) -> Result<Owned, Fault> {
    owners.enroll(db)?;
    let holder = match holder(db, &claim.log)? {
        Some(holder) => holder,
        None => make(db, claim)?,
    };
    let is_mine = holder.owner.as_deref() == Some(&*claim.owner.id);
    if !is_mine && !claim.owner.takes_over && holder.is_alive(owners)? {
        return Err(holder.refusal(owners, &claim.log).into());
    }
    let sql = "UPDATE logs SET epoch = epoch + 1, owner = ?2, instance = ?3 WHERE key = ?1 RETURNING epoch, head, link";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let taken = params![holder.key, &*claim.owner.id, owners.instance()];
    let (epoch, head, link) = db.prepare_cached(sql)?.query_row(taken, read)?;
    let tenure = (holder.key, epoch);
    // Before it is committed: the next claim may be part of the same transaction.
    owners.hold(tenure);
    Ok(Owned {
        tenure,
        head: head_of(head, epoch),
        link: Digest(link),
    })
}

/// Releases a log, unless another owner has taken over.
pub(super) fn give_up(db: &Connection, (key, epoch): Tenure) -> Result<(), Fault> {
    let sql = "UPDATE logs SET owner = NULL, instance = NULL WHERE key = ?1 AND epoch = ?2";
    db.prepare_cached(sql)?.execute([key, epoch])?;
    Ok(())
}

/// Returns the holder of a log, if there is a log of that name.
pub(super) fn holder(db: &Connection, log: &LogId) -> Result<Option<Holder>, Fault> {
    let sql = "SELECT key, epoch, owner, instance FROM logs WHERE id = ?1";
    Ok(db
        .prepare_cached(sql)?
        .query_row([&*log.0], Holder::read)
        .optional()?)
}

/// A log that may be renamed or deleted.
pub(super) fn nobodys(db: &Connection, owners: &Owners, log: &LogId) -> Result<i64, Fault> {
    let holder =
        holder(db, log)?.ok_or_else(|| JournalError::for_log(JournalErrorKind::Missing, log))?;
    if holder.is_alive(owners)? {
        return Err(holder.refusal(owners, log).into());
    }
    Ok(holder.key)
}

impl Holder {
    /// Reads it from the first columns of a row: key, epoch, owner, instance.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            key: row.get(0)?,
            epoch: row.get(1)?,
            owner: row.get(2)?,
            instance: row.get(3)?,
        })
    }

    /// The log is not free.
    fn refusal(&self, owners: &Owners, log: &LogId) -> JournalError {
        let mut told = adjutant_core::Holder {
            owner: self.owner.as_deref().unwrap_or_default().into(),
            ..adjutant_core::Holder::default()
        };
        told.since = self
            .instance
            .as_deref()
            .and_then(|instance| owners.since(instance));
        JournalError::already_owned(log, told)
    }

    /// True if it has an owner, alive or dead.
    pub(super) fn is_held(&self) -> bool {
        self.owner.is_some()
    }

    pub(super) fn is_alive(&self, owners: &Owners) -> Result<bool, Fault> {
        match (&self.owner, &self.instance) {
            (Some(_), Some(instance)) => owners.is_alive(instance, (self.key, self.epoch)),
            _ => Ok(false),
        }
    }
}

fn make(db: &Connection, claim: &Claim) -> Result<Holder, Fault> {
    let sql = "INSERT INTO logs(id, created_ms, updated_ms, link) VALUES (?1, ?2, ?2, ?3)";
    let now_ms = number::to_i64(claim.now_ms);
    let key = db
        .prepare_cached(sql)?
        .insert(params![&*claim.log.0, now_ms, Digest::GENESIS.0])?;
    if key > place::MAX_KEY {
        return Err(Fault::Invalid(
            "the database had as many logs as it can have".into(),
        ));
    }
    Ok(Holder {
        key,
        epoch: 0,
        owner: None,
        instance: None,
    })
}

fn head_of(seq: i64, epoch: i64) -> Head {
    Head {
        seq: Seq(number::read(seq)),
        epoch: Epoch(number::read(epoch)),
    }
}
