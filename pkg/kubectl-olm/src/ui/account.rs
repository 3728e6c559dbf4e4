//! Page of the reader's account: user, groups, and rights to read what the pages show.

use futures::future::join_all;
use olm_status::overview::Mood;
use olm_ui::live::{AccountView, Fact, Row, TableView};

use super::Reader;
use crate::source::Cluster;

const OLM: &str = "olm.operatorframework.io";

/// Reads that the pages need: what they show, verb, group, resource, namespace.
const READS: [(&str, &str, &str, &str, &str); 9] = [
    (
        "Extensions, and what is installed of a package",
        "list",
        OLM,
        "clusterextensions",
        "",
    ),
    ("Catalogs and packages", "list", OLM, "clustercatalogs", ""),
    (
        "Revisions, and upgrades of the cluster",
        "list",
        OLM,
        "clusterobjectsets",
        "",
    ),
    (
        "Renewal of pages: extensions",
        "watch",
        OLM,
        "clusterextensions",
        "",
    ),
    ("Renewal of pages: catalogs", "watch", OLM, "clustercatalogs", ""),
    (
        "Renewal of pages: revisions",
        "watch",
        OLM,
        "clusterobjectsets",
        "",
    ),
    ("Events", "list", "events.k8s.io", "events", "default"),
    (
        "CRDs, for dependencies",
        "list",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "",
    ),
    ("Objects of large revisions", "get", "", "secrets", "olmv1-system"),
];

/// Asks the API server.
pub(super) async fn view(reader: &Reader) -> AccountView {
    let cluster = &reader.cluster;
    let (user, rows) = tokio::join!(cluster.whoami(), join_all(READS.map(|read| row(cluster, read))));
    let fact = |name, text: String| Fact {
        mood: Mood::Plain,
        name,
        text,
    };
    AccountView {
        user: user
            .map(|(name, groups)| vec![fact("User", name), fact("Groups", groups.join(", "))])
            .map_err(|error| olm_text::chain(&error)),
        rights: TableView {
            title: "What you may read".to_owned(),
            heads: ["Pages", "Right", "Permitted"].map(ToOwned::to_owned).into(),
            rows,
            more: 0,
        },
        signs_out: reader.signs_out,
    }
}

async fn row(
    cluster: &Cluster,
    (what, verb, group, resource, namespace): (&str, &str, &str, &str, &str),
) -> Row {
    let (mood, answer) = match cluster.may(verb, group, resource, namespace).await {
        Ok(true) => (Mood::Good, "yes".to_owned()),
        Ok(false) => (Mood::Waiting, "no".to_owned()),
        Err(error) => (Mood::Bad, olm_text::chain(&error)),
    };
    let dot = if group.is_empty() { "" } else { "." };
    let place = if namespace.is_empty() {
        String::new()
    } else {
        format!(" in {namespace}")
    };
    Row {
        mood,
        cells: vec![
            what.to_owned(),
            format!("{verb} {resource}{dot}{group}{place}"),
            answer,
        ],
    }
}
