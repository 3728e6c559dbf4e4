//! Histories of a store of one catalog, and the content that a reader of it finds.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::storage::{Encoding, Generation, Origin, StorageError, Store, ValidCatalogName};

/// Change of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Stores the text under a digest of an image.
    Store(&'static str, &'static str),
    /// Records another reference.
    Origin(&'static str),
    Remove,
    /// Gives up the content as damaged.
    Discard,
}

impl Step {
    /// Returns whether the change survives every crash after it. A removal may have to be repeated.
    pub(crate) fn is_durable(self) -> bool {
        matches!(self, Self::Store(..) | Self::Origin(_))
    }

    /// Returns the image's digest of a [`Step::Store`].
    pub(crate) fn digest(self) -> &'static str {
        match self {
            Self::Store(_, digest) => digest,
            _ => "",
        }
    }
}

/// Steps that lead to a state, and steps that are disturbed.
pub(crate) struct History {
    pub(crate) name: &'static str,
    pub(crate) before: &'static [Step],
    pub(crate) steps: &'static [Step],
}

pub(crate) const A: Step = Step::Store(
    r#"{"schema":"olm.package","name":"a"} {"schema":"x","name":"b"}"#,
    "aa",
);
pub(crate) const B: Step = Step::Store(r#"{"schema":"olm.package","name":"other"}"#, "bb");
pub(crate) const C: Step = Step::Store(r#"{"schema":"olm.channel","package":"c","name":"s"}"#, "cc");

pub(crate) const HISTORIES: [History; 8] = [
    History {
        name: "first content",
        before: &[],
        steps: &[A],
    },
    History {
        name: "new content",
        before: &[A],
        steps: &[B],
    },
    History {
        name: "content of another image twice",
        before: &[A],
        steps: &[B, C],
    },
    History {
        name: "the same content again",
        before: &[A],
        steps: &[A],
    },
    History {
        name: "another reference",
        before: &[A],
        steps: &[Step::Origin("v2")],
    },
    History {
        name: "removal",
        before: &[A],
        steps: &[Step::Remove],
    },
    History {
        name: "removal, then new content",
        before: &[A],
        steps: &[Step::Remove, B],
    },
    History {
        name: "damage, then the same content",
        before: &[A],
        steps: &[Step::Discard, A],
    },
];

/// Scratch folders and sources of one run.
pub(crate) struct Lab {
    folder: TempDir,
    fresh: AtomicUsize,
}

/// Identity of served content: both references and the digest; `None` if nothing is served.
pub(crate) type Served = Option<String>;

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            fresh: AtomicUsize::new(0),
        }
    }

    /// Returns a new empty folder.
    pub(crate) fn root(&self) -> PathBuf {
        let number = self.fresh.fetch_add(1, Ordering::Relaxed);
        let root = self.folder.path().join(number.to_string());
        fs::create_dir(&root).unwrap();
        root
    }

    /// Carries a step out.
    pub(crate) fn take(&self, store: &Store, step: Step) -> Result<(), StorageError> {
        let name = catalog();
        match step {
            Step::Store(text, digest) => {
                let source = self.folder.path().join(format!("source-{digest}"));
                fs::create_dir_all(&source).unwrap();
                fs::write(source.join("catalog.json"), text).unwrap();
                store
                    .store(&name, &source, origin("v1", digest), 100, &|| false)
                    .map(drop)
            }
            Step::Origin(tag) => {
                let resolved = store
                    .get(&name)
                    .map(|stored| stored.manifest().origin.resolved.clone());
                let origin = Origin {
                    resolved: resolved.unwrap_or_default(),
                    ..origin(tag, "")
                };
                store.set_origin(&name, origin).map(drop)
            }
            Step::Remove => store.remove(&name),
            Step::Discard => {
                if let Some(stored) = store.get(&name) {
                    store.discard_damaged(&name, &stored, &StorageError::Interrupted);
                }
                Ok(())
            }
        }
    }
}

/// Returns the name of the one catalog.
pub(crate) fn catalog() -> ValidCatalogName {
    ValidCatalogName::new("c").unwrap()
}

fn origin(tag: &str, digest: &str) -> Origin {
    Origin {
        requested: format!("registry.example/catalog:{tag}"),
        resolved: format!("registry.example/catalog@sha256:{digest}"),
        unpacked_at: 7,
        verified: None,
    }
}

/// Reads the whole served content, and returns its identity.
///
/// # Errors
/// The content is not of one generation, or not of the digest that it names.
pub(crate) fn served(store: &Store) -> Result<Served, String> {
    let Some(generation) = store.get(&catalog()) else {
        return Ok(None);
    };
    whole(&generation).map(Some)
}

/// Reads a whole generation, and returns its identity.
pub(crate) fn whole(generation: &Arc<Generation>) -> Result<String, String> {
    let manifest = generation.manifest();
    let read = || -> Result<bool, StorageError> {
        let mut bytes = vec![0; usize::try_from(generation.size(Encoding::Identity)).unwrap()];
        generation.read_at(Encoding::Identity, &mut bytes, 0)?;
        generation.verify(&|_| true)?;
        Ok(data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes)) == manifest.digest)
    };
    match read() {
        Ok(true) => {
            let Origin {
                requested, resolved, ..
            } = &manifest.origin;
            Ok(format!("{requested} {resolved} {}", manifest.digest))
        }
        Ok(false) => Err(format!(
            "the content is not of the digest {} that it names",
            manifest.digest
        )),
        Err(error) => Err(olm_text::chain(&error)),
    }
}

/// Returns the names in the catalog's folder, without the name of the generation that is served.
pub(crate) fn leftovers(root: &Path) -> Vec<String> {
    let folder = root.join("c");
    let current = fs::read_link(folder.join("current")).unwrap_or_default();
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name != "current" && Path::new(name) != current)
        .collect()
}
