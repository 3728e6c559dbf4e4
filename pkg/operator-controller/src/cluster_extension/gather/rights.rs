//! Checks the rights of the extension's service account before the first write, so that one message lists all missing rights and
//! nothing is half applied.
//!
//! The API server lists the account's rules, one request per namespace. Rights beyond that list are asked for one by one, since
//! authorizers other than RBAC have no lists. The answers are kept in `answers`, so that an extension that waits for rights costs the API
//! server a few requests a pass.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SelfSubjectRulesReview, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectRulesReviewStatus,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use olm_applier::account::Account;
use olm_applier::engine::impersonate;
use olm_bundle::permissions::{
    Escalation, GrantedRules, PermissionOptions, PolicyRule, RequiredRule, RuleScope, lacking, merged,
    required_rules,
};
use olm_text::object::text;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answers::Question;
use crate::ServiceAccountPolicy;
use crate::cluster_extension::call::{CallError, call};
use crate::cluster_extension::context::Context;
use crate::cluster_extension::failure::Failure;

/// Namespace without role bindings: its rules are those of the whole cluster.
const NOWHERE: &str = "olm-rights-of-the-whole-cluster";
/// Most rights that are asked for one by one; the others count as missing.
const ASKED: usize = 200;
/// Most missing rights that are collected from the roles of a bundle. A small role can grant thousands, each of about a kilobyte here.
const COMPARED: usize = 20_000;
/// Most missing rules that a message names.
const NAMED: usize = 100;

/// Checks that `account` exists and that the controller may read it.
pub(crate) async fn present(
    client: &Client,
    policy: ServiceAccountPolicy,
    account: &Account,
) -> Result<(), Failure> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), account.namespace());
    let found = call(
        format!("reading the {account}"),
        accounts.get_metadata_opt(account.name()),
    );
    match found.await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(Failure::AccountMissing {
            account: account.clone(),
            otherwise: match policy {
                ServiceAccountPolicy::Require => {
                    "clear spec.serviceAccount, then set it to another ServiceAccount"
                }
                ServiceAccountPolicy::Impersonate | ServiceAccountPolicy::Ignore => {
                    "clear spec.serviceAccount to use the controller's own rights"
                }
            },
        }),
        Err(error) if error.is_forbidden() => Err(Failure::AccountClosed(account.clone())),
        Err(error) => Err(error.into()),
    }
}

/// Checks that `account` may write `objects`.
pub(crate) async fn check(context: &Context, account: &Account, objects: &[Value]) -> Result<(), Failure> {
    let client = &context.shared.client;
    let granted = granted(client, account, objects).await?;
    let missing = missing(&granted, objects);
    let question = Question::new(account, &missing);
    let has = if let Some(known) = context.answers.get(&question, Instant::now()) {
        known
    } else {
        let has = ask(client, account, &missing).await?;
        context.answers.insert(question, &has, Instant::now());
        has
    };
    let denied = missing.into_iter().zip(has).filter(|(_, has)| !has);
    let missing: Vec<RequiredRule> = denied.map(|(right, _)| right).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::Rights {
            account: account.clone(),
            rules: describe(&merged(missing)),
        })
    }
}

/// Returns the rights that an account with the rules `granted` lacks to write `objects`, sorted; at most about [`COMPARED`].
fn missing(granted: &GrantedRules, objects: &[Value]) -> Vec<RequiredRule> {
    let options = |escalation| PermissionOptions {
        escalation,
        owner: Some(""),
        ..PermissionOptions::default()
    };
    let base = required_rules(&without_rules(objects), &options(Escalation::Rules));
    let base: BTreeSet<RequiredRule> = lacking(granted, &base).into_iter().collect();
    let mut missing = base.clone();
    for role in objects.iter().filter(|object| is_role(object)) {
        let contents = required_rules(std::slice::from_ref(role), &options(Escalation::Rules));
        let lacks = lacking(granted, &contents);
        if lacks.is_empty() {
            continue;
        }
        let verbs = required_rules(&with_bindings(role, objects), &options(Escalation::Verbs));
        // What the objects themselves need says nothing about escalate and bind.
        let has_verbs = lacking(granted, &verbs).iter().all(|right| base.contains(right));
        if !has_verbs {
            let room = COMPARED.saturating_sub(missing.len());
            missing.extend(lacks.into_iter().take(room));
        }
    }
    missing.into_iter().collect()
}

fn is_role(object: &Value) -> bool {
    text(object, "/apiVersion").starts_with("rbac.authorization.k8s.io/")
        && matches!(text(object, "/kind"), "Role" | "ClusterRole")
}

/// Returns the objects with empty roles, to check the right to write the objects alone.
fn without_rules(objects: &[Value]) -> Vec<Value> {
    let mut objects = objects.to_vec();
    for role in objects.iter_mut().filter(|object| is_role(object)) {
        role["rules"] = json!([]);
    }
    objects
}

/// Returns a role and its bindings.
fn with_bindings(role: &Value, objects: &[Value]) -> Vec<Value> {
    let binds = |object: &&Value| {
        text(object, "/roleRef/name") == text(role, "/metadata/name")
            && text(object, "/roleRef/kind") == text(role, "/kind")
            && (text(role, "/kind") == "ClusterRole"
                || text(object, "/metadata/namespace") == text(role, "/metadata/namespace"))
    };
    let bindings = objects.iter().filter(binds).cloned();
    std::iter::once(role.clone()).chain(bindings).collect()
}

async fn granted(client: &Client, account: &Account, objects: &[Value]) -> Result<GrantedRules, CallError> {
    let mut scopes = BTreeSet::from([RuleScope::Cluster]);
    for object in objects {
        let namespace = text(object, "/metadata/namespace");
        if !namespace.is_empty() {
            scopes.insert(RuleScope::Namespace(namespace.to_owned()));
        }
    }
    let mut granted = GrantedRules::new();
    let Ok(actor) = impersonate(client, account) else {
        return Ok(granted);
    };
    let reviews: Api<SelfSubjectRulesReview> = Api::all(actor);
    for scope in scopes {
        let namespace = match &scope {
            RuleScope::Cluster => NOWHERE,
            RuleScope::Namespace(namespace) => namespace,
        };
        let review: SelfSubjectRulesReview =
            serde_json::from_value(json!({"spec": {"namespace": namespace}})).unwrap_or_default();
        let what = format!("listing what the {account} may do");
        match call(what, reviews.create(&PostParams::default(), &review)).await {
            Ok(answer) => granted.insert(scope, answer.status.map(rules).unwrap_or_default()),
            // Without a list, every right is asked for.
            Err(error) if error.is_forbidden() => granted.insert(scope, Vec::new()),
            Err(error) => return Err(error),
        };
    }
    Ok(granted)
}

fn rules(status: SubjectRulesReviewStatus) -> Vec<PolicyRule> {
    let set = |list: Option<Vec<String>>| list.into_iter().flatten().collect::<BTreeSet<String>>();
    let resources = status.resource_rules.into_iter().map(|rule| PolicyRule {
        api_groups: set(rule.api_groups),
        resources: set(rule.resources),
        resource_names: set(rule.resource_names),
        verbs: rule.verbs.into_iter().collect(),
        ..PolicyRule::default()
    });
    let paths = status.non_resource_rules.into_iter().map(|rule| PolicyRule {
        non_resource_urls: set(rule.non_resource_urls),
        verbs: rule.verbs.into_iter().collect(),
        ..PolicyRule::default()
    });
    resources.chain(paths).collect()
}

/// Asks the API server for each right, and returns true for those that the account has.
async fn ask(client: &Client, account: &Account, rights: &[RequiredRule]) -> Result<Vec<bool>, CallError> {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let mut has = Vec::new();
    for (index, right) in rights.iter().enumerate() {
        // A rule that was too large to split cannot be asked for.
        if index >= ASKED || !right.rule.is_single() {
            has.push(false);
            continue;
        }
        let review = SubjectAccessReview {
            spec: question(account, right),
            ..SubjectAccessReview::default()
        };
        let what = format!("asking what the {account} may do");
        let answer = call(what, reviews.create(&PostParams::default(), &review)).await?;
        has.push(answer.status.is_some_and(|status| status.allowed));
    }
    Ok(has)
}

fn question(account: &Account, right: &RequiredRule) -> SubjectAccessReviewSpec {
    let only = |set: &BTreeSet<String>| set.iter().next().cloned();
    let rule = &right.rule;
    let mut spec = SubjectAccessReviewSpec {
        user: Some(account.user()),
        groups: Some(account.groups()),
        ..SubjectAccessReviewSpec::default()
    };
    if let Some(path) = only(&rule.non_resource_urls) {
        spec.non_resource_attributes = Some(NonResourceAttributes {
            path: Some(path),
            verb: only(&rule.verbs),
        });
        return spec;
    }
    let resource = only(&rule.resources).unwrap_or_default();
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, sub)) => (resource.to_owned(), Some(sub.to_owned())),
        None => (resource, None),
    };
    spec.resource_attributes = Some(ResourceAttributes {
        group: only(&rule.api_groups),
        resource: Some(resource),
        subresource,
        name: only(&rule.resource_names),
        namespace: match &right.scope {
            RuleScope::Cluster => None,
            RuleScope::Namespace(namespace) => Some(namespace.clone()),
        },
        verb: only(&rule.verbs),
        ..ResourceAttributes::default()
    });
    spec
}

/// Returns a line for each rule, sorted.
fn describe(rules: &[RequiredRule]) -> Vec<String> {
    let mut lines: Vec<String> = rules
        .iter()
        .map(|RequiredRule { scope, rule }| {
            let namespace = match scope {
                RuleScope::Cluster => "",
                RuleScope::Namespace(namespace) => namespace,
            };
            let mut line = format!("Namespace:\"{namespace}\"");
            for (key, values) in [
                ("APIGroups", &rule.api_groups),
                ("Resources", &rule.resources),
                ("ResourceNames", &rule.resource_names),
                ("Verbs", &rule.verbs),
                ("NonResourceURLs", &rule.non_resource_urls),
            ] {
                if !values.is_empty() {
                    let list: Vec<&str> = values.iter().map(String::as_str).collect();
                    // Writing into a String cannot fail.
                    let _ = write!(line, " {key}:[{}]", list.join(","));
                }
            }
            line
        })
        .collect();
    lines.sort();
    let more = lines.len().saturating_sub(NAMED);
    lines.truncate(NAMED);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(groups: &[&str], resources: &[&str], names: &[&str], verbs: &[&str]) -> PolicyRule {
        let set = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        PolicyRule {
            api_groups: set(groups),
            resources: set(resources),
            resource_names: set(names),
            verbs: set(verbs),
            ..PolicyRule::default()
        }
    }

    fn at(namespace: &str, rule: PolicyRule) -> RequiredRule {
        let scope = match namespace {
            "" => RuleScope::Cluster,
            namespace => RuleScope::Namespace(namespace.to_owned()),
        };
        RequiredRule { scope, rule }
    }

    #[test]
    fn rules_together_grant_what_none_does_alone() {
        let granted = GrantedRules::from([
            (
                RuleScope::Cluster,
                vec![rule(&[""], &["configmaps"], &[], &["get", "patch"])],
            ),
            (
                RuleScope::Namespace("a".to_owned()),
                vec![rule(&[""], &["configmaps"], &["x"], &["delete"])],
            ),
        ]);
        let wanted = rule(&[""], &["configmaps"], &["x", "y"], &["delete", "get", "patch"]);
        let lines = |namespace| describe(&merged(lacking(&granted, &[at(namespace, wanted.clone())])));
        assert_eq!(
            lines("a"),
            ["Namespace:\"a\" APIGroups:[] Resources:[configmaps] ResourceNames:[y] Verbs:[delete]"]
        );
        assert_eq!(
            lines("b"),
            ["Namespace:\"b\" APIGroups:[] Resources:[configmaps] ResourceNames:[x,y] Verbs:[delete]"]
        );
    }

    #[test]
    fn an_account_that_may_escalate_lacks_no_contents() {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
        let objects = [role];
        let all = "rbac.authorization.k8s.io";
        let mut rules = vec![rule(
            &[all],
            &["clusterroles"],
            &[],
            &["create", "delete", "get", "patch", "update"],
        )];
        let lines = |rules: &[PolicyRule]| {
            let granted = GrantedRules::from([(RuleScope::Cluster, rules.to_vec())]);
            describe(&merged(missing(&granted, &objects)))
        };
        let finalizers = "Namespace:\"\" APIGroups:[olm.operatorframework.io] Resources:[clusterobjectsets/finalizers] Verbs:[update]";
        let contents = "Namespace:\"\" APIGroups:[] Resources:[secrets] Verbs:[get]";
        assert_eq!(lines(&rules), [contents, finalizers]);
        rules.push(rule(&[all], &["clusterroles"], &["r"], &["escalate"]));
        assert_eq!(lines(&rules), [finalizers]);
    }

    #[test]
    fn the_missing_rights_of_many_roles_are_bounded() {
        let texts = |prefix: &str| (0..120).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
        let role = |name: usize| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name.to_string()},
                "rules": [{"apiGroups": [name.to_string()], "resources": texts("r"), "verbs": texts("v")}]})
        };
        let roles: Vec<Value> = (0..5).map(role).collect();
        let found = missing(&GrantedRules::new(), &roles);
        assert!(
            (COMPARED / 2..=COMPARED).contains(&found.len()),
            "{}",
            found.len()
        );
    }

    #[test]
    fn single_rights_read_as_rules() {
        let wanted = vec![
            at("", rule(&["apps"], &["deployments"], &["d"], &["get", "patch"])),
            at(
                "",
                rule(&["apps"], &["deployments", "statefulsets"], &[], &["create"]),
            ),
            at("", rule(&[""], &["*"], &[], &["*"])),
        ];
        let parts: Vec<RequiredRule> = lacking(&GrantedRules::new(), &wanted);
        assert_eq!(parts.len(), 5);
        assert_eq!(
            describe(&merged(parts)),
            [
                "Namespace:\"\" APIGroups:[] Resources:[*] Verbs:[*]",
                "Namespace:\"\" APIGroups:[apps] Resources:[deployments,statefulsets] Verbs:[create]",
                "Namespace:\"\" APIGroups:[apps] Resources:[deployments] ResourceNames:[d] Verbs:[get,patch]",
            ]
        );
    }

    #[test]
    fn a_question_names_the_account_and_its_groups() {
        let account = Account::new("ns", "sa").unwrap();
        let asked = question(&account, &at("ns", rule(&[""], &["pods/log"], &["p"], &["get"])));
        let asked = serde_json::to_value(asked).unwrap();
        assert_eq!(
            asked,
            json!({"user": "system:serviceaccount:ns:sa",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
                "resourceAttributes": {"group": "", "resource": "pods", "subresource": "log", "name": "p",
                    "namespace": "ns", "verb": "get"}})
        );
    }
}
