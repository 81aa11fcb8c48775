//! The mailbox in memory: order, bounds, waiting, and its end.

use std::{sync::Arc, time::Duration};

use adjutant_orchestration::{
    Error, ErrorKind,
    team::{Address, Mailbox, MemoryMailbox, Message, MessageKind, Pick},
};
use serde_json::json;
use tokio::time::timeout;

fn message(number: u32, from: &str, content: &str) -> Message {
    let message = json!({
        "id": format!("msg-{number}"), "from": from, "to": "a", "at_ms": 7, "kind": MessageKind::Said, "content": content,
    });
    serde_json::from_value(message).expect("it is a message")
}

fn opened(mailbox: MemoryMailbox) -> (MemoryMailbox, Address) {
    let to = Address::new("room", "a");
    mailbox.open(&to);
    (mailbox, to)
}

fn ids(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &*message.id).collect()
}

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.expect_err("it is refused").kind()
}

const ANY: usize = 1_000;

#[tokio::test]
async fn mailbox_gives_messages_in_order_when_several_were_sent() {
    let (mailbox, to) = opened(MemoryMailbox::new());
    for number in 1..=3 {
        mailbox
            .send(&to, message(number, "b", "Hello."))
            .await
            .expect("there is room");
    }
    let first = mailbox
        .receive(&to, &Pick::new(2, ANY))
        .await
        .expect("it is open");
    let rest = mailbox
        .receive(&to, &Pick::new(2, ANY))
        .await
        .expect("it is open");
    assert_eq!(
        (ids(&first), ids(&rest)),
        (vec!["msg-1", "msg-2"], vec!["msg-3"])
    );
    assert_eq!(first[0], message(1, "b", "Hello."));
}

#[tokio::test]
async fn mailbox_gives_nothing_when_nothing_was_sent() {
    let (mailbox, to) = opened(MemoryMailbox::new());
    assert_eq!(
        mailbox
            .receive(&to, &Pick::new(9, ANY))
            .await
            .expect("it is open"),
        []
    );
}

#[tokio::test]
async fn mailbox_refuses_when_it_is_closed() {
    let (mailbox, to) = opened(MemoryMailbox::new());
    mailbox.close("room");
    assert_eq!(
        kind(mailbox.send(&to, message(1, "b", "Hello.")).await),
        ErrorKind::Closed
    );
    assert_eq!(
        kind(mailbox.receive(&to, &Pick::new(9, ANY)).await),
        ErrorKind::Closed
    );
    assert_eq!(
        kind(mailbox.wait(&to, &Pick::new(9, ANY)).await),
        ErrorKind::Closed
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_the_mailbox_is_closed() {
    let (mailbox, to) = opened(MemoryMailbox::new());
    let closes = mailbox.clone();
    let closing = tokio::spawn(async move { closes.close("room") });
    let waited = timeout(
        Duration::from_secs(9),
        mailbox.wait(&to, &Pick::new(1, ANY)),
    )
    .await;
    assert_eq!(kind(waited.expect("it ends")), ErrorKind::Closed);
    closing.await.expect("it closes");
}

#[tokio::test]
async fn opening_keeps_what_is_there_when_done_twice() {
    let (mailbox, to) = opened(MemoryMailbox::new());
    mailbox
        .send(&to, message(1, "b", "Hello."))
        .await
        .expect("there is room");
    mailbox.open(&to);
    assert_eq!(
        ids(&mailbox
            .receive(&to, &Pick::new(9, ANY))
            .await
            .expect("it is open")),
        ["msg-1"]
    );
}

#[tokio::test]
async fn mailbox_refuses_when_nobody_has_that_address() {
    let (mailbox, _) = opened(MemoryMailbox::new());
    let nobody = Address::new("room", "nobody");
    assert_eq!(
        kind(mailbox.send(&nobody, message(1, "b", "Hello.")).await),
        ErrorKind::Missing
    );
}

#[tokio::test]
async fn flood_is_refused_and_nothing_dropped_when_the_mailbox_is_full() {
    let (mailbox, to) = opened(MemoryMailbox::new().limits(2, 100));
    for number in 1..=2 {
        mailbox
            .send(&to, message(number, "b", "Hello."))
            .await
            .expect("there is room");
    }
    let full = mailbox
        .send(&to, message(3, "b", "Hello."))
        .await
        .expect_err("it is full");
    assert_eq!(
        full.message(),
        "the mailbox is full: 2 messages of 12 bytes wait unread"
    );
    assert_eq!(
        ids(&mailbox
            .receive(&to, &Pick::new(9, ANY))
            .await
            .expect("it is open")),
        ["msg-1", "msg-2"]
    );
    let long = "x".repeat(101);
    assert_eq!(
        kind(mailbox.send(&to, message(4, "b", &long)).await),
        ErrorKind::Full
    );
    mailbox
        .send(&to, message(5, "b", "Hello."))
        .await
        .expect("there is room again");
}

#[tokio::test]
async fn pick_keeps_the_order_when_bytes_run_out() {
    let (mailbox, to) = opened(MemoryMailbox::new());
    for (number, content) in [(1, "1234"), (2, "123456"), (3, "1")] {
        mailbox
            .send(&to, message(number, "b", content))
            .await
            .expect("there is room");
    }
    let first = mailbox
        .receive(&to, &Pick::new(9, 8))
        .await
        .expect("it is open");
    let second = mailbox
        .receive(&to, &Pick::new(9, 1))
        .await
        .expect("it is open");
    assert_eq!(
        (ids(&first), ids(&second)),
        (vec!["msg-1"], vec!["msg-2"]),
        "one is always given"
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_is_for_one_sender_when_it_is_named() {
    let (mailbox, to) = opened(MemoryMailbox::new());
    let pick = Pick::new(9, ANY).from("c");
    mailbox
        .send(&to, message(1, "b", "Not me."))
        .await
        .expect("there is room");
    timeout(Duration::from_secs(9), mailbox.wait(&to, &pick))
        .await
        .expect_err("nothing of c is there");
    mailbox
        .send(&to, message(2, "c", "Me."))
        .await
        .expect("there is room");
    mailbox.wait(&to, &pick).await.expect("it is open");
    assert_eq!(
        ids(&mailbox.receive(&to, &pick).await.expect("it is open")),
        ["msg-2"]
    );
    assert_eq!(
        ids(&mailbox
            .receive(&to, &Pick::new(9, ANY))
            .await
            .expect("it is open")),
        ["msg-1"]
    );
}

#[tokio::test]
async fn messages_are_given_once_when_many_read_at_a_time() {
    let (mailbox, to) = opened(MemoryMailbox::new());
    for number in 1..=50 {
        mailbox
            .send(&to, message(number, "b", "Hello."))
            .await
            .expect("there is room");
    }
    let (mailbox, to) = (Arc::new(mailbox), Arc::new(to));
    let readers = (0..10).map(|_| {
        let (mailbox, to) = (Arc::clone(&mailbox), Arc::clone(&to));
        tokio::spawn(async move {
            mailbox
                .receive(&to, &Pick::new(7, ANY))
                .await
                .expect("it is open")
                .len()
        })
    });
    let read = futures_util::future::join_all(readers).await;
    assert_eq!(
        read.into_iter()
            .map(|read| read.expect("it reads"))
            .sum::<usize>(),
        50
    );
}
