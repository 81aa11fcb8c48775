//! Secrets: the forms of a secret in a text, raw and in the usual encodings, and a comparison in constant time.

/// The digits of base64, in the MIME form and in the URL form.
const DIGITS: [&[u8; 64]; 2] = [
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
];

/// The digits of a shorter secret occur in ordinary words.
const MIN_BASE64: usize = 8;

/// The way a byte is written with hexadecimal digits.
type Escape = fn(u8) -> String;
/// The escapes of addresses and of JSON, with small and great digits.
const ESCAPES: [Escape; 4] = [
    |it| format!("%{it:02x}"),
    |it| format!("%{it:02X}"),
    |it| format!("\\u{it:04x}"),
    |it| format!("\\u{it:04X}"),
];

/// The secret and its encoded forms, the longest first: percent and JSON escapes of some or all bytes, and base64.
///
/// Base64 has a form for each alphabet and each number of bytes that stand before the secret: the digits that stand for
/// it alone.
pub fn forms(secret: &str) -> Vec<String> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let is_unreserved = |byte: &u8| is_word(byte) || b"-_.~".contains(byte);
    let keeps: [&dyn Fn(&u8) -> bool; 3] = [&|_| false, &is_word, &is_unreserved];
    let mut forms = vec![secret.to_owned()];
    for escape in ESCAPES {
        let encoded = |keeps: &dyn Fn(&u8) -> bool| {
            let byte = |it: u8| {
                if keeps(&it) {
                    char::from(it).to_string()
                } else {
                    escape(it)
                }
            };
            secret.bytes().map(byte).collect::<String>()
        };
        forms.extend(keeps.map(encoded));
    }
    let quoted = secret.replace('\\', "\\\\").replace('"', "\\\"");
    forms.push(quoted.replace('/', "\\/"));
    forms.push(quoted);
    for digits in DIGITS.iter().filter(|_| secret.len() >= MIN_BASE64) {
        forms.extend((0..3).map(|before| base64(secret.as_bytes(), before, digits)));
    }
    forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    forms.dedup();
    forms
}

/// True if both are equal. The time does not depend on the number of equal bytes; the length of a secret is public.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differs = one
        .iter()
        .zip(other)
        .fold(0_u8, |differs, (one, other)| differs | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

/// The base64 digits that depend only on these bytes, after `before` other bytes.
fn base64(bytes: &[u8], before: usize, digits: &[u8; 64]) -> String {
    let whole: Vec<u8> = std::iter::repeat_n(0, before)
        .chain(bytes.iter().copied())
        .collect();
    let bit = |at: usize| {
        usize::from(
            whole
                .get(at / 8)
                .is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1),
        )
    };
    // A digit has 6 bits; the first and the last one may contain bits of neighboring data.
    let (first, last) = ((before * 8).div_ceil(6), whole.len() * 8 / 6);
    let value = |at: usize| (0..6).fold(0, |value, part| value << 1 | bit(at * 6 + part));
    (first..last)
        .filter_map(|at| digits.get(value(at)))
        .map(|digit| char::from(*digit))
        .collect()
}
