//! Tests of the view.
