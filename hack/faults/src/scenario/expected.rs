//! The expectation of a scenario, computed from the content of the installed version alone.

use serde_json::json;

use super::{Promises, Scenario, Version};
use crate::convergence::{Expectation, Expected, Installation};
use crate::kinds;

/// Returns the state that the present spec of the scenario must lead to.
pub(super) fn expectation(scenario: &Scenario) -> Expectation {
    let id = &scenario.id;
    let namespace = scenario.namespace();
    let installation = scenario.installed.map(|version| Installation {
        version: version.number().to_owned(),
        // Without its catalog, an implementation may report that it cannot resolve.
        settled: scenario.catalog,
        strict: scenario.promises == Promises::All,
    });
    let mut objects = Vec::new();
    let mut absent = Vec::new();
    let mut add = |present: bool, kind, name: String, content| {
        let expected = Expected {
            kind,
            namespace: namespace.clone(),
            name,
            content,
        };
        if present {
            objects.push(expected);
        } else {
            absent.push(expected);
        }
    };
    let version = scenario.installed;
    let present = version.is_some();
    let number = version.map_or("", Version::number);
    add(
        present,
        kinds::SERVICE_ACCOUNT,
        format!("bundle-manager-{id}"),
        json!({}),
    );
    let config = json!({"data": {"version": number, "name": "test-configmap"}});
    add(present, kinds::CONFIG_MAP, format!("test-configmap-{id}"), config);
    let extra = json!({"data": {"version": number, "name": "extra-configmap"}});
    add(
        version == Some(Version::V1),
        kinds::CONFIG_MAP,
        format!("extra-configmap-{id}"),
        extra,
    );
    let crd = json!({"spec": {"names": {"kind": "Test"}}});
    add(present, kinds::CRD, format!("tests.e2e-{id}.example.com"), crd);
    let template = json!({"metadata": {"annotations": {"version": number}},
        "spec": {"serviceAccountName": format!("bundle-manager-{id}")}});
    let deployment =
        json!({"spec": {"template": template}, "status": {"availableReplicas": 1, "updatedReplicas": 1}});
    add(
        present,
        kinds::DEPLOYMENT,
        format!("test-operator-{id}"),
        deployment,
    );
    Expectation {
        extension: scenario.extension(),
        installation,
        objects,
        absent,
        role_of: version.map(|version| version.number().to_owned()),
        wide_crd: (version == Some(Version::V3)).then(|| format!("tests.e2e-{id}.example.com")),
        foreign: scenario.foreign.clone(),
    }
}
