//! Which image a tag means, remembered for a while: a tag may move, but not every reconcile asks the registry.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use olm_image::CanonicalRef;
use parking_lot::Mutex;

/// How long an answer of the registry is good.
pub(crate) const TAG_INTERVAL: Duration = Duration::from_mins(10);

struct Known {
    reference: String,
    image: CanonicalRef,
    since: Instant,
}

/// By extension: the tag asked for last, and what it meant.
#[derive(Default)]
pub(crate) struct Tags(Mutex<HashMap<String, Known>>);

impl Tags {
    /// What `reference` meant, where it was asked for `extension` less than [`TAG_INTERVAL`] ago.
    pub(crate) fn recall(&self, extension: &str, reference: &str, now: Instant) -> Option<CanonicalRef> {
        let tags = self.0.lock();
        let known = tags.get(extension)?;
        let good = known.reference == reference && now.duration_since(known.since) < TAG_INTERVAL;
        good.then(|| known.image.clone())
    }

    /// The registry's answer.
    pub(crate) fn learn(&self, extension: &str, reference: &str, image: &CanonicalRef, now: Instant) {
        let known = Known {
            reference: reference.to_owned(),
            image: image.clone(),
            since: now,
        };
        self.0.lock().insert(extension.to_owned(), known);
    }

    /// Whether an answer is kept, so that it is to be asked again some time.
    pub(crate) fn knows(&self, extension: &str) -> bool {
        self.0.lock().contains_key(extension)
    }

    /// The next look asks the registry.
    pub(crate) fn forget(&self, extension: &str) {
        self.0.lock().remove(extension);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_good_for_its_reference_and_its_time() {
        let tags = Tags::default();
        let image: CanonicalRef = format!("example.com/a@sha256:{}", "0".repeat(64))
            .parse()
            .unwrap();
        let start = Instant::now();
        tags.learn("x", "example.com/a:1", &image, start);
        assert_eq!(tags.recall("x", "example.com/a:1", start), Some(image));
        assert_eq!(tags.recall("x", "example.com/a:2", start), None);
        assert_eq!(tags.recall("y", "example.com/a:1", start), None);
        assert_eq!(tags.recall("x", "example.com/a:1", start + TAG_INTERVAL), None);
        tags.forget("x");
        assert!(!tags.knows("x"));
    }
}
