//! Wrapping of table cells.

/// Shrinks the widest columns until all fit in `room`, but none below its `least` width: words stay whole, so that
/// names can be copied.
pub(super) fn shrink(widths: &mut [usize], least: &[usize], room: usize) {
    let mut cap = widths.iter().copied().max().unwrap_or_default();
    let fitted = |cap: usize| {
        let columns = widths.iter().zip(least);
        columns.map(move |(width, least)| (*width).min(cap.max(*least)))
    };
    while cap > 1 && fitted(cap).sum::<usize>() > room {
        cap -= 1;
    }
    let fitted: Vec<usize> = fitted(cap).collect();
    widths.copy_from_slice(&fitted);
}

/// Returns the lines of `text`, at most `width` long unless a word is longer; at least one line.
pub(super) fn lines(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_column_shrinks() {
        let shrunk = |mut widths: Vec<usize>, least: &[usize], room| {
            shrink(&mut widths, least, room);
            widths
        };
        assert_eq!(shrunk(vec![4, 50, 10], &[4, 5, 10], 40), [4, 26, 10]);
        assert_eq!(shrunk(vec![4, 50, 50], &[4, 5, 5], 44), [4, 20, 20]);
        assert_eq!(shrunk(vec![4, 50], &[4, 30], 20), [4, 30], "words stay whole");
        assert_eq!(shrunk(vec![4, 5], &[4, 5], 20), [4, 5]);
        assert_eq!(shrunk(Vec::new(), &[], 20), [0; 0]);
    }

    #[test]
    fn words_stay_whole_and_none_is_lost() {
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
        assert_eq!(lines("incomprehensible to me", 5), ["incomprehensible", "to me"]);
        assert_eq!(lines("", 0), [""]);
        assert_eq!(lines("a  b", 2), ["a", "b"]);
    }
}
