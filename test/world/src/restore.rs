//! State that comes from another API server.

use serde_json::Value;

use crate::store::Key;
use crate::world::World;

impl World {
    /// Stores an object as another API server holds it, with its uid and resource version; `None` removes it. Nothing is checked.
    pub fn restore(&mut self, key: &Key, object: Option<Value>) {
        let event = self.store.write(key, |_| object);
        if key.plural == "customresourcedefinitions" {
            self.refresh_kind(&key.name, event.after.as_ref());
        }
    }
}
