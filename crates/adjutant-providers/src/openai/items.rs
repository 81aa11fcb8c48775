//! The items of an answer while they stream: their blocks come in the order of the items, whatever comes first. Pure.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use adjutant_llm::{Block, Chunk, Error, ErrorKind};

use super::{
    item::{Kind, OutputItem, Piece, TextKind},
    wire::Done,
};
use crate::blocks::{Blocks, CallIdSeed};

/// The largest number of items that an answer may have.
pub(super) const MAX_ITEMS: usize = 4_096;

/// The items of an answer so far, in their order.
#[derive(Debug)]
pub(super) struct Items {
    issuer: Arc<str>,
    blocks: Blocks,
    list: Vec<OutputItem>,
    /// All ids and positions that an item ever had: anything else needs no search.
    ids: HashSet<String>,
    orders: HashSet<u64>,
    /// The number of items that have all the blocks that they will have: only the next one may open more.
    settled: usize,
    refused: bool,
}

/// The item that an event belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Option<&'a str>,
}

impl Items {
    pub(super) fn new(issuer: Arc<str>, place: CallIdSeed) -> Self {
        Self {
            issuer,
            blocks: Blocks::new(place),
            list: Vec::new(),
            ids: HashSet::new(),
            orders: HashSet::new(),
            settled: 0,
            refused: false,
        }
    }

    /// Starts an item. Its content is repeated when it is done.
    pub(super) fn begin(
        &mut self,
        spot: Spot<'_>,
        item: &Done<'_>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let kind = Kind::from_name(&item.kind.0);
        // Another id is another item, even at an occupied index.
        let is_it = |item: &OutputItem| {
            item.kind == kind && (item.id.is_none() || item.id.as_deref() == spot.id)
        };
        let at = match self.find(spot).filter(|at| is_it(&self.list[*at])) {
            Some(at) if self.list[at].done => return Ok(()),
            Some(at) => at,
            None => self.add(spot, kind)?,
        };
        self.list[at].read_start_fields(item);
        self.remember_id(at);
        self.release(at, AnswerEnded::No, out)
    }

    /// A text of an item grows.
    pub(super) fn grow(
        &mut self,
        spot: Spot<'_>,
        key: (TextKind, u64),
        delta: &str,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        self.piece(spot, key, out, |piece| piece.text.push_str(delta))
    }

    /// A text of an item is whole.
    pub(super) fn whole(
        &mut self,
        spot: Spot<'_>,
        key: (TextKind, u64),
        text: &str,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        self.piece(spot, key, out, |piece| piece.set(text))
    }

    /// The model has refused.
    pub(super) fn refuse(&mut self) {
        self.refused = true;
    }

    /// Finishes an item: its final content is authoritative.
    pub(super) fn done(
        &mut self,
        spot: Spot<'_>,
        item: Done<'_>,
        value: &str,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let kind = Kind::from_name(&item.kind.0);
        let is_it = |item: &OutputItem| !item.done || item.id.as_deref() == spot.id;
        let at = match self.find(spot).filter(|at| is_it(&self.list[*at])) {
            Some(at) => at,
            None => self.add(spot, kind)?,
        };
        let found = &mut self.list[at];
        if found.done {
            return Ok(());
        }
        if found.kind != kind {
            return Err(protocol("an item of the answer changed its type"));
        }
        self.refused |= found.finish(item, value)?;
        self.remember_id(at);
        self.release(at, AnswerEnded::No, out)
    }

    /// Adds an item from the complete answer, if it had no events.
    pub(super) fn add_missing(
        &mut self,
        index: u64,
        item: Done<'_>,
        value: &str,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        let id = item.id.0.clone();
        let spot = Spot {
            index: Some(index),
            id: id.as_deref(),
        };
        match self.find(spot) {
            Some(at) if self.list[at].done => Ok(()),
            _ => self.done(spot, item, value, out),
        }
    }

    /// Counts the items that have come whole.
    pub(super) fn count_done(&self) -> usize {
        self.list.iter().filter(|item| item.done).count()
    }

    /// True if an item was cut off.
    pub(super) fn is_cut(&self) -> bool {
        self.list.iter().any(|item| item.cut || !item.done)
    }

    /// The ids of which every item has come whole.
    pub(super) fn ids_done(&self) -> HashSet<String> {
        let ids = |done: bool| {
            self.list
                .iter()
                .filter(move |item| item.done == done)
                .filter_map(|item| item.id.clone())
        };
        let open: HashSet<String> = ids(false).collect();
        ids(true).filter(|id| !open.contains(id)).collect()
    }

    /// Closes the open blocks; returns the blocks, and whether the model refused.
    ///
    /// # Errors
    /// `Protocol` if a call names no tool.
    pub(super) fn end(
        &mut self,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(Vec<Arc<Block>>, bool), Error> {
        // An item that a provider ran and did not finish cannot go back.
        let settled = self.settled;
        let mut at = 0;
        self.list.retain(|item| {
            at += 1;
            at <= settled || item.done || item.kind != Kind::Opaque
        });
        for at in 0..self.list.len() {
            self.list[at].done = true;
            self.release(at, AnswerEnded::Yes, out)?;
        }
        if self.list.iter().any(|item| !item.closed) {
            return Err(protocol("a call names no tool"));
        }
        Ok((self.blocks.take(), self.refused))
    }

    fn piece(
        &mut self,
        spot: Spot<'_>,
        key: (TextKind, u64),
        out: &mut VecDeque<Chunk>,
        change: impl FnOnce(&mut Piece),
    ) -> Result<(), Error> {
        let kind = key.0.kind();
        let found = self.find(spot);
        let is_it = found.map(|at| &self.list[at]).is_some_and(|item| {
            item.kind == kind && (kind != Kind::Call || spot.id.is_some() || item.wants_args())
        });
        // Arguments without a call, or for a complete call, belong to the last call.
        let last = || self.list.iter().rposition(OutputItem::wants_args);
        let at = match (found, (kind == Kind::Call && !is_it).then(last).flatten()) {
            (_, Some(at)) | (Some(at), None) => at,
            (None, None) => self.add(spot, kind)?,
        };
        let item = &mut self.list[at];
        if item.done || item.kind != kind {
            return Ok(());
        }
        change(item.piece(key)?);
        self.release(at, AnswerEnded::No, out)
    }

    /// The item that an event belongs to: by its id and place, by its id, by its place, or the last one.
    ///
    /// Some servers give each event another id, some give every item the place 0.
    fn find(&self, spot: Spot<'_>) -> Option<usize> {
        let by_id = |item: &OutputItem| spot.id.is_some() && item.id.as_deref() == spot.id;
        let by_index = |item: &OutputItem| Some(item.order) == spot.index;
        let position = |is: &dyn Fn(&OutputItem) -> bool| self.list.iter().rposition(is);
        if spot.id.is_none() && spot.index.is_none() {
            return position(&|item| !item.done);
        }
        let known_id = spot.id.is_some_and(|id| self.ids.contains(id));
        // Usually it is at the position that it names.
        let said = spot.index.and_then(|index| usize::try_from(index).ok());
        let is_it = |item: &OutputItem| by_index(item) && (!known_id || by_id(item));
        if let Some(at) = said.filter(|at| self.list.get(*at).is_some_and(is_it)) {
            return Some(at);
        }
        if !known_id {
            let known_index = spot.index.is_some_and(|index| self.orders.contains(&index));
            return if known_index {
                position(&by_index)
            } else {
                None
            };
        }
        position(&|item| by_id(item) && by_index(item))
            .or_else(|| position(&by_id))
            .or_else(|| position(&by_index))
    }

    fn add(&mut self, spot: Spot<'_>, kind: Kind) -> Result<usize, Error> {
        if self.list.len() == MAX_ITEMS {
            return Err(too_many());
        }
        let after = self
            .list
            .last()
            .map_or(0, |item| item.order.saturating_add(1));
        let free = |index: &u64| !self.orders.contains(index);
        let order = spot.index.filter(free).unwrap_or(after);
        // An item that arrives too late for its position is placed after the items that already have blocks.
        let at = self
            .list
            .partition_point(|item| item.order < order)
            .max(self.settled);
        let waiting = &self.list[self.settled..];
        let at = at.max(
            waiting
                .iter()
                .rposition(OutputItem::is_open)
                .map_or(0, |open| self.settled + open + 1),
        );
        self.list.insert(at, OutputItem::new(order, spot.id, kind));
        self.orders.insert(order);
        self.remember_id(at);
        Ok(at)
    }

    /// Remembers the id that an item has now.
    fn remember_id(&mut self, at: usize) {
        if let Some(id) = self.list[at]
            .id
            .as_ref()
            .filter(|id| !self.ids.contains(*id))
        {
            self.ids.insert(id.clone());
        }
    }

    /// Emits the new part of an item, and the items that waited for it.
    fn release(
        &mut self,
        at: usize,
        ended: AnswerEnded,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Error> {
        if at < self.settled {
            return self.give(at, out);
        }
        while self.settled < self.list.len() {
            let before = self.settled.checked_sub(1).map(|at| self.list[at].order);
            let next = before.map_or(0, |order| order.saturating_add(1));
            if ended == AnswerEnded::No && self.list[self.settled].order > next {
                break;
            }
            self.give(self.settled, out)?;
            if !self.list[self.settled].is_settled() {
                break;
            }
            self.settled += 1;
        }
        Ok(())
    }

    fn give(&mut self, at: usize, out: &mut VecDeque<Chunk>) -> Result<(), Error> {
        let item = &mut self.list[at];
        item.open(&mut self.blocks, out)?;
        if item.done && !item.closed && item.is_settled() {
            item.close(&mut self.blocks, &self.issuer, out);
        }
        Ok(())
    }
}

/// The flag for the end of the answer, after which nothing is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerEnded {
    Yes,
    No,
}

pub(super) fn too_many() -> Error {
    protocol("the answer has more than 4,096 items")
}

pub(super) fn protocol(text: &str) -> Error {
    Error::new(ErrorKind::Protocol, text)
}
