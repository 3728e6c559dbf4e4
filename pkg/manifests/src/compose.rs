//! Composition of folders: resources, then the changes of each kustomization.

use std::fmt::Display;

use olm_text::object::ObjectId;
use olm_yaml::Limits;
use serde_json::{Value, json};

use crate::error::ManifestError;
use crate::files;
use crate::kustomization::{self, Generator, Kustomization};
use crate::{patch, transform};

/// Base that overlays name among their resources.
const BASE: &str = "default";

/// Returns the objects of a folder.
pub(crate) fn folder(path: &str) -> Result<Vec<Value>, ManifestError> {
    over(path, Vec::new())
}

/// Returns the objects of a folder with `base` in the place of `config/default`. An object that `base` already has is
/// not added again.
pub(crate) fn over(path: &str, base: Vec<Value>) -> Result<Vec<Value>, ManifestError> {
    let (file, kustomization) = kustomization_of(path)?;
    let mut objects = base;
    for resource in &kustomization.resources {
        let resource = resolve(path, resource);
        // Without objects of a base, the folder is the base itself or stands alone.
        if resource != BASE || objects.is_empty() {
            merge(&mut objects, resources(&resource)?);
        }
    }
    for generator in &kustomization.config_map_generator {
        merge(&mut objects, vec![config_map(path, &file, generator)?]);
    }
    for change in &kustomization.patches {
        let text = match (&change.inline, &change.path) {
            (Some(text), None) => text.as_str(),
            (None, Some(name)) => content(&resolve(path, name))?,
            _ => return Err(unsupported(&file, "a patch needs either patch or path")),
        };
        let text = yaml(&file, text)?;
        let text = text.into_iter().next().unwrap_or_default();
        patch::apply(&mut objects, change.target.as_ref(), &text)
            .map_err(|cause| unsupported(&file, cause))?;
    }
    transform::apply(&mut objects, &kustomization);
    Ok(objects)
}

/// Returns the objects that a folder adds to `config/default`, without its changes.
pub(crate) fn additions(path: &str) -> Result<Vec<Value>, ManifestError> {
    let (file, kustomization) = kustomization_of(path)?;
    let mut objects = Vec::new();
    for resource in &kustomization.resources {
        let resource = resolve(path, resource);
        if resource != BASE {
            merge(&mut objects, resources(&resource)?);
        }
    }
    for generator in &kustomization.config_map_generator {
        merge(&mut objects, vec![config_map(path, &file, generator)?]);
    }
    Ok(objects)
}

/// Adds those of `added` whose identity `objects` does not have.
pub(crate) fn merge(objects: &mut Vec<Value>, added: Vec<Value>) {
    for object in added {
        if !objects
            .iter()
            .any(|other| ObjectId::of(other) == ObjectId::of(&object))
        {
            objects.push(object);
        }
    }
}

/// Returns the objects of a file or a folder.
fn resources(path: &str) -> Result<Vec<Value>, ManifestError> {
    match files::file(path) {
        Some(text) => yaml(path, text),
        None => folder(path),
    }
}

fn kustomization_of(path: &str) -> Result<(String, Kustomization), ManifestError> {
    let file = format!("{path}/kustomization.yaml");
    let value = yaml(&file, content(&file)?)?
        .into_iter()
        .next()
        .unwrap_or_default();
    let read = kustomization::read(value).map_err(|error| unsupported(&file, error))?;
    Ok((file, read))
}

fn config_map(path: &str, file: &str, generator: &Generator) -> Result<Value, ManifestError> {
    if !generator.options.disable_name_suffix_hash {
        return Err(unsupported(file, "a generated name with a hash"));
    }
    let mut data = serde_json::Map::new();
    for name in &generator.files {
        data.insert(name.clone(), content(&resolve(path, name))?.into());
    }
    Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": generator.name, "namespace": generator.namespace, "labels": generator.options.labels}}))
}

fn content(path: &str) -> Result<&'static str, ManifestError> {
    files::file(path).ok_or_else(|| ManifestError::Missing(path.to_owned()))
}

fn yaml(file: &str, text: &str) -> Result<Vec<Value>, ManifestError> {
    olm_yaml::documents(text.as_bytes(), &Limits::default()).map_err(|source| ManifestError::Yaml {
        file: file.to_owned(),
        source,
    })
}

fn unsupported(file: &str, cause: impl Display) -> ManifestError {
    ManifestError::Unsupported {
        file: file.to_owned(),
        cause: cause.to_string(),
    }
}

/// Resolves `name`, relative to a folder, to a path below `config/`.
fn resolve(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in name.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}
