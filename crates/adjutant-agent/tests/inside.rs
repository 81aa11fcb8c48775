//! Parts of the library that have tests of their own, read from its folder: for these few, all of it would be built again.

#[path = "../src"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the library uses the rest of them"
)]
mod src {
    #[path = "executor/bound.rs"]
    mod bound;
    #[path = "effects/clip.rs"]
    mod clip;
    mod queue;
    mod writer;
}
