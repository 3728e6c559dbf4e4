//! Which extensions wait for which namespace, so that its coming wakes them at once.

use std::collections::HashMap;

use parking_lot::Mutex;

/// Extension → the namespace it waits for.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<String, String>>);

impl Waiting {
    /// `extension` waits for `namespace` from now on.
    pub(crate) fn note(&self, namespace: &str, extension: &str) {
        self.0.lock().insert(extension.to_owned(), namespace.to_owned());
    }

    /// `extension` waits no longer.
    pub(crate) fn clear(&self, extension: &str) {
        self.0.lock().remove(extension);
    }

    /// Those that wait for `namespace`.
    pub(crate) fn on(&self, namespace: &str) -> Vec<String> {
        let waiting = self.0.lock();
        waiting
            .iter()
            .filter(|(_, wanted)| *wanted == namespace)
            .map(|(extension, _)| extension.clone())
            .collect()
    }
}
