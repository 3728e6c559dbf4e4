//! What the targets call: parsers of foreign and of administrators' text.

use std::{
    fs::File,
    io::{Seek as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use oci_spec::image::{ImageIndex, ImageManifest};

use crate::{
    auth::DockerConfig,
    config::Limits,
    policy::{Policy, Statement},
    reference::{Digest, Reference, Repository},
    registries::Registries,
    unpack::{Budget, Unpacker},
};

/// Unpacks bytes as a layer below a directory, under small limits; failures are fine.
///
/// # Errors
/// The scratch file cannot be written.
pub fn unpack(layer: &[u8], root: &Path) -> std::io::Result<()> {
    let mut file: File = tempfile::tempfile()?;
    file.write_all(layer)?;
    file.rewind()?;
    let limits = Limits {
        entries: 1000,
        total: 1 << 20,
        file: 1 << 18,
        depth: 16,
        ratio: 100,
        ratio_floor: 1 << 20,
        ..Limits::default()
    };
    let budget = Budget::until(Instant::now() + Duration::from_secs(5));
    let mut unpacker = Unpacker::new(root.to_owned(), Vec::new(), limits, budget);
    let _ = unpacker.apply(file, layer.len() as u64);
    Ok(())
}

/// Reads a registries.conf and asks it where to pull a repository from; what it names must be a
/// repository again.
pub fn registries(text: &[u8]) {
    let mut rules = Registries::default();
    if rules.add(Path::new("fuzz.conf"), text).is_err() {
        return;
    }
    for name in ["quay.io/a/b", "a.example.com:5000/x", "127.0.0.1:5000/y/z"] {
        let Some(repository) = Repository::parse(name) else {
            continue;
        };
        for by_digest in [true, false] {
            for source in rules.sources(&repository, by_digest).sources {
                assert!(Repository::parse(&source.repository.to_string()).is_some());
            }
        }
    }
}

/// Reads a policy, which names no files as far as the fuzzer knows, and asks it for a verdict.
pub fn policy(text: &[u8]) {
    let Ok(wanted) = "quay.io/a/b:v1".parse::<Reference>() else {
        return;
    };
    if let Ok(policy) = Policy::parse(PathBuf::from("fuzz.json"), text) {
        let verdict = policy.verdict(&wanted);
        let _ = verdict.before();
        let _ = verdict.check(&[], &[]);
        let _ = verdict.fingerprint();
    }
}

/// Reads manifests, indexes and signed statements; a digest that reads is safe as a file name.
pub fn manifest(text: &[u8]) {
    let descriptors = serde_json::from_slice::<ImageManifest>(text)
        .map(|manifest| manifest.layers().clone())
        .or_else(|_| serde_json::from_slice::<ImageIndex>(text).map(|index| index.manifests().clone()));
    for descriptor in descriptors.unwrap_or_default() {
        if let Ok(digest) = descriptor.digest().to_string().parse::<Digest>() {
            assert!(!digest.to_string().contains(['/', '.']));
        }
    }
    let _ = Statement::parse(text);
}

/// Reads credentials.
pub fn docker_config(text: &[u8]) {
    let _ = DockerConfig::parse(text);
    let _ = DockerConfig::parse_legacy(text);
}

/// Reads a reference; what reads prints back as the same reference.
pub fn reference(text: &str) {
    if let Ok(reference) = text.parse::<Reference>() {
        let again = reference.to_string().parse::<Reference>();
        assert_eq!(again, Ok(reference));
    }
}
