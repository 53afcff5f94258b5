//! Sizes and times, with their units.

/// Bytes from `500`, `50M`, `1.5G`: binary units K, M, G.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size: a number and K, M or G, as in 50M");
    let (number, shift) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
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

/// Seconds from `90s`, `15m`, `12h`, `30d`, `8w`.
pub fn age(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is no age: a number and s, m, h, d or w, as in 30d");
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

/// Seconds up to an hour from `90s`, `2m`; none from `0s`, which is for ever.
pub fn silence(text: &str) -> Result<Option<u32>, String> {
    let seconds = age(text)?;
    let known = u32::try_from(seconds).ok().filter(|seconds| *seconds <= 3600);
    Ok(Some(known.ok_or_else(|| format!("{text:?}: an hour is the most; 0s means for ever"))?).filter(|seconds| *seconds > 0))
}
