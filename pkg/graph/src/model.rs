//! Model of an upgrade graph.

use std::collections::{BTreeMap, BTreeSet};

use olm_text::name::{BundleName, CatalogName, PackageName};
use olm_version::BundleVersion;
use serde::{Serialize, Serializer};

use crate::standing::{Outlook, Standing};
use crate::verdict::EdgeVerdict;

/// The upgrade graph of one package in one catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// The package.
    pub package: PackageName,
    /// The catalog.
    pub catalog: CatalogName,
    /// Deprecation message of the whole package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// The installed bundle and the next choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Every bundle, lowest version first; edges name them by position.
    pub bundles: Vec<Node>,
    /// The channels: the default one first, then by their highest version, highest first.
    pub channels: Vec<GraphChannel>,
    /// Verdicts on edges, by the positions of the bundles before and after.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "edges")]
    pub verdicts: BTreeMap<(usize, usize), EdgeVerdict>,
    /// Number of edges beyond the limit of verdicts.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_annotated: usize,
}

/// Verdict of an edge as data.
#[derive(Serialize)]
struct AnnotatedEdge<'a> {
    from: usize,
    to: usize,
    #[serde(flatten)]
    verdict: &'a EdgeVerdict,
}

fn edges<S: Serializer>(
    verdicts: &BTreeMap<(usize, usize), EdgeVerdict>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(verdicts.iter().map(|((from, to), verdict)| AnnotatedEdge {
        from: *from,
        to: *to,
        verdict,
    }))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Start of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    /// The installed bundle's name.
    pub bundle: BundleName,
    /// Its version.
    #[serde(serialize_with = "recorded")]
    pub version: BundleVersion,
    /// The bundle that would be chosen, if any.
    pub next: Option<BundleName>,
    /// Product whose rules choose: `v1` or `classic`.
    pub semantics: &'static str,
    /// Reason why no bundle can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

fn recorded<S: Serializer>(version: &BundleVersion, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(version)
}

/// A bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub name: BundleName,
    /// Its version, or its name if it has none.
    pub label: String,
    /// True if the catalog has the bundle itself; false if only entries of channels name it.
    pub present: bool,
    /// Deprecation message of the bundle; may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// Minimum number of upgrades from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// The bundle before it on a shortest path from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<BundleName>,
    /// Prospect of the upgrade to the bundle, from the resolution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphChannel {
    /// Its name.
    pub name: String,
    /// True for the channel that older clients use by default.
    pub default: bool,
    /// Deprecation message of the channel; may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// Its bundles, lowest version first.
    pub entries: Vec<ChannelEntry>,
}

/// A bundle in a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelEntry {
    /// The bundle, as a position in [`Graph::bundles`].
    pub bundle: usize,
    /// True if no other entry replaces or skips this one.
    pub head: bool,
    /// The bundle of the channel that it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<usize>,
    /// The bundles of the channel that it skips, lowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<usize>,
    /// Its `skipRange` as written; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skip_range: String,
    /// The bundles of any channel in its `skipRange`, lowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_skip_range: Vec<usize>,
    /// Names of bundles outside of the channel that it replaces or skips.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<BundleName>,
}

/// An upgrade from the start; ends are positions of a channel and a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossEdge {
    /// Column and row of the start.
    pub from: (usize, usize),
    /// Column and row of the target.
    pub to: (usize, usize),
    /// Field that defines the edge.
    pub how: &'static str,
}

/// Relation of a bundle to the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The graph has no start.
    Free,
    /// The bundle is installed.
    Start,
    /// The bundle would be chosen.
    Next,
    /// The bundle can be reached by upgrades.
    Reachable,
    /// The bundle cannot be reached.
    Unreachable,
}

impl Graph {
    /// Returns a bundle by its position.
    pub fn node(&self, position: usize) -> Option<&Node> {
        self.bundles.get(position)
    }

    /// Returns every edge once, as the positions of the bundles before and after: those of `replaces` first, then of `skips`, then of
    /// skip ranges.
    pub fn edges(&self) -> Vec<(usize, usize)> {
        let entries = || self.channels.iter().flat_map(|lane| &lane.entries);
        let replaced = entries().filter_map(|stop| Some((stop.replaces?, stop.bundle)));
        let skipped = entries().flat_map(|stop| stop.skips.iter().map(|from| (*from, stop.bundle)));
        let in_range = entries().flat_map(|stop| stop.in_skip_range.iter().map(|from| (*from, stop.bundle)));
        let mut seen = BTreeSet::new();
        replaced
            .chain(skipped)
            .chain(in_range)
            .filter(|edge| seen.insert(*edge))
            .collect()
    }

    /// Returns the verdict on an edge.
    pub fn verdict(&self, from: usize, to: usize) -> Option<&EdgeVerdict> {
        self.verdicts.get(&(from, to))
    }

    /// Records that a bundle to which upgrades lead could not run on the cluster. A bundle that is held back anyway stays so.
    pub fn block(&mut self, position: usize, reason: &str) {
        let standing = self
            .bundles
            .get_mut(position)
            .and_then(|node| node.standing.as_mut());
        if let Some(standing) = standing
            && standing.outlook != Outlook::Held
        {
            *standing = Standing {
                outlook: Outlook::Blocked,
                reason: reason.to_owned(),
            };
        }
    }

    /// Returns the position of the start.
    pub fn start_position(&self) -> Option<usize> {
        let start = self.start.as_ref()?;
        self.bundles.iter().position(|node| node.name == start.bundle)
    }

    /// Returns the upgrades from the start by a `skipRange` or between channels, which no `replaces` or `skips` inside
    /// a channel shows.
    pub fn cross_edges(&self) -> Vec<CrossEdge> {
        let (Some(start), Some(position)) = (&self.start, self.start_position()) else {
            return Vec::new();
        };
        let has_start = |lane: &GraphChannel| lane.entries.iter().any(|stop| stop.bundle == position);
        let Some(first) = self.channels.iter().position(has_start) else {
            return Vec::new();
        };
        let mut jumps = Vec::new();
        for (number, lane) in self.channels.iter().enumerate() {
            let from = if has_start(lane) { number } else { first };
            for stop in lane.entries.iter().filter(|stop| stop.bundle != position) {
                let shown = stop.replaces == Some(position) || stop.skips.contains(&position);
                let how = if stop.outside.contains(&start.bundle) {
                    "replaces"
                } else if stop.in_skip_range.contains(&position) && !shown {
                    "skipRange"
                } else {
                    continue;
                };
                jumps.push(CrossEdge {
                    from: (from, position),
                    to: (number, stop.bundle),
                    how,
                });
            }
        }
        jumps
    }

    /// Returns the relation of a bundle to the start.
    pub fn relation(&self, node: &Node) -> Relation {
        match &self.start {
            None => Relation::Free,
            Some(start) if start.bundle == node.name => Relation::Start,
            Some(start) if start.next.as_ref() == Some(&node.name) => Relation::Next,
            Some(_) if node.steps.is_some() => Relation::Reachable,
            Some(_) => Relation::Unreachable,
        }
    }
}

impl GraphChannel {
    /// Returns the name with the marks `default` and `deprecated`.
    pub fn title(&self) -> String {
        let default = if self.default { " (default)" } else { "" };
        let deprecated = if self.deprecated.is_some() {
            " (deprecated)"
        } else {
            ""
        };
        format!("{}{default}{deprecated}", self.name)
    }

    /// Returns the labels of the heads.
    pub fn heads<'a>(&'a self, graph: &'a Graph) -> Vec<&'a str> {
        let heads = self.entries.iter().filter(|stop| stop.head);
        heads
            .filter_map(|stop| Some(graph.node(stop.bundle)?.label.as_str()))
            .collect()
    }
}
