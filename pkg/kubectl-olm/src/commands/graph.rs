//! `graph`: the upgrade graph of a package.

use std::collections::BTreeMap;

use olm_fbc::PackageContent;
use olm_graph::{Graph, Start, build, dot, mermaid, svg};
use olm_resolve::{CatalogInput, Installed, Request, resolve};
use olm_version::BundleVersion;

use super::common::package;
use crate::classic;
use crate::cli::{Format, GraphArgs, GraphFormat, Semantics};
use crate::failure::Failure;
use crate::graph_text::text;
use crate::installed::{found, read};
use crate::report::Report;
use crate::source::gates_of;
use crate::style::Style;
use crate::verdicts::annotate;

/// Draws the graph of the package in one catalog.
pub(crate) async fn run(args: GraphArgs, output: Format, style: Style) -> Result<Report, Failure> {
    if output != Format::Table && args.format != GraphFormat::Text {
        return Err(Failure::Usage(
            "-o json and -o yaml print the graph as data: omit --format".to_owned(),
        ));
    }
    let inputs = package(&args.source, &args.package).await?;
    let mut catalogs = found(&inputs);
    let (Some((catalog, content)), None) = (catalogs.next(), catalogs.next()) else {
        let names: Vec<&str> = found(&inputs).map(|(name, _)| name.as_str()).collect();
        return Err(Failure::Usage(format!(
            "several catalogs have the package: name one with --catalog: {}",
            names.join(", ")
        )));
    };
    if let Some(missing) = args
        .channels
        .iter()
        .find(|name| content.channels.iter().all(|channel| channel.name != **name))
    {
        return Err(Failure::NegativeAnswer(format!(
            "the package has no channel {missing:?}"
        )));
    }
    let mut graph = build(catalog, content, &args.channels);
    if let Some(from) = &args.from {
        let gates = gates_of(&args.source).await;
        let installed = read(from, &inputs, gates.release_support())?;
        match args.semantics {
            Semantics::V1 => {
                let request = Request {
                    package: args.package.clone(),
                    channels: args.channels.clone(),
                    release_support: gates.release_support(),
                    selection: gates.selection(),
                    ..Request::default()
                };
                explain(&mut graph, request, installed, &inputs);
            }
            Semantics::Classic => by_classic(&mut graph, &args, &installed, content)?,
        }
    }
    if args.annotate {
        annotate(&mut graph, content, &args).await?;
    }
    let drawn = match args.format {
        GraphFormat::Text => text(&graph, style),
        GraphFormat::Mermaid => mermaid(&graph),
        GraphFormat::Dot => dot(&graph),
        GraphFormat::Svg => svg(&graph),
    };
    Ok(Report::new(serde_json::json!(graph), drawn))
}

/// Adds to a graph what the resolver says of each bundle, from the installed one on.
pub(crate) fn explain(graph: &mut Graph, request: Request, installed: Installed, inputs: &[CatalogInput]) {
    let mut start = Start {
        bundle: installed.name.clone(),
        version: installed.version.clone(),
        next: None,
        semantics: "v1",
        trouble: None,
    };
    let request = Request {
        installed: Some(installed),
        ..request
    };
    match resolve(&request, inputs) {
        Ok(found) => {
            start.next = Some(found.bundle.clone());
            graph.explain(start, &found.explanation);
        }
        Err(error) => {
            start.trouble = Some(error.to_string());
            graph.explain(start, &error.explanation);
        }
    }
}

fn by_classic(
    graph: &mut Graph,
    args: &GraphArgs,
    installed: &Installed,
    content: &PackageContent,
) -> Result<(), Failure> {
    if args.channels.len() > 1 {
        return Err(Failure::Usage(
            "OLM Classic follows one channel: give --channel once".to_owned(),
        ));
    }
    let wanted = args.channels.first().map(String::as_str);
    let channel = classic::channel(content, wanted).map_err(Failure::NegativeAnswer)?;
    let choice = classic::choose(channel, Some((&installed.name, &installed.version)));
    let versions: BTreeMap<&str, BundleVersion> = content
        .bundles
        .iter()
        .filter_map(|bundle| {
            Some((
                bundle.name.as_str(),
                BundleVersion::spelled(bundle.version_release(false).ok()?, false),
            ))
        })
        .collect();
    let path = classic::path(channel, (&installed.name, &installed.version), &versions);
    let trouble = choice.bundle.is_none().then_some(choice.reason);
    let start = Start {
        bundle: installed.name.clone(),
        version: installed.version.clone(),
        next: choice.bundle,
        semantics: "classic",
        trouble,
    };
    graph.follow(start, &path);
    Ok(())
}
