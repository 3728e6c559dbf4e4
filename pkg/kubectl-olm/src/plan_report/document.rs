//! Content of a plan's text.

use std::fmt::Write as _;

use olm_bundle::crd_safety::Finding;
use olm_plan::{BundleIdentity, Outcome, Plan, Right, RightsChange};
use olm_text::counted;

use crate::style::Paint;

/// Most named fields of one object.
const FIELDS_OF_OBJECT: usize = 20;

/// A plan as facts and tables, the most important first.
#[derive(Debug)]
pub(crate) struct Document {
    /// First line.
    pub(crate) title: String,
    /// Facts by name.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// Verdict as a sentence.
    pub(crate) verdict: String,
    /// Paint of the verdict.
    pub(crate) paint: Paint,
    /// Tables.
    pub(crate) sections: Vec<Section>,
}

/// A table of a document.
#[derive(Debug)]
pub(crate) struct Section {
    /// Title.
    pub(crate) title: &'static str,
    /// Heading of the columns.
    pub(crate) heading: &'static [&'static str],
    /// Rows.
    pub(crate) rows: Vec<Vec<String>>,
    /// Number of rows that the plan itself omits.
    pub(crate) more: usize,
    /// Paint of the rows.
    pub(crate) paint: Paint,
}

impl Document {
    /// Creates the document of a plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        let (verdict, paint) = verdict(plan);
        let subject = plan.extension.as_deref().unwrap_or(&plan.to.package);
        let from = plan.from.as_ref().map_or("nothing", |from| &from.version);
        let mut document = Self {
            title: format!("Plan of {subject}: {from} to {}", plan.to.version),
            facts: facts(plan),
            verdict,
            paint,
            sections: Vec::new(),
        };
        document.consequences(plan);
        document.access(plan);
        document.workloads(plan);
        document.objects(plan);
        document
    }

    fn add(&mut self, section: Section) {
        if !section.rows.is_empty() || section.more > 0 {
            self.sections.push(section);
        }
    }

    fn consequences(&mut self, plan: &Plan) {
        self.add(Section {
            title: "Would be refused",
            heading: &["REASON"],
            rows: plan.refusals.iter().map(|reason| vec![reason.clone()]).collect(),
            more: 0,
            paint: Paint::Bad,
        });
        let lost = plan.irreversible.iter();
        self.add(Section {
            title: "Cannot be undone",
            heading: &["OBJECT", "CONSEQUENCE"],
            rows: lost
                .map(|lost| vec![lost.object.to_string(), lost.reason.clone()])
                .collect(),
            more: 0,
            paint: Paint::Warn,
        });
        let others = plan.dependents.iter();
        self.add(Section {
            title: "Other extensions affected",
            heading: &["EXTENSION", "REASON"],
            rows: others
                .map(|other| vec![other.extension.clone(), other.reason.clone()])
                .collect(),
            more: 0,
            paint: Paint::Warn,
        });
        self.add(Section {
            title: "Not checked",
            heading: &["CHECK"],
            rows: plan.unchecked.iter().map(|check| vec![check.clone()]).collect(),
            more: 0,
            paint: Paint::Warn,
        });
        let mut rows = Vec::new();
        for crd in &plan.crds {
            let findings = grouped(&crd.findings);
            let warnings = crd.warnings.iter().map(|warning| format!("warning: {warning}"));
            let stored = crd.stored_objects.iter().map(|stored| {
                let least = if stored.complete { "" } else { "at least " };
                format!(
                    "{least}{} of {} stored objects would be invalid",
                    stored.broken, stored.objects
                )
            });
            let mut remarks: Vec<String> = findings.into_iter().chain(stored).chain(warnings).collect();
            let verdict = if crd.findings.is_empty() {
                "safe".to_owned()
            } else {
                counted(crd.findings.len(), "finding")
            };
            if remarks.is_empty() {
                remarks.push(String::new());
            }
            rows.extend(
                remarks
                    .into_iter()
                    .map(|remark| vec![crd.crd.clone(), verdict.clone(), remark]),
            );
        }
        self.add(Section {
            title: "CRDs on both sides",
            heading: &["CRD", "VERDICT", "FINDING"],
            rows,
            more: 0,
            paint: Paint::Plain,
        });
    }

    fn access(&mut self, plan: &Plan) {
        let sides: [(&'static str, &RightsChange); 2] = [
            ("Rights of the bundle", &plan.rights.bundle),
            (
                "Rights that a service account needs to install",
                &plan.rights.installer,
            ),
        ];
        for (title, change) in sides {
            let row = |sign: &str, right: &Right| vec![sign.to_owned(), right.to_string()];
            let gained = change.gained.iter().map(|right| row("gained", right));
            let lost = change.lost.iter().map(|right| row("lost", right));
            self.add(Section {
                title,
                heading: &["CHANGE", "RIGHT"],
                rows: gained.chain(lost).collect(),
                more: change.more_gained + change.more_lost,
                paint: Paint::Plain,
            });
        }
    }

    fn workloads(&mut self, plan: &Plan) {
        let restarts = plan.restarts.iter().map(|restart| {
            let how = if restart.interrupted {
                "all pods stop before new ones start"
            } else {
                "pods are replaced"
            };
            vec![restart.object.to_string(), how.to_owned()]
        });
        self.add(Section {
            title: "Workloads that restart",
            heading: &["WORKLOAD", "HOW"],
            rows: restarts.collect(),
            more: 0,
            paint: Paint::Plain,
        });
        let row = |sign: &str, image: &String| vec![sign.to_owned(), image.clone()];
        let added = plan.images.added.iter().map(|image| row("added", image));
        let removed = plan.images.removed.iter().map(|image| row("removed", image));
        self.add(Section {
            title: "Images",
            heading: &["CHANGE", "IMAGE"],
            rows: added.chain(removed).collect(),
            more: 0,
            paint: Paint::Plain,
        });
    }

    fn objects(&mut self, plan: &Plan) {
        for (title, objects) in [
            ("Deleted objects", &plan.deleted),
            ("Created objects", &plan.created),
        ] {
            self.add(Section {
                title,
                heading: &["API VERSION", "OBJECT"],
                rows: objects
                    .iter()
                    .map(|object| vec![object.api_version.clone(), object.to_string()])
                    .collect(),
                more: 0,
                paint: Paint::Plain,
            });
        }
        let mut rows = Vec::new();
        for change in &plan.changed {
            let object = change.object.to_string();
            let (descriptions, fields): (Vec<_>, Vec<_>) =
                change.fields.iter().partition(|field| field.is_description());
            let beyond = fields.len().saturating_sub(FIELDS_OF_OBJECT);
            for field in fields.into_iter().take(FIELDS_OF_OBJECT) {
                let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
                rows.push(vec![
                    object.clone(),
                    place(&field.path),
                    value(&field.before),
                    value(&field.after),
                ]);
            }
            let omitted = [
                (descriptions.len(), "description"),
                (beyond + change.more, "more field"),
            ];
            for (count, what) in omitted.into_iter().filter(|(count, _)| *count > 0) {
                let more = format!("and {}", counted(count, what));
                rows.push(vec![object.clone(), more, String::new(), String::new()]);
            }
        }
        self.add(Section {
            title: "Changed objects",
            heading: &["OBJECT", "FIELD", "BEFORE", "AFTER"],
            rows,
            more: 0,
            paint: Paint::Plain,
        });
    }
}

/// Returns the place of a field: in the schema of a CRD as findings name it (`v1: ^.spec.size`), elsewhere its JSON pointer.
fn place(path: &str) -> String {
    let of_version = path
        .strip_prefix("/spec/versions/name=")
        .and_then(|rest| rest.split_once("/schema/openAPIV3Schema"));
    match of_version {
        Some((version, field)) => {
            let field = field.replace("/properties/", ".").replace("/items", ".items");
            format!("{version}: ^{field}")
        }
        None => path.to_owned(),
    }
}

/// Returns one remark for each rule and message, with the first place and the number of the others. A field that occurs in many places
/// of a schema has the same finding in each.
fn grouped(findings: &[Finding]) -> Vec<String> {
    let mut groups: Vec<(&Finding, usize)> = Vec::new();
    for finding in findings {
        let same = |group: &&mut (&Finding, usize)| {
            group.0.rule == finding.rule && group.0.message == finding.message
        };
        match groups.iter_mut().find(same) {
            Some((_, others)) => *others += 1,
            None => groups.push((finding, 0)),
        }
    }
    let remark = |(first, others): (&Finding, usize)| match others {
        0 => first.to_string(),
        _ => format!("{first} (and in {})", counted(others, "more place")),
    };
    groups.into_iter().map(remark).collect()
}

fn verdict(plan: &Plan) -> (String, Paint) {
    match plan.outcome() {
        Outcome::Nothing => ("nothing to do".to_owned(), Paint::Good),
        Outcome::Change => ("the change can be made".to_owned(), Paint::Good),
        Outcome::Refused => (
            format!(
                "the change would be refused, for {}",
                counted(plan.refusals.len(), "reason")
            ),
            Paint::Bad,
        ),
    }
}

fn facts(plan: &Plan) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(extension) = &plan.extension {
        facts.push(("Extension", extension.clone()));
    }
    facts.push(("Namespace", plan.namespace.clone()));
    let from = plan.from.as_ref().map(bundle);
    facts.push(("From", from.unwrap_or_else(|| "nothing is installed".to_owned())));
    facts.push(("To", bundle(&plan.to)));
    if let Some(catalog) = &plan.catalog {
        let digest = catalog.digest.as_ref().map(|digest| format!(" ({digest})"));
        facts.push((
            "Catalog",
            format!("{}{}", catalog.name, digest.unwrap_or_default()),
        ));
    }
    let counts = &plan.counts;
    facts.push((
        "Objects",
        format!(
            "{} created, {} changed ({}), {} deleted, {} unchanged",
            counts.created,
            counts.changed,
            counted(counts.fields, "field"),
            counts.deleted,
            counts.unchanged
        ),
    ));
    facts.push(("Digest", plan.digest.clone()));
    facts
}

fn bundle(identity: &BundleIdentity) -> String {
    // Writing into a String cannot fail.
    let mut text = format!("{} {}", identity.name, identity.version);
    if let Some(image) = &identity.image {
        let _ = write!(text, " ({image})");
    }
    if let Some(revision) = &identity.revision {
        let _ = write!(text, ", revision {revision}");
    }
    text
}
