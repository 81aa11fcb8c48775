//! Instructions made of a template and of a state. The engine is `minijinja`; its types stay in here.

use std::{fmt, io, sync::Arc};

use minijinja::{
    AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value as Shown, escape_formatter,
    syntax::SyntaxConfig, value::Serde,
};
use serde_json::{Map, Value};

use super::{InstructionError, InstructionErrorKind, filters};

/// The name of the one template of an engine.
const NAME: &str = "instructions";
/// The largest number of bytes that one rendering may have.
const MAX_RENDERED_BYTES: usize = 1 << 20;
/// The largest number of steps of the engine that one rendering may take.
const MAX_STEPS: u64 = 1_000_000;

/// A template of instructions, in the language of Jinja.
///
/// Compiled once, and rendered from a state at each run.
///
/// Strict: it is an error to print, test, iterate over or index an undefined variable, and to print a null; use `{%
/// if name is defined %}` and `{{ name | default("…") }}`. [`lenient`](Template::lenient) prints nothing instead.
/// Nothing is escaped, line breaks stay as they are, and booleans print as `True` and `False`. A rendering is limited
/// to 1 MiB and a million steps. A template is code: untrusted text belongs in the state, never in the template.
///
/// Names of other template languages, and their equivalents here:
///
/// | wanted | written |
/// |---|---|
/// | `eq ne lt le gt ge` | operators: `==` `!=` `<` `<=` `>` `>=`; or tests: `x is eq(y)` |
/// | `upper lower title trim replace` | filters of these names |
/// | `trimPrefix trimSuffix` | filters `trim_prefix`, `trim_suffix` |
/// | `contains` | `part in text` |
/// | `hasPrefix hasSuffix` | tests: `x is startingwith(y)`, `x is endingwith(y)` |
/// | `join split first last` | filters: `names \| join(", ")` |
/// | `list` | a literal: `[a, b]`; or the filter |
/// | `default` | filter; with `true` as its second argument also for what is empty |
/// | `coalesce` | function: the first argument that is neither undefined nor null |
/// | `empty` | test: `x is empty` |
/// | `ternary` | `a if condition else b` |
/// | `indent nindent` | filters |
/// | `quote squote` | filters, which escape; `tojson` for any value |
///
/// # Example
/// ```
/// use adjutant_agent::instructions::{Instructions, Template};
///
/// let template = Template::new("You help {{ user }}.")?.with_required(["user"]);
/// let instructions = Instructions::from(template);
/// # Ok::<(), adjutant_agent::instructions::InstructionError>(())
/// ```
#[derive(Clone)]
pub struct Template {
    engine: Arc<Environment<'static>>,
    required: Arc<[Arc<str>]>,
}

/// Collects written text up to a limit.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Template {
    /// Compiles a template, strict and without required variables.
    ///
    /// # Errors
    /// `Template`, with the line, if it does not parse. That a filter or function is unknown shows when it is rendered.
    pub fn new(source: impl Into<String>) -> Result<Self, InstructionError> {
        let mut engine = Environment::new();
        let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
        engine.set_syntax(
            syntax.map_err(|error| broken("the template could not be compiled", &error))?,
        );
        engine.set_auto_escape_callback(|_| AutoEscape::None);
        engine.set_debug(true);
        engine.set_fuel(Some(MAX_STEPS));
        filters::register(&mut engine);
        let compiled = engine.add_template_owned(NAME, source.into());
        compiled.map_err(|error| broken("the template could not be compiled", &error))?;
        Ok(Self {
            engine: Arc::new(engine),
            required: Arc::default(),
        }
        .strict())
    }

    /// Sets which variables the state must have; null counts as missing.
    ///
    /// Checked before anything is rendered; the error names all that are missing.
    #[must_use]
    pub fn with_required<N: Into<Arc<str>>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self {
            required: names.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// Makes undefined values print nothing, count as false and contain nothing, at any depth.
    ///
    /// A null prints nothing, too.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        let engine = Arc::make_mut(&mut self.engine);
        engine.set_undefined_behavior(UndefinedBehavior::Chainable);
        engine.set_formatter(|out, state, value| match value.is_none() {
            true => Ok(()),
            false => escape_formatter(out, state, value),
        });
        self
    }

    fn strict(mut self) -> Self {
        let engine = Arc::make_mut(&mut self.engine);
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        engine.set_formatter(|out, state, value| match value.is_none() {
            true => Err(minijinja::Error::new(
                ErrorKind::UndefinedError,
                "what is to be printed is null",
            )),
            false => escape_formatter(out, state, value),
        });
        self
    }

    /// The text that the template makes of a state.
    ///
    /// # Errors
    /// `Missing` if a required or, when strict, a used variable is missing; `Limit` if the text or the work grew too
    /// large; `Template` if anything else kept it from being rendered.
    pub fn render(&self, state: &Map<String, Value>) -> Result<Arc<str>, InstructionError> {
        self.check(state)?;
        let template = self
            .engine
            .get_template(NAME)
            .map_err(|error| render_error(&error))?;
        let mut text = Bounded::default();
        let rendered = template
            .render_captured_to(Shown::from(Serde(state)), &mut text)
            .map(drop);
        if text.is_full {
            let message = format!(
                "the rendered template is longer than its limit: {MAX_RENDERED_BYTES} bytes"
            );
            return Err(InstructionError::new(InstructionErrorKind::Limit, message));
        }
        rendered.map_err(|error| render_error(&error))?;
        let text = String::from_utf8(text.bytes);
        text.map(Into::into).map_err(|error| {
            InstructionError::failure("the engine wrote no text").with_source(error)
        })
    }

    fn check(&self, state: &Map<String, Value>) -> Result<(), InstructionError> {
        let names = self.required.iter().map(|name| &**name);
        let missing: Vec<&str> = names
            .filter(|name| state.get(*name).is_none_or(Value::is_null))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("missing required variables: {}", missing.join(", "));
        Err(InstructionError::new(
            InstructionErrorKind::Missing,
            message,
        ))
    }
}

fn render_error(error: &minijinja::Error) -> InstructionError {
    broken("the template could not be rendered", error)
}

/// The error in our words; the engine's own holds a copy of the template and its variables.
fn broken(what: &str, error: &minijinja::Error) -> InstructionError {
    let kind = match error.kind() {
        ErrorKind::UndefinedError => InstructionErrorKind::Missing,
        ErrorKind::OutOfFuel => InstructionErrorKind::Limit,
        _ => InstructionErrorKind::Template,
    };
    let place = error
        .line()
        .map(|line| format!(" at line {line}"))
        .unwrap_or_default();
    let why = match (kind, error.detail()) {
        (InstructionErrorKind::Limit, _) => format!("it takes more than {MAX_STEPS} steps"),
        (_, Some(detail)) => format!("{}: {detail}", error.kind()),
        (_, None) => error.kind().to_string(),
    };
    InstructionError::new(kind, format!("{what}{place}: {why}")).at_line(error.line())
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full |= self.bytes.len() + bytes.len() > MAX_RENDERED_BYTES;
        if self.is_full {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}
