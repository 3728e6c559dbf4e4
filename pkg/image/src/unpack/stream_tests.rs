use std::{
    fs,
    io::{Seek as _, Write},
    path::Path,
    time::{Duration, Instant},
};

use olm_catalog_files::{InOrder, WalkLimits, walk};
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};

use super::*;
use crate::unpack::{
    Unpacker,
    tests::{entry, file},
};

/// Names and contents of files.
type Files = Vec<(String, Vec<u8>)>;

fn folder(name: &str) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Directory, b"", b"")
}

fn parts(below: &str) -> Vec<OsString> {
    let parts = below.split('/').filter(|part| !part.is_empty());
    parts.map(OsString::from).collect()
}

fn budget() -> Budget {
    Budget::until(Instant::now() + Duration::from_mins(1))
}

/// Reads the files of layers as a stream, if their order is that of a directory.
fn streamed(layers: &[Vec<u8>], below: &str, limits: &Limits) -> Option<Files> {
    let scratch = tempfile::tempdir().unwrap();
    let layers: Vec<_> = layers
        .iter()
        .enumerate()
        .map(|(number, layer)| {
            let path = scratch.path().join(number.to_string());
            fs::write(&path, layer).unwrap();
            (path, layer.len() as u64)
        })
        .collect();
    let mut order = InOrder::new(&WalkLimits::default());
    let mut files = Vec::new();
    let mut visit = |entry: StreamEntry<'_>| {
        let Some((size, content)) = entry.file else {
            return order.folder(entry.path).map_err(drop);
        };
        let name = order.file(entry.path, size).map_err(drop)?;
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(drop)?;
        files.push((name, bytes));
        Ok(())
    };
    each_file(&layers, &parts(below), limits, &budget(), &mut visit).ok()?;
    order.finish().ok()?;
    Some(files)
}

/// Reads the files of layers that are unpacked.
fn unpacked(layers: &[Vec<u8>], below: &str, limits: &Limits) -> Option<Files> {
    let scratch = tempfile::tempdir().unwrap();
    let mut unpacker = Unpacker::new(scratch.path().to_owned(), parts(below), limits.clone(), budget());
    for layer in layers {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(layer).unwrap();
        file.rewind().unwrap();
        unpacker.apply(file, layer.len() as u64).ok()?;
    }
    let root = scratch.path().join(below);
    let real = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let mut above = root.ancestors().take_while(|path| *path != scratch.path());
    if !above.all(real) {
        return None;
    }
    let files = walk(&root, &WalkLimits::default()).ok()?;
    Some(
        files
            .map(|(path, name)| (name, fs::read(path).unwrap()))
            .collect(),
    )
}

/// Checks that a stream has the files of the unpacked layers. Returns false if the layers are not streamed.
fn agrees(layers: &[Vec<u8>], below: &str, limits: &Limits) -> bool {
    let Some(files) = streamed(layers, below, limits) else {
        return false;
    };
    assert_eq!(Some(files), unpacked(layers, below, limits));
    true
}

/// Returns a file whose name needs an extension header.
fn long(name: &str) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, &b"x"[..]).unwrap();
    archive.into_inner().unwrap()
}

#[test]
fn usual_layers_are_streamed() {
    let base = [
        folder("etc/"),
        file("etc/passwd", "root"),
        entry(b"bin", EntryType::Symlink, b"usr/bin", b""),
    ]
    .concat();
    let catalog = [
        folder("configs/"),
        file("configs/a/catalog.json", "{}"),
        folder("configs/b/"),
        file("configs/b/catalog.json", &"x".repeat(2000)),
        file("configs/b/empty", ""),
    ]
    .concat();
    let more = [
        folder("./configs/"),
        folder("configs/b"),
        file("/configs/c", "3"),
        file(".wh.bin", ""),
    ]
    .concat();
    let limits = Limits::default();
    let layers = [base.clone(), catalog.clone(), more];
    assert!(agrees(&layers, "configs", &limits));
    assert_eq!(streamed(&layers, "configs", &limits).unwrap().len(), 4);
    // Bytes behind the last entry, and the directory without an entry of its own.
    assert!(agrees(&[file("configs/a", "1")], "configs", &limits));
    assert!(agrees(&[folder("configs/")], "configs", &limits));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&catalog).unwrap();
    assert!(agrees(&[gzip.finish().unwrap()], "configs", &limits));
    let name = format!("configs/{}/{}", "d".repeat(100), "e".repeat(100));
    assert!(agrees(&[long(&name)], "configs", &limits));
}

#[test]
fn layers_that_need_the_complete_tree_are_refused() {
    let first = || file("c/a", "1");
    let limits = Limits::default();
    for layers in [
        vec![file("c/b", "2"), first()],
        vec![first(), first()],
        vec![first(), file("c/.wh.a", "")],
        vec![first(), file("c/.wh..wh..opq", ""), file("c/b", "2")],
        vec![first(), file(".wh.c", ""), file("c/b", "2")],
        vec![first(), file(".wh..wh..opq", "")],
        vec![first(), entry(b"c/b", EntryType::Symlink, b"a", b"")],
        vec![first(), entry(b"c/b", EntryType::Link, b"c/a", b"")],
        vec![first(), entry(b"c/b", EntryType::Fifo, b"", b"")],
        vec![first(), file("c/a/b", "2")],
        vec![file("c/.indexignore", "a"), first()],
        vec![entry(b"c", EntryType::Symlink, b"d", b""), first()],
        vec![file("c", "1")],
        vec![file("d", "1")],
        vec![first(), file("../b", "2")],
        vec![
            first(),
            long(&format!(
                "c/b/{}",
                ["b"; 5].map(|part| part.repeat(250)).join("/")
            )),
        ],
        vec![],
    ] {
        assert!(streamed(&layers, "c", &limits).is_none(), "one layer each");
        assert!(streamed(&[layers.concat()], "c", &limits).is_none(), "one layer");
    }
}

/// Writers of images commonly use 8 MiB. A decoder takes as much memory as the window.
#[test]
fn large_windows_of_zstd_are_refused() {
    let limits = Limits::default();
    for (window_log, is_streamed) in [(23, true), (24, false)] {
        let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
        zstd.window_log(window_log).unwrap();
        zstd.write_all(&file("c/a", &"0123456789".repeat(2_000_000)))
            .unwrap();
        let zstd = zstd.finish().unwrap();
        assert_eq!(agrees(std::slice::from_ref(&zstd), "c", &limits), is_streamed);
        assert!(unpacked(&[zstd], "c", &limits).is_some());
    }
}

#[test]
fn a_file_that_ends_early_is_refused_wherever_the_archive_ends() {
    let whole = [file("c/a", &"1".repeat(1500)), file("c/b", "2")].concat();
    for length in (0..=whole.len()).step_by(256) {
        let cut = whole[..length].to_vec();
        agrees(&[cut], "c", &Limits::default());
    }
    assert!(streamed(&[whole[..1024].to_vec()], "c", &Limits::default()).is_none());
}

#[test]
fn limits_hold_for_streams() {
    let layer = [file("c/a", "1234"), file("c/d/b", "5")].concat();
    let changes: [fn(&mut Limits); 5] = [
        |limits| limits.entries = 1,
        |limits| limits.total = 1024,
        |limits| limits.file = 3,
        |limits| limits.depth = 2,
        |limits| (limits.ratio, limits.ratio_floor) = (0, 512),
    ];
    for change in changes {
        let mut limits = Limits::default();
        change(&mut limits);
        assert!(
            streamed(std::slice::from_ref(&layer), "c", &limits).is_none(),
            "{limits:?}"
        );
    }
    let stopped = budget();
    drop(stopped.guard());
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("layer");
    fs::write(&path, &layer).unwrap();
    let stream = each_file(
        &[(path, layer.len() as u64)],
        &[],
        &Limits::default(),
        &stopped,
        &mut |_| Ok::<_, ()>(()),
    );
    assert!(
        matches!(stream, Err(StreamError::Unpack(UnpackError::Stopped))),
        "{stream:?}"
    );
}

fn any_entry() -> impl Strategy<Value = Vec<u8>> {
    let part = || {
        prop::sample::select(vec![
            "a",
            "a-",
            "b",
            "c",
            "c.",
            ".wh.a",
            ".wh.c",
            ".indexignore",
            "..",
        ])
    };
    let usual = || prop::sample::select(vec!["a", "a-", "b", "c", "c."]);
    let part = prop_oneof![9 => usual(), 1 => part()];
    let path = prop::collection::vec(part, 0..4).prop_map(|parts| parts.join("/"));
    let path = (prop::sample::select(vec!["c/", "c/", "c/", ""]), path)
        .prop_map(|(root, path)| format!("{root}{path}"));
    let kind = prop_oneof![
        12 => Just(EntryType::Regular),
        6 => Just(EntryType::Directory),
        1 => Just(EntryType::Symlink),
        1 => Just(EntryType::Link),
    ];
    (path, kind, "[xy]{0,3}").prop_map(|(name, kind, content)| {
        let content = if kind == EntryType::Regular {
            content
        } else {
            String::new()
        };
        entry(name.as_bytes(), kind, b"a", content.as_bytes())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Layers of any entries in any order, with a few limits, whole or cut.
    #[test]
    fn a_stream_has_the_files_of_the_unpacked_layers(
        mut layers in prop::collection::vec(prop::collection::vec(any_entry(), 0..8), 1..4),
        sorted in prop::bool::weighted(0.8), entries in 5..60_u64, depth in 2..6_usize, cut in 0..20_usize,
    ) {
        if sorted {
            for layer in &mut layers {
                layer.sort_by_key(|entry| {
                    let name = entry[..100].split(|byte| *byte == 0).next().unwrap_or_default();
                    name.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>()
                });
            }
        }
        let mut layers: Vec<_> = layers.into_iter().map(|layer| layer.concat()).collect();
        for limits in [Limits::default(), Limits { entries, depth, ..Limits::default() }] {
            agrees(&layers, "c", &limits);
            agrees(&layers, "", &limits);
        }
        if let Some(last) = layers.last_mut() {
            last.truncate(cut * 256);
        }
        agrees(&layers, "c", &Limits::default());
    }
}
