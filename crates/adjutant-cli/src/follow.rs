//! Follows a run: shows its events as they come, and makes durable what was shown.

use std::{io, time::Duration};

use adjutant::{Event, EventKind, Running};
use tokio::time::{Instant, timeout_at};

use crate::{
    args::How,
    problem::Problem,
    screen::{self, Screen},
    show::{self, Line, Said, Show},
};

/// How long a text may have been shown before the session holds it.
const SAVE_WITHIN: Duration = Duration::from_millis(250);

/// How far a run was followed.
pub(crate) enum Followed {
    /// To its last event.
    ToEnd(Box<Running>),
    /// Until nobody read what was written; the run is cancelled.
    Unread,
}

/// Whether what is shown of a reply is made durable while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saving {
    Soon,
    Never,
}

/// Shows the events of a run as they come.
pub(crate) async fn follow(
    mut running: Running,
    how: &How,
    saving: Saving,
    screen: &mut Screen,
) -> Result<Followed, Problem> {
    let mut show = show_of(how);
    let mut saver = Saver { saving, due: None };
    while let Some(event) = saver.next(&mut running).await {
        let written = if how.json { write_json(&event, screen) } else { write_lines(&event, &mut show, screen) };
        if !screen::is_read(written)? {
            if saving == Saving::Soon {
                // So that the session is in order; how the run ends is of no interest any more.
                running.cancel();
                let _ = running.finish().await;
            }
            return Ok(Followed::Unread);
        }
        saver.shown(&event.kind);
    }
    Ok(Followed::ToEnd(Box::new(running)))
}

/// How events are shown.
pub(crate) fn show_of(how: &How) -> Show {
    let said = match (how.last, &how.schema) {
        (true, _) => Said::Last,
        (false, Some(_)) => Said::Nothing,
        (false, None) => Said::Live,
    };
    let show = Show::new(said);
    if how.show_thinking { show.with_thinking() } else { show }
}

/// Shows an event to a person.
///
/// # Errors
/// If standard output cannot be written to.
pub(crate) fn write_lines(event: &Event, show: &mut Show, screen: &mut Screen) -> io::Result<()> {
    show.event(&event.kind).iter().try_for_each(|line| screen.show(line))
}

/// Writes an event as a line of JSON.
///
/// # Errors
/// If standard output cannot be written to.
pub(crate) fn write_json(event: &Event, screen: &mut Screen) -> io::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    screen.write(&line)?;
    match &event.kind {
        EventKind::Warning { warning } => screen.show(&Line::Told(show::of_warning(warning))),
        _ => Ok(()),
    }
}

/// Makes durable what was shown of a reply that is not finished.
struct Saver {
    saving: Saving,
    /// When what was shown must be durable.
    due: Option<Instant>,
}

impl Saver {
    async fn next(&mut self, running: &mut Running) -> Option<Event> {
        if let Some(due) = self.due {
            if due > Instant::now()
                && let Ok(event) = timeout_at(due, running.next()).await
            {
                return event;
            }
            self.due = None;
            // The run itself tells what is wrong with its log.
            if running.acknowledge().await.is_err() {
                self.saving = Saving::Never;
            }
        }
        running.next().await
    }

    fn shown(&mut self, kind: &EventKind) {
        match kind {
            EventKind::TextDelta { .. } | EventKind::ThinkingDelta { .. } if self.saving == Saving::Soon => {
                self.due.get_or_insert_with(|| Instant::now() + SAVE_WITHIN);
            }
            EventKind::ReplyFinished { .. } | EventKind::ReplyRetracted { .. } => self.due = None,
            _ => {}
        }
    }
}
