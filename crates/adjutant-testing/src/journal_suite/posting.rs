//! Posts: messages of other processes to a session.

use std::sync::Arc;

use adjutant_agent::{
    Journal, JournalErrorKind, Lane, LogId, Owner, PauseId, Post, PostNo, PostStream, Posted,
};
use adjutant_tool::Answer;
use futures_util::StreamExt;
use serde_json::Value;

use super::stage::{JournalStage, check_error, delete, entry, own, when_free};
use crate::suite::{Verdict, equal, holds, join_task, ok, soon, waits};

fn message(text: &str) -> Post {
    Post::Message {
        lane: Lane::Steering,
        content: entry(text),
    }
}

fn posts(journal: &dyn Journal, log: &LogId, after: PostNo) -> Result<PostStream, String> {
    journal
        .posts(log, after)
        .ok_or_else(|| "the journal takes posts, and tells none".to_owned())
}

async fn next(posts: &mut PostStream) -> Result<Posted, String> {
    let posted = soon("a post", posts.next())
        .await?
        .ok_or("the stream of posts ended")?;
    ok("reading a post", posted)
}

async fn post(journal: &dyn Journal, log: &LogId, text: &str) -> Result<Posted, String> {
    let post = message(text);
    Ok(Posted {
        no: ok("posting", journal.post(log, post.clone()).await)?,
        post,
    })
}

async fn create_log(
    stage: &JournalStage<'_>,
    name: &str,
) -> Result<(Arc<dyn Journal>, LogId), String> {
    stage.fill_log(name, 1).await
}

pub(super) async fn posts_in_order(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = create_log(stage, "log").await?;
    let other = stage.open().await;
    let mut sent = Vec::new();
    for number in 0..6 {
        let handle = if number % 2 == 0 { &journal } else { &other };
        sent.push(post(&**handle, &log, &format!("post {number}\n\0")).await?);
    }
    holds(
        "the first post has a number above 0",
        sent[0].no > PostNo(0),
    )?;
    holds(
        "numbers grow",
        sent.is_sorted_by(|one, next| one.no < next.no),
    )?;
    for after in 0..6 {
        let from = if after == 0 {
            PostNo(0)
        } else {
            sent[after - 1].no
        };
        let mut told = posts(&*stage.open().await, &log, from)?;
        for posted in &sent[after..] {
            equal("the next post", &next(&mut told).await?, posted)?;
        }
    }
    Ok(())
}

pub(super) async fn posts_of_all_kinds(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = create_log(stage, "log").await?;
    let all = [
        message("👩‍👩‍👧‍👦 \0 \n \u{2028}"),
        Post::Message {
            lane: Lane::FollowUp,
            content: entry(&"long ".repeat(40_000)),
        },
        Post::Answer {
            pause: PauseId("main/1/a/b".into()),
            answer: Answer::Approve {
                args: None,
                for_run: true,
            },
            shown: None,
        },
        Post::Cancel,
        Post::To {
            thread: "main/c1_0_0/a".into(),
            said: Box::new(Post::Cancel),
        },
    ];
    for post in &all {
        ok("posting", journal.post(&log, post.clone()).await)?;
    }
    let mut told = posts(&*stage.open().await, &log, PostNo(0))?;
    for post in &all {
        equal("the next post", &next(&mut told).await?.post, post)?;
    }
    Ok(())
}

pub(super) async fn deep_post_hides_no_other(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = create_log(stage, "log").await?;
    let first = post(&*journal, &log, "first").await?;
    let value = (0..1_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let deep = Post::Answer {
        pause: PauseId("main/1".into()),
        answer: Answer::Give { value },
        shown: None,
    };
    let is_refused = match journal.post(&log, deep).await {
        Ok(_) => false,
        Err(error) if error.kind == JournalErrorKind::Invalid => true,
        Err(error) => return Err(format!("posting failed: {error}")),
    };
    let last = post(&*journal, &log, "last").await?;
    let mut told = posts(&*stage.open().await, &log, PostNo(0))?;
    equal("the post before", &next(&mut told).await?, &first)?;
    if !is_refused {
        next(&mut told).await?;
    }
    equal("the post behind", &next(&mut told).await?, &last)
}

pub(super) async fn heeded_posts_forgotten(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = create_log(stage, "log").await?;
    let (one, two) = (
        post(&*journal, &log, "one").await?,
        post(&*journal, &log, "two").await?,
    );
    let three = post(&*journal, &log, "three").await?;
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    ok("heeding", held.mark_consumed(two.no).await)?;
    let other = stage.open().await;
    equal(
        "the first post that waits",
        &next(&mut posts(&*other, &log, PostNo(0))?).await?,
        &three,
    )?;
    // No step back: processed posts stay processed.
    ok("heeding", held.mark_consumed(one.no).await)?;
    equal(
        "the first post that waits",
        &next(&mut posts(&*other, &log, one.no)?).await?,
        &three,
    )?;
    ok("heeding", held.mark_consumed(three.no).await)?;
    drop(held);
    let four = post(&*stage.open().await, &log, "four").await?;
    holds("a number is not given again", four.no > three.no)?;
    equal(
        "the first post that waits",
        &next(&mut posts(&*journal, &log, PostNo(0))?).await?,
        &four,
    )
}

pub(super) async fn heeded_in_a_copy(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = create_log(stage, "copy").await?;
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    // Its records report processed posts of another log.
    let upto = PostNo(41);
    ok("heeding", held.mark_consumed(upto).await)?;
    let first = post(&*stage.open().await, &log, "first").await?;
    holds(&format!("{} is above {upto}", first.no), first.no > upto)?;
    ok("heeding", held.mark_consumed(PostNo(7)).await)?;
    drop(held);
    let second = post(&*stage.open().await, &log, "second").await?;
    holds("numbers grow", second.no > first.no)?;
    let told = ok(
        "posts that are there",
        stage.open().await.read_posts(&log, upto).await,
    )?;
    equal(
        "the posts after those that were heeded",
        &told,
        &vec![first, second],
    )
}

pub(super) async fn posts_told_at_once(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = create_log(stage, "log").await?;
    let other = stage.open().await;
    let told = async |journal: &dyn Journal, after: PostNo| {
        let told = soon("the posts that are there", journal.read_posts(&log, after)).await?;
        ok("the posts that are there", told)
    };
    equal(
        "posts to a log without any",
        &told(&*journal, PostNo(0)).await?,
        &Vec::new(),
    )?;
    let mut sent = Vec::new();
    for number in 0..120 {
        let (one, another) = if number % 2 == 0 {
            (&journal, &other)
        } else {
            (&other, &journal)
        };
        sent.push(post(&**one, &log, &format!("post {number}")).await?);
        if number < 4 || number == 119 {
            equal(
                "the posts that another handle tells",
                &told(&**another, PostNo(0)).await?,
                &sent,
            )?;
            equal(
                "the posts that the same handle tells",
                &told(&**one, PostNo(0)).await?,
                &sent,
            )?;
        }
    }
    equal(
        "the posts after a place",
        &told(&*other, sent[9].no).await?,
        &sent[10..].to_vec(),
    )?;
    equal(
        "the posts after the last",
        &told(&*other, sent[119].no).await?,
        &Vec::new(),
    )?;
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    ok("heeding", held.mark_consumed(sent[117].no).await)?;
    equal(
        "the posts that were not heeded",
        &told(&*other, PostNo(0)).await?,
        &sent[118..].to_vec(),
    )?;
    let missing = other.read_posts(&stage.log("missing"), PostNo(0)).await;
    check_error(
        "posts to a log that is missing",
        missing,
        JournalErrorKind::Missing,
    )
}

pub(super) async fn waiting_is_woken(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = create_log(stage, "log").await?;
    let mut told = posts(&*journal, &log, PostNo(0))?;
    for text in ["one", "two"] {
        let waiting = waits(async move {
            let posted = next(&mut told).await?;
            Ok((posted, told))
        });
        let waiting = waiting.await?;
        let sent = post(&*stage.open().await, &log, text).await?;
        let (posted, rest) = join_task("who waits", waiting).await?;
        equal("the post", &posted, &sent)?;
        told = rest;
    }
    Ok(())
}

pub(super) async fn posts_need_a_log(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    check_error(
        "posting to a log that is missing",
        journal.post(&log, Post::Cancel).await,
        JournalErrorKind::Missing,
    )?;
    check_error(
        "info of a log that was posted to",
        journal.info(&log).await,
        JournalErrorKind::Missing,
    )
}

pub(super) async fn posts_at_once(stage: &JournalStage<'_>) -> Verdict {
    let (_, log) = create_log(stage, "log").await?;
    let mut posting = Vec::new();
    for poster in 0..4 {
        let (journal, log) = (stage.open().await, log.clone());
        posting.push(tokio::spawn(async move {
            let mut sent = Vec::new();
            for number in 0..25 {
                sent.push(post(&*journal, &log, &format!("{poster}: {number}")).await?);
            }
            Ok(sent)
        }));
    }
    let mut sent = Vec::new();
    for posting in posting {
        let one = join_task("who posts", posting).await?;
        holds(
            "the numbers of one that posts grow",
            one.is_sorted_by(|one, next| one.no < next.no),
        )?;
        sent.extend(one);
    }
    sent.sort_by_key(|posted| posted.no);
    let mut told = posts(&*stage.open().await, &log, PostNo(0))?;
    for posted in &sent {
        equal("the next post", &next(&mut told).await?, posted)?;
    }
    Ok(())
}

pub(super) async fn posts_follow_the_log(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = create_log(stage, "log").await?;
    let renamed = stage.log("renamed");
    let one = post(&*journal, &log, "one").await?;
    when_free("renaming", || journal.rename(&log, &renamed)).await?;
    equal(
        "the post",
        &next(&mut posts(&*journal, &renamed, PostNo(0))?).await?,
        &one,
    )?;
    check_error(
        "posting to the name before",
        journal.post(&log, Post::Cancel).await,
        JournalErrorKind::Missing,
    )?;
    delete(&*journal, &renamed).await?;
    drop(own(&*journal, &renamed, &Owner::default()).await?);
    let two = post(&*journal, &renamed, "two").await?;
    equal(
        "the post",
        &next(&mut posts(&*stage.open().await, &renamed, PostNo(0))?).await?,
        &two,
    )
}
