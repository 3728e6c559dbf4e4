//! Findings of the CRD comparison without a waiver, and their message.

use std::collections::BTreeMap;

use olm_api::CrdUpgradeWaiver;
use olm_bundle::crd_safety::{
    self, Finding, Rules, SERVED_REMOVAL, STORED_REMOVAL, ServedVerdict, UnservedVersions, Waiver,
};
use olm_text::head;
use serde_json::Value;

/// Longest text of all findings in a message, in bytes. The rest of 1 KiB holds the text around them.
const TEXT_LIMIT: usize = 700;
/// Least space for findings next to the steps of a migration, in bytes.
const TEXT_LEAST: usize = 200;
/// Longest name of an extension in a message, in bytes.
pub const NAME_LIMIT: usize = 64;
/// Longest text of the unused waivers, in bytes.
const IDLE_LIMIT: usize = 100;

/// Direction in which the CRDs of an extension change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrdChange {
    /// A bundle brings the CRDs: a change that could harm an object is refused.
    Upgrade,
    /// A former revision brings them back. What the newer one added is removed, so the stored objects decide if that harms any.
    Rollback,
}

/// Findings of all CRDs of a bundle.
pub struct Findings<'a> {
    /// Findings that are not waived, each with its CRD.
    pub refused: Vec<String>,
    /// Changes that may be unsafe, each with its CRD.
    pub warnings: Vec<String>,
    /// Findings that hold unless no stored object is harmed, by CRD and with it.
    left_to_objects: BTreeMap<String, Vec<String>>,
    /// Steps that remove the old stored version of the first CRD.
    steps: Option<String>,
    change: CrdChange,
    waivers: &'a [CrdUpgradeWaiver],
    /// Per waiver, true if it covered a finding.
    met: Vec<bool>,
}

impl<'a> Findings<'a> {
    /// Returns no findings yet, for a change that these waivers accept in part.
    pub fn new(waivers: &'a [CrdUpgradeWaiver], change: CrdChange) -> Self {
        Self {
            refused: Vec::new(),
            warnings: Vec::new(),
            left_to_objects: BTreeMap::new(),
            steps: None,
            change,
            waivers,
            met: vec![false; waivers.len()],
        }
    }

    /// Compares two CRDs. Returns the versions that are no longer served, unless a waiver covers them: their use must
    /// be checked.
    pub fn compare(&mut self, crd: &str, old: &Value, new: &Value, rules: Rules) -> Option<UnservedVersions> {
        let unserved = crd_safety::unserved_versions(old, new).filter(|_| rules == Rules::Ours);
        let mut found = crd_safety::check(old, new, rules);
        found.extend(unserved.iter().flat_map(UnservedVersions::presumed));
        let own: Vec<usize> = (0..self.waivers.len())
            .filter(|at| self.waivers.get(*at).is_some_and(|waiver| waiver.crd == crd))
            .collect();
        let waivers = own.iter().filter_map(|at| self.waivers.get(*at));
        let waivers: Vec<Waiver> = waivers.map(waiver).collect();
        let (left, used) = crd_safety::waive(found, &waivers);
        for (at, used) in own.into_iter().zip(used) {
            if let Some(met) = self.met.get_mut(at) {
                *met |= used;
            }
        }
        let (presumed, left): (Vec<Finding>, Vec<Finding>) = left
            .into_iter()
            .partition(|finding| finding.rule == SERVED_REMOVAL);
        if self.steps.is_none() && left.iter().any(|finding| finding.rule == STORED_REMOVAL) {
            self.steps = crd_safety::migration(old, new);
        }
        let (by_objects, left): (Vec<Finding>, Vec<Finding>) = left
            .into_iter()
            .partition(|finding| self.change == CrdChange::Rollback && finding.is_decided_by_objects());
        if !by_objects.is_empty() {
            self.left_to_objects
                .insert(crd.to_owned(), lines(crd, &by_objects));
        }
        self.refused.extend(lines(crd, &left));
        unserved.filter(|_| !presumed.is_empty())
    }

    /// Takes the findings of a CRD that hold unless no stored object is harmed.
    pub fn take_left_to_objects(&mut self, crd: &str) -> Vec<String> {
        self.left_to_objects.remove(crd).unwrap_or_default()
    }

    /// Adds the verdict on versions that are no longer served.
    pub fn add(&mut self, crd: &str, served: ServedVerdict) {
        self.refused.extend(lines(crd, &served.findings));
        let warnings = served.warnings.into_iter();
        self.warnings
            .extend(warnings.map(|warning| format!("CRD \"{crd}\": {warning}")));
    }

    /// Returns the waivers that cover no finding.
    pub fn idle(&self) -> Vec<String> {
        let all = self.waivers.iter().zip(&self.met);
        all.filter(|(_, met)| !**met)
            .map(|(waiver, _)| shown(waiver))
            .collect()
    }

    /// Returns the findings in the form of the status.
    pub fn message(&self, extension: &str) -> String {
        message(extension, &self.refused, self.steps.as_deref(), &self.idle())
    }
}

fn lines(crd: &str, findings: &[Finding]) -> Vec<String> {
    let line = |finding| format!("validating upgrade for CRD \"{crd}\": {finding}");
    findings.iter().map(line).collect()
}

fn waiver(given: &CrdUpgradeWaiver) -> Waiver {
    Waiver {
        rule: given.rule.as_str().to_owned(),
        path: given.path.clone().unwrap_or_default(),
    }
}

/// Returns the text of a waiver.
fn shown(waiver: &CrdUpgradeWaiver) -> String {
    let path = waiver.path.as_deref().unwrap_or_default();
    let place = if path.is_empty() {
        String::new()
    } else {
        format!(" at {path}")
    };
    format!("{} of {}{place}", waiver.rule.as_str(), waiver.crd)
}

/// Returns as many findings as fit, one a line, then the number of the others and the next steps.
fn message(extension: &str, findings: &[String], steps: Option<&str>, idle: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    let short = format!(
        "`kubectl olm crd-safety --extension {}` shows how to go on",
        head(extension, NAME_LIMIT)
    );
    // Half a command is worse than none.
    let steps = steps.map(|steps| {
        if steps.len() + TEXT_LEAST <= TEXT_LIMIT {
            steps
        } else {
            short.as_str()
        }
    });
    let limit = TEXT_LIMIT - steps.map_or(0, str::len);
    for finding in findings {
        let line = head(finding, limit);
        if bytes > 0 && bytes + line.len() >= limit {
            break;
        }
        bytes += line.len() + 1;
        lines.push(line.to_owned());
    }
    let left = findings.len() - lines.len();
    lines.extend(steps.map(|steps| format!("{steps}.")));
    if left > 0 {
        lines.push(format!(
            "(and {left} more: `kubectl olm crd-safety --extension {}` names all)",
            head(extension, NAME_LIMIT)
        ));
    }
    if !idle.is_empty() {
        let idle = idle.join("; ");
        lines.push(format!(
            "(waivers that match nothing: {})",
            head(&idle, IDLE_LIMIT)
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use olm_api::{CrdUpgradeRule, CrdUpgradeWaiver};
    use olm_bundle::crd_safety::{Rules, VersionUses};
    use serde_json::{Value, json};

    use super::{CrdChange, Findings, message};

    #[test]
    fn messages_are_short_and_whole_lines() {
        let one = vec!["validating upgrade for CRD \"a\": scope: x".to_owned()];
        assert_eq!(message("e", &one, None, &[]), one[0]);
        let many: Vec<String> = (0..500)
            .map(|n| format!("finding {n} {}", "ä".repeat(40)))
            .collect();
        let text = message(&"e".repeat(253), &many, None, &["type of a at ^.b".to_owned()]);
        assert!(text.len() < 1024 - 64, "{}", text.len());
        assert!(text.contains("more: `kubectl olm crd-safety --extension eee"));
        assert!(text.ends_with("(waivers that match nothing: type of a at ^.b)"));
        assert!(message("e", &["ä".repeat(5000)], None, &[]).len() < 1024);
    }

    #[test]
    fn a_message_has_as_many_findings_as_fit() {
        let many = vec!["nine more".to_owned(); 100];
        let text = message("e", &many, None, &[]);
        assert_eq!(text.lines().filter(|line| *line == many[0]).count(), 70, "{text}");
        assert!(text.contains("\n(and 30 more: "), "{text}");
    }

    #[test]
    fn waivers_that_match_nothing_are_named() {
        let waiver = |rule, path: Option<&str>| CrdUpgradeWaiver {
            crd: "tests.example.com".to_owned(),
            rule,
            path: path.map(str::to_owned),
        };
        let waivers = [
            waiver(CrdUpgradeRule::StoredVersionRemoval, None),
            waiver(CrdUpgradeRule::Type, Some("^.a")),
        ];
        let idle = [
            "storedVersionRemoval of tests.example.com",
            "type of tests.example.com at ^.a",
        ];
        assert_eq!(Findings::new(&waivers, CrdChange::Upgrade).idle(), idle);
    }

    #[test]
    fn steps_are_whole_or_asked_for() {
        let many = vec!["ä".repeat(300); 9];
        let steps = "s".repeat(500);
        let text = message("e", &many, Some(&steps), &["x".repeat(500)]);
        assert!(text.len() < 1024 - 64, "{}", text.len());
        assert!(text.contains(&format!("\n{steps}.\n(and 8 more: ")), "{text}");
        let text = message("e", &many, Some(&"s".repeat(501)), &[]);
        assert!(
            text.contains("\n`kubectl olm crd-safety --extension e` shows how to go on.\n"),
            "{text}"
        );
    }

    /// Builds a CRD with served versions, v1 stored, and `status.storedVersions`.
    fn crd(versions: &[&str], stored: &[&str]) -> Value {
        let version = |name: &&str| json!({"name": name, "served": true, "storage": *name == "v1"});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
               "metadata": {"name": "tests.example.com"},
               "spec": {"group": "example.com", "names": {"plural": "tests"},
                        "versions": versions.iter().map(version).collect::<Vec<_>>()},
               "status": {"storedVersions": stored}})
    }

    #[test]
    fn objects_are_looked_at_unless_upstream_or_a_waiver_says_otherwise() {
        let (old, new) = (crd(&["v1", "v2"], &["v1"]), crd(&["v1"], &[]));
        let mut findings = Findings::new(&[], CrdChange::Upgrade);
        let unserved = findings
            .compare("tests.example.com", &old, &new, Rules::Ours)
            .unwrap();
        findings.add("tests.example.com", unserved.evaluate(&VersionUses::default()));
        assert_eq!(findings.refused, [""; 0]);
        assert_eq!(
            findings.warnings,
            [
                "CRD \"tests.example.com\": version v2 is no longer served; no stored object shows that it is used"
            ]
        );
        let mut upstream = Findings::new(&[], CrdChange::Upgrade);
        assert_eq!(
            upstream.compare("tests.example.com", &old, &new, Rules::Upstream),
            None
        );

        let waivers = [CrdUpgradeWaiver {
            crd: "tests.example.com".to_owned(),
            rule: CrdUpgradeRule::ServedVersionRemoval,
            path: None,
        }];
        let mut waived = Findings::new(&waivers, CrdChange::Upgrade);
        assert_eq!(waived.compare("tests.example.com", &old, &new, Rules::Ours), None);
        assert_eq!(waived.idle(), [""; 0]);
        assert_eq!(
            waived.compare("others.example.com", &old, &old, Rules::Ours),
            None
        );
    }

    #[test]
    fn a_stored_version_that_goes_comes_with_the_way_on() {
        let (old, new) = (crd(&["v1", "v2"], &["v1", "v2"]), crd(&["v1"], &[]));
        let mut findings = Findings::new(&[], CrdChange::Upgrade);
        assert_eq!(
            findings.compare("tests.example.com", &old, &new, Rules::Ours),
            None
        );
        let text = findings.message("e");
        assert!(
            text.starts_with(
                "validating upgrade for CRD \"tests.example.com\": storedVersionRemoval: stored versions removed : [v2]\n\
                 Objects may be stored in v2. 1. Store all objects in v1: `kubectl get tests.v1.example.com"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_rollback_leaves_to_the_objects_what_concerns_only_them() {
        let schema = |fields: Value| json!({"openAPIV3Schema": {"type": "object", "properties": fields}});
        let with = |mut crd: Value, fields: Value| {
            crd["spec"]["versions"][0]["schema"] = schema(fields);
            crd
        };
        let string = json!({"type": "string"});
        let newer = with(
            crd(&["v1", "v2"], &["v1", "v2"]),
            json!({"a": string, "b": string}),
        );
        let former = with(crd(&["v1"], &[]), json!({"a": string}));
        let compare = |change| {
            let mut findings = Findings::new(&[], change);
            findings.compare("tests.example.com", &newer, &former, Rules::Ours);
            let left = findings.take_left_to_objects("tests.example.com");
            assert_eq!(findings.take_left_to_objects("tests.example.com"), [""; 0]);
            (findings.refused, left)
        };
        let (refused, left) = compare(CrdChange::Upgrade);
        assert_eq!((refused.len(), left.len()), (3, 0), "{refused:?}");
        let (refused, left) = compare(CrdChange::Rollback);
        // The type of a removed field changes to none.
        assert_eq!((refused.len(), left.len()), (1, 2), "{refused:?}");
        assert!(refused[0].contains("storedVersionRemoval") && left[0].contains("existingFieldRemoval"));
    }

    #[test]
    fn the_message_has_the_migration_of_the_first_crd() {
        let mut findings = Findings::new(&[], CrdChange::Upgrade);
        for plural in ["first", "second"] {
            let (mut old, mut new) = (crd(&["v1", "v2"], &["v1", "v2"]), crd(&["v1"], &[]));
            for crd in [&mut old, &mut new] {
                crd["spec"]["names"]["plural"] = plural.into();
            }
            findings.compare(&format!("{plural}.example.com"), &old, &new, Rules::Ours);
        }
        let text = findings.message("e");
        assert!(
            text.contains("first.v1.example.com") && !text.contains("second.v1.example.com"),
            "{text}"
        );
    }
}
