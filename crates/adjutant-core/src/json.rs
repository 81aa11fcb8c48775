//! JSON that can be read again: a value with too much nesting could be written, but never read.

/// The greatest depth of JSON that is stored.
pub const MAX_DEPTH: usize = 120;

/// Returns how deep arrays and objects lie in each other in a JSON text.
pub fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match (quoted, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => quoted = !quoted,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
