//! A terminal for tests: the command behind a pseudo-terminal, and what stands on its screen.

use std::{
    io::{Read, Write},
    num::NonZeroU16,
    process::Command,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// The time within which what is waited for must come.
const WITHIN: Duration = Duration::from_secs(60);
/// The rows and columns of the screen.
const SIZE: (u16, u16) = (40, 100);
/// The rows that are kept after they scrolled away.
const KEPT: usize = 1_000;

/// A command that runs on a terminal.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    screen: Arc<Screen>,
    _master: Box<dyn MasterPty + Send>,
}

struct Screen {
    parser: Mutex<vt100::Parser>,
    /// The end of the output.
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Terminal {
    /// Starts a command, with its arguments, environment and directory, on a terminal.
    pub(crate) fn start(command: &Command) -> Self {
        let mut builder = CommandBuilder::new(command.get_program());
        builder.env_clear();
        builder.args(command.get_args());
        builder.env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            builder.env(name, value.expect("nothing is taken away"));
        }
        builder.cwd(command.get_current_dir().expect("it has a directory"));
        let size = PtySize {
            rows: SIZE.0,
            cols: SIZE.1,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system()
            .openpty(size)
            .expect("there is a pseudo-terminal");
        let child = pair
            .slave
            .spawn_command(builder)
            .expect("the command starts");
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().expect("it can be read");
        let keys = pair.master.take_writer().expect("it can be written to");
        let parser = Mutex::new(vt100::Parser::new(side(SIZE.0), side(SIZE.1), KEPT));
        let screen = Arc::new(Screen {
            parser,
            ended: Mutex::new(false),
            changed: Condvar::new(),
        });
        let shared = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // The end of a terminal is an error on Linux.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                lock(&shared.parser).process(&bytes[..count]);
                shared.changed.notify_all();
            }
            *lock(&shared.ended) = true;
            shared.changed.notify_all();
        });
        Self {
            child,
            keys,
            screen,
            _master: pair.master,
        }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys
            .write_all(keys.as_bytes())
            .and_then(|()| self.keys.flush())
            .expect("the terminal takes keys");
    }

    /// Types a line.
    pub(crate) fn line(&mut self, text: &str) {
        self.press(&format!("{text}\r"));
    }

    /// Waits until the screen holds this text.
    #[track_caller]
    pub(crate) fn wait(&self, text: &str) {
        self.wait_until(&format!("{text:?}"), |screen| screen.contains(text));
    }

    /// Waits until this is so of the screen, and returns it.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + WITHIN;
        let mut parser = lock(&self.screen.parser);
        while !is_so(&parser.screen().contents()) {
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "{what} does not come:\n{}",
                parser.screen().contents()
            );
            let is_over = *lock(&self.screen.ended);
            assert!(
                !is_over,
                "the command ended before {what} came:\n{}",
                parser.screen().contents()
            );
            let waited = self
                .screen
                .changed
                .wait_timeout(parser, left.min(Duration::from_millis(200)));
            parser = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        parser.screen().contents()
    }

    /// What stands on the screen.
    pub(crate) fn screen(&self) -> String {
        lock(&self.screen.parser).screen().contents()
    }

    /// The text on the screen with this mark, joined.
    pub(crate) fn marked(&self, is_marked: impl Fn(&vt100::Cell) -> bool) -> String {
        let parser = lock(&self.screen.parser);
        let cells = (0..SIZE.0).flat_map(|row| (0..SIZE.1).map(move |column| (row, column)));
        let marked = cells
            .filter_map(|(row, column)| parser.screen().cell(row, column))
            .filter(|cell| is_marked(cell));
        marked.map(|cell| cell.contents().to_owned()).collect()
    }

    /// Asks the command to end.
    pub(crate) fn terminate(&self) {
        let id = self.child.process_id().expect("it runs").to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status();
        assert!(status.expect("kill can be called").success());
    }

    /// Kills the command at once.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Waits for the end of the command, and returns its exit code.
    #[track_caller]
    pub(crate) fn end(mut self) -> (u32, String) {
        let until = Instant::now() + WITHIN;
        let mut ended = lock(&self.screen.ended);
        while !*ended {
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "the command does not end:\n{}",
                self.screen()
            );
            ended = self
                .screen
                .changed
                .wait_timeout(ended, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        drop(ended);
        let code = self.child.wait().expect("it ends").exit_code();
        (code, self.screen())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn side(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a screen has cells")
}
