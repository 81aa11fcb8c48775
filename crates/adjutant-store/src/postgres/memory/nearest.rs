//! The facts with the nearest vectors: a scan of the owner's vectors that keeps the best ones.

use std::pin::pin;

use adjutant_core::memory::{FactId, OwnerId, ScoredFact, Vector};
use futures_util::TryStreamExt;
use tokio_postgres::types::ToSql;

use super::fact;
use crate::postgres::{
    database::Database,
    fault::Fault,
    row::{read_u64, text},
};

const VECTORS: &str = "select id, vector, created_ms from facts \
    where owner = $1 and model = $2 and octet_length(vector) = $3";

const FACTS: &str = "select id, text, metadata, created_ms, updated_ms from facts where owner = $1 and id = any($2)";

/// A fact that is near.
struct Near {
    score: f64,
    created_ms: u64,
    id: FactId,
}

/// The facts of the owner that are nearest, best first.
pub(super) async fn nearest(
    database: &Database,
    owner: &OwnerId,
    vector: &Vector,
    limit: usize,
) -> Result<Vec<ScoredFact>, Fault> {
    let near = near(database, owner, vector, limit).await?;
    let ids: Vec<&[u8]> = near.iter().map(|near| near.id.0.as_bytes()).collect();
    let rows = database.rows(FACTS, &[&owner.0.as_bytes(), &ids]).await?;
    let facts: Result<Vec<_>, Fault> = rows.iter().map(fact).collect();
    let mut facts = facts?;
    let found = near.iter().filter_map(|near| {
        // A fact that was deleted in the meantime is not found.
        let at = facts.iter().position(|fact| fact.id == near.id)?;
        Some(ScoredFact {
            fact: facts.swap_remove(at),
            score: near.score,
        })
    });
    Ok(found.collect())
}

/// The names of the nearest facts, with how near they are.
async fn near(
    database: &Database,
    owner: &OwnerId,
    vector: &Vector,
    limit: usize,
) -> Result<Vec<Near>, Fault> {
    let asked_length = length(&vector.numbers);
    let is_direction = asked_length.is_finite() && asked_length > 0.0;
    if limit == 0 || !is_direction {
        return Ok(Vec::new());
    }
    let size = i32::try_from(vector.numbers.len() * 4).unwrap_or(i32::MAX);
    let (owner, model) = (owner.0.as_bytes(), vector.model.0.as_bytes());
    let values: [&(dyn ToSql + Sync); 3] = [&owner, &model, &size];
    let client = database.client().await?;
    let statement = client.prepare_cached(VECTORS).await?;
    let mut rows = pin!(client.query_raw(&statement, values).await?);
    let mut best = Vec::new();
    while let Some(row) = rows.try_next().await? {
        let Some(score) = cosine(&vector.numbers, asked_length, row.try_get(1)?) else {
            continue;
        };
        best.push(Near {
            score,
            created_ms: read_u64(&row, 2)?,
            id: FactId(text(&row, 0)?),
        });
        if best.len() >= limit.saturating_mul(2).max(64) {
            keep(&mut best, limit);
        }
    }
    keep(&mut best, limit);
    Ok(best)
}

/// Sorts, best first and the oldest first of equal ones, and truncates.
fn keep(best: &mut Vec<Near>, limit: usize) {
    best.sort_by(|one, other| {
        let score = other.score.total_cmp(&one.score);
        score.then_with(|| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)))
    });
    best.truncate(limit);
}

/// The numbers as they are stored: four bytes each, the lowest one first.
pub(super) fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// `None` if the stored vector has no direction.
fn cosine(asked: &[f32], asked_length: f64, stored: &[u8]) -> Option<f64> {
    let (mut product, mut square) = (0.0, 0.0);
    let (numbers, _) = stored.as_chunks::<4>();
    for (one, other) in asked.iter().zip(numbers) {
        let other = f64::from(f32::from_le_bytes(*other));
        product += f64::from(*one) * other;
        square += other * other;
    }
    let cosine = product / (asked_length * f64::sqrt(square));
    cosine.is_finite().then(|| cosine.clamp(-1.0, 1.0))
}

fn length(numbers: &[f32]) -> f64 {
    numbers
        .iter()
        .map(|number| f64::from(*number) * f64::from(*number))
        .sum::<f64>()
        .sqrt()
}
