//! Sizes and times, with their units.

/// Parses bytes: `500`, `50M`, `50MiB`, `1.5G`. K, M and G are 1024, 1024² and 1024³ bytes, with or without `iB`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: a number of bytes, or with K, M or G, as in 50M or 50MiB");
    let plain = text.strip_suffix("iB").filter(|plain| plain.ends_with(['K', 'M', 'G'])).unwrap_or(text);
    let (number, shift) = match plain.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&plain[..at], 10),
        Some((at, 'M' | 'm')) => (&plain[..at], 20),
        Some((at, 'G' | 'g')) => (&plain[..at], 30),
        _ => (plain, 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 6 || (shift == 0 && !part.is_empty()) {
        return Err(wrong());
    }
    let unit = 1_u64 << shift;
    let whole = whole.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)?;
    let part = if part.is_empty() { 0 } else { part.parse::<u64>().map_err(|_| wrong())? * unit / 10_u64.pow(part.len() as u32) };
    whole.checked_add(part).ok_or_else(wrong)
}

/// Parses seconds: `90s`, `15m`, `12h`, `30d`, `8w`.
pub fn age(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is not an age: a number and s, m, h, d or w, as in 30d");
    let (at, unit) = text.char_indices().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number = &text[..at];
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    number.parse::<i64>().ok().and_then(|n| n.checked_mul(seconds)).ok_or_else(wrong)
}

/// `2w`, `30d`, `90s`: text that [`age`] reads as these seconds, in the largest unit that divides them.
pub fn age_word(seconds: i64) -> String {
    let units = [(7 * 86_400, 'w'), (86_400, 'd'), (3600, 'h'), (60, 'm')];
    let whole = units.into_iter().find(|(unit, _)| seconds > 0 && seconds % unit == 0);
    let (unit, word) = whole.unwrap_or((1, 's'));
    format!("{}{word}", seconds / unit)
}

/// `1G`, `500M`, `12`: text that [`size`] reads as these bytes, in the largest unit that divides them.
pub fn size_word(bytes: u64) -> String {
    let whole = [(30, "G"), (20, "M"), (10, "K")].into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    let (shift, word) = whole.unwrap_or((0, ""));
    format!("{}{word}", bytes >> shift)
}

/// Parses seconds up to an hour: `90s`, `2m`. `None` for `0s`, which means no limit.
pub fn silence(text: &str) -> Result<Option<u32>, String> {
    let seconds = age(text)?;
    let known = u32::try_from(seconds).ok().filter(|seconds| *seconds <= 3600);
    Ok(Some(known.ok_or_else(|| format!("{text:?}: at most an hour; 0s means no limit"))?).filter(|seconds| *seconds > 0))
}

/// A number with a comma at each thousand: `2,289`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `512 B`, `4.0 KiB`, `12 MiB`: at least two digits, binary units.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = u128::from(bytes) * 10;
    for unit in UNITS {
        tenths = (tenths + 512) / 1024;
        if tenths < 100 {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
        if tenths < 10_240 || unit == "PiB" {
            return format!("{} {unit}", tenths / 10);
        }
    }
    String::new()
}
