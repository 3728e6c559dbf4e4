//! `tree`: the objects of an extension by phase, with their health.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli::ExtensionArgs;
use crate::failure::Failure;
use crate::observed::{ObjectHealth, Tree};
use crate::report::Report;
use crate::source::Cluster;
use crate::style::{Paint, Style};
use crate::table::clean;

/// Shows the newest revision that is kept up; positive when every object is there and healthy.
pub(crate) async fn run(args: ExtensionArgs, style: Style) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let tree = Tree::read(&cluster, &args.name).await?;
    let mut text = format!("{} → {}\n", clean(&args.name), clean(&tree.revision));
    for (place, (name, objects)) in tree.phases.iter().enumerate() {
        let (branch, stem) = branch(place, tree.phases.len());
        let name = style.paint(Paint::Bold, &clean(name));
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{branch} {name}");
        for (place, object) in objects.iter().enumerate() {
            let (branch, _) = self::branch(place, objects.len());
            let told = if object.message.is_empty() {
                String::new()
            } else {
                format!(": {}", object.message)
            };
            let health = style.paint(object.mood.into(), object.health);
            let _ = writeln!(
                text,
                "{stem}  {branch} {} {health}{}",
                clean(&object.title()),
                clean(&told)
            );
        }
    }
    let phases: Vec<Value> = tree
        .phases
        .iter()
        .map(
            |(name, objects)| json!({"name": name, "objects": objects.iter().map(value).collect::<Vec<_>>()}),
        )
        .collect();
    let value = json!({"extension": args.name, "revision": tree.revision, "phases": phases});
    Ok(Report::new(value, text).positive(tree.is_healthy()))
}

fn value(object: &ObjectHealth) -> Value {
    json!({"kind": object.kind, "apiVersion": object.api_version, "namespace": object.namespace, "name": object.name,
        "health": object.health, "message": object.message})
}

/// Returns the line before the item at `place` of `count`, and the line that continues below it.
fn branch(place: usize, count: usize) -> (&'static str, &'static str) {
    if place + 1 == count {
        ("└─", " ")
    } else {
        ("├─", "│")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_item_ends_its_branch() {
        let branches: Vec<_> = (0..3).map(|place| branch(place, 3)).collect();
        assert_eq!(branches, [("├─", "│"), ("├─", "│"), ("└─", " ")]);
    }
}
