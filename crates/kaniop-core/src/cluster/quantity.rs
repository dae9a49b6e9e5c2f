//! Kubernetes quantities as numbers, to see whether two spellings mean the same (`1Gi` and `1024Mi`). Never writes one.

/// The quantity in billionths, the smallest unit that Kubernetes has. `None` for what is not a quantity or absurdly large.
#[must_use]
pub fn nanos(text: &str) -> Option<i128> {
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, unit) = (text.get(..unit_at)?, text.get(unit_at..)?);
    let (numerator, denominator) = scale(unit)?;
    let negative = number.starts_with('-');
    let number = number.strip_prefix(['+', '-']).unwrap_or(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let places = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let scaled = digits.parse::<i128>().ok()?.checked_mul(numerator)?.checked_mul(1_000_000_000)?;
    let value = scaled.checked_div(denominator.checked_mul(places)?)?;
    Some(if negative { -value } else { value })
}

fn scale(unit: &str) -> Option<(i128, i128)> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    let power =
        |units: &[&str]| units.iter().position(|known| *known == unit).and_then(|at| u32::try_from(at + 1).ok());
    match unit {
        "" => Some((1, 1)),
        "m" => Some((1, 1_000)),
        "u" => Some((1, 1_000_000)),
        "n" => Some((1, 1_000_000_000)),
        _ => match (power(&BINARY), power(&DECIMAL)) {
            (Some(power), _) => Some((1024_i128.checked_pow(power)?, 1)),
            (None, Some(power)) => Some((1000_i128.checked_pow(power)?, 1)),
            (None, None) => exponent(unit),
        },
    }
}

fn exponent(unit: &str) -> Option<(i128, i128)> {
    let power: i32 = unit.strip_prefix(['e', 'E'])?.parse().ok()?;
    let factor = 10_i128.checked_pow(power.unsigned_abs())?;
    Some(if power < 0 { (1, factor) } else { (factor, 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_quantity_are_equal() {
        for (a, b) in [
            ("1Gi", "1024Mi"),
            ("0.5", "500m"),
            ("1e3", "1k"),
            ("1.5Gi", "1536Mi"),
            ("2E", "2000P"),
            ("100", "1E2"),
            ("+1", "1"),
        ] {
            assert_eq!(nanos(a).unwrap(), nanos(b).unwrap(), "{a} = {b}");
        }
        assert_ne!(nanos("1Gi"), nanos("1G"));
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        for text in ["", "Gi", "1 Gi", "1Zi", "one", "1.2.3", "--1", "1ee3"] {
            assert_eq!(nanos(text), None, "{text:?}");
        }
    }
}
