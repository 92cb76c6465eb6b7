//! Numbers with units in the values of parameters: `20ms`, `12Mbps`.

/// Splits `12.5Mbps` into 12.5 and `Mbps`. A text without a number gives NaN.
pub(crate) fn split_unit(text: &str) -> Option<(f64, &str)> {
    let end = text
        .char_indices()
        .find(|&(i, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && text[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-');
            !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+') || exponent)
        })
        .map_or(text.len(), |(i, _)| i);
    if end == 0 {
        return Some((f64::NAN, text));
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The length of a unit of time in seconds.
pub(crate) fn seconds(unit: &str) -> Option<f64> {
    match unit {
        "s" => Some(1.0),
        "ms" => Some(1e-3),
        "us" => Some(1e-6),
        "ns" => Some(1e-9),
        _ => None,
    }
}

/// The size of a unit of rates in bit/s.
pub(super) fn bits_per_second(unit: &str) -> Option<f64> {
    match unit {
        "bps" => Some(1.0),
        "kbps" => Some(1e3),
        "Mbps" => Some(1e6),
        "Gbps" => Some(1e9),
        _ => None,
    }
}
