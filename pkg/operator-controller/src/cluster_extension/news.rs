//! What of a change of the status is worth an event: what a person would tell another. Pure.

use olm_api::ClusterExtensionStatus;

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct News {
    /// Whether somebody should look.
    pub warning: bool,
    /// One word of a closed set.
    pub reason: &'static str,
    /// What happened.
    pub note: String,
}

/// What happened between two statuses.
pub(crate) fn news(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus) -> Vec<News> {
    let mut all = Vec::new();
    installation(old, new, &mut all);
    progress(old, new, &mut all);
    availability(old, new, &mut all);
    upgrade(old, new, &mut all);
    catalogs(old, new, &mut all);
    all
}

fn tell(all: &mut Vec<News>, warning: bool, reason: &'static str, note: String) {
    all.push(News {
        warning,
        reason,
        note,
    });
}

/// A condition as (status, reason, message).
type Told<'a> = (&'a str, &'a str, &'a str);

fn told<'a>(status: &'a ClusterExtensionStatus, type_: &str) -> Option<Told<'a>> {
    let mut all = status.conditions.iter().flatten();
    let found = all.find(|condition| condition.type_ == type_)?;
    Some((&found.status, &found.reason, &found.message))
}

fn installation(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, all: &mut Vec<News>) {
    let Some(now) = &new.install else { return };
    let Some(before) = &old.install else {
        let note = format!(
            "bundle {} with version {} is installed",
            now.bundle.name, now.bundle.version
        );
        return tell(all, false, "Installed", note);
    };
    if before.bundle != now.bundle {
        let note = format!(
            "went from version {} to version {}",
            before.bundle.version, now.bundle.version
        );
        tell(all, false, "Upgraded", note);
    }
    if let (Some(from), Some(to)) = (&now.moved_from, &now.catalog)
        && before.catalog != now.catalog
    {
        let note = format!(
            "moved to catalog {to} because catalog {from}, which it was installed from, was gone, disabled or no longer selected"
        );
        tell(all, true, "CatalogMoved", note);
    }
}

fn progress(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, all: &mut Vec<News>) {
    let now = told(new, "Progressing");
    let Some((_, reason, message)) = now.filter(|now| told(old, "Progressing") != Some(*now)) else {
        return;
    };
    let (warning, reason) = match reason {
        "RollingOut" => (false, "RollingOut"),
        "Retrying" => (true, "Retrying"),
        "Blocked" => (true, "Blocked"),
        "InvalidConfiguration" => (true, "InvalidConfiguration"),
        "ProgressDeadlineExceeded" => (true, "ProgressDeadlineExceeded"),
        // Told by what is installed.
        _ => return,
    };
    tell(all, warning, reason, message.to_owned());
}

fn availability(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, all: &mut Vec<News>) {
    let Some((now, _, message)) = told(new, "Available") else {
        return;
    };
    let before = told(old, "Available").map(|(status, ..)| status);
    match (before, now) {
        (Some("False" | "Unknown") | None, "True") => tell(all, false, "Available", message.to_owned()),
        (Some("True") | None, "False") => tell(all, true, "Degraded", message.to_owned()),
        _ => {}
    }
}

fn upgrade(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, all: &mut Vec<News>) {
    let now = told(new, "UpgradeAvailable");
    if let Some(("True", _, message)) = now
        && told(old, "UpgradeAvailable") != now
    {
        tell(all, false, "UpgradeAvailable", message.to_owned());
    }
}

fn catalogs(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, all: &mut Vec<News>) {
    match (told(old, "CatalogsDegraded"), told(new, "CatalogsDegraded")) {
        (before, Some(now)) if before != Some(now) => {
            let reason = if now.1 == "LeftOut" {
                "CatalogLeftOut"
            } else {
                "CatalogFormerContent"
            };
            tell(all, true, reason, now.2.to_owned());
        }
        (Some(_), None) => {
            let note = "the present content of all catalogs is read again".to_owned();
            tell(all, false, "CatalogsRecovered", note);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(
        version: Option<&str>,
        catalog: &str,
        conditions: &[(&str, &str, &str, &str)],
    ) -> ClusterExtensionStatus {
        let install = version.map(|version| {
            json!({"bundle": {"name": format!("a.v{version}"), "version": version}, "catalog": catalog,
                "movedFrom": (catalog == "new").then_some("old")})
        });
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, status, reason, message)| {
                json!({"type": type_, "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        serde_json::from_value(json!({"install": install, "conditions": conditions})).unwrap()
    }

    fn reasons(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus) -> Vec<(bool, &'static str)> {
        news(old, new)
            .into_iter()
            .map(|news| (news.warning, news.reason))
            .collect()
    }

    #[test]
    fn what_happened_is_told_once() {
        let rolling = status(
            None,
            "",
            &[("Progressing", "True", "RollingOut", "1.0.0 is rolling out.")],
        );
        let done = ("Progressing", "True", "Succeeded", "done");
        let up = ("Available", "True", "ProbesSucceeded", "all pass");
        let down = ("Available", "False", "ProbeFailure", "one fails");
        let installed = status(Some("1.0.0"), "old", &[done, up]);
        let upgraded = status(Some("1.0.1"), "old", &[done, up]);
        let moved = status(Some("1.0.1"), "new", &[done, up]);
        let blocked = status(
            Some("1.0.1"),
            "new",
            &[("Progressing", "False", "Blocked", "no"), up],
        );
        let degraded = status(Some("1.0.0"), "old", &[done, down]);
        let held = status(
            Some("1.0.0"),
            "old",
            &[done, up, ("UpgradeAvailable", "True", "HeldByVersion", "1.1.0")],
        );
        let empty = ClusterExtensionStatus::default();
        assert_eq!(reasons(&empty, &rolling), [(false, "RollingOut")]);
        assert_eq!(
            reasons(&rolling, &installed),
            [(false, "Installed"), (false, "Available")]
        );
        assert_eq!(reasons(&installed, &upgraded), [(false, "Upgraded")]);
        assert_eq!(reasons(&upgraded, &moved), [(true, "CatalogMoved")]);
        assert_eq!(reasons(&moved, &blocked), [(true, "Blocked")]);
        assert_eq!(reasons(&installed, &degraded), [(true, "Degraded")]);
        assert_eq!(reasons(&degraded, &installed), [(false, "Available")]);
        assert_eq!(reasons(&installed, &held), [(false, "UpgradeAvailable")]);
        let degraded_by = |reason| {
            status(
                Some("1.0.0"),
                "old",
                &[done, up, ("CatalogsDegraded", "True", reason, "c")],
            )
        };
        let (left_out, former) = (degraded_by("LeftOut"), degraded_by("FormerContent"));
        assert_eq!(reasons(&installed, &left_out), [(true, "CatalogLeftOut")]);
        assert_eq!(reasons(&left_out, &former), [(true, "CatalogFormerContent")]);
        assert_eq!(reasons(&former, &installed), [(false, "CatalogsRecovered")]);
        for same in [&rolling, &installed, &blocked, &degraded, &held, &former] {
            assert_eq!(reasons(same, same), []);
        }
    }
}
