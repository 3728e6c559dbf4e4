//! Extensions that wait for a namespace, so that its creation triggers them.

use std::collections::HashMap;

use parking_lot::Mutex;

/// Namespace that each waiting extension needs, by name of the extension.
#[derive(Debug, Default)]
pub(crate) struct NamespaceWaiters(Mutex<HashMap<String, String>>);

impl NamespaceWaiters {
    /// Adds `extension` to those that wait for `namespace`.
    pub(crate) fn insert(&self, namespace: &str, extension: &str) {
        self.0.lock().insert(extension.to_owned(), namespace.to_owned());
    }

    /// Removes `extension`, so that no namespace triggers it any more.
    pub(crate) fn remove(&self, extension: &str) {
        self.0.lock().remove(extension);
    }

    /// Returns the extensions that wait for `namespace`.
    pub(crate) fn of(&self, namespace: &str) -> Vec<String> {
        let waiting = self.0.lock();
        waiting
            .iter()
            .filter(|(_, wanted)| *wanted == namespace)
            .map(|(extension, _)| extension.clone())
            .collect()
    }
}
