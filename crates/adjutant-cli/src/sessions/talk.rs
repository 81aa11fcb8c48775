//! Messages to a session, no matter who works in it.

use adjutant::{
    agent::{Lane, Post},
    llm::{Entry, Origin, UserMessage},
};

use super::id;
use crate::{
    args::{At, Stop, Tell},
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::tell as note,
    store::Store,
    trouble, under,
};

/// Asks whoever works in a session to stop.
pub(crate) async fn stop(args: &Stop) -> Result<Exit, Problem> {
    let later = format!("adjutant resume {}", plain::word(&args.name));
    post(
        &args.name,
        &args.at,
        (args.only.as_deref(), Post::Cancel),
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
    post(&args.name, &args.at, (args.to.as_deref(), post_it), "nobody works in the session; its next run hears it")
        .await
}

async fn post(name: &str, at: &At, (agent, post): (Option<&str>, Post), unheard: &str) -> Result<Exit, Problem> {
    let store = Store::open(at).await?;
    let info = named::find(&store.sessions(), name).await?;
    let post = match agent {
        Some(agent) => Post::To { thread: under::thread(&store, name, agent).await?, said: Box::new(post) },
        None => post,
    };
    store.journal().post(&id(name), post).await.map_err(|error| trouble::of_journal(&error))?;
    note(if info.is_owned { "whoever works in the session hears it" } else { unheard });
    Ok(Exit::Finished)
}
