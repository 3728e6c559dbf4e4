//! Search for the end of a JSON value without parsing it.

/// Automaton over the bytes of a JSON value. It knows only strings and brackets, so an accepted text may still be
/// invalid.
#[derive(Debug, Default)]
pub(crate) struct JsonExtent {
    state: State,
    escaped: bool,
    depth: usize,
    deepest: usize,
    /// White space before the value in the current chunk, in bytes.
    skipped: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    /// Inside brackets.
    Inside,
    InString,
    /// Inside a number outside of all brackets.
    InNumber(Part),
    /// Inside a word outside of all brackets; the number of remaining letters.
    InWord(u8),
    Finished,
}

/// Last part of a number that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Sign,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Part {
    /// Returns the part after one more byte, or `None` if the number ended before the byte.
    fn with(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Sign, b'0') => Self::Zero,
            (Self::Sign | Self::Whole, b'0'..=b'9') => Self::Whole,
            (Self::Zero | Self::Whole, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Self::Exponent,
            (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => Self::ExponentDigits,
            _ => return None,
        })
    }
}

impl JsonExtent {
    /// Returns true if the value is complete.
    pub(crate) fn finished(&self) -> bool {
        self.state == State::Finished
    }

    /// Returns the deepest nesting so far.
    pub(crate) fn deepest(&self) -> usize {
        self.deepest
    }

    /// Returns the number of bytes before the value in the last chunk.
    pub(crate) fn take_skipped(&mut self) -> usize {
        std::mem::take(&mut self.skipped)
    }

    /// Advances through `chunk` up to the end of the value; returns the number of bytes used.
    ///
    /// Most of a catalog is text and icons, so strings are skipped many bytes at a time.
    pub(crate) fn advance(&mut self, chunk: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            match self.state {
                State::Finished => return at,
                State::InString => {
                    at = self.pass_string(chunk, at);
                    continue;
                }
                State::InNumber(part) => {
                    let Some(part) = part.with(byte) else {
                        self.state = State::Finished;
                        return at;
                    };
                    self.state = State::InNumber(part);
                }
                State::InWord(left) => {
                    self.state = if left > 1 {
                        State::InWord(left - 1)
                    } else {
                        State::Finished
                    };
                }
                State::Before | State::Inside => {}
            }
            at += 1;
            match (self.state, byte) {
                (State::Before, _) if byte.is_ascii_whitespace() => self.skipped = at,
                (State::Before | State::Inside, b'"') => self.state = State::InString,
                (State::Before | State::Inside, b'{' | b'[') => {
                    self.state = State::Inside;
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                }
                (State::Inside, b'}' | b']') => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.state = State::Finished;
                    }
                }
                (State::Before, b'-') => self.state = State::InNumber(Part::Sign),
                (State::Before, b'0') => self.state = State::InNumber(Part::Zero),
                (State::Before, b'1'..=b'9') => self.state = State::InNumber(Part::Whole),
                (State::Before, b't' | b'n') => self.state = State::InWord(3),
                (State::Before, b'f') => self.state = State::InWord(4),
                // Not a value; the JSON parser reports it.
                (State::Before, _) => self.state = State::Finished,
                _ => {}
            }
        }
        chunk.len()
    }

    /// Skips a string from `at` to its end or to the end of the chunk; returns the new position.
    fn pass_string(&mut self, chunk: &[u8], mut at: usize) -> usize {
        if self.escaped {
            self.escaped = false;
            at += 1;
        }
        while let Some(rest) = chunk.get(at..) {
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                return chunk.len();
            };
            at += found;
            if chunk.get(at) == Some(&b'"') {
                self.state = if self.depth == 0 {
                    State::Finished
                } else {
                    State::Inside
                };
                return at + 1;
            }
            // The backslash and the escaped byte, which may be in the next chunk.
            at += 2;
            self.escaped = at > chunk.len();
        }
        chunk.len()
    }
}
