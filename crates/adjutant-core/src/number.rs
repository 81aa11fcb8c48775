//! Numbers that count records, runs, turns and posts.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}

numbers! {
    /// The place of a record in its log, counted from 1; 0 is before the first one.
    Seq;
    /// The number of a run in its thread, counted from 1.
    RunNo;
    /// The number of a turn in its thread, counted from 1 over all runs.
    TurnNo;
    /// The number of a post in the inbox of its log, counted from 1; 0 is before the first one.
    PostNo;
}
