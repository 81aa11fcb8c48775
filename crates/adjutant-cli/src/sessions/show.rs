//! Prints the messages and calls of a session, by page or as they are recorded.

use std::time::Duration;

use adjutant::agent::{
    Seq, Sessions,
    sessions::{ShownKind, TimelineItem},
};
use futures_util::StreamExt;

use super::id;
use crate::{
    args::Show,
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::{tell, write, write_or_tell},
    store::Store,
    trouble,
};

/// The interval between two reads of an active session.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Prints a session on standard output, and how to get the next page.
pub(crate) async fn show(args: &Show) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    named::find(&sessions, &args.name).await?;
    let after = Seq(args.from.saturating_sub(1));
    if args.follow {
        return follow(args, &sessions, after).await;
    }
    let page = sessions
        .show_page(&id(&args.name), after, args.limit as usize)
        .await;
    let page = page.map_err(|error| trouble::journal_problem(&error))?;
    let text: String = page
        .items
        .iter()
        .map(|shown| text_of(args, shown))
        .collect();
    if write_or_tell(&text, "there is nothing to show")?
        && let Some(next) = page.next
    {
        let limit = if args.limit == 50 {
            String::new()
        } else {
            format!(" --limit {}", args.limit)
        };
        let json = if args.json { " --json" } else { "" };
        let (name, from) = (plain::word(&args.name), next.0 + 1);
        tell(&format!(
            "more: adjutant sessions show {name}{} --from {from}{limit}{json}",
            store.option()
        ));
    }
    Ok(Exit::Finished)
}

/// Prints everything after a record, then new records, until the session is idle.
async fn follow(args: &Show, sessions: &Sessions, mut after: Seq) -> Result<Exit, Problem> {
    loop {
        let info = named::find(sessions, &args.name).await?;
        if info.head > after {
            let mut shown = sessions.show(&info.log);
            while let Some(shown) = shown.next().await {
                let shown = shown.map_err(|error| trouble::journal_problem(&error))?;
                // A partial reply is printed when it is complete.
                let is_partial = info.is_owned && shown.kind == ShownKind::Heard;
                if shown.seq > after
                    && shown.seq <= info.head
                    && !is_partial
                    && !write(&text_of(args, &shown))?
                {
                    return Ok(Exit::Finished);
                }
            }
            after = info.head;
        }
        if !info.is_owned {
            return Ok(Exit::Finished);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Formats one item as lines.
fn text_of(args: &Show, shown: &TimelineItem) -> String {
    if args.json {
        return serde_json::to_string(shown)
            .map(plain::json_line)
            .unwrap_or_default();
    }
    let head = format!(
        "{:>4} {}{:9}",
        shown.seq.0,
        "  ".repeat(usize::from(shown.depth)),
        shown.kind
    );
    let margin = " ".repeat(head.chars().count() + 1);
    let text = match shown.kind {
        ShownKind::Pause => plain::whole(&shown.text).into(),
        _ => plain::stream(&shown.text),
    };
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let rest: String = lines
        .map(|line| format!("{}\n", format!("{margin}{line}").trim_end()))
        .collect();
    format!("{head} {}: {first}\n{rest}", plain::line(&shown.who))
}
