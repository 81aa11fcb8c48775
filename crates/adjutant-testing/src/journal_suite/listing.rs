//! Lists of logs: order, filters, pages.

use std::sync::Arc;

use adjutant_agent::{Journal, LogId, LogInfo, LogQuery, Owner, Seq, SessionMeta};

use super::stage::{JournalStage, LATER_MS, append, own, text_record};
use crate::suite::{Verdict, equal, holds, ok};

/// A log that changed last at this time, and can be found by the label of the play.
async fn create_log(
    stage: &JournalStage<'_>,
    journal: &dyn Journal,
    name: &str,
    at_ms: u64,
    about: SessionMeta,
) -> Result<LogId, String> {
    let log = stage.log(name);
    append(
        &mut *own(journal, &log, &Owner::default()).await?,
        &[text_record(1, at_ms, name)],
    )
    .await?;
    let mut about = about;
    about.labels.insert(stage.prefix.as_str().into());
    ok("describing", journal.describe(&log, about).await)?;
    Ok(log)
}

/// The logs of this play, 50 at a time.
fn build_query(stage: &JournalStage<'_>) -> LogQuery {
    LogQuery {
        label: Some(stage.prefix.as_str().into()),
        ..LogQuery::default()
    }
}

/// The names in a list without their common prefix.
async fn list_names(stage: &JournalStage<'_>, query: &LogQuery) -> Result<Vec<String>, String> {
    let page = ok("listing", stage.open().await.list(query).await)?;
    holds("a list that is over has no next page", page.next.is_none())?;
    Ok(page.logs.iter().map(|info| short(stage, info)).collect())
}

fn short(stage: &JournalStage<'_>, info: &LogInfo) -> String {
    info.log
        .0
        .strip_prefix(&format!("{}-", stage.prefix))
        .unwrap_or(&info.log.0)
        .to_owned()
}

pub(super) async fn newest_first(stage: &JournalStage<'_>) -> Verdict {
    let journal = stage.open().await;
    equal(
        "a list of nothing",
        &list_names(stage, &build_query(stage)).await?,
        &Vec::new(),
    )?;
    for (name, at_ms) in [("b", 2), ("é", 3), ("z", 3), ("B", 3), ("a", 1), ("c", 4)] {
        create_log(
            stage,
            &*journal,
            name,
            LATER_MS + at_ms,
            SessionMeta::default(),
        )
        .await?;
    }
    equal(
        "the order",
        &list_names(stage, &build_query(stage)).await?,
        &["c", "B", "z", "é", "b", "a"].map(str::to_owned).to_vec(),
    )?;
    // A change brings a log to the front, a description does not.
    let a = stage.log("a");
    let mut held = own(&*journal, &a, &Owner::default()).await?;
    append(&mut *held, &[text_record(2, LATER_MS + 5, "again")]).await?;
    set_title(stage, &*journal, "b").await?;
    equal(
        "the order",
        &list_names(stage, &build_query(stage)).await?,
        &["a", "c", "B", "z", "é", "b"].map(str::to_owned).to_vec(),
    )?;
    let page = ok("listing", journal.list(&build_query(stage)).await)?;
    equal("the change", &page.logs[0].updated_ms, &(LATER_MS + 5))?;
    equal("the head", &page.logs[0].head, &Seq(2))?;
    equal(
        "who is owned",
        &page.logs.iter().take(2).map(|info| info.is_owned).collect(),
        &vec![true, false],
    )?;
    for info in page.logs {
        equal(
            "what a list tells",
            &ok("info", journal.info(&info.log).await)?,
            &info,
        )?;
        holds(
            "a log was made before it changed",
            info.created_ms > 0 && info.created_ms <= info.updated_ms,
        )?;
    }
    Ok(())
}

async fn set_title(stage: &JournalStage<'_>, journal: &dyn Journal, name: &str) -> Verdict {
    let log = stage.log(name);
    let mut about = ok("info", journal.info(&log).await)?.about;
    about.title = Some("known".into());
    ok("describing", journal.describe(&log, about).await)
}

pub(super) async fn filters(stage: &JournalStage<'_>) -> Verdict {
    let journal = stage.open().await;
    let about = |agent: &str, labels: &[&str], parent: Option<LogId>| SessionMeta {
        agent: Some(agent.into()).filter(|agent: &Arc<str>| !agent.is_empty()),
        labels: labels.iter().map(|label| Arc::from(*label)).collect(),
        parent: parent.map(|parent| (parent, Seq(1))),
        ..SessionMeta::default()
    };
    let root = create_log(
        stage,
        &*journal,
        "root",
        LATER_MS + 9,
        about("writer", &["x"], None),
    )
    .await?;
    let fork = create_log(
        stage,
        &*journal,
        "fork",
        LATER_MS + 8,
        about("Writer", &["x", "y"], Some(root.clone())),
    )
    .await?;
    create_log(
        stage,
        &*journal,
        "leaf",
        LATER_MS + 7,
        about("writer", &["y%_"], Some(fork.clone())),
    )
    .await?;
    create_log(
        stage,
        &*journal,
        "twig",
        LATER_MS + 6,
        about("", &[], Some(root.clone())),
    )
    .await?;
    let (mine, none) = (build_query(stage), Vec::<&str>::new());
    let asked = |set: &dyn Fn(&mut LogQuery)| {
        let mut query = mine.clone();
        set(&mut query);
        query
    };
    let table = [
        (
            "those of an agent",
            asked(&|query| query.agent = Some("writer".into())),
            vec!["root", "leaf"],
        ),
        (
            "those of nobody",
            asked(&|query| query.agent = Some("nobody".into())),
            none.clone(),
        ),
        (
            "the forks of a log",
            asked(&|query| query.parent = Some(root.clone())),
            vec!["fork", "twig"],
        ),
        (
            "since a time",
            asked(&|query| query.since_ms = Some(LATER_MS + 8)),
            vec!["root", "fork"],
        ),
        (
            "before a time",
            asked(&|query| query.before_ms = Some(LATER_MS + 8)),
            vec!["leaf", "twig"],
        ),
        (
            "between two times",
            asked(&|query| {
                (query.since_ms, query.before_ms) = (Some(LATER_MS + 7), Some(LATER_MS + 9))
            }),
            vec!["fork", "leaf"],
        ),
        (
            "from the end of time",
            asked(&|query| query.since_ms = Some(u64::MAX)),
            none.clone(),
        ),
        (
            "before all time",
            asked(&|query| query.before_ms = Some(0)),
            none,
        ),
        (
            "those of an agent that were forked from a log",
            asked(&|query| {
                (query.agent, query.parent) = (Some("writer".into()), Some(fork.clone()))
            }),
            vec!["leaf"],
        ),
    ];
    for (what, query, want) in table {
        equal(
            what,
            &list_names(stage, &query).await?,
            &want.into_iter().map(str::to_owned).collect(),
        )?;
    }
    // Labels cover all logs of the storage: the ones of this test are recognized by name.
    for (label, want) in [
        ("y", vec!["fork"]),
        ("x", vec!["root", "fork"]),
        ("y%_", vec!["leaf"]),
        ("%", vec![]),
    ] {
        let mut query = LogQuery::default();
        (query.label, query.limit) = (Some(label.into()), 1_000);
        let page = ok("listing", journal.list(&query).await)?;
        let mine = page
            .logs
            .iter()
            .filter(|info| info.log.0.starts_with(&stage.prefix));
        equal(
            label,
            &mine.map(|info| short(stage, info)).collect::<Vec<_>>(),
            &want.into_iter().map(str::to_owned).collect(),
        )?;
    }
    Ok(())
}

pub(super) async fn pages(stage: &JournalStage<'_>) -> Verdict {
    let journal = stage.open().await;
    let mut want = Vec::new();
    for number in 0..23u64 {
        let at_ms = LATER_MS + [0, 0, 0, 5, 5, 9][usize::try_from(number % 6).unwrap_or_default()];
        let log = create_log(
            stage,
            &*journal,
            &format!("{number:02}/ü"),
            at_ms,
            SessionMeta::default(),
        )
        .await?;
        want.push((u64::MAX - at_ms, log));
    }
    want.sort();
    let want: Vec<LogId> = want.into_iter().map(|(_, log)| log).collect();
    for limit in [1, 2, 3, 7, 22, 23, 24] {
        let mut query = build_query(stage);
        query.limit = limit;
        let (mut got, mut sizes) = (Vec::new(), Vec::new());
        loop {
            let page = ok("listing", stage.open().await.list(&query).await)?;
            sizes.push(page.logs.len());
            got.extend(page.logs.into_iter().map(|info| info.log));
            query.after = page.next;
            if query.after.is_none() || got.len() > 50 {
                break;
            }
        }
        equal(&format!("all pages of {limit}"), &got, &want)?;
        equal(
            &format!("how many pages of {limit}"),
            &sizes.len(),
            &23usize.div_ceil(limit),
        )?;
    }
    Ok(())
}

pub(super) async fn pages_hold_one(stage: &JournalStage<'_>) -> Verdict {
    let journal = stage.open().await;
    for name in ["a", "b"] {
        create_log(stage, &*journal, name, LATER_MS, SessionMeta::default()).await?;
    }
    let mut query = build_query(stage);
    query.limit = 0;
    let page = ok("listing", journal.list(&query).await)?;
    equal("how many logs", &page.logs.len(), &1)?;
    query.after = page.next;
    let page = ok("listing", journal.list(&query).await)?;
    equal(
        "the second page",
        &page.logs.iter().map(|info| short(stage, info)).collect(),
        &vec!["b".to_owned()],
    )?;
    query.limit = usize::MAX;
    query.after = None;
    equal(
        "a page without end",
        &ok("listing", journal.list(&query).await)?.logs.len(),
        &2,
    )
}
