//! The output of a conversation above the input line: Markdown as it arrives, other lines, and the status row.

pub(crate) mod input;
mod markdown;
pub(crate) mod style;

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

use self::{
    input::{Board, Pen},
    markdown::Markdown,
    style::Style,
};
use crate::plain;

/// The minimum duration of a wait that is displayed.
const TOLD_FROM: Duration = Duration::from_secs(2);

/// The output area of a conversation.
pub(crate) struct Paper {
    pub(crate) style: Style,
    pen: Pen,
    board: Arc<Board>,
    markdown: Markdown,
    /// The current wait, and its start.
    busy: Option<(String, Instant)>,
    /// The displayed duration of the wait, in seconds.
    shown: u64,
}

impl Paper {
    pub(crate) fn new(style: Style, pen: Pen, board: Arc<Board>) -> Self {
        Self {
            style,
            pen,
            board,
            markdown: Markdown::new(style),
            busy: None,
            shown: 0,
        }
    }

    /// Prints a chunk of the output, up to the last complete row.
    pub(crate) fn say(&mut self, text: &str) {
        let rows = self.markdown.push(&plain::stream(text));
        self.print(rows);
    }

    /// Ends the output.
    pub(crate) fn end(&mut self) {
        let rows = self.markdown.end();
        self.print(rows);
    }

    /// Prints lines between parts of the output.
    pub(crate) fn tell(&self, text: &str) {
        let text = plain::stream(text);
        let marked = |line: &str| match line.chars().next() {
            Some('✗') => self.style.removed(line),
            Some('?') => self.style.asks(line),
            _ if ["error:", "warning:"].iter().any(|it| line.starts_with(it)) => {
                self.style.removed(line)
            }
            _ => self.style.dim(line),
        };
        self.print(text.lines().map(|line| marked(line) + "\n").collect());
    }

    /// Prints lines that are already formatted and sanitized.
    pub(crate) fn print(&self, rows: String) {
        if !rows.is_empty() {
            self.pen.print(rows);
        }
    }

    /// Displays the current wait.
    pub(crate) fn wait(&mut self, what: &str) {
        if self.busy.as_ref().is_none_or(|(busy, _)| busy != what) {
            self.busy = Some((what.to_owned(), Instant::now()));
            self.draw();
        }
    }

    /// Redraws the duration of the wait, if it has changed.
    pub(crate) fn tick(&mut self) {
        let seconds = self
            .busy
            .as_ref()
            .map_or(0, |(_, since)| since.elapsed().as_secs());
        if seconds != self.shown && seconds >= TOLD_FROM.as_secs() {
            self.draw();
        }
    }

    /// Ends the current wait.
    pub(crate) fn rest(&mut self) {
        self.end();
        if self.busy.take().is_some() {
            self.draw();
        }
    }

    fn draw(&mut self) {
        let status = self.busy.as_ref().map(|(what, since)| {
            let elapsed = since.elapsed();
            self.shown = elapsed.as_secs();
            let time = if elapsed < TOLD_FROM {
                String::new()
            } else {
                format!(" {} s", elapsed.as_secs())
            };
            format!("… {}{time} (Esc interrupts)", plain::line(what))
        });
        self.board.set_status(status.unwrap_or_default());
        self.pen.redraw();
    }
}

impl fmt::Debug for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paper")
            .field("busy", &self.busy)
            .finish_non_exhaustive()
    }
}
