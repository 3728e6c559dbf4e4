//! Entry points of the targets: parsers of untrusted and of administrators' text.

use std::{
    fs::File,
    io::{Seek as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use oci_spec::image::{ImageIndex, ImageManifest};

use crate::{
    auth::DockerConfig,
    limits::Limits,
    policy::{Policy, Statement},
    reference::{Digest, Reference, Repository},
    registries::Registries,
    unpack::{Budget, StreamEntry, Unpacker, each_file},
};

/// Unpacks bytes as a layer below a directory, and reads them as a stream, with small limits; failures are acceptable.
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
    let size = layer.len() as u64;
    let budget = || Budget::until(Instant::now() + Duration::from_secs(5));
    let mut unpacker = Unpacker::new(root.to_owned(), Vec::new(), limits.clone(), budget());
    let _ = unpacker.apply(file, size);
    let mut named = tempfile::NamedTempFile::new()?;
    named.write_all(layer)?;
    let mut read = |entry: StreamEntry<'_>| match entry.file {
        Some((_, content)) => std::io::copy(content, &mut std::io::sink()).map(drop),
        None => Ok(()),
    };
    let layers = [(named.path().to_owned(), size)];
    let _ = each_file(&layers, &[], &limits, &budget(), &mut read);
    Ok(())
}

/// Parses a registries.conf and looks up the locations of a repository; each must be a valid repository.
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

/// Parses a policy, which names no files that the fuzzer knows, and evaluates it.
pub fn policy(text: &[u8]) {
    let Ok(requested) = "quay.io/a/b:v1".parse::<Reference>() else {
        return;
    };
    if let Ok(policy) = Policy::parse(PathBuf::from("fuzz.json"), text) {
        let verdict = policy.verdict(&requested);
        let _ = verdict.reject_early();
        let _ = verdict.check(&[], &[]);
        let _ = verdict.fingerprint();
    }
}

/// Parses manifests, indexes and signed statements; a valid digest is safe as a file name.
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

/// Parses credentials.
pub fn docker_config(text: &[u8]) {
    let _ = DockerConfig::parse(text);
    let _ = DockerConfig::parse_legacy(text);
}

/// Parses a reference; a valid one prints as the same text.
pub fn reference(text: &str) {
    if let Ok(reference) = text.parse::<Reference>() {
        let again = reference.to_string().parse::<Reference>();
        assert_eq!(again, Ok(reference));
    }
}

/// Reads the answers of a registry that refuses a request.
pub fn challenge(text: &[u8]) {
    crate::registry::answer(text);
}
