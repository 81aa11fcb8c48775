//! The nearest facts to a vector: an exact search in the facts of one owner.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use adjutant_core::memory::{ScoredFact, Vector};
use rusqlite::{Connection, params};

use super::{super::fault::Fault, find};

/// The nearness of a fact.
#[derive(PartialEq)]
struct Near {
    score: f64,
    row: i64,
}

/// Sets or removes the vector of a fact.
pub(super) fn set(
    db: &Connection,
    owner: i64,
    fact: i64,
    vector: Option<&Vector>,
) -> Result<(), Fault> {
    let Some(vector) = vector else {
        db.prepare_cached("DELETE FROM vectors WHERE owner = ?1 AND fact = ?2")?
            .execute([owner, fact])?;
        return Ok(());
    };
    let sql = "INSERT OR REPLACE INTO vectors(fact, owner, model, numbers) VALUES (?1, ?2, ?3, ?4)";
    let numbers: Vec<u8> = unit(&vector.numbers)
        .into_iter()
        .flat_map(f32::to_le_bytes)
        .collect();
    db.prepare_cached(sql)?
        .execute(params![fact, owner, vector.model.as_str(), numbers])?;
    Ok(())
}

/// The facts with the nearest vectors, best first.
pub(super) fn nearest(
    db: &Connection,
    owner: i64,
    vector: &Vector,
    limit: usize,
) -> Result<Vec<ScoredFact>, Fault> {
    let wanted = unit(&vector.numbers);
    let mut select =
        db.prepare_cached("SELECT fact, numbers FROM vectors WHERE owner = ?1 AND model = ?2")?;
    let mut rows = select.query(params![owner, vector.model.as_str()])?;
    let mut best = BinaryHeap::new();
    while let Some(row) = rows.next()? {
        let numbers = row
            .get_ref(1)?
            .as_blob()
            .map_err(|error| Fault::Corrupt(format!("a vector is invalid: {error}")))?;
        if numbers.len() == wanted.len() * size_of::<f32>() {
            best.push(Reverse(Near {
                score: dot(&wanted, numbers),
                row: row.get(0)?,
            }));
        }
        if best.len() > limit {
            best.pop();
        }
    }
    let mut found = Vec::with_capacity(best.len());
    for Reverse(near) in best.into_sorted_vec() {
        if let Some(fact) = find::at(db, owner, near.row)? {
            found.push(ScoredFact {
                fact,
                score: near.score,
            });
        }
    }
    Ok(found)
}

/// The vector with length 1; one of zeros stays.
fn unit(numbers: &[f32]) -> Vec<f32> {
    let length = numbers
        .iter()
        .map(|number| f64::from(*number).powi(2))
        .sum::<f64>()
        .sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    numbers
        .iter()
        .map(|number| (f64::from(*number) * scale) as f32)
        .collect()
}

/// The cosine of two vectors of length 1, of which the second is kept as bytes.
fn dot(wanted: &[f32], kept: &[u8]) -> f64 {
    let (kept, _) = kept.as_chunks::<4>();
    let products = wanted
        .iter()
        .zip(kept)
        .map(|(one, other)| f64::from(*one) * f64::from(f32::from_le_bytes(*other)));
    products.sum::<f64>().clamp(-1.0, 1.0)
}

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    /// The nearer one is greater, and of two as near the older one.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| other.row.cmp(&self.row))
    }
}
