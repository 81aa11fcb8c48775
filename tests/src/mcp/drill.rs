//! One drill: prompts are posted, server and client are killed at chosen moments and at any, answers come late; then every log is
//! looked at.

use std::{path::PathBuf, sync::Arc, time::Duration};

use adjutant::{
    agent::{DueWork, Lane, LogId, Owner, Pause, Post},
    llm::{Entry, UserMessage},
};

use super::{
    Survived,
    field::{Field, told},
};
use crate::{
    fleet::due_work,
    kill::{Place, Rng},
};

/// The longest time before somebody is killed at any moment, or a server is begun again.
const BETWEEN_MS: u64 = 400;

/// What is needed for a drill.
#[derive(Debug)]
pub struct Drill {
    /// The program that is killed.
    pub program: PathBuf,
    /// Where the sessions are kept.
    pub place: Place,
    /// Where the servers keep their calls.
    pub host: Place,
    /// A directory of its own.
    pub files: PathBuf,
    /// How many sessions there are at first; more begin when all are at their end before everybody was killed as often as wanted.
    pub sessions: usize,
    /// How many steps each has.
    pub steps: usize,
    /// How often the client is killed.
    pub kills: u64,
    /// How often the server is.
    pub falls: u64,
    /// How long a log belongs to a client that is gone.
    pub lease: Duration,
}

impl Drill {
    /// Runs the drill.
    ///
    /// # Errors
    /// The first promise that was broken, in words.
    pub async fn run(&self, rng: &mut Rng) -> Result<Survived, String> {
        let journal = due_work(&self.place, self.lease).await?;
        let (mut field, mut survived) =
            (Field::new(self, Arc::clone(&journal)), Survived::default());
        let mut ids = Vec::new();
        bill(&journal, &mut ids, self.sessions).await?;
        field.begin_server()?;
        field.begin_client().await?;
        while (survived.kills, survived.falls) != (self.kills, self.falls) {
            if field.is_over().await? {
                bill(&journal, &mut ids, self.sessions.div_ceil(4)).await?;
            }
            field.answer_all(self.sessions as u64 / 2, rng).await?;
            let left = (self.kills - survived.kills, self.falls - survived.falls);
            if rng.below(left.0 + left.1) < left.1 {
                survived.falls += 1;
                fall(&mut field, &mut survived, rng).await?;
            } else {
                survived.kills += 1;
                kill(&mut field, &mut survived, rng).await?;
            }
        }
        field.finish(rng).await?;
        survived.sessions = ids.len();
        survived.check(&field, &ids).await
    }
}

/// Begins so many more sessions.
async fn bill(journal: &Arc<dyn DueWork>, ids: &mut Vec<LogId>, more: usize) -> Result<(), String> {
    for _ in 0..more {
        let id = LogId::from(format!("bill/{}", ids.len()));
        drop(journal.own(&id, &Owner::default()).await.map_err(told)?);
        let content = Entry::from(UserMessage::text("Pay the bill."));
        journal
            .post(
                &id,
                Post::Message {
                    lane: Lane::FollowUp,
                    content,
                },
            )
            .await
            .map_err(told)?;
        ids.push(id);
    }
    Ok(())
}

/// Kills the client: at any moment; between a question and its answer; while the answer is posted; in a call; or behind an answer
/// of the server that it does not see.
async fn kill(field: &mut Field<'_>, survived: &mut Survived, rng: &mut Rng) -> Result<(), String> {
    let mut asked = None;
    match rng.below(5) {
        0 => wait(rng).await,
        1 => asked = field.question().await?,
        2 => {
            if let Some((log, pause)) = field.question().await? {
                field.answer(&log, &pause, rng).await?;
                wait(rng).await;
            }
        }
        point => {
            field.call(rng).await?;
            if point == 4 {
                field.freeze_client().await?;
            }
        }
    }
    field.kill_client();
    if let Some((log, pause)) = &asked {
        field.answer(log, pause, rng).await?;
    }
    field.begin_client().await?;
    hold(field, survived, asked).await
}

/// Kills the server: at any moment; in a call; or between a question and its answer, and then sometimes the client too.
async fn fall(field: &mut Field<'_>, survived: &mut Survived, rng: &mut Rng) -> Result<(), String> {
    let point = rng.below(4);
    let asked = match point {
        0 => {
            wait(rng).await;
            None
        }
        1 => {
            field.call(rng).await?;
            None
        }
        _ => field.question().await?,
    };
    field.kill_server();
    if point == 3 {
        field.kill_client();
    }
    if let Some((log, pause)) = &asked {
        field.answer(log, pause, rng).await?;
    }
    if point == 3 {
        field.begin_client().await?;
    }
    wait(rng).await;
    field.begin_server()?;
    hold(field, survived, asked).await
}

/// What was asked before a kill and answered after it is done.
async fn hold(
    field: &mut Field<'_>,
    survived: &mut Survived,
    asked: Option<(LogId, Arc<Pause>)>,
) -> Result<(), String> {
    let Some((log, pause)) = asked else {
        return Ok(());
    };
    survived.held += 1;
    field.went_on(&log, &pause).await
}

async fn wait(rng: &mut Rng) {
    tokio::time::sleep(Duration::from_millis(rng.below(BETWEEN_MS))).await;
}
