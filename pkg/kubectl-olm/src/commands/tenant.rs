//! `get --namespace`: what extensions offer in one namespace, for people without rights on the cluster.

use serde_json::{Value, json};

use crate::absent;
use crate::cli::{AccessArgs, Format};
use crate::failure::Failure;
use crate::report::Report;
use crate::source::Cluster;
use crate::style::{Paint, Style};
use crate::table::Table;
use crate::tenant::{TenantApi, apis};

/// Lists the APIs that extensions offer in a namespace; positive if there is one.
pub(super) async fn run(
    access: &AccessArgs,
    namespace: &str,
    format: Format,
    style: Style,
) -> Result<Report, Failure> {
    let cluster = Cluster::connect(access).await?;
    if !cluster.may_exist(namespace).await? {
        return Err(Failure::NegativeAnswer(
            absent::namespace(&cluster, namespace).await,
        ));
    }
    let served = cluster.namespaced_apis().await?;
    let (rules, complete) = cluster.rights_in(namespace).await?;
    let installers = cluster.installers().await?;
    let listed = Listing {
        apis: apis(served, &rules, installers.as_ref()),
        named: installers.is_some(),
        complete,
    };
    Ok(listed.report(namespace, format == Format::Wide, style))
}

struct Listing {
    apis: Vec<TenantApi>,
    /// True if the extensions are known.
    named: bool,
    /// True if all rights of the person are known.
    complete: bool,
}

impl Listing {
    fn report(&self, namespace: &str, wide: bool, style: Style) -> Report {
        let value = json!({
            "namespace": namespace,
            "extensionsKnown": self.named,
            "rightsComplete": self.complete,
            "apis": self.apis.iter().map(value).collect::<Vec<_>>(),
        });
        let mut text = if self.apis.is_empty() {
            "no APIs of extensions\n".to_owned()
        } else {
            self.table(wide).text(style, "")
        };
        if !self.named {
            text.push_str(
                "\nThe extensions are not shown, and APIs of others are among these: you may not list CustomResourceDefinitions; see \
                 docs/tenants.md\n",
            );
        }
        if !self.complete {
            text.push_str("\nYou may be allowed more: the API server does not know all of your rights\n");
        }
        Report::new(value, text).positive(!self.apis.is_empty())
    }

    fn table(&self, wide: bool) -> Table {
        let mut table = if wide {
            Table::new(&[
                "EXTENSION",
                "VERSION",
                "API",
                "YOU MAY",
                "PACKAGE",
                "KIND",
                "API VERSIONS",
            ])
        } else {
            Table::new(&["EXTENSION", "VERSION", "API", "YOU MAY"])
        };
        for api in &self.apis {
            let installer = api.installer.clone().unwrap_or_default();
            let may = match api.may.as_slice() {
                [] => "nothing".to_owned(),
                may => may.join(", "),
            };
            let paint = if api.may.is_empty() {
                Paint::Plain
            } else {
                Paint::Good
            };
            let (name, versions) = (api.api.name(), api.api.versions.join(", "));
            let usual = [installer.extension.as_str(), &installer.version, &name, &may];
            if wide {
                let [extension, version, name, may] = usual;
                let kind = api.api.kind.as_str();
                table.row(
                    paint,
                    [extension, version, name, may, &installer.package, kind, &versions],
                );
            } else {
                table.row(paint, usual);
            }
        }
        table
    }
}

fn value(api: &TenantApi) -> Value {
    let installer = api.installer.as_ref();
    json!({
        "group": api.api.group, "kind": api.api.kind, "resource": api.api.plural, "versions": api.api.versions,
        "may": api.may,
        "extension": installer.map(|installer| &installer.extension),
        "package": installer.map(|installer| &installer.package),
        "version": installer.map(|installer| &installer.version),
    })
}
