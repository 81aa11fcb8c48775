//! Names of logs: any text, and never a path.

use adjutant_agent::{JournalErrorKind, LogId, LogQuery, MAX_ID_BYTES, Owner, SessionMeta};

use super::stage::{JournalStage, append, check_error, is_log, own, text_record};
use crate::suite::{Verdict, equal, ok};

pub(super) async fn names_are_data(stage: &JournalStage<'_>) -> Verdict {
    let mut names: Vec<String> = [
        "/",
        "//",
        "/etc/passwd",
        "../../x",
        "..",
        ".",
        "a/b/",
        "\\",
        "C:\\x",
        "a\0b",
        "\0",
        "%2F",
        "%",
        "*",
        "?",
        "~",
        "-rf",
        "con",
        " ",
        "a ",
        " a",
        "a.",
        "\n",
        "'",
        "\"",
        "\";--",
        "ünïcödé",
        "日本語",
        "👩‍👩‍👧‍👦",
        "\u{202e}abc",
        "\u{ffff}",
        "_",
        "%_",
    ]
    .map(|name| format!("{}{name}", stage.prefix))
    .to_vec();
    let fill = |letter: &str| letter.repeat((MAX_ID_BYTES - stage.prefix.len()) / letter.len());
    names.extend(
        ["x", "/", "é", "日", "👩", "\0", "."]
            .map(|letter| format!("{}{}", stage.prefix, fill(letter))),
    );
    names.push(format!("{}{}", fill("y"), stage.prefix));
    keeps_apart(stage, names).await
}

pub(super) async fn names_are_distinct(stage: &JournalStage<'_>) -> Verdict {
    let names = [
        "a",
        "A",
        "a ",
        " a",
        "a.",
        "a..",
        "./a",
        "a/",
        "a//",
        "a/b",
        "a_b",
        "a-b",
        "a%2Fb",
        "a%2fb",
        "a\0",
        "a\0b",
        "ab",
        "é",
        "e\u{301}",
        "ﬁ",
        "fi",
        "ß",
        "ss",
        "SS",
        "İ",
        "i",
        "ı",
        "I",
        "a.meta.json",
        "a.jsonl",
        "a.posts",
        "a.fold",
        "a.lock",
    ];
    let mut names = names.map(|name| format!("{}{name}", stage.prefix)).to_vec();
    let long = format!(
        "{}{}",
        stage.prefix,
        "z".repeat(MAX_ID_BYTES - stage.prefix.len() - 1)
    );
    names.extend([format!("{long}1"), format!("{long}2"), long]);
    keeps_apart(stage, names).await
}

/// Fills a log for each name with that name, and checks that their contents stay separate.
async fn keeps_apart(stage: &JournalStage<'_>, names: Vec<String>) -> Verdict {
    let journal = stage.open().await;
    for name in &names {
        let log = LogId::from(name.as_str());
        append(
            &mut *own(&*journal, &log, &Owner::default()).await?,
            &[text_record(1, 1, name)],
        )
        .await?;
        let mut about = SessionMeta::default();
        about.labels.insert(stage.prefix.as_str().into());
        about.title = Some(name.as_str().into());
        ok("describing", journal.describe(&log, about).await)?;
    }
    let reopened = stage.open().await;
    for name in &names {
        let log = LogId::from(name.as_str());
        is_log(&*reopened, &log, &[text_record(1, 1, name)]).await?;
        let info = ok("info", reopened.info(&log).await)?;
        equal("the name", &info.log, &log)?;
        equal(
            "the title",
            &info.about.title.as_deref(),
            &Some(name.as_str()),
        )?;
    }
    let mut query = LogQuery::default();
    (query.label, query.limit) = (Some(stage.prefix.as_str().into()), 1_000);
    let listed = ok("listing", reopened.list(&query).await)?;
    let mut listed: Vec<String> = listed
        .logs
        .iter()
        .map(|info| info.log.to_string())
        .collect();
    let mut names = names;
    listed.sort();
    names.sort();
    equal("the names that are listed", &listed, &names)
}

pub(super) async fn bad_names_refused(stage: &JournalStage<'_>) -> Verdict {
    let (journal, log) = stage.fill_log("log", 1).await?;
    for name in [
        String::new(),
        "x".repeat(MAX_ID_BYTES + 1),
        "é".repeat(MAX_ID_BYTES / 2 + 1),
        "x".repeat(100_000),
    ] {
        let bad = LogId::from(name);
        let owned = journal.own(&bad, &Owner::default()).await;
        check_error(
            "owning a log of a bad name",
            owned,
            JournalErrorKind::Invalid,
        )?;
        let renamed = journal.rename(&log, &bad).await;
        check_error(
            "giving a log a bad name",
            renamed,
            JournalErrorKind::Invalid,
        )?;
    }
    Ok(())
}
