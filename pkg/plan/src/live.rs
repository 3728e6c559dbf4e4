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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Counts;

    fn object(name: &str, value: usize, keys: usize) -> Value {
        let data: serde_json::Map<String, Value> = (0..keys)
            .map(|key| (format!("k{key:03}"), json!(value.to_string())))
            .collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
    }

    fn run(name: &str, keys: usize) -> DryRun {
        DryRun {
            before: Some(object(name, 1, keys)),
            after: object(name, 2, keys),
        }
    }

    #[test]
    fn counts_follow_what_the_api_server_would_write() {
        let mut plan = Plan {
            counts: Counts {
                created: 3,
                changed: 2,
                unchanged: 4,
                ..Counts::default()
            },
            ..Plan::default()
        };
        let new = DryRun {
            before: None,
            after: object("new", 1, 1),
        };
        plan.observe(vec![new, run("a", 2), run("b", 150)]);
        let counts = &plan.counts;
        assert_eq!((counts.created, counts.changed, counts.unchanged), (1, 2, 6));
        assert_eq!(counts.fields, 152, "with the fields that are not named");
        assert_eq!(plan.changed[1].more, 50);
    }

    #[test]
    fn an_object_whose_fields_have_no_room_is_still_changed() {
        let mut plan = Plan::default();
        // Each takes as much room as an object may, so that the last ones have none.
        plan.observe((0..60).map(|at| run(&format!("c{at:02}"), 100)).collect());
        assert_eq!(plan.changed.len(), 60);
        let last = &plan.changed[59];
        assert_eq!((last.fields.len(), last.more), (0, 100));
    }
}
