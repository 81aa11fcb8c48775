//! Follows a run: prints its events, and makes printed output durable.

use std::{io, time::Duration};

use adjutant::{Event, EventKind, Running};
use tokio::time::{Instant, timeout_at};

use crate::{
    args::How,
    plain,
    problem::Problem,
    screen::{self, Screen},
    show::{self, DisplayLine, Show, TextDisplay},
    tree::{self, TreeView},
};

/// The maximum time between printing a text and storing it in the session.
const SAVE_WITHIN: Duration = Duration::from_millis(250);

/// The reason why following a run ended.
pub(crate) enum Followed {
    /// The last event.
    ToEnd(Box<Running>),
    /// The output has no reader; the run is cancelled.
    Unread,
}

/// Makes the printed parts of an unfinished reply durable, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saving {
    Soon,
    Never,
}

/// Prints the events of a run as they arrive.
pub(crate) async fn follow(
    running: Running,
    how: &How,
    saving: Saving,
    view: &mut View,
    screen: &mut Screen,
) -> Result<Followed, Problem> {
    // A later run continues after the position of a printed line, so no other record may have that position.
    let mut running = if how.json && saving == Saving::Soon {
        running.only_saved()
    } else {
        running
    };
    let mut saver = Saver::new(saving);
    loop {
        let event = match view.due(screen).filter(|_| saver.due.is_none()) {
            None => saver.next(&mut running).await,
            Some(due) => match timeout_at(due, saver.next(&mut running)).await {
                Ok(event) => event,
                Err(_) => {
                    screen::is_read(view.draw(screen))?;
                    continue;
                }
            },
        };
        let Some(event) = event else { break };
        let written = if how.json {
            view.write_json(&event, screen)
        } else {
            view.write_lines(&event, screen)
        };
        if !screen::is_read(written)? {
            if saving == Saving::Soon {
                // The session must be in a valid state; the outcome of the run no longer matters.
                running.cancel();
                let _ = running.finish().await;
            }
            return Ok(Followed::Unread);
        }
        if event.who.depth == 0 {
            saver.shown(&event.kind);
        }
    }
    Ok(Followed::ToEnd(Box::new(running)))
}

/// The display of a run.
#[derive(Debug)]
pub(crate) struct View {
    show: Show,
    tree: TreeView,
}

impl View {
    /// Prints the output as it arrives.
    pub(crate) fn live() -> Self {
        Self {
            show: Show::new(TextDisplay::Live),
            tree: TreeView::default(),
        }
    }

    /// Returns the view for the options; for a run with a requested answer, only that answer.
    pub(crate) fn from_options(how: &How, wants_output: bool) -> Self {
        let said = match (how.last, wants_output) {
            (true, _) => TextDisplay::Last,
            (false, true) => TextDisplay::Nothing,
            (false, false) => TextDisplay::Live,
        };
        let show = Show::new(said);
        Self {
            show: if how.show_thinking {
                show.with_thinking()
            } else {
                show
            },
            tree: TreeView::default(),
        }
    }

    /// Prints an event for a person.
    ///
    /// # Errors
    /// If standard output is not writable.
    pub(crate) fn write_lines(&mut self, event: &Event, screen: &mut Screen) -> io::Result<()> {
        self.tree.see(event);
        let is_live = screen.is_live();
        for line in self.lines(event, is_live) {
            match &line {
                DisplayLine::Busy(what) => {
                    self.tree.at(what);
                    if !(is_live && self.tree.is_busy()) {
                        screen.show(&line)?;
                    }
                }
                _ => screen.show(&line)?,
            }
        }
        match self.due(screen) {
            Some(due) if due <= Instant::now() => self.draw(screen),
            _ => Ok(()),
        }
    }

    /// Returns the time of the next drawing of the running agents; never while an answer is in the middle of a line.
    fn due(&self, screen: &Screen) -> Option<Instant> {
        let may_draw = screen.is_live() && !self.show.is_midline();
        self.tree.due(Instant::now()).filter(|_| may_draw)
    }

    /// Returns the lines for an event. If there is a tree, only the errors of sub-agents are included.
    fn lines(&mut self, event: &Event, is_live: bool) -> Vec<DisplayLine> {
        let is_first = event.who.depth == 0;
        let mut lines = if is_first {
            self.show.event(&event.kind)
        } else {
            self.tree.told(event)
        };
        if let EventKind::ChildOpened { child, .. } = &event.kind {
            lines.push(tree::opened(child));
        }
        let is_wrong = matches!(event.kind, EventKind::Warning { .. });
        let is_tree = matches!(event.kind, EventKind::ChildOpened { .. }) || !is_first;
        lines.retain(|_| !is_live || !is_tree || is_wrong);
        lines
    }

    /// Draws the running agents, if there are any.
    fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        let is_busy = self.tree.is_busy();
        let lines = self.tree.draw(Instant::now());
        if is_busy {
            screen.show(&DisplayLine::Agents(lines))
        } else {
            Ok(())
        }
    }

    /// Writes an event as a line of JSON.
    ///
    /// # Errors
    /// If standard output is not writable.
    pub(crate) fn write_json(&mut self, event: &Event, screen: &mut Screen) -> io::Result<()> {
        self.tree.see(event);
        let line = serde_json::to_string(event)?;
        screen.write(&plain::json_line(line))?;
        match &event.kind {
            EventKind::Warning { warning } => {
                screen.show(&DisplayLine::Told(show::format_warning(warning)))
            }
            _ => Ok(()),
        }
    }

    /// Prints the whole tree, if there were subagents.
    pub(crate) fn tell_tree(&self, screen: &Screen) {
        self.tree.text().iter().for_each(|text| screen.tell(text));
    }
}

/// Makes printed parts of an unfinished reply durable.
pub(crate) struct Saver {
    saving: Saving,
    /// The time by which the printed output must be durable.
    due: Option<Instant>,
}

impl Saver {
    pub(crate) fn new(saving: Saving) -> Self {
        Self { saving, due: None }
    }

    /// Returns the next event, and makes printed output durable in time.
    ///
    /// Cancel: nothing is lost.
    pub(crate) async fn next(&mut self, running: &mut Running) -> Option<Event> {
        if let Some(due) = self.due {
            if due > Instant::now()
                && let Ok(event) = timeout_at(due, running.next()).await
            {
                return event;
            }
            // The run itself reports errors of its log.
            if running.acknowledge().await.is_err() {
                self.saving = Saving::Never;
            }
            self.due = None;
        }
        running.next().await
    }

    /// Records that something was printed.
    pub(crate) fn shown(&mut self, kind: &EventKind) {
        match kind {
            EventKind::TextDelta { .. } | EventKind::ThinkingDelta { .. }
                if self.saving == Saving::Soon =>
            {
                self.due.get_or_insert_with(|| Instant::now() + SAVE_WITHIN);
            }
            EventKind::ReplyFinished { .. } | EventKind::ReplyRetracted { .. } => self.due = None,
            _ => {}
        }
    }
}
