//! The message of a panic.

use std::any::Any;

/// The number of bytes of a panic's message that are kept.
const MAX_PANIC: usize = 1_000;

/// The message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no message");
    text[..text.floor_char_boundary(MAX_PANIC)].to_owned()
}
