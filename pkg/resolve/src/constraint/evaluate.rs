//! Evaluation of requirements against an environment.

use olm_text::cut;
use olm_version::go_quote;

use super::{CelRule, Environment, MissingDependency, PackageRange, Requirement, Test, Unmet};

/// Maximum quoted size of a rule or list, in bytes.
const MAX_QUOTED: usize = 200;

/// Returns the requirements that `environment` does not meet, in their order.
pub fn unmet(requirements: &[Requirement], environment: &Environment) -> Vec<Unmet> {
    requirements
        .iter()
        .filter_map(|requirement| unmet_requirement(requirement, environment))
        .collect()
}

fn unmet_requirement(requirement: &Requirement, environment: &Environment) -> Option<Unmet> {
    let mut unmet = match &requirement.test {
        Test::Gvk(gvk) if environment.served.contains(gvk) => return None,
        Test::Gvk(gvk) => Unmet {
            text: format!("it needs the API {gvk}, which the cluster does not serve"),
            missing: vec![MissingDependency::Gvk(gvk.clone())],
        },
        Test::Package(package) => of_package(package, environment)?,
        Test::Cel(rule) => of_rule(rule, environment)?,
        Test::All(all) => joined(unmet(all, environment), " and "),
        Test::Any(any) => {
            let open = unmet(any, environment);
            if open.len() < any.len() {
                return None;
            }
            let open = joined(open, ", or ");
            Unmet {
                text: open.text,
                ..open
            }
        }
        Test::Not(none) => of_none(none, environment)?,
    };
    if unmet.text.is_empty() {
        return None;
    }
    if !requirement.message.is_empty() {
        unmet.text = format!("{}: {}", requirement.message.trim(), unmet.text);
    }
    Some(unmet)
}

fn of_package(package: &PackageRange, environment: &Environment) -> Option<Unmet> {
    let present: Vec<_> = environment
        .installed
        .iter()
        .filter(|bundle| bundle.package == package.name)
        .collect();
    if present.iter().any(|bundle| package.admits(&bundle.version)) {
        return None;
    }
    let instead = match present.first() {
        Some(bundle) => format!("version {} is installed", bundle.version),
        None => "it is not installed".to_owned(),
    };
    Some(Unmet {
        text: format!(
            "it needs package {} in a version {}, and {instead}",
            go_quote(&package.name),
            go_quote(&package.range)
        ),
        missing: vec![MissingDependency::Package {
            name: package.name.clone(),
            range: package.range.clone(),
        }],
    })
}

fn of_rule(rule: &CelRule, environment: &Environment) -> Option<Unmet> {
    let mut fault = None;
    for bundle in &environment.installed {
        match rule.0.matches(&bundle.properties) {
            Ok(true) => return None,
            Ok(false) => {}
            Err(reason) => fault = fault.or(Some((bundle.package.as_str(), reason))),
        }
    }
    let source = cut(rule.0.source(), MAX_QUOTED);
    let why = match fault {
        None => "no installed bundle satisfies it".to_owned(),
        Some((package, reason)) => {
            format!(
                "no installed bundle satisfies it; on package {package} it fails: {}",
                cut(&reason, MAX_QUOTED)
            )
        }
    };
    Some(Unmet {
        text: format!("it needs a bundle for which `{source}` holds, and {why}"),
        missing: Vec::new(),
    })
}

fn of_none(none: &[Requirement], environment: &Environment) -> Option<Unmet> {
    let present: Vec<String> = none
        .iter()
        .filter(|requirement| unmet_requirement(requirement, environment).is_none())
        .map(ToString::to_string)
        .collect();
    (!present.is_empty()).then(|| Unmet {
        text: format!(
            "it conflicts with {}, which is present",
            cut(&present.join(" and "), MAX_QUOTED)
        ),
        missing: Vec::new(),
    })
}

/// Joins several unmet requirements into one; the text is empty if there are none.
fn joined(several: Vec<Unmet>, between: &str) -> Unmet {
    let texts: Vec<&str> = several.iter().map(|unmet| unmet.text.as_str()).collect();
    let text = texts.join(between);
    Unmet {
        text,
        missing: several.into_iter().flat_map(|unmet| unmet.missing).collect(),
    }
}
