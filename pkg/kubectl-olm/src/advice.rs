//! Advice on refused changes of CRDs: the waiver that accepts a change, and a safe alternative.

use std::borrow::Cow;
use std::fmt::Write as _;

use olm_api::{CrdUpgradeRule, CrdUpgradeWaiver};
use olm_bundle::crd_safety::{Finding, Removals, Waiver};
use serde_json::{Value, json};

use crate::style::{Paint, Style};
use crate::table::clean;

/// Field of a `ClusterExtension` with the waivers.
const FIELD: &str = "spec.install.preflight.crdUpgradeSafety";

/// Advice on a finding.
pub(crate) struct FindingAdvice<'a> {
    finding: &'a Finding,
    waived_by: WaivedBy,
    instead: Cow<'static, str>,
}

/// The waiver that accepts a finding.
enum WaivedBy {
    /// A waiver of its own.
    Own(CrdUpgradeWaiver),
    /// The waiver of an earlier finding.
    Earlier(CrdUpgradeWaiver),
    /// The API has no waiver for the rule.
    None,
}

/// Returns the advice on the findings of one CRD. Findings are sorted, so a removal precedes its consequences.
pub(crate) fn advise<'a>(crd: &str, findings: &'a [Finding]) -> Vec<FindingAdvice<'a>> {
    let removals = Removals::of(findings);
    let mut given: Vec<(Waiver, CrdUpgradeWaiver)> = Vec::new();
    let mut waived_by = |finding: &Finding| {
        let mut former = given.iter();
        if let Some((_, former)) = former.find(|(former, _)| former.covers(finding, &removals)) {
            return WaivedBy::Earlier(former.clone());
        }
        let waiver = Waiver::of(finding);
        let Some(own) = api_waiver(crd, &waiver) else {
            return WaivedBy::None;
        };
        given.push((waiver, own.clone()));
        WaivedBy::Own(own)
    };
    let advised = findings.iter().map(|finding| FindingAdvice {
        finding,
        waived_by: waived_by(finding),
        instead: instead(crd, finding),
    });
    advised.collect()
}

/// Returns the waiver in the API's form; none if the API does not know the rule.
fn api_waiver(crd: &str, waiver: &Waiver) -> Option<CrdUpgradeWaiver> {
    let rule: CrdUpgradeRule = serde_json::from_value(Value::from(waiver.rule.as_str())).ok()?;
    Some(CrdUpgradeWaiver {
        crd: crd.to_owned(),
        rule,
        path: Some(waiver.path.clone()).filter(|path| !path.is_empty()),
    })
}

/// Returns a safe alternative for the bundle's author.
fn instead(crd: &str, finding: &Finding) -> Cow<'static, str> {
    if finding.is_lost_from_storage() {
        return Cow::Borrowed("add the field to the new storage version, or keep the former storage version");
    }
    if is_without_webhook(finding) {
        return Cow::Owned(format!(
            "keep the conversion webhook until both versions have the same fields or only one is left: store all objects in that one, \
             run `kubectl olm crd migrate {crd}`, remove the other from the CRD, then the webhook"
        ));
    }
    Cow::Borrowed(match finding.rule.as_str() {
        "scope" => "give the CRD with the other scope another name",
        "storedVersionRemoval" => {
            "keep the version, not served, until every object is stored in another one and status.storedVersions of the \
             CRD no longer names it"
        }
        "servedVersionRemoval" => "keep serving the version until every client has moved to another one",
        "existingFieldRemoval" => "keep the field, mark it as deprecated, and omit it only in a new version",
        "required" => "leave the field optional, or give it a default, in this version",
        "default" => "keep the default in this version, and let the operator fill in the other value",
        "oneOf" | "type" | "unhandled" => "keep this version unchanged, and make the change in a new version",
        _ => "keep this version as permissive as before, and be stricter in a new version",
    })
}

/// Returns true for a difference between versions that the removed conversion webhook bridged. Of the other findings, only those on
/// the scope and on removed versions, which concern the whole CRD, are not decided by the objects.
fn is_without_webhook(finding: &Finding) -> bool {
    !finding.path.is_empty() && !finding.is_decided_by_objects()
}

impl FindingAdvice<'_> {
    /// Returns the finding and its advice as data.
    pub(crate) fn value(&self) -> Value {
        let waiver = match &self.waived_by {
            WaivedBy::Own(waiver) | WaivedBy::Earlier(waiver) => Some(waiver),
            WaivedBy::None => None,
        };
        let finding = self.finding;
        json!({"path": finding.path, "rule": finding.rule, "message": finding.message,
            "waiver": waiver, "instead": self.instead})
    }

    fn write(&self, text: &mut String, style: Style) {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "  {}", clean(&self.finding.to_string()));
        let mut line = |what: &str, says: &str| {
            let _ = writeln!(text, "    {what:<9}{}", style.paint(Paint::Dim, &clean(says)));
        };
        match &self.waived_by {
            WaivedBy::Own(waiver) => line("waiver", &json!(waiver).to_string()),
            WaivedBy::Earlier(waiver) => line(
                "waiver",
                &format!("covered by the waiver for {} above", waiver.rule.as_str()),
            ),
            WaivedBy::None => {}
        }
        if !matches!(self.waived_by, WaivedBy::Earlier(_)) {
            line("instead", &self.instead);
        }
    }
}

/// Writes the findings of one CRD, the field for waivers and, unless `stored_objects` is set, a hint on stored objects.
pub(crate) fn write_findings(
    text: &mut String,
    findings: &[FindingAdvice<'_>],
    stored_objects: bool,
    style: Style,
) {
    for finding in findings {
        finding.write(text, style);
    }
    if findings.is_empty() {
        return;
    }
    if findings
        .iter()
        .any(|finding| matches!(finding.waived_by, WaivedBy::Own(_)))
    {
        let _ = writeln!(text, "  Add waivers to {FIELD}.waivers of the ClusterExtension.");
    }
    // The removed webhook still converts the stored objects that are read, so they show no loss.
    let objects_tell = findings
        .iter()
        .all(|advised| !is_without_webhook(advised.finding));
    if !stored_objects && objects_tell {
        let _ = writeln!(
            text,
            "  With storedObjects: Check and enforcement: None in {FIELD}, the stored objects decide instead; \
             --stored-objects checks them."
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str, rule: &str, message: &str) -> Finding {
        Finding {
            path: path.to_owned(),
            rule: rule.to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn every_finding_has_advice() {
        let findings = [
            finding("", "existingFieldRemoval", "removed field : v1.^.spec.gone"),
            finding("", "scope", "scope changed"),
            finding("v1: ^.spec.gone", "type", "type changed"),
            finding("v1: ^.spec.size", "maximum", "maximum decreased"),
            finding("v2: ^.spec.gone", "type", "type changed"),
            finding("v2: ^.spec.size", "maximum", "maximum decreased"),
            finding("v2", "ruleOfTomorrow", "version dropped"),
        ];
        let advised = advise("demos.example.com", &findings);
        let waivers: Vec<String> = advised
            .iter()
            .map(|advised| advised.value()["waiver"].to_string())
            .collect();
        let removal = r#"{"crd":"demos.example.com","path":"^.spec.gone","rule":"existingFieldRemoval"}"#;
        let maximum = r#"{"crd":"demos.example.com","path":"^.spec.size","rule":"maximum"}"#;
        assert_eq!(
            waivers,
            [
                removal,
                r#"{"crd":"demos.example.com","rule":"scope"}"#,
                removal,
                maximum,
                r#"{"crd":"demos.example.com","path":"^.spec.gone","rule":"type"}"#,
                maximum,
                "null",
            ]
        );
        let mut text = String::new();
        write_findings(&mut text, &advised, false, Style::plain());
        for said in [
            "waiver   {\"crd\":\"demos.example.com\",\"path\":\"^.spec.size\",\"rule\":\"maximum\"}",
            "waiver   covered by the waiver for existingFieldRemoval above",
            "instead  keep this version as permissive as before",
            "spec.install.preflight.crdUpgradeSafety.waivers",
            "storedObjects: Check",
            "--stored-objects",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let mut text = String::new();
        let head = "v1alpha1 -> v1 without the conversion webhook: ^.spec.size";
        let lost = [finding(head, "type", "type changed")];
        write_findings(
            &mut text,
            &advise("demos.example.com", &lost),
            false,
            Style::plain(),
        );
        assert!(
            text.contains("run `kubectl olm crd migrate demos.example.com`"),
            "{text}"
        );
        assert!(
            !text.contains("storedObjects") && text.contains(".waivers"),
            "{text}"
        );
        let mut text = String::new();
        write_findings(&mut text, &[], false, Style::plain());
        assert_eq!(text, "");
        write_findings(&mut text, &advised, true, Style::plain());
        assert!(!text.contains("storedObjects"), "{text}");
    }
}
