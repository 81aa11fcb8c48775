//! Posts, over two handles.

use adjutant_core::{Journal, JournalErrorKind, LogId, Post, PostNo, Posted};
use futures_util::{StreamExt, TryStreamExt, future::join_all};

use super::{Place, check_kind, own};

fn post() -> Post {
    Post::Cancel
}

fn posted(no: u64) -> Posted {
    Posted {
        no: PostNo(no),
        post: post(),
    }
}

#[tokio::test]
async fn posts_reach_who_waits_on_any_handle_in_order() {
    let place = Place::new();
    let (one, two) = (place.open().journal(), place.open().journal());
    let log = LogId::from("log");
    check_kind(one.post(&log, post()).await, JournalErrorKind::Missing);
    let mut held = own(&one, "log").await;
    let mut here = one.posts(&log, PostNo(0)).expect("taken");
    let mut there = two.posts(&log, PostNo(1)).expect("taken");
    // Both wait before anything is posted.
    assert!(futures_util::poll!(here.next()).is_pending());
    assert!(futures_util::poll!(there.next()).is_pending());
    for (no, journal) in (1..).zip([&one, &two, &two, &one]) {
        assert_eq!(
            journal.post(&log, post()).await.expect("posted"),
            PostNo(no)
        );
        assert_eq!(
            here.next().await.expect("goes on").expect("read"),
            posted(no)
        );
        if no > 1 {
            assert_eq!(
                there.next().await.expect("goes on").expect("read"),
                posted(no)
            );
        }
    }
    held.mark_consumed(PostNo(3)).await.expect("heeded");
    let left: Vec<_> = two
        .posts(&log, PostNo(0))
        .expect("taken")
        .take(1)
        .try_collect()
        .await
        .expect("read");
    assert_eq!(left, [posted(4)]);
    held.mark_consumed(PostNo(4)).await.expect("heeded");
    assert_eq!(one.post(&log, post()).await.expect("posted"), PostNo(5));
    assert_eq!(
        there.next().await.expect("goes on").expect("read"),
        posted(5)
    );
}

#[tokio::test]
async fn log_takes_no_more_posts_when_ten_thousand_wait() {
    let journal = adjutant_store::Sqlite::in_memory()
        .expect("opens")
        .journal();
    let log = LogId::from("log");
    let mut held = own(&journal, "log").await;
    let all = join_all((0..10_000).map(|_| journal.post(&log, post()))).await;
    assert!(all.into_iter().all(|posted| posted.is_ok()));
    check_kind(journal.post(&log, post()).await, JournalErrorKind::Invalid);
    held.mark_consumed(PostNo(1)).await.expect("heeded");
    assert_eq!(
        journal.post(&log, post()).await.expect("posted"),
        PostNo(10_001)
    );
}
