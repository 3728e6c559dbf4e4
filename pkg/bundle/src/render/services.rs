//! Services of the deployments that the API server calls.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::certificates::{self, Target};
use super::{Context, names};
use crate::RenderError;
use crate::model::service_port;

/// Renders one service for each deployment that serves webhooks or API services, in the order of the deployments' names.
pub(super) fn services(context: &Context<'_>) -> Result<Vec<Value>, RenderError> {
    let mut out = Vec::new();
    for deployment in context.serving_deployments() {
        let labels = context
            .bundle
            .csv
            .deployments
            .iter()
            .find(|spec| spec.name == *deployment)
            .and_then(|spec| spec.spec.pointer("/selector/matchLabels"));
        let mut spec = Map::new();
        spec.insert("ports".to_owned(), ports(context, deployment));
        if let Some(labels) = labels {
            spec.insert("selector".to_owned(), labels.clone());
        }
        let mut service = json!({"apiVersion": "v1", "kind": "Service",
                                 "metadata": {"name": names::service_name(deployment), "namespace": context.namespace},
                                 "spec": spec, "status": {"loadBalancer": {}}});
        certificates::inject(context, deployment, &mut service, Target::Service)?;
        out.push(service);
    }
    Ok(out)
}

fn ports(context: &Context<'_>, deployment: &str) -> Value {
    let mut ports: BTreeMap<(i64, String), Value> = BTreeMap::new();
    let mut add = |port: i64, target: Value| {
        let entry = json!({"name": port.to_string(), "port": port, "targetPort": target});
        ports.insert((port, target.to_string()), entry);
    };
    let csv = &context.bundle.csv;
    for webhook in csv
        .webhooks
        .iter()
        .filter(|webhook| webhook.deployment == deployment)
    {
        let port = service_port(webhook.container_port);
        add(port, webhook.target_port.clone().unwrap_or_else(|| port.into()));
    }
    for service in csv
        .api_services
        .iter()
        .filter(|service| service.deployment == deployment)
    {
        add(service.port(), service.port().into());
    }
    ports.into_values().collect()
}
