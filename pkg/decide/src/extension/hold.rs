//! Says in the status that the installed operator holds an upgrade.

use olm_plan::Plan;
use olm_rollout::hold::Hold;
use olm_status::cluster_extension::Progress;

use super::admission::{Waiting, counts, subject};
use super::history::BundleRef;
use super::plan;

/// Returns the wait for the installed operator, which holds `plan` of `bundle` by a condition of `object`.
pub fn waiting(bundle: &BundleRef, plan: &Plan, object: &str, hold: &Hold) -> Waiting {
    let pending = plan::pending(plan, bundle, &[]);
    let next = if hold.is_override() {
        "It is rolled out when an administrator removes or changes the override"
    } else {
        "It is rolled out when the operator changes the condition, or when an OperatorCondition overrides it; see docs/rollouts.md"
    };
    let message = format!(
        "{} is held by the installed operator: {object} has {hold}; {}. {next}",
        subject(bundle),
        counts(&pending)
    );
    Waiting {
        progress: Progress::HeldByOperator(message),
        pending,
    }
}

#[cfg(test)]
mod tests {
    use olm_rollout::hold::{Opinion, of_operator_condition};
    use olm_text::name::ImageText;
    use serde_json::json;

    use super::*;

    fn message(field: &str) -> String {
        let object = json!({"spec": {field: [{"type": "Upgradeable", "status": "False", "reason": "Busy", "message": "no"}]}});
        let Opinion::Holds(hold) = of_operator_condition(&object) else {
            panic!("{object} holds nothing");
        };
        let bundle = BundleRef {
            name: "a.v1.1.0".into(),
            version: "1.1.0".into(),
            package: "a".into(),
            image: ImageText::from("registry.example/a:1.1.0".to_owned()).into(),
            catalog: None,
        };
        let waiting = waiting(&bundle, &Plan::default(), "OperatorCondition ns/\"a\"", &hold);
        assert_eq!(waiting.pending.required_by, None);
        match waiting.progress {
            Progress::HeldByOperator(message) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_message_names_object_cause_and_next_step() {
        assert_eq!(
            message("conditions"),
            "Version 1.1.0 (bundle \"a.v1.1.0\") is held by the installed operator: OperatorCondition ns/\"a\" has Upgradeable=False \
             in spec.conditions (Busy: no); objects to create: 0, to change: 0, to delete: 0. It is \
             rolled out when the operator changes the condition, or when an OperatorCondition overrides it; see docs/rollouts.md"
        );
        assert!(message("overrides").ends_with("removes or changes the override"));
    }
}
