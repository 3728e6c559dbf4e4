//! Members of an object in canonical text, and their order.

use std::cmp::Ordering;

/// Range of an object's member in the canonical text, `"key":value`.
#[derive(Clone, Copy)]
pub(super) struct Member {
    start: u32,
    end: u32,
}

impl Member {
    /// Returns `None` beyond 4 GiB.
    pub(super) fn new(start: usize, end: usize) -> Option<Self> {
        Some(Self {
            start: u32::try_from(start).ok()?,
            end: u32::try_from(end).ok()?,
        })
    }

    fn text(self, out: &str) -> &str {
        out.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    /// Compares the keys of two members of `out`.
    pub(super) fn compare(self, other: Self, out: &str) -> Ordering {
        key(self.text(out)).cmp(key(other.text(out)))
    }
}

/// Returns the characters of a member's key, whose escapes are those of [`crate::canonical::string`]. Their order is the bytewise
/// order of the keys.
fn key(member: &str) -> impl Iterator<Item = char> {
    let mut rest = member.chars();
    // The opening quote.
    rest.next();
    std::iter::from_fn(move || match rest.next()? {
        '"' => None,
        '\\' => match rest.next()? {
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'u' => {
                let code = rest.as_str().get(..4)?;
                rest.nth(3)?;
                char::from_u32(u32::from_str_radix(code, 16).ok()?)
            }
            escaped => Some(escaped),
        },
        plain => Some(plain),
    })
}

/// Sorts the members that fill `out` from `first` on. The last of equal keys wins.
pub(super) fn reorder(out: &mut String, scratch: &mut String, first: usize, members: &mut [Member]) {
    // Later members come first among equals, so that the effective one is kept.
    members.sort_unstable_by(|a, b| a.compare(*b, out).then(b.start.cmp(&a.start)));
    scratch.clear();
    let mut kept: Option<Member> = None;
    for &member in members.iter() {
        if kept.is_some_and(|kept| kept.compare(member, out).is_eq()) {
            continue;
        }
        if kept.is_some() {
            scratch.push(',');
        }
        scratch.push_str(member.text(out));
        kept = Some(member);
    }
    out.truncate(first);
    out.push_str(scratch);
}
