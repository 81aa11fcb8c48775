//! Posts: they come in order, from any process, until they are heeded.

use adjutant_core::{Journal, JournalErrorKind, Lane, LogId, Post, PostNo, Posted};
use adjutant_llm::UserMessage;
use futures_util::StreamExt;

use super::{own, place};

fn message(text: &str) -> Post {
    Post::Message {
        lane: Lane::Steering,
        content: UserMessage::text(text).into(),
    }
}

#[tokio::test]
async fn posts_come_in_order_from_another_process_until_they_are_heeded() {
    let place = place!("posts_come_in_order_from_another_process_until_they_are_heeded");
    let (journal, other) = (place.open().await.journal(), place.open().await.journal());
    let id = LogId::from("a log\0");
    let error = other.post(&id, Post::Cancel).await.expect_err("no log");
    assert_eq!(error.kind, JournalErrorKind::Missing);
    // Who waits for a log that is not there yet hears it, too.
    let mut early = journal.posts(&id, PostNo(0)).expect("it takes posts");
    let mut log = own(&journal, "a log\0").await;
    let mut posts = journal.posts(&id, PostNo(0)).expect("it takes posts");
    let receive = async {
        let mut received = Vec::new();
        for _ in 0..250 {
            received.push(posts.next().await.expect("no end").expect("a post"));
        }
        received
    };
    let send = async {
        for number in 1..=250 {
            let no = other
                .post(&id, message(&format!("{number}\0")))
                .await
                .expect("it is posted");
            assert_eq!(no, PostNo(number));
        }
    };
    let (received, ()) = tokio::join!(receive, send);
    let wanted = |number| Posted {
        no: PostNo(number),
        post: message(&format!("{number}\0")),
    };
    assert_eq!(received, (1..=250).map(wanted).collect::<Vec<_>>());
    assert_eq!(
        early.next().await.expect("no end").expect("a post"),
        wanted(1)
    );
    log.mark_consumed(PostNo(248))
        .await
        .expect("they are heeded");
    let mut rest = other.posts(&id, PostNo(0)).expect("it takes posts");
    assert_eq!(
        rest.next().await.expect("no end").expect("a post"),
        wanted(249)
    );
    log.mark_consumed(PostNo(250))
        .await
        .expect("they are heeded");
    assert_eq!(
        other.post(&id, Post::Cancel).await.expect("it is posted"),
        PostNo(251)
    );
}

#[tokio::test]
async fn posts_that_wait_are_bounded() {
    let place = place!("posts_that_wait_are_bounded");
    let journal = place.open().await.journal();
    let id = LogId::from("log");
    let mut log = own(&journal, "log").await;
    place.execute("update $.logs set posted = 9999");
    journal
        .post(&id, Post::Cancel)
        .await
        .expect("there is room for one");
    let error = journal
        .post(&id, Post::Cancel)
        .await
        .expect_err("there is no room");
    assert_eq!(error.kind, JournalErrorKind::Invalid);
    log.mark_consumed(PostNo(1)).await.expect("one is heeded");
    journal
        .post(&id, Post::Cancel)
        .await
        .expect("there is room for one");
    let error = journal
        .post(&id, message(&"x".repeat(9 << 20)))
        .await
        .expect_err("it is too large");
    assert_eq!(error.kind, JournalErrorKind::Invalid);
}
