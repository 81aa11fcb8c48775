//! Calls: their steps, pauses and results.
