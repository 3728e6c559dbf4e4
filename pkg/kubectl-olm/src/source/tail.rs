//! End of a text that arrives in parts, such as a log. Pure.

/// Newest lines of a text, with a limited size.
#[derive(Debug)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    max_bytes: usize,
    lines_left: usize,
    cut: bool,
}

impl Tail {
    /// Starts a text of which the last `max_bytes` are kept. The source sends at most `max_lines`.
    pub(crate) fn new(max_bytes: usize, max_lines: usize) -> Self {
        Self {
            bytes: Vec::new(),
            max_bytes,
            lines_left: max_lines,
            cut: false,
        }
    }

    /// Adds a part.
    pub(crate) fn push(&mut self, part: &[u8]) {
        let lines = memchr::memchr_iter(b'\n', part).count();
        self.lines_left = self.lines_left.saturating_sub(lines);
        self.bytes.extend_from_slice(part);
        // Rarely, so that few bytes move for each byte that arrives.
        if self.bytes.len() > self.max_bytes.saturating_mul(2) {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let surplus = self.bytes.len().saturating_sub(self.max_bytes);
        self.bytes.drain(..surplus);
        self.cut |= surplus > 0;
    }

    /// Returns the whole lines at the end, and true if they are the whole text.
    pub(crate) fn finish(mut self) -> (String, bool) {
        self.trim();
        if self.cut {
            let end = memchr::memchr(b'\n', &self.bytes).map_or(0, |end| end + 1);
            self.bytes.drain(..end);
        }
        let whole = !self.cut && self.lines_left > 0;
        (String::from_utf8_lossy(&self.bytes).into_owned(), whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(parts: &[&str]) -> (String, bool) {
        let mut tail = Tail::new(10, 4);
        for part in parts {
            tail.push(part.as_bytes());
        }
        tail.finish()
    }

    #[test]
    fn the_newest_lines_are_kept() {
        let result = |text: &str, whole| (text.to_owned(), whole);
        assert_eq!(tail(&[]), result("", true));
        assert_eq!(tail(&["one\n", "two\n"]), result("one\ntwo\n", true));
        assert_eq!(tail(&["one\ntwo\nthree"]), result("two\nthree", false));
        assert_eq!(tail(&["one\n"; 9]), result("one\none\n", false));
        // The source has sent as many lines as it was asked for, so there may be more.
        assert_eq!(tail(&["a\nb\nc\n", "d\n"]), result("a\nb\nc\nd\n", false));
        assert_eq!(tail(&["0123456789abcdef"]), result("6789abcdef", false));
    }
}
