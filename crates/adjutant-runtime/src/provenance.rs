//! Which bytes an agent runs.
