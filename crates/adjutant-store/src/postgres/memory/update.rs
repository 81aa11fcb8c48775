//! A change of a fact: read and written under the lock of its row.

use adjutant_core::memory::{Fact, FactChange, FactId, MemoryError, Metadata, OwnerId};

use super::{check_text, check_vector, fact, metadata, missing, nearest};
use crate::postgres::{
    database::{Database, Values},
    fault::Fault,
    row::to_i64,
    words,
};

const HOLD: &str = "select id, text, metadata, created_ms, updated_ms from facts \
    where owner = $1 and id = $2 for update";

const CHANGE: &str = "update facts set metadata = $3, updated_ms = $4 where owner = $1 and id = $2";

const REWRITE: &str = "update facts set metadata = $3, updated_ms = $4, text = $5, words = $6::text::tsvector, \
    model = $7, vector = $8 where owner = $1 and id = $2";

/// Changes a fact of the owner.
pub(super) async fn update(
    database: &Database,
    owner: &OwnerId,
    id: &FactId,
    change: FactChange,
) -> Result<Fact, MemoryError> {
    let failed = |fault: Fault| fault.memory("change a fact");
    if let Some((text, vector)) = &change.text {
        check_text(text)?;
        check_vector(vector.as_ref())?;
    }
    let mut client = database.client().await.map_err(failed)?;
    let hold = async {
        let transaction = client.transaction().await?;
        let row = transaction
            .query_opt(HOLD, &[&owner.0.as_bytes(), &id.0.as_bytes()])
            .await?;
        Ok((transaction, row.as_ref().map(fact).transpose()?))
    };
    let (transaction, found) = hold.await.map_err(failed)?;
    let mut fact = found.ok_or_else(|| missing(id))?;
    merge(&mut fact.metadata, change.metadata);
    let kept = metadata(&fact.metadata)?;
    fact.updated_ms = change.now_ms;
    let (owner, name, now) = (owner.0.as_bytes(), id.0.as_bytes(), to_i64(change.now_ms));
    let done = async {
        match &change.text {
            None => {
                transaction
                    .execute(CHANGE, &[&owner, &name, &kept, &now])
                    .await?
            }
            Some((text, vector)) => {
                let model = vector.as_ref().map(|vector| vector.model.0.as_bytes());
                let numbers = vector
                    .as_ref()
                    .map(|vector| nearest::bytes(&vector.numbers));
                let found_by = words::vector(text);
                let text = text.as_bytes();
                let values: Values<'_> = &[
                    &owner, &name, &kept, &now, &text, &found_by, &model, &numbers,
                ];
                transaction.execute(REWRITE, values).await?
            }
        };
        transaction.commit().await
    };
    done.await.map_err(|error| failed(error.into()))?;
    if let Some((text, _)) = change.text {
        fact.text = text;
    }
    Ok(fact)
}

/// Sets the given values, and removes keys with `Null`.
fn merge(metadata: &mut Metadata, change: Metadata) {
    for (name, value) in change {
        if value.is_null() {
            metadata.remove(&name);
        } else {
            metadata.insert(name, value);
        }
    }
}
