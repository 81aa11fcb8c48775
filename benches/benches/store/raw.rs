//! A turn over SQLite beside two commits of the same bytes, by hand.

use std::{path::Path, sync::Arc};

use adjutant_agent::{Journal, LogId, Seq};
use adjutant_benches::Rows;
use futures_util::TryStreamExt;
use rusqlite::{Connection, params};
use tokio::runtime::Runtime;

use crate::{OVER_RAW, RUN, spent::Spent, worker::Worker};

const ROUNDS: usize = 9;

/// Both in turns, so that both have the same weather; the least of each counts.
pub(crate) fn compare(
    runtime: &Runtime,
    journal: &Arc<dyn Journal>,
    folder: &Path,
    rows: &mut Rows,
) {
    let log = LogId::from("by hand");
    let agent = Worker::agent(RUN).journal(Arc::clone(journal));
    runtime
        .block_on(agent.new_session().session(log.clone()).run("Go."))
        .expect("a run");
    let records = journal
        .read(&log, Seq(0))
        .map_ok(|stamped| stamped.bytes().expect("JSON").to_vec());
    let records: Vec<Vec<u8>> = runtime
        .block_on(records.try_collect())
        .expect("the log can be read");
    let mut db = Connection::open(folder.join("raw")).expect("a database");
    let prepared = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
        CREATE TABLE record (log TEXT, seq INTEGER, bytes BLOB, PRIMARY KEY (log, seq)) WITHOUT ROWID";
    db.execute_batch(prepared).expect("a table");
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        ours.push(Spent::best(1, || {
            drop(
                runtime
                    .block_on(agent.new_session().run("Go."))
                    .expect("a run"),
            )
        }));
        raw.push(Spent::best(1, || by_hand(&mut db, round, &records)));
    }
    let [ours, raw] = [ours, raw].map(|all| {
        all.iter()
            .map(|it| it.time)
            .min()
            .unwrap_or_default()
            .as_secs_f64()
    });
    let each = |time: f64| time * 1e6 / RUN as f64;
    let measured = format!("{:.0} and {:.0} us", each(ours), each(raw));
    rows.row(
        "sqlite: a turn over two commits by hand",
        &measured,
        ours / raw,
        OVER_RAW,
    );
}

/// The records of a run, in two commits for each of its turns.
fn by_hand(db: &mut Connection, round: usize, records: &[Vec<u8>]) {
    let group = records.len().div_ceil(RUN as usize * 2);
    for (at, some) in records.chunks(group).enumerate() {
        let commit = db.transaction().expect("a transaction");
        let mut insert = commit
            .prepare_cached("INSERT INTO record VALUES (?1, ?2, ?3)")
            .expect("a statement");
        for (nth, bytes) in some.iter().enumerate() {
            insert
                .execute(params![round.to_string(), (at * group + nth) as i64, bytes])
                .expect("a record");
        }
        drop(insert);
        commit.commit().expect("a commit");
    }
}
