//! Root stores that TLS configurations share.
//!
//! A store of the system's authorities takes milliseconds to parse and hundreds of small allocations, and a controller makes a
//! configuration for each question to a registry. So the store is parsed once, and again when one of its files changed.

use std::{
    collections::VecDeque,
    env,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use rustls::RootCertStore;
use rustls_native_certs::ErrorKind;
use rustls_pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};

use super::TlsError;

/// Maximum number of shared stores with given authorities: those of registries with their own, and of catalogd.
const MAX_EXTENDED: usize = 8;
/// Age from which a file's times tell its later changes. A file system's clock ticks every few milliseconds, so two changes
/// in a row can have equal times.
const SETTLED: Duration = Duration::from_secs(2);

static SHARED: Mutex<SharedRoots> = Mutex::new(SharedRoots::new());

/// Returns a store of the system's authorities and `extra`. Blocking: looks at the system's files.
///
/// # Errors
/// One of `extra` is no certificate.
pub(super) fn roots(extra: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, TlsError> {
    // Before the files are read: a change in between makes the next call read them again.
    let stamp = system_stamp(SystemTime::now());
    SHARED.lock().get(stamp, extra, load)
}

/// Stores in use by new configurations.
struct SharedRoots {
    /// The system's authorities, with the stamp of their files.
    system: Option<(u64, Arc<RootCertStore>)>,
    /// Stores with given authorities, by a digest of the given ones; the last used at the end.
    extended: VecDeque<(Digest, Arc<RootCertStore>)>,
}

type Digest = [u8; 32];

impl SharedRoots {
    const fn new() -> Self {
        Self {
            system: None,
            extended: VecDeque::new(),
        }
    }

    /// Returns the store of the system's authorities in files with this stamp, and of `extra`. Nothing is shared without a stamp.
    fn get(
        &mut self,
        stamp: Option<u64>,
        extra: &[CertificateDer<'static>],
        load: impl FnOnce() -> Loaded,
    ) -> Result<Arc<RootCertStore>, TlsError> {
        let known = self.system.as_ref();
        let shared = known.filter(|(known, _)| Some(*known) == stamp);
        let system = if let Some((_, system)) = shared {
            Arc::clone(system)
        } else {
            let Loaded { roots, complete } = load();
            let roots = Arc::new(roots);
            self.extended.clear();
            self.system = stamp
                .filter(|_| complete)
                .map(|stamp| (stamp, Arc::clone(&roots)));
            roots
        };
        if extra.is_empty() {
            return Ok(system);
        }
        let key = digest(extra);
        let at = self.extended.iter().position(|(known, _)| *known == key);
        let roots = if let Some((_, roots)) = at.and_then(|at| self.extended.remove(at)) {
            roots
        } else {
            Arc::new(extend(&system, extra)?)
        };
        if self.system.is_some() {
            self.extended.push_back((key, Arc::clone(&roots)));
        }
        if self.extended.len() > MAX_EXTENDED {
            self.extended.pop_front();
        }
        Ok(roots)
    }
}

fn extend(system: &RootCertStore, extra: &[CertificateDer<'static>]) -> Result<RootCertStore, TlsError> {
    let mut roots = system.clone();
    for certificate in extra {
        roots.add(certificate.clone()).map_err(TlsError::Unusable)?;
    }
    Ok(roots)
}

fn digest(certificates: &[CertificateDer<'static>]) -> Digest {
    let mut hash = Sha256::new();
    for certificate in certificates {
        hash.update((certificate.len() as u64).to_be_bytes());
        hash.update(certificate);
    }
    hash.finalize().into()
}

/// A parsed store.
struct Loaded {
    roots: RootCertStore,
    /// False if a file could not be read, which can succeed later without a change of the file.
    complete: bool,
}

/// Reads the system's authorities. Unreadable ones are skipped: an image may have none.
fn load() -> Loaded {
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::debug!(%error, "unreadable system certificate");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system.certs);
    Loaded {
        roots,
        complete: !system
            .errors
            .iter()
            .any(|error| matches!(error.kind, ErrorKind::Io { .. })),
    }
}

/// Returns the stamp of the files that [`load`] reads; `None` if it reads no files or some changed just now.
fn system_stamp(now: SystemTime) -> Option<u64> {
    // Elsewhere the authorities are in the system's keychain.
    if !cfg!(all(unix, not(target_os = "macos"))) {
        return None;
    }
    let found = openssl_probe::probe();
    let list = |name: &str| env::var_os(name).map(|paths| env::split_paths(&paths).collect::<Vec<_>>());
    let mut paths: Vec<PathBuf> = found.cert_dir;
    paths.extend(found.cert_file);
    paths.extend(env::var_os("SSL_CERT_FILE").map(PathBuf::from));
    paths.extend(list("SSL_CERT_DIR").into_iter().flatten());
    paths.sort();
    paths.dedup();
    stamp(&paths, now)
}

/// Returns a hash of the paths, of the files below those that are directories, and of the size, identity and times of each.
/// `None` if one changed within [`SETTLED`].
fn stamp(paths: &[PathBuf], now: SystemTime) -> Option<u64> {
    let mut sum: u64 = 0;
    let mut settled = true;
    let mut add = |path: &Path| {
        let metadata = path.metadata();
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        if let Ok(metadata) = &metadata {
            let times = hash_file(metadata, &mut hasher);
            settled &= times.is_none_or(|time| now.duration_since(time).is_ok_and(|age| age >= SETTLED));
        }
        // A sum, since the entries of a directory come in any order.
        sum = sum.wrapping_add(hasher.finish());
        metadata.is_ok_and(|metadata| metadata.is_dir())
    };
    for path in paths {
        if add(path) {
            for entry in path.read_dir().into_iter().flatten().flatten() {
                add(&entry.path());
            }
        }
    }
    settled.then_some(sum)
}

/// Hashes what differs after a change of a file; returns the time of the last one.
#[cfg(unix)]
fn hash_file(metadata: &std::fs::Metadata, hasher: &mut DefaultHasher) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino(), metadata.size()).hash(hasher);
    (metadata.mtime(), metadata.mtime_nsec()).hash(hasher);
    // Copies can keep the time of the content, but not that of the inode.
    (metadata.ctime(), metadata.ctime_nsec()).hash(hasher);
    let changed = u64::try_from(metadata.ctime()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(changed))
}

#[cfg(not(unix))]
fn hash_file(metadata: &std::fs::Metadata, hasher: &mut DefaultHasher) -> Option<SystemTime> {
    let modified = metadata.modified().ok();
    (metadata.len(), modified).hash(hasher);
    modified
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tls::{authorities, issue};

    fn certificate(name: &str) -> CertificateDer<'static> {
        let names = [name.to_owned()];
        let issued = issue(name, &names, SystemTime::now(), Duration::from_hours(1)).unwrap();
        authorities(issued.certificate_pem.as_bytes()).unwrap().remove(0)
    }

    fn of_system() -> Loaded {
        let mut roots = RootCertStore::empty();
        roots.add(certificate("system.example.com")).unwrap();
        Loaded {
            roots,
            complete: true,
        }
    }

    fn known() -> Loaded {
        panic!("the store is parsed already")
    }

    #[test]
    fn a_store_is_parsed_once_for_equal_files_and_equal_given_authorities() {
        let mut shared = SharedRoots::new();
        let (one, two) = ([certificate("one.example.com")], [certificate("two.example.com")]);
        let system = shared.get(Some(1), &[], of_system).unwrap();
        assert!(Arc::ptr_eq(&system, &shared.get(Some(1), &[], known).unwrap()));
        let with_one = shared.get(Some(1), &one, known).unwrap();
        let with_two = shared.get(Some(1), &two, known).unwrap();
        assert_eq!((system.len(), with_one.len(), with_two.len()), (1, 2, 2));
        assert!(Arc::ptr_eq(&with_one, &shared.get(Some(1), &one, known).unwrap()));
        assert!(!Arc::ptr_eq(&with_one, &with_two));

        let changed = shared.get(Some(2), &one, of_system).unwrap();
        assert!(!Arc::ptr_eq(&with_one, &changed), "the system's files changed");
        for number in 0..=MAX_EXTENDED {
            let extra = [certificate(&format!("{number}.example.com"))];
            shared.get(Some(2), &extra, known).unwrap();
        }
        assert_eq!(shared.extended.len(), MAX_EXTENDED);
    }

    #[test]
    fn what_may_change_unseen_is_not_shared() {
        let mut shared = SharedRoots::new();
        let one = [certificate("one.example.com")];
        let incomplete = || Loaded {
            complete: false,
            ..of_system()
        };
        for stamp in [None, Some(1)] {
            shared.get(stamp, &one, incomplete).unwrap();
            assert!(shared.system.is_none() && shared.extended.is_empty());
        }
        shared.get(None, &[], of_system).unwrap();
        assert!(shared.system.is_none());
        let wrong = [CertificateDer::from(b"no certificate".to_vec())];
        assert!(shared.get(Some(1), &wrong, of_system).is_err());
        assert_eq!(shared.get(Some(1), &[], known).unwrap().len(), 1);
    }

    #[test]
    fn every_change_of_a_file_changes_the_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, file) = (folder.path().join("certs"), folder.path().join("ca.pem"));
        fs::create_dir(&directory).unwrap();
        let paths = [directory.clone(), file.clone()];
        let later = || SystemTime::now() + Duration::from_mins(1);
        let mut seen = vec![stamp(&paths, later()).unwrap()];
        let mut differs = |what: &str| {
            let stamp = stamp(&paths, later()).unwrap();
            assert!(!seen.contains(&stamp), "{what}");
            seen.push(stamp);
        };
        fs::write(&file, "one").unwrap();
        differs("a file that was missing");
        fs::write(directory.join("a.crt"), "one").unwrap();
        differs("a file of a directory");
        fs::write(directory.join("a.crt"), "three").unwrap();
        differs("another length");
        let old = SystemTime::now() - Duration::from_hours(1);
        fs::write(directory.join("b.crt"), "other").unwrap();
        fs::rename(directory.join("b.crt"), directory.join("a.crt")).unwrap();
        differs("another file of the same name");
        let opened = fs::File::options().write(true).open(&file).unwrap();
        opened.set_modified(old).unwrap();
        differs("another time");
        #[cfg(unix)]
        {
            // A mounted Secret: a symlink to a folder is replaced.
            let (link, next) = (directory.join("link.crt"), directory.join("next"));
            std::os::unix::fs::symlink(&file, &link).unwrap();
            differs("a link");
            std::os::unix::fs::symlink(directory.join("a.crt"), &next).unwrap();
            fs::rename(&next, &link).unwrap();
            differs("another target of a link");
        }
        assert_eq!(stamp(&paths, later()), stamp(&paths, later()));
        fs::write(&file, "two").unwrap();
        assert_eq!(stamp(&paths, SystemTime::now()), None, "changed just now");
    }

    #[test]
    fn configurations_share_the_authorities_of_the_system() {
        // Without a stamp a test before would have left the files of this machine just now.
        if system_stamp(SystemTime::now()).is_none() {
            return;
        }
        let (one, two) = (roots(&[]).unwrap(), roots(&[]).unwrap());
        assert!(Arc::ptr_eq(&one, &two));
    }
}
