//! Dates of the schema.

use jiff::civil::Date;

/// Reads `YYYY-MM-DD` and no other form. jiff's own parser also reads times and shorter forms.
pub(super) fn parse(text: &str) -> Option<Date> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let number = |digits: &str, length: usize| {
        let sound = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit());
        sound.then(|| digits.parse::<i16>().ok()).flatten()
    };
    let month = i8::try_from(number(month, 2)?).ok()?;
    let day = i8::try_from(number(day, 2)?).ok()?;
    Date::new(number(year, 4)?, month, day).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dates_of_the_calendar_are_read() {
        for text in ["2024-02-29", "0001-01-01", "9999-12-31"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "2023-02-29",
            "2024-13-01",
            "2024-1-01",
            "24-01-01",
            "2024-01-01T00:00:00.000Z",
            "20240101",
            "-2024-01-01",
            "+2024-01-01",
            "2024-01-01 ",
            "N/A",
            "２024-01-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
