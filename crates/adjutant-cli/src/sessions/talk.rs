//! Messages to a session, whichever process runs it.

use std::time::Duration;

use adjutant::{
    agent::{Lane, LogId, Post, Record, Seq},
    llm::{Entry, Origin, ThreadId, UserMessage},
};
use futures_util::StreamExt;
use tokio::time::sleep;

use super::id;
use crate::{
    args::{At, Stop, Tell},
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::{tell as note, write},
    store::Store,
    trouble, under,
};

/// The interval between two reads of a session.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Requests the active run of a session to stop.
pub(crate) async fn stop(args: &Stop) -> Result<Exit, Problem> {
    let later = format!("adjutant resume {}", plain::word(&args.name));
    post(
        &args.name,
        &args.at,
        (args.only.as_deref(), Post::Cancel),
        &format!("nobody works in the session; `{later}` ends the run that is open, if one is"),
    )
    .await
    .map(|_| Exit::Finished)
}

/// Sends a message to the active run of a session, and waits for an answer if requested.
pub(crate) async fn tell(args: &Tell) -> Result<Exit, Problem> {
    if args.text.trim().is_empty() {
        return Err(Problem::new(Exit::Usage, "the message is empty"));
    }
    let message = UserMessage {
        origin: Origin::Steering,
        ..UserMessage::text(args.text.as_str())
    };
    let content = Entry::from(message);
    let said = Post::Message {
        lane: Lane::Steering,
        content: content.clone(),
    };
    let unheard = "nobody works in the session; its next run hears it";
    let posted = post(&args.name, &args.at, (args.to.as_deref(), said), unheard).await?;
    if !args.wait {
        return Ok(Exit::Finished);
    }
    if !posted.is_heard {
        return Err(Problem::new(
            Exit::Usage,
            "nobody works in the session, so that nobody answers",
        ));
    }
    match posted.answer(&content).await? {
        Some(answer) => {
            write(&format!("{}\n", plain::stream(&answer)))?;
            Ok(Exit::Finished)
        }
        None => Err(Problem::new(Exit::Failed, "it has ended without a word")),
    }
}

/// A message in the inbox of a session.
struct Posted {
    store: Store,
    log: LogId,
    /// The thread of the receiver; by default, the first agent's.
    thread: Option<ThreadId>,
    /// The latest record before the message was stored.
    after: Seq,
    /// True if a process runs the session.
    is_heard: bool,
}

async fn post(
    name: &str,
    at: &At,
    (agent, post): (Option<&str>, Post),
    unheard: &str,
) -> Result<Posted, Problem> {
    let store = Store::find(at).await?;
    let info = named::find(&store.sessions(), name).await?;
    let thread = match agent {
        Some(agent) => Some(under::thread(&store, name, agent).await?),
        None => None,
    };
    let post = match thread.clone() {
        Some(thread) => Post::To {
            thread,
            said: Box::new(post),
        },
        None => post,
    };
    store
        .journal()
        .post(&id(name), post)
        .await
        .map_err(|error| trouble::journal_problem(&error))?;
    note(if info.is_owned {
        "whoever works in the session hears it"
    } else {
        unheard
    });
    Ok(Posted {
        store,
        log: info.log,
        thread,
        after: info.head,
        is_heard: info.is_owned,
    })
}

impl Posted {
    /// Waits for the first text after the message was recorded; `None` if the run, or its process, ends before.
    async fn answer(&self, content: &Entry) -> Result<Option<String>, Problem> {
        let (mut after, mut item, mut is_placed) = (self.after, None, false);
        loop {
            let info = self
                .store
                .journal()
                .info(&self.log)
                .await
                .map_err(|error| trouble::journal_problem(&error))?;
            let mut records = self.store.journal().read(&self.log, after);
            while let Some(stamped) = records.next().await {
                let stamped = stamped.map_err(|error| trouble::journal_problem(&error))?;
                after = stamped.seq;
                let is_first = || !stamped.thread.as_str().contains('/');
                let is_asked = self
                    .thread
                    .as_ref()
                    .map_or_else(is_first, |thread| stamped.thread == *thread);
                match &stamped.record {
                    // The end of the first agent ends the wait.
                    Record::Ended { .. } if is_asked || is_first() => return Ok(None),
                    _ if !is_asked => {}
                    Record::Queued {
                        item: queued,
                        content: said,
                        ..
                    } if said == content => item = Some(*queued),
                    Record::Placed { items, .. } => {
                        is_placed |= item.is_some_and(|item| items.contains(&item))
                    }
                    Record::Replied { reply, .. }
                        if is_placed && !reply.text().trim().is_empty() =>
                    {
                        return Ok(Some(reply.text()));
                    }
                    _ => {}
                }
            }
            if !info.is_owned {
                return Ok(None);
            }
            sleep(LOOK_EVERY).await;
        }
    }
}
