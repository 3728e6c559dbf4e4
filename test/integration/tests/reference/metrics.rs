//! Page about the metrics of the controllers.

use olm_runtime::metrics::Description;

use crate::{code, head, row, table};

pub(crate) fn page() -> String {
    let mut page = head(
        "Metrics",
        "Metrics of the controllers at `/metrics`. [operations.md](../operations.md#metrics) says who may read them; \
         [alerts.md](../alerts.md) has the alerts.",
    );
    page += &section("Both controllers", olm_runtime::metric_descriptions());
    page += &section("catalogd", olm_catalogd::metrics::descriptions());
    page += &section(
        "operator-controller",
        olm_operator_controller::metric_descriptions(),
    );
    page
}

fn section(title: &str, descriptions: impl Iterator<Item = Description>) -> String {
    let mut descriptions: Vec<Description> = descriptions.collect();
    descriptions.sort_by_key(|description| description.name);
    let rows: String = descriptions
        .iter()
        .map(|description| {
            let labels: Vec<String> = description.labels.iter().map(|label| code(label)).collect();
            row(&[
                &code(&description.exported()),
                description.kind.as_str(),
                &labels.join(", "),
                description.help,
            ])
        })
        .collect();
    format!(
        "\n## {title}\n\n{}{rows}",
        table(&["metric", "type", "labels", "meaning"])
    )
}
