//! Validation of channels: entries and upgrade graph.

use super::facts::{ChannelFacts, Name, PackageFacts};
use super::finding::Rule;
use super::graph::Graph;
use super::raw::{RawChannel, shape};
use super::report::{Place, Report};
use crate::Meta;
use olm_version::{SkipRange, VersionRelease, go_quote};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

pub(super) fn add(facts: &mut PackageFacts, meta: &Meta, place: Place, report: &mut Report) {
    let package = meta.package.as_str();
    let mut channel = ChannelFacts {
        place,
        name: meta.name.clone(),
        entries: Vec::new(),
        replaces: Vec::new(),
        skips: Vec::new(),
    };
    let quoted = go_quote(&meta.name);
    let mut add = |rule, message, hint: &str| report.add(place, package, rule, message, hint);
    if meta.name.is_empty() {
        let message = format!("a channel of package {} has no name", go_quote(package));
        add(Rule::ChannelNameMissing, message, "set name, such as stable");
    }
    let raw: RawChannel<'_> = match shape(meta, package, place, report) {
        Some(raw) => raw,
        None => return facts.channels.push(channel),
    };
    let mut add = |rule, message, hint: &str| report.add(place, package, rule, message, hint);
    if raw.entries.is_empty() {
        let hint = "list its bundles in entries, or remove the channel";
        add(
            Rule::ChannelEmpty,
            format!("channel {quoted} has no entries"),
            hint,
        );
    }
    let mut known: HashMap<Name, usize> = HashMap::new();
    for entry in &raw.entries {
        let text = entry.name.as_str();
        if text.is_empty() {
            let message = format!("an entry of channel {quoted} has no name");
            add(Rule::EntryNameMissing, message, "set name to that of a bundle");
            continue;
        }
        let of = format!("entry {} of channel {quoted}", go_quote(text));
        let name = facts.names.number(text);
        let replaces = (!entry.replaces.is_empty()).then(|| facts.names.number(entry.replaces.as_str()));
        let named = entry.skips.iter().filter(|skip| !skip.is_empty());
        let skips: Vec<Name> = named.map(|skip| facts.names.number(skip.as_str())).collect();
        if replaces == Some(name) {
            let hint = "remove replaces, or name the bundle before it";
            add(Rule::EntryReplacesItself, format!("{of} replaces itself"), hint);
        }
        if skips.contains(&name) {
            add(
                Rule::EntrySkipsItself,
                format!("{of} skips itself"),
                "remove it from skips",
            );
        }
        if skips.len() < entry.skips.len() {
            let message = format!("{of} skips an empty name");
            add(
                Rule::EntrySkipsNothing,
                message,
                "remove the empty name from skips",
            );
        }
        let range = entry.skip_range.as_str();
        if let Some(Err(error)) = (!range.is_empty()).then(|| range.parse::<SkipRange>()) {
            let message = format!("the skipRange {} of {of} does not read: {error}", go_quote(range));
            let hint =
                "write comparators with whole versions, such as >=1.0.0 <1.2.0; until then it skips nothing";
            add(Rule::SkipRangeInvalid, message, hint);
        }
        if let Some(at) = known.get(&name).copied() {
            add(
                Rule::EntryDuplicate,
                format!("{of} is listed twice"),
                "list each bundle once",
            );
            // The graph covers both together.
            if let Some(kept) = channel.replaces.get_mut(at) {
                *kept = kept.or(replaces);
            }
            if let Some(kept) = channel.skips.get_mut(at) {
                kept.extend(skips);
            }
        } else {
            known.insert(name, channel.entries.len());
            channel.entries.push(name);
            channel.replaces.push(replaces);
            channel.skips.push(skips);
        }
    }
    facts.channels.push(channel);
}

pub(super) fn check(facts: &PackageFacts, package: &str, bundles: &HashSet<Name>, report: &mut Report) {
    let versions: HashMap<Name, &VersionRelease> = facts
        .bundles
        .iter()
        .filter_map(|bundle| Some((bundle.name, bundle.version.as_ref()?)))
        .collect();
    let mut seen: HashMap<&str, Place> = HashMap::new();
    for channel in &facts.channels {
        let quoted = go_quote(&channel.name);
        if let Some(first) = seen.get(channel.name.as_str()) {
            let message = format!("channel {quoted} is already defined at {}", report.name(*first));
            let hint = "join the entries into one olm.channel";
            report.add(channel.place, package, Rule::ChannelDuplicate, message, hint);
        } else {
            seen.insert(&channel.name, channel.place);
        }
        for name in channel.entries.iter().filter(|name| !bundles.contains(*name)) {
            let text = go_quote(facts.names.text(*name));
            let message = format!("entry {text} of channel {quoted} has no olm.bundle");
            let hint = "add the olm.bundle, or remove the entry";
            report.add(channel.place, package, Rule::EntryWithoutBundle, message, hint);
        }
        channel.check_graph(facts, package, report);
        channel.check_versions(facts, &versions, package, report);
    }
}

impl ChannelFacts {
    fn graph(&self) -> Graph {
        let numbers: HashMap<Name, usize> = self
            .entries
            .iter()
            .enumerate()
            .map(|(at, name)| (*name, at))
            .collect();
        let number = |name: &Name| numbers.get(name).copied();
        let skips = |skips: &Vec<Name>| skips.iter().filter_map(number).collect();
        Graph {
            replaces: self
                .replaces
                .iter()
                .map(|name| name.as_ref().and_then(number))
                .collect(),
            skips: self.skips.iter().map(skips).collect(),
        }
    }

    fn check_graph(&self, facts: &PackageFacts, package: &str, report: &mut Report) {
        let graph = self.graph();
        let quoted = go_quote(&self.name);
        let mut add = |rule, message, hint: &str| report.add(self.place, package, rule, message, hint);
        let name = |node: usize| self.entries.get(node).copied().unwrap_or_default();
        let list = |nodes: &[usize]| facts.names.list(nodes.iter().copied().map(name));

        let mut cyclic: HashSet<usize> = HashSet::new();
        for cycle in graph.replaces_cycles() {
            let way: Vec<&str> = cycle
                .iter()
                .chain(cycle.first())
                .take(21)
                .map(|node| facts.names.text(name(*node)))
                .collect();
            let message = format!("channel {quoted} has a cycle of replaces: {}", way.join(" -> "));
            add(
                Rule::ReplacesCycle,
                message,
                "remove the replaces of the oldest of them",
            );
            cyclic.extend(cycle);
        }
        for knot in graph
            .strongly_connected()
            .iter()
            .filter(|knot| !knot.iter().any(|node| cyclic.contains(node)))
        {
            let message = format!(
                "channel {quoted} has a cycle of replaces and skips: {}",
                list(knot)
            );
            add(
                Rule::SkipsCycle,
                message,
                "let newer bundles skip older ones only",
            );
        }
        let heads = graph.heads();
        if heads.is_empty() && graph.len() > 0 {
            let message =
                format!("channel {quoted} has no head: each entry is replaced or skipped by another");
            add(
                Rule::ChannelHeadMissing,
                message,
                "leave one entry that no other replaces or skips",
            );
            return;
        }
        if heads.len() > 1 {
            let message = format!("channel {quoted} has {} heads: {}", heads.len(), list(&heads));
            let hint = "let one of them replace or skip the others, or move them to other channels";
            add(Rule::ChannelHeadMultiple, message, hint);
        }
        let unreachable: Vec<usize> = graph
            .unreachable(&heads)
            .into_iter()
            .filter(|node| !cyclic.contains(node))
            .collect();
        if !unreachable.is_empty() {
            let message = format!(
                "channel {quoted} has {} stranded entries, to which no replaces leads from the head: {}",
                unreachable.len(),
                list(&unreachable)
            );
            add(
                Rule::EntryStranded,
                message,
                "let a bundle on the way from the head skip them, or remove them",
            );
        }
    }

    /// Versions that differ but are equal in precedence, such as `1.0.0` and `1.0.0+01`.
    fn check_versions(
        &self,
        facts: &PackageFacts,
        versions: &HashMap<Name, &VersionRelease>,
        package: &str,
        report: &mut Report,
    ) {
        let mut ordered: Vec<(Name, &VersionRelease)> = self
            .entries
            .iter()
            .filter_map(|name| Some((*name, *versions.get(name)?)))
            .collect();
        ordered.sort_by(|a, b| a.1.cmp_precedence(b.1).then_with(|| a.0.cmp(&b.0)));
        for pair in ordered.windows(2) {
            let [(a, low), (b, high)] = pair else { continue };
            if low.cmp_precedence(high) == Ordering::Equal && low != high {
                let message = format!(
                    "nothing orders the versions {low} and {high} of {} in channel {}",
                    facts.names.list([*a, *b]),
                    go_quote(&self.name)
                );
                let hint = "build metadata orders bundles only if it is a release, such as +1";
                report.add(self.place, package, Rule::ChannelVersionDuplicate, message, hint);
            }
        }
    }
}
