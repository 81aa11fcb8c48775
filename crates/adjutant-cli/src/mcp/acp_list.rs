//! The sessions that an editor can load: the sessions of a directory, or of all directories.

use std::path::Path;

use adjutant::{
    agent::{LogInfo, LogQuery, PageMark, Record, Seq, Sessions},
    llm::{Entry, Utc},
    protocols::acp::{ListWish, SessionPage},
};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::{named, problem::Problem, trouble};

/// The maximum number of sessions in a page.
const MAX_SESSIONS: usize = 50;
/// The number of records that are searched for the first prompt.
const MAX_LOOKED_AT: usize = 16;
/// The maximum number of characters of a title.
const MAX_TITLE: usize = 100;

/// Returns a page of sessions, after the cursor of an earlier page. Sessions without a directory are listed with
/// `place`, if it is set.
pub(super) async fn list(
    sessions: &Sessions,
    wish: ListWish,
    place: Option<&Path>,
) -> Result<Option<SessionPage>, Problem> {
    let mut query = LogQuery {
        limit: MAX_SESSIONS,
        ..LogQuery::default()
    };
    // If all of them have the same place, they have no label for it.
    let wanted = wish.cwd.as_deref().filter(|_| place.is_none());
    query.label = wanted.map(named::label).transpose()?.map(Into::into);
    if let Some(cursor) = &wish.cursor {
        let Ok(mark) = serde_json::from_str::<PageMark>(cursor) else {
            return Ok(None);
        };
        query.after = Some(mark);
    }
    let found = sessions
        .list(&query)
        .await
        .map_err(|error| trouble::journal_problem(&error))?;
    let mut page = SessionPage::default();
    for info in &found.logs {
        let own = named::directory(info).ok().flatten();
        let Some(cwd) = own.or_else(|| place?.to_str()) else {
            continue;
        };
        let changed = Utc::from_ms(info.updated_ms).to_string();
        let title = title(sessions, info).await;
        page.sessions
            .push(json!({"sessionId": info.log, "cwd": cwd, "title": title, "updatedAt": changed}));
    }
    page.next = found.next.map(|mark| json!(mark).to_string());
    Ok(Some(page))
}

/// Returns the title of a session, else the start of its first prompt.
async fn title(sessions: &Sessions, info: &LogInfo) -> Value {
    if let Some(title) = &info.about.title {
        return (**title).into();
    }
    let mut records = sessions
        .journal()
        .read(&info.log, Seq(0))
        .take(MAX_LOOKED_AT);
    while let Some(Ok(stamped)) = records.next().await {
        if let Record::Began { prompts, .. } = &stamped.record {
            let prompt = prompts
                .iter()
                .find(|entry| matches!(entry, Entry::User(_)))
                .map(Entry::to_text);
            let words = prompt
                .iter()
                .flat_map(|text| text.split_whitespace())
                .collect::<Vec<_>>()
                .join(" ");
            return words.chars().take(MAX_TITLE).collect::<String>().into();
        }
    }
    Value::Null
}
