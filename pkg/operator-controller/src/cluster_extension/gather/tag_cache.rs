//! Cache of the images that tags point to: a tag may move, but not every pass asks the registry.

use std::collections::HashMap;
use std::time::Duration;

use olm_image::CanonicalRef;
use olm_text::name::ImageText;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Lifetime of an entry: longest delay until a moved tag is noticed.
pub(crate) const TAG_INTERVAL: Duration = Duration::from_mins(10);

struct CachedTag {
    reference: ImageText,
    image: CanonicalRef,
    since: Instant,
}

/// Last resolved tag of each extension, by name of the extension.
#[derive(Default)]
pub(crate) struct TagCache(Mutex<HashMap<String, CachedTag>>);

impl TagCache {
    /// Returns the image of `reference`, if it was cached for `extension` less than [`TAG_INTERVAL`] ago.
    pub(crate) fn get(&self, extension: &str, reference: &ImageText, now: Instant) -> Option<CanonicalRef> {
        let tags = self.0.lock();
        let cached = tags.get(extension)?;
        let valid = cached.reference == *reference && now.duration_since(cached.since) < TAG_INTERVAL;
        valid.then(|| cached.image.clone())
    }

    /// Caches the image that the registry returned for `reference`.
    pub(crate) fn insert(&self, extension: &str, reference: &ImageText, image: &CanonicalRef, now: Instant) {
        let cached = CachedTag {
            reference: reference.clone(),
            image: image.clone(),
            since: now,
        };
        self.0.lock().insert(extension.to_owned(), cached);
    }

    /// Returns true if a tag of `extension` is cached, valid or not.
    pub(crate) fn contains(&self, extension: &str) -> bool {
        self.0.lock().contains_key(extension)
    }

    /// Removes the tag of `extension`, so that the next pass asks the registry.
    pub(crate) fn remove(&self, extension: &str) {
        self.0.lock().remove(extension);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_valid_for_its_reference_and_its_lifetime() {
        let tags = TagCache::default();
        let image: CanonicalRef = format!("example.com/a@sha256:{}", "0".repeat(64))
            .parse()
            .unwrap();
        let first = ImageText::from("example.com/a:1");
        let start = Instant::now();
        tags.insert("x", &first, &image, start);
        assert_eq!(tags.get("x", &first, start), Some(image));
        assert_eq!(tags.get("x", &"example.com/a:2".into(), start), None);
        assert_eq!(tags.get("y", &first, start), None);
        assert_eq!(tags.get("x", &first, start + TAG_INTERVAL), None);
        tags.remove("x");
        assert!(!tags.contains("x"));
    }
}
