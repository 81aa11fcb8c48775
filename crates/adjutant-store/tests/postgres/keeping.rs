//! Information, lists, other names and deletion.

use adjutant_core::{Journal, JournalErrorKind, LogId, LogInfo, LogQuery, Seq, SessionMeta};
use adjutant_llm::FixedWorld;
use adjutant_store::PostgresJournal;

use super::{Place, made, own, place};

fn about(agent: &str, labels: &[&str], parent: Option<&str>) -> SessionMeta {
    SessionMeta {
        title: Some("a title\0".into()),
        agent: Some(agent.into()),
        labels: labels.iter().map(|label| (*label).into()).collect(),
        parent: parent.map(|parent| (LogId::from(parent), Seq(2))),
    }
}

async fn several(place: &Place) -> PostgresJournal {
    let journal = place
        .connect()
        .world(FixedWorld::at_ms(500))
        .await
        .expect("it opens")
        .journal();
    for (number, name) in ["d", "b\0", "a", "c", "e", "日"].into_iter().enumerate() {
        // Two of them change at one time each.
        made(&journal, name, 1 + number as u64 / 2).await;
        let parent = (number % 3 == 0).then_some("a");
        let agent = ["writer", "reader\0"][number % 2];
        let said = about(agent, &["all", ["even\0", "odd"][number % 2]], parent);
        journal
            .describe(&LogId::from(name), said)
            .await
            .expect("it is there");
    }
    journal
}

fn names(logs: &[LogInfo]) -> Vec<&str> {
    logs.iter().map(|info| &*info.log.0).collect()
}

#[tokio::test]
async fn logs_are_listed_as_the_query_says() {
    let place = place!("logs_are_listed_as_the_query_says");
    let journal = several(&place).await;
    let all = journal.list(&LogQuery::default()).await.expect("a list");
    assert_eq!(names(&all.logs), ["e", "日", "a", "c", "b\0", "d"]);
    assert_eq!(all.next, None);
    let first = journal.info(&LogId::from("e")).await.expect("it is there");
    assert_eq!(
        (first.created_ms, first.updated_ms, first.head),
        (500, 1_003, Seq(3))
    );
    assert_eq!(first.about, about("writer", &["all", "even\0"], None));
    type Set = fn(&mut LogQuery);
    let sets: [Set; 6] = [
        |query| query.agent = Some("reader\0".into()),
        |query| query.label = Some("even\0".into()),
        |query| query.parent = Some(LogId::from("a")),
        |query| query.since_ms = Some(1_002),
        |query| query.before_ms = Some(1_003),
        |query| query.label = Some("none".into()),
    ];
    for (number, set) in sets.into_iter().enumerate() {
        for limit in [1, 2, 50] {
            let mut query = LogQuery::default();
            set(&mut query);
            query.limit = limit;
            let wanted = query.page(all.logs.clone());
            let mut found = journal.list(&query).await.expect("a page");
            assert_eq!(found, wanted, "query {number}, {limit} at a time");
            let mut listed = found.logs.clone();
            while let Some(mark) = found.next.take() {
                query.after = Some(mark);
                found = journal.list(&query).await.expect("a page");
                listed.extend(found.logs.clone());
            }
            (query.after, query.limit) = (None, 50);
            assert_eq!(
                names(&listed),
                names(&query.page(all.logs.clone()).logs),
                "query {number}"
            );
        }
    }
}

#[tokio::test]
async fn log_that_is_renamed_takes_its_forks_along() {
    let place = place!("log_that_is_renamed_takes_its_forks_along");
    let journal = several(&place).await;
    let (old, new) = (LogId::from("a"), LogId::from("new\0name"));
    let kind = async |from: &str, to: &str| {
        let error = journal
            .rename(&LogId::from(from), &LogId::from(to))
            .await
            .expect_err("it cannot be renamed");
        error.kind
    };
    assert_eq!(kind("none", "other").await, JournalErrorKind::Missing);
    assert_eq!(kind("a", "c").await, JournalErrorKind::Exists);
    assert_eq!(kind("a", "a").await, JournalErrorKind::Exists);
    assert_eq!(kind("a", "").await, JournalErrorKind::Invalid);
    let owned = own(&journal, "a").await;
    assert_eq!(kind("a", "other").await, JournalErrorKind::Owned);
    drop(owned);
    journal.rename(&old, &new).await.expect("nobody owns it");
    assert_eq!(
        journal.info(&old).await.expect_err("it is gone").kind,
        JournalErrorKind::Missing
    );
    assert_eq!(journal.info(&new).await.expect("it is there").head, Seq(2));
    let forks = LogQuery {
        parent: Some(new.clone()),
        ..LogQuery::default()
    };
    let forks = journal.list(&forks).await.expect("a list");
    assert_eq!(names(&forks.logs), ["c", "d"]);
    assert!(
        forks
            .logs
            .iter()
            .all(|info| info.about.parent == Some((new.clone(), Seq(2))))
    );
}

#[tokio::test]
async fn log_that_is_deleted_is_gone_unless_it_is_owned() {
    let place = place!("log_that_is_deleted_is_gone_unless_it_is_owned");
    let journal = several(&place).await;
    let id = LogId::from("a");
    let owned = own(&journal, "a").await;
    let error = journal.delete(&id).await.expect_err("it is owned");
    assert_eq!(error.kind, JournalErrorKind::Owned);
    assert!(error.retry_after().is_some());
    drop(owned);
    journal.delete(&id).await.expect("nobody owns it");
    assert_eq!(
        journal.delete(&id).await.expect_err("it is gone").kind,
        JournalErrorKind::Missing
    );
    let error = journal
        .describe(&id, SessionMeta::default())
        .await
        .expect_err("it is gone");
    assert_eq!(error.kind, JournalErrorKind::Missing);
    let fork = journal
        .info(&LogId::from("c"))
        .await
        .expect("the fork is there");
    assert_eq!(fork.about.parent, Some((id, Seq(2))));
}
