//! Tests of the surface.
