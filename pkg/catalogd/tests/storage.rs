//! Content on real disks: stored, recovered, damaged, left over, searched.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use olm_catalog_files::WalkLimits;
use olm_catalogd::{
    check::Checker,
    metrics::Metrics,
    storage::{
        Encoding, Filter, Generation, Limits, Origin, Source, StorageError, Store, ValidCatalogName,
        VisitFile,
    },
};
use tempfile::TempDir;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const CATALOG: &str = r#"{"schema":"olm.package","name":"a","defaultChannel":"s"}
{"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"registry.example/a:1"}
{"schema":"olm.package","name":"b","defaultChannel":"s"}
{"schema":"olm.channel","package":"b","name":"s","entries":[{"name":"b.v1"}]}
{"schema":"olm.bundle","package":"b","name":"b.v1","image":"registry.example/b:1"}
{"package":"a","name":"bare"}
"#;

struct Disk {
    folder: TempDir,
    name: ValidCatalogName,
}

impl Disk {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            name: ValidCatalogName::new("c").unwrap(),
        }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("catalogs")
    }

    fn open(&self) -> Store {
        Store::open(self.root()).unwrap()
    }

    fn source(&self, text: &str) -> PathBuf {
        let source = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        fs::write(source.join("catalog.json"), text).unwrap();
        source
    }

    fn put(&self, store: &Store, text: &str, digest: &str, now: i64) -> Arc<Generation> {
        store
            .store(&self.name, &self.source(text), origin(digest), now, &|| false)
            .unwrap()
    }

    fn entries(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.root().join("c"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn origin(digest: &str) -> Origin {
    Origin {
        requested: "registry.example/catalog:v1".to_owned(),
        resolved: format!("registry.example/catalog@sha256:{digest}"),
        unpacked_at: 7,
        verified: None,
    }
}

fn content(generation: &Generation) -> String {
    let mut bytes = vec![0; usize::try_from(generation.size(Encoding::Identity)).unwrap()];
    generation.read_at(Encoding::Identity, &mut bytes, 0).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn selected(generation: &Generation, schema: &str, package: &str, name: &str) -> Vec<String> {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let filter = Filter {
        schema: given(schema),
        package: given(package),
        name: given(name),
    };
    let Some(mut selection) = generation.select(&filter).unwrap() else {
        return Vec::new();
    };
    let length = generation.selected_length(&selection).unwrap();
    let mut text = String::new();
    while let Some(sections) = generation.next_ranges(&mut selection).unwrap() {
        for section in sections {
            let mut bytes = vec![0; usize::try_from(section.length).unwrap()];
            generation
                .read_at(Encoding::Identity, &mut bytes, section.offset)
                .unwrap();
            text.push_str(&String::from_utf8(bytes).unwrap());
        }
    }
    assert_eq!(text.len() as u64, length);
    text.lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["name"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn content_is_canonical_compressed_and_searchable() {
    let disk = Disk::new();
    let store = disk.open();
    let stored = disk.put(&store, CATALOG, "aa", 100);
    let text = content(&stored);
    assert!(
        text.starts_with("{\"defaultChannel\":\"s\",\"name\":\"a\",\"schema\":\"olm.package\"}\n"),
        "{text}"
    );
    assert_eq!(
        (stored.manifest().counts.metas, stored.manifest().counts.bundles),
        (7, 2)
    );
    let mut gzip = vec![0; usize::try_from(stored.size(Encoding::Gzip)).unwrap()];
    stored.read_at(Encoding::Gzip, &mut gzip, 0).unwrap();
    let mut decoded = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(gzip.as_slice()), &mut decoded).unwrap();
    assert_eq!(decoded, text);
    let mut zstd = vec![0; usize::try_from(stored.size(Encoding::Zstd)).unwrap()];
    stored.read_at(Encoding::Zstd, &mut zstd, 0).unwrap();
    assert_eq!(zstd::decode_all(zstd.as_slice()).unwrap(), text.as_bytes());

    assert_eq!(selected(&stored, "olm.package", "", ""), ["a", "b"]);
    assert_eq!(
        selected(&stored, "", "a", ""),
        ["s", "a.v1"],
        "what has no schema is in no filtered answer"
    );
    assert_eq!(selected(&stored, "olm.channel", "b", "s"), ["s"]);
    assert_eq!(selected(&stored, "", "", "a.v1"), ["a.v1"]);
    assert!(selected(&stored, "olm.package", "a", "").is_empty());
    assert!(selected(&stored, "nope", "", "").is_empty());
}

#[test]
fn schemas_are_counted_and_what_is_left_out_is_told() {
    let disk = Disk::new();
    let text = r#"{"schema":"b","package":"c"} {"schema":"a"} {"schema":"b","name":"a"} {"name":"z"} {"schema":"d"}"#;
    let stored = disk.put(&disk.open(), text, "aa", 100);
    let listed = |most| {
        let found = stored.schemas(most).unwrap();
        let counts: Vec<_> = found
            .counts
            .iter()
            .map(|(name, count)| format!("{name}={count}"))
            .collect();
        (counts.join(" "), found.left_out)
    };
    assert_eq!(listed(10), ("a=1 b=2 d=1".to_owned(), 0));
    assert_eq!(listed(3), ("a=1 b=2 d=1".to_owned(), 0));
    assert_eq!(listed(2), ("a=1 b=2".to_owned(), 1));
    assert_eq!(listed(0), (String::new(), 3));
    let nothing = disk.put(&disk.open(), r#"{"name":"z"}"#, "bb", 200);
    assert!(nothing.schemas(10).unwrap().counts.is_empty());
}

#[test]
fn a_search_that_does_not_wait_finds_the_same_or_says_so() {
    let disk = Disk::new();
    let stored = disk.put(&disk.open(), CATALOG, "aa", 100);
    let filter = Filter {
        name: Some("a.v1".to_owned()),
        ..Filter::default()
    };
    // Recently written content is in the page cache, but not every file system supports reads without waiting.
    match stored.select_cached(&filter) {
        Ok(selection) => assert_eq!(selection.unwrap().left(), 1),
        Err(error) => eprintln!("not shown here: {error}"),
    }
    let none = Filter {
        name: Some("nope".to_owned()),
        ..Filter::default()
    };
    assert!(stored.select_cached(&none).map_or(true, |found| found.is_none()));
}

#[test]
fn new_content_takes_over_while_readers_keep_what_they_opened() {
    let disk = Disk::new();
    let store = disk.open();
    let old = disk.put(&store, CATALOG, "aa", 100);
    let before = content(&old);
    let new = disk.put(&store, "{\"schema\":\"x\",\"name\":\"only\"}", "bb", 200);
    assert_eq!(content(&old), before);
    assert_eq!(content(&new), "{\"name\":\"only\",\"schema\":\"x\"}\n");
    assert_eq!(
        store.get(&disk.name).unwrap().manifest().digest,
        new.manifest().digest
    );
    assert_eq!(disk.entries(), ["current", "sha256-bb"]);
    // The same content again makes another generation with the same age.
    let again = disk.put(&store, "{\"name\":\"only\",\"schema\":\"x\"}", "bb", 300);
    assert_eq!(again.manifest().stored_at, 200);
    assert_eq!(disk.entries(), ["current", "sha256-bb.1"]);
}

/// A client may have nothing but `Last-Modified`, whose unit is a second.
#[test]
fn other_content_is_always_later_than_the_former() {
    let disk = Disk::new();
    let store = disk.open();
    disk.put(&store, CATALOG, "aa", 100);
    for (name, now, stored_at) in [
        ("same second", 100, 101),
        ("clock set back", 50, 102),
        ("later", 200, 200),
    ] {
        let text = format!(r#"{{"schema":"x","name":"{name}"}}"#);
        let stored = disk.put(&store, &text, "bb", now);
        assert_eq!(stored.manifest().stored_at, stored_at, "{name}");
    }
}

/// The file has no object, so nothing but its reads can be interrupted.
#[test]
fn a_long_file_is_interrupted_while_it_is_read() {
    let disk = Disk::new();
    let store = disk.open();
    let source = disk.source(&"\n".repeat(4 * 1024 * 1024));
    let checks = std::cell::Cell::new(0);
    let interrupted = || {
        checks.set(checks.get() + 1);
        checks.get() > 2
    };
    let error = store
        .store(&disk.name, &source, origin("aa"), 100, &interrupted)
        .unwrap_err();
    assert!(matches!(error, StorageError::Interrupted), "{error}");
    assert!(store.get(&disk.name).is_none());
    assert!(disk.entries().is_empty(), "{:?}", disk.entries());
}

#[test]
fn a_bad_catalog_names_its_file_and_changes_nothing() {
    let disk = Disk::new();
    let store = disk.open();
    let old = disk.put(&store, CATALOG, "aa", 100);
    let source = disk.source("{}");
    fs::create_dir(source.join("deep")).unwrap();
    fs::write(source.join("deep/broken.yaml"), "a: [").unwrap();
    let error = store
        .store(&disk.name, &source, origin("bb"), 200, &|| false)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("error walking FBC root: ") && error.contains("deep/broken.yaml"),
        "{error}"
    );
    assert_eq!(store.get(&disk.name).unwrap().manifest(), old.manifest());
    assert_eq!(disk.entries(), ["current", "sha256-aa"]);
}

/// Files that arrive one after the other, until one cannot be read.
struct Broken(Vec<&'static str>);

impl Source for Broken {
    fn each(&mut self, _: &WalkLimits, visit: &mut VisitFile<'_>) -> Result<(), StorageError> {
        for text in &self.0 {
            assert!(visit("file", text.len() as u64, &mut text.as_bytes())?);
        }
        Err(StorageError::Unstreamable("it is broken".to_owned()))
    }
}

#[test]
fn files_that_were_read_before_a_failure_of_their_source_are_not_stored() {
    let disk = Disk::new();
    let store = disk.open();
    let attempt = || {
        let files = vec![r#"{"schema":"x"}"#, CATALOG];
        let stored = store.store_from(&disk.name, &mut Broken(files), origin("bb"), 200, &|| false);
        assert!(matches!(stored, Err(StorageError::Unstreamable(_))), "{stored:?}");
    };
    attempt();
    assert!(store.get(&disk.name).is_none());
    assert_eq!(disk.entries(), [""; 0]);
    let former = disk.put(&store, CATALOG, "aa", 100);
    let entries = disk.entries();
    attempt();
    assert!(Arc::ptr_eq(&store.get(&disk.name).unwrap(), &former));
    assert_eq!(disk.entries(), entries);
}

#[test]
fn each_cap_has_its_own_message() {
    let deep = format!("{{\"schema\":\"x\",\"v\":{}{}}}", "[".repeat(30), "]".repeat(30));
    let long = format!("{{\"schema\":\"x\",\"v\":\"{}\"}}", "v".repeat(3000));
    let three = "{\"schema\":\"x\"}".repeat(3);
    // Each list costs much more memory than text.
    let lists = format!("---\nschema: x\nl: [{}]\n", "[0],".repeat(30_000));
    let none = Limits::default();
    for (limits, text, expected) in [
        (
            Limits { content: 20, ..none },
            &three,
            "the catalog has more than 20 bytes",
        ),
        (Limits { objects: 2, ..none }, &three, "more than 2 metas"),
        (
            Limits { object: 2000, ..none },
            &long,
            "a meta is larger than 2000 bytes",
        ),
        (
            Limits { depth: 10, ..none },
            &deep,
            "a meta is nested deeper than 10 levels",
        ),
        (
            Limits {
                object: 150_000,
                ..none
            },
            &lists,
            "the values of a document, aliases included, take more than 4194304 bytes of memory",
        ),
        (
            Limits {
                tree: WalkLimits {
                    max_entries: 0,
                    ..none.tree
                },
                ..none
            },
            &three,
            "the catalog has more than 0 files",
        ),
    ] {
        let disk = Disk::new();
        let store = disk.open();
        disk.put(&store, CATALOG, "aa", 100);
        let tight = disk.open().with_limits(limits);
        let error = tight
            .store(&disk.name, &disk.source(text), origin("bb"), 200, &|| false)
            .unwrap_err();
        let error = olm_text::chain(&error);
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(disk.entries(), ["current", "sha256-aa"], "{expected}");
        // Without the limits the catalog is accepted.
        disk.put(&disk.open(), text, "bb", 200);
    }
}

#[test]
fn a_restart_serves_what_is_there_and_clears_what_a_crash_left() {
    let disk = Disk::new();
    let old = disk.put(&disk.open(), CATALOG, "aa", 100);
    let folder = disk.root().join("c");
    fs::create_dir(folder.join(".tmp-x")).unwrap();
    fs::write(folder.join(".tmp-x/catalog.jsonl"), "half").unwrap();
    fs::create_dir(folder.join("sha256-unpublished")).unwrap();
    std::os::unix::fs::symlink("sha256-unpublished", folder.join(".next")).unwrap();
    fs::write(disk.root().join("stray"), "x").unwrap();
    fs::create_dir(disk.root().join("Not_a_name")).unwrap();
    fs::create_dir(disk.root().join("empty")).unwrap();

    let store = disk.open();
    let found = store.get(&disk.name).unwrap();
    assert_eq!(found.manifest(), old.manifest());
    assert_eq!(content(&found), content(&old));
    assert_eq!(disk.entries(), ["current", "sha256-aa"]);
    assert_eq!(store.names().unwrap(), std::slice::from_ref(&disk.name));
    assert_eq!(fs::read_dir(disk.root()).unwrap().count(), 1);
}

#[test]
fn damaged_content_is_not_served() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 8] = [
        ("changed", |folder| {
            let path = folder.join("current/catalog.jsonl");
            let text = fs::read_to_string(&path).unwrap().replace("a.v1", "a.v2");
            fs::write(path, text).unwrap();
        }),
        ("shorter", |folder| {
            fs::write(folder.join("current/catalog.jsonl"), "x").unwrap();
        }),
        ("no index", |folder| {
            fs::remove_file(folder.join("current/index")).unwrap();
        }),
        ("index", |folder| {
            let path = folder.join("current/index");
            let mut bytes = fs::read(&path).unwrap();
            bytes[30] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("manifest", |folder| {
            fs::write(folder.join("current/manifest.json"), "{").unwrap();
        }),
        ("image digest", |folder| {
            let path = folder.join("current/manifest.json");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.replace("@sha256:aa", "@sha256:ab")).unwrap();
        }),
        ("content digest", |folder| {
            let path = folder.join("current/manifest.json");
            let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            manifest["digest"] = "0".repeat(64).into();
            fs::write(path, manifest.to_string()).unwrap();
        }),
        ("elsewhere", |folder| {
            fs::remove_file(folder.join("current")).unwrap();
            std::os::unix::fs::symlink("../../", folder.join("current")).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let disk = Disk::new();
        disk.put(&disk.open(), CATALOG, "aa", 100);
        damage(&disk.root().join("c"));
        let store = disk.open();
        assert!(store.get(&disk.name).is_none(), "{what}");
        // Storing again repairs the content.
        disk.put(&store, CATALOG, "aa", 200);
        assert!(disk.open().get(&disk.name).is_some(), "{what}");
    }
}

/// Flips one bit of every file in turn while it is open and served.
#[tokio::test]
async fn content_that_is_damaged_while_it_is_served_is_given_up() {
    for file in ["catalog.jsonl", "catalog.jsonl.gz", "catalog.jsonl.zst", "index"] {
        let disk = Disk::new();
        let store = Arc::new(disk.open());
        disk.put(&store, CATALOG, "aa", 100);
        let metrics = Metrics::default();
        let checker = Checker {
            store: store.clone(),
            metrics: metrics.clone(),
        };
        let shutdown = CancellationToken::new();
        let ends = shutdown.clone();
        let checking = tokio::spawn(async move { checker.run(Duration::from_millis(20), ends).await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(store.get(&disk.name).is_some(), "what is right stays");

        let mut damages = store.damages();
        let path = disk.root().join("c/current").join(file);
        let open = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        open.write_all_at(&[bytes[last] ^ 1], last as u64).unwrap();
        timeout(Duration::from_secs(30), damages.changed())
            .await
            .unwrap_or_else(|_| panic!("{file} is served as it is"))
            .unwrap();
        assert!(store.get(&disk.name).is_none(), "{file}");
        assert!(!disk.root().join("c").exists(), "{file}");
        let why = store.take_damage(&disk.name).unwrap();
        assert!(why.contains(file) && why.contains("is damaged"), "{why}");
        assert_eq!(store.take_damage(&disk.name), None);

        // The content is stored again and stays.
        disk.put(&store, CATALOG, "aa", 200);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(store.get(&disk.name).is_some());
        shutdown.cancel();
        checking.await.unwrap();
    }
}

#[test]
fn only_the_content_that_was_checked_is_given_up() {
    let disk = Disk::new();
    let store = disk.open();
    let old = disk.put(&store, CATALOG, "aa", 100);
    let new = disk.put(&store, CATALOG, "bb", 200);
    assert!(!store.discard_damaged(&disk.name, &old, &StorageError::Interrupted));
    assert!(store.get(&disk.name).is_some());
    assert!(store.discard_damaged(&disk.name, &new, &StorageError::Interrupted));
    assert!(store.get(&disk.name).is_none());
}

#[test]
fn adopting_and_removing() {
    let disk = Disk::new();
    let store = disk.open();
    disk.put(&store, CATALOG, "aa", 100);
    let renamed = Origin {
        requested: "registry.example/catalog:v2".to_owned(),
        ..origin("aa")
    };
    store.set_origin(&disk.name, renamed.clone()).unwrap();
    assert_eq!(disk.open().get(&disk.name).unwrap().manifest().origin, renamed);
    store.remove(&disk.name).unwrap();
    assert!(store.get(&disk.name).is_none());
    assert!(store.names().unwrap().is_empty());
    store.remove(&disk.name).unwrap();
}

#[tokio::test]
async fn one_at_a_time() {
    let disk = Disk::new();
    let store = disk.open();
    let guard = store.lock(&disk.name).await;
    assert!(store.try_lock(&disk.name).is_none());
    assert!(store.try_lock(&ValidCatalogName::new("other").unwrap()).is_some());
    drop(guard);
    assert!(store.try_lock(&disk.name).is_some());
}
