//! Formats numbers for people: counts with thousands separators, prices in dollars.

use adjutant::llm::NanoUsd;

/// Formats a count with commas, for example `1,234`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a price with two decimals, or with three if they are needed: `$4.00`, `$0.125`.
pub(crate) fn price(price: NanoUsd) -> String {
    let mills = price.0 / 1_000_000;
    let (dollars, rest) = (mills / 1_000, mills % 1_000);
    if rest.is_multiple_of(10) {
        format!("${dollars}.{:02}", rest / 10)
    } else {
        format!("${dollars}.{rest:03}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouped_puts_commas_when_a_count_is_long() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (1_234_567, "1,234,567"),
        ];
        for (count, expect) in cases {
            assert_eq!(grouped(count), expect);
        }
    }

    #[test]
    fn price_shows_a_third_decimal_when_there_is_one() {
        let cases = [
            (4_000_000_000, "$4.00"),
            (125_000_000, "$0.125"),
            (6_250_000_000, "$6.25"),
            (0, "$0.00"),
        ];
        for (nano, expect) in cases {
            assert_eq!(price(NanoUsd(nano)), expect);
        }
    }
}
