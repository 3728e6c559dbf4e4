//! Results of server-side dry runs.

use serde_json::Value;

use crate::diff::{Budget, fields};
use crate::model::{ObjectChange, ObjectRef, Plan};
use crate::objects::desired;

/// Result of applying an object in a dry run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DryRun {
    /// The object on the cluster; none if it does not exist.
    pub before: Option<Value>,
    /// The object as the API server would store it.
    pub after: Value,
}

impl Plan {
    /// Replaces the comparison of revisions by the results of dry runs, for the objects that have one. Fields are then those that the
    /// API server would write, also where others changed the object. The digest stays.
    pub fn observe(&mut self, runs: Vec<DryRun>) {
        let (mut befores, mut afters) = (Vec::new(), Vec::new());
        for run in runs {
            befores.extend(run.before);
            afters.push(run.after);
        }
        let (before, after) = (desired(befores), desired(afters));
        let planned = self.counts.created + self.counts.changed + self.counts.unchanged;
        let mut budget = Budget::default();
        for (key, new) in &after {
            let object = ObjectRef::of(new);
            self.created.retain(|other| !other.same_object(&object));
            self.changed.retain(|other| !other.object.same_object(&object));
            let Some(old) = before.get(key) else {
                self.created.push(object);
                continue;
            };
            let found = fields(old, new, &mut budget);
            if !found.changes.is_empty() || found.more > 0 {
                self.changed.push(ObjectChange {
                    object,
                    fields: found.changes,
                    more: found.more,
                });
            }
        }
        self.created.sort();
        self.changed.sort_by(|a, b| a.object.cmp(&b.object));
        self.counts.created = self.created.len();
        self.counts.changed = self.changed.len();
        self.counts.unchanged = planned.saturating_sub(self.counts.created + self.counts.changed);
        self.counts.fields = self
            .changed
            .iter()
            .map(|change| change.fields.len() + change.more)
            .sum();
    }
}
