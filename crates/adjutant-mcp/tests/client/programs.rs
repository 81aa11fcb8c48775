//! Servers that are programs, or stand behind HTTP.
