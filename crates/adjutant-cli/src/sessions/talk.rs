//! Messages to a session, no matter who works in it.

use adjutant::{
    agent::{Lane, Post},
    llm::{Entry, Origin, UserMessage},
};

use super::id;
use crate::{
    args::{At, Named, Tell},
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::tell as note,
    store::Store,
    trouble,
};

/// Asks whoever works in a session to stop.
pub(crate) async fn stop(args: &Named) -> Result<Exit, Problem> {
    let later = format!("adjutant resume {}", plain::word(&args.name));
    post(
        &args.name,
        &args.at,
        Post::Cancel,
        &format!("nobody works in the session; `{later}` ends the run that is open, if one is"),
    )
    .await
}

/// Says something to whoever works in a session.
pub(crate) async fn tell(args: &Tell) -> Result<Exit, Problem> {
    if args.text.trim().is_empty() {
        return Err(Problem::new(Exit::Usage, "nothing is said"));
    }
    let message = UserMessage { origin: Origin::Steering, ..UserMessage::text(args.text.as_str()) };
    let post_it = Post::Message { lane: Lane::Steering, content: Entry::from(message) };
    post(&args.name, &args.at, post_it, "nobody works in the session; its next run hears it").await
}

async fn post(name: &str, at: &At, post: Post, unheard: &str) -> Result<Exit, Problem> {
    let store = Store::open(at).await?;
    let info = named::find(&store.sessions(), name).await?;
    store.journal().post(&id(name), post).await.map_err(|error| trouble::of_journal(&error))?;
    if !info.is_owned {
        note(unheard);
    }
    Ok(Exit::Finished)
}
