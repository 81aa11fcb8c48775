//! Looking after logs: descriptions, names, deletion, folds.

use adjutant_agent::{Folded, JournalErrorKind, LogId, Owner, Seq, SessionMeta};

use super::stage::{
    JournalStage, append, batch, check_error, delete, is_log, is_missing, own, when_free,
};
use crate::suite::{Verdict, equal, holds, ok};

fn about(title: &str, parent: Option<(LogId, Seq)>) -> SessionMeta {
    SessionMeta {
        title: Some(title.into()),
        agent: Some("ägent\0'".into()),
        labels: ["one", "two three", "\u{1f980}", ""].map(Into::into).into(),
        parent,
    }
}

pub(super) async fn description_kept(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = stage.fill_log("log", 2).await?;
    equal(
        "what is said of a new log",
        &ok("info", journal.info(&log).await)?.about,
        &SessionMeta::default(),
    )?;
    let full = about("title\n\0", Some((stage.log("parent"), Seq(7))));
    for about in [full, about("second", None), SessionMeta::default()] {
        ok("describing", journal.describe(&log, about.clone()).await)?;
        equal(
            "what is said",
            &ok("info", stage.open().await.info(&log).await)?.about,
            &about,
        )?;
    }
    // Also while it is owned.
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    ok(
        "describing",
        stage
            .open()
            .await
            .describe(&log, about("third", None))
            .await,
    )?;
    append(&mut *held, &batch(3, 3)).await?;
    drop(held);
    equal(
        "what is said",
        &ok("info", journal.info(&log).await)?.about,
        &about("third", None),
    )?;
    is_log(&*journal, &log, &batch(1, 3)).await?;
    let missing = journal
        .describe(&stage.log("missing"), SessionMeta::default())
        .await;
    check_error(
        "describing a log that is missing",
        missing,
        JournalErrorKind::Missing,
    )?;
    is_missing(&*journal, &stage.log("missing")).await
}

pub(super) async fn renamed_keeps_all(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = stage.fill_log("log", 3).await?;
    let fold = Folded {
        seq: Seq(3),
        format: "suite".into(),
        bytes: "fold".into(),
    };
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    ok("keeping a fold", held.keep(fold.clone()).await)?;
    drop(held);
    ok(
        "describing",
        journal.describe(&log, about("mine", None)).await,
    )?;
    let (_, child) = stage.fill_log("child", 2).await?;
    ok(
        "describing",
        journal
            .describe(&child, about("child", Some((log.clone(), Seq(2)))))
            .await,
    )?;
    let (before, to) = (
        ok("info", journal.info(&log).await)?,
        stage.log("../renamed/é"),
    );
    when_free("renaming", || journal.rename(&log, &to)).await?;
    let reopened = stage.open().await;
    is_missing(&*reopened, &log).await?;
    is_log(&*reopened, &to, &batch(1, 3)).await?;
    let info = ok("info", reopened.info(&to).await)?;
    equal("the name", &info.log, &to)?;
    equal("what is said", &info.about, &about("mine", None))?;
    equal("when it was made", &info.created_ms, &before.created_ms)?;
    equal("its head", &info.head, &Seq(3))?;
    equal(
        "its fold",
        &ok("folded", reopened.load_fold(&to).await)?,
        &Some(fold),
    )?;
    equal(
        "the fold of the name before",
        &ok("folded", reopened.load_fold(&log).await)?,
        &None,
    )?;
    let parent = ok("info", reopened.info(&child).await)?.about.parent;
    equal(
        "the log that the child was forked from",
        &parent,
        &Some((to.clone(), Seq(2))),
    )?;
    // The name before is free for another log, which has nothing of this one.
    let mut held = own(&*reopened, &log, &Owner::default()).await?;
    append(&mut *held, &batch(1, 1)).await?;
    append(
        &mut *own(&*reopened, &to, &Owner::default()).await?,
        &batch(4, 4),
    )
    .await?;
    is_log(&*journal, &to, &batch(1, 4)).await?;
    is_log(&*journal, &log, &batch(1, 1)).await
}

pub(super) async fn rename_refused(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = stage.fill_log("log", 1).await?;
    let (_, taken) = stage.fill_log("taken", 2).await?;
    let exists = when_free("renaming to a name that is taken", async || {
        match journal.rename(&log, &taken).await {
            Err(error) if error.kind == JournalErrorKind::Owned => Err(error),
            result => Ok(result),
        }
    });
    let exists = exists.await?;
    check_error("a name that is taken", exists, JournalErrorKind::Exists)?;
    let missing = journal
        .rename(&stage.log("missing"), &stage.log("new"))
        .await;
    check_error(
        "renaming a log that is missing",
        missing,
        JournalErrorKind::Missing,
    )?;
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    let owned = stage.open().await.rename(&log, &stage.log("new")).await;
    check_error(
        "renaming a log that is owned",
        owned,
        JournalErrorKind::Owned,
    )?;
    append(&mut *held, &batch(2, 2)).await?;
    is_missing(&*journal, &stage.log("new")).await?;
    is_log(&*journal, &log, &batch(1, 2)).await?;
    is_log(&*journal, &taken, &batch(1, 2)).await
}

pub(super) async fn deleted_is_gone(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = stage.fill_log("log", 3).await?;
    ok(
        "describing",
        journal.describe(&log, about("mine", None)).await,
    )?;
    delete(&*journal, &log).await?;
    for journal in [&journal, &stage.open().await] {
        is_missing(&**journal, &log).await?;
        check_error(
            "info of a log that was deleted",
            journal.info(&log).await,
            JournalErrorKind::Missing,
        )?;
        check_error(
            "deleting it again",
            journal.delete(&log).await,
            JournalErrorKind::Missing,
        )?;
    }
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    equal(
        "the head of a log that was made anew",
        &held.head().seq,
        &Seq(0),
    )?;
    append(&mut *held, &batch(1, 2)).await?;
    is_log(&*stage.open().await, &log, &batch(1, 2)).await?;
    let info = ok("info", journal.info(&log).await)?;
    equal(
        "what is said of a log that was made anew",
        &info.about,
        &SessionMeta::default(),
    )
}

pub(super) async fn delete_refused(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = (stage.open().await, stage.log("log"));
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    for journal in [&journal, &stage.open().await] {
        check_error(
            "deleting a log that is owned",
            journal.delete(&log).await,
            JournalErrorKind::Owned,
        )?;
    }
    append(&mut *held, &batch(1, 1)).await?;
    is_log(&*journal, &log, &batch(1, 1)).await
}

pub(super) async fn children_stay_whole(stage: &JournalStage<'_>) -> Verdict {
    let (journal, parent) = stage.fill_log("parent", 3).await?;
    let (_, child) = stage.fill_log("child", 2).await?;
    ok(
        "describing",
        journal
            .describe(&child, about("child", Some((parent.clone(), Seq(2)))))
            .await,
    )?;
    delete(&*journal, &parent).await?;
    is_log(&*stage.open().await, &child, &batch(1, 2)).await?;
    append(
        &mut *own(&*journal, &child, &Owner::default()).await?,
        &batch(3, 3),
    )
    .await?;
    let title = ok("info", journal.info(&child).await)?.about.title;
    equal("its title", &title.as_deref(), &Some("child"))?;
    is_log(&*journal, &child, &batch(1, 3)).await
}

pub(super) async fn fold_kept(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = stage.fill_log("log", 4).await?;
    holds(
        "a new log has no fold",
        ok("folded", journal.load_fold(&log).await)?.is_none(),
    )?;
    let mut held = own(&*journal, &log, &Owner::default()).await?;
    let long: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
    for (seq, bytes) in [
        (2, b"\0\n{}\xff".to_vec()),
        (4, long),
        (4, Vec::new()),
        (3, b"back".to_vec()),
    ] {
        let fold = Folded {
            seq: Seq(seq),
            format: format!("suite/{seq}").into(),
            bytes: bytes.into(),
        };
        ok("keeping a fold", held.keep(fold.clone()).await)?;
        equal(
            "the fold",
            &ok("folded", stage.open().await.load_fold(&log).await)?,
            &Some(fold),
        )?;
    }
    holds(
        "a fold is worth some records",
        held.keeps().is_none_or(|records| records > 0),
    )?;
    append(&mut *held, &batch(5, 5)).await?;
    drop(held);
    holds(
        "a fold stays",
        ok("folded", journal.load_fold(&log).await)?.is_some(),
    )?;
    delete(&*journal, &log).await?;
    holds(
        "a fold goes with its log",
        ok("folded", journal.load_fold(&log).await)?.is_none(),
    )?;
    drop(own(&*journal, &log, &Owner::default()).await?);
    holds(
        "a log that was made anew has no fold",
        ok("folded", journal.load_fold(&log).await)?.is_none(),
    )
}
