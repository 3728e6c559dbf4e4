//! Instructions to install a package.

use maud::{Markup, html};
use olm_packages::{Installation, PackageProfile, default_namespace};
use olm_text::dns::{is_label, is_subdomain};
use serde_json::{Value, json};

/// Longest name that goes into a manifest or a command, in bytes.
const NAME: usize = 253;

pub(super) fn section(package: &PackageProfile) -> Markup {
    let name = package.listing.name.as_str();
    let fits = is_subdomain(name);
    html! {
        section aria-labelledby="install" {
            h2 id="install" { "Install" }
            @match yaml(package, name, fits) {
                Some(yaml) => {
                    p { "Save the manifests as " code { "install.yaml" } " and run " code { "kubectl apply -f install.yaml" } ":" }
                    pre class="copy" role="group" tabindex="0" aria-label="Manifests of the installation" { code { (yaml) } }
                }
                None => p { "The names of the package and its channel are too long for a manifest." },
            }
            @if let Some(command) = command(package, name).filter(|_| fits) {
                p { "The same by command:" }
                pre class="copy" role="group" tabindex="0" aria-label="Command of the installation" { code { (command) } }
            }
        }
    }
}

/// Returns the command that does the same as the manifests; none if a shell would read more than a word in a name.
fn command(package: &PackageProfile, name: &str) -> Option<String> {
    let channel = package.listing.default_channel.as_str();
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if channel.len() > NAME || !channel.chars().all(is_word) || channel.starts_with('-') {
        return None;
    }
    let channel = if channel.is_empty() {
        String::new()
    } else {
        format!(" --channel {channel}")
    };
    default_namespace(name)?;
    Some(format!("kubectl olm install {name} --create-namespace{channel}"))
}

/// Returns the manifests as YAML; none if a name is too long. A name that no object can have is replaced.
fn yaml(package: &PackageProfile, name: &str, fits: bool) -> Option<String> {
    let channels: Vec<String> = [&package.listing.default_channel]
        .into_iter()
        .filter(|channel| !channel.is_empty())
        .cloned()
        .collect();
    if name.len() > NAME || channels.iter().any(|channel| channel.len() > NAME) {
        return None;
    }
    let namespace = default_namespace(name).filter(|namespace| is_label(namespace));
    let extension = Installation {
        name: if fits { name } else { "my-extension" },
        package: name,
        namespace: namespace.as_deref(),
        channels: &channels,
        ..Installation::default()
    };
    let space = namespace
        .as_ref()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let objects: Vec<Value> = space.into_iter().chain([extension.manifest()]).collect();
    let documents: Result<Vec<String>, _> = objects.iter().map(serde_saphyr::to_string).collect();
    Some(documents.ok()?.join("---\n"))
}

#[cfg(test)]
mod tests {
    use olm_packages::PackageListing;

    use super::*;

    #[test]
    fn manifests_read_back_with_the_names_as_values() {
        let package = |name: &str, channel: &str| PackageProfile {
            listing: PackageListing {
                name: name.into(),
                default_channel: channel.to_owned(),
                ..PackageListing::default()
            },
            ..PackageProfile::default()
        };
        let text = yaml(&package("kite", "stable"), "kite", true).unwrap();
        let (space, extension) = text.split_once("---\n").unwrap();
        let read = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
        assert_eq!(read(space)["metadata"]["name"], "kite-system");
        assert_eq!(
            read(extension)["spec"]["source"]["catalog"],
            json!({"packageName": "kite", "channels": ["stable"]})
        );
        assert_eq!(
            command(&package("kite", "stable"), "kite").unwrap(),
            "kubectl olm install kite --create-namespace --channel stable"
        );
        for channel in ["a b", "$(a)", "a;b", "-x", "a\nb", "é", "`a`"] {
            assert_eq!(command(&package("kite", channel), "kite"), None, "{channel}");
        }
        let hostile = "k\": {}\n---\nkind: Secret";
        let text = yaml(&package(hostile, "yes"), hostile, false).unwrap();
        let read = read(&text);
        assert_eq!(read["metadata"]["name"], "my-extension");
        assert_eq!(
            read["spec"]["source"]["catalog"],
            json!({"packageName": hostile, "channels": ["yes"]})
        );
        assert_eq!(
            yaml(&package(&"k".repeat(300), ""), &"k".repeat(300), false),
            None
        );
    }
}
