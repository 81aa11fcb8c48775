//! The routes of an agent, and the client of them.
