use std::{
    fmt::Write as _,
    fs,
    io::{Seek, SeekFrom, Write},
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::Path,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::*;

/// Returns an entry with a raw header: the builder would refuse the names under test.
pub(super) fn entry(name: &[u8], kind: EntryType, link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o4755);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.name[..name.len()].copy_from_slice(name);
    gnu.linkname[..link.len()].copy_from_slice(link);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

pub(super) fn file(name: &str, content: &str) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Regular, b"", content.as_bytes())
}

fn link(name: &str, target: &str) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Symlink, target.as_bytes(), b"")
}

fn hard(name: &str, target: &str) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Link, target.as_bytes(), b"")
}

fn opened(bytes: &[u8]) -> (File, u64) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    (file, bytes.len() as u64)
}

/// Root beside a file that must never change.
struct Tree {
    outer: TempDir,
    unpacker: Unpacker,
    /// Twin of this tree, whose layers another thread decompresses.
    ahead: Option<Box<Tree>>,
}

impl Tree {
    fn new(below: &str, limits: Limits) -> Self {
        let mut ahead = Self::alone(below, limits.clone());
        ahead.unpacker.ahead_from = 0;
        let mut tree = Self::alone(below, limits);
        tree.ahead = Some(Box::new(ahead));
        tree
    }

    fn alone(below: &str, limits: Limits) -> Self {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(outer.path().join("secret"), "untouched").unwrap();
        let below = below
            .split('/')
            .filter(|part| !part.is_empty())
            .map(OsString::from)
            .collect();
        let budget = Budget::until(Instant::now() + Duration::from_mins(1));
        Self {
            outer,
            unpacker: Unpacker::new(root, below, limits, budget),
            ahead: None,
        }
    }

    fn any() -> Self {
        Self::new("", Limits::default())
    }

    fn apply(&mut self, entries: &[Vec<u8>]) -> Result<(), UnpackError> {
        let (layer, size) = opened(&entries.concat());
        let applied = self.unpacker.apply(layer, size);
        if let Some(mut ahead) = self.ahead.take() {
            let same = ahead.apply(entries);
            assert_eq!(format!("{applied:?}"), format!("{same:?}"));
            assert_eq!(listing(&self.root()), listing(&ahead.root()));
            self.ahead = Some(ahead);
        }
        applied
    }

    /// Stops unpacking, as a pull does that nobody waits for.
    fn stop(&self) {
        drop(self.unpacker.budget.guard());
        if let Some(ahead) = &self.ahead {
            ahead.stop();
        }
    }

    fn root(&self) -> PathBuf {
        self.outer.path().join("root")
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn has(&self, path: &str) -> bool {
        fs::symlink_metadata(self.root().join(path)).is_ok()
    }

    /// Returns true if nothing beside the root changed and no link below it leads out.
    fn contained(&self) -> bool {
        let mut beside: Vec<_> = fs::read_dir(self.outer.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        beside.sort();
        beside == ["root", "secret"]
            && fs::read_to_string(self.outer.path().join("secret")).unwrap() == "untouched"
            && links_inside(&self.root(), &self.root())
    }
}

/// Returns the paths below a directory, each with its mode and its content or target.
fn listing(directory: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        let content = if metadata.is_dir() {
            found.extend(listing(&path));
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path)
                .unwrap()
                .into_os_string()
                .into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        found.push((path, metadata.permissions().mode(), content));
    }
    for (path, ..) in &mut found {
        if let Ok(below) = path.strip_prefix(directory) {
            *path = below.to_owned();
        }
    }
    found.sort();
    found
}

fn links_inside(root: &Path, directory: &Path) -> bool {
    let root = root.canonicalize().unwrap();
    fs::read_dir(directory).unwrap().all(|entry| {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            return links_inside(&root, &entry.path());
        }
        assert!(kind.is_file() || kind.is_symlink());
        // A dangling link is followed as far as it goes.
        !kind.is_symlink()
            || entry
                .path()
                .canonicalize()
                .is_ok_and(|real| real.starts_with(&root))
            || {
                let target = fs::read_link(entry.path()).unwrap();
                !target.is_absolute() && !entry.path().exists()
            }
    })
}

#[test]
fn files_without_directory_entries_get_their_parents() {
    let mut tree = Tree::any();
    tree.apply(&[file("./manifests/a.yaml", "a"), file("/metadata/b.yaml", "b")])
        .unwrap();
    assert_eq!(tree.read("manifests/a.yaml"), "a");
    assert_eq!(tree.read("metadata/b.yaml"), "b");
    let mode = |path: &str| fs::metadata(tree.root().join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("manifests"), 0o700);
    assert_eq!(
        mode("manifests/a.yaml"),
        0o700,
        "executable, but nobody else's and not set-uid"
    );
}

#[test]
fn compressions_are_detected_by_their_first_bytes() {
    let plain = file("a", "content");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    for packed in [
        gzip.finish().unwrap(),
        zstd::encode_all(plain.as_slice(), 1).unwrap(),
        plain.clone(),
    ] {
        let mut tree = Tree::any();
        tree.apply(&[packed]).unwrap();
        assert_eq!(tree.read("a"), "content");
    }
    for (magic, name) in [(&b"BZh9"[..], "bzip2"), (b"\xfd7zXZ\0", "xz")] {
        let error = Tree::any().apply(&[magic.to_vec()]).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn names_outside_of_the_root_are_refused() {
    for name in ["../secret", "a/../../secret", "a/..", "/../secret"] {
        let mut tree = Tree::any();
        let error = tree.apply(&[file(name, "x")]).unwrap_err();
        assert!(matches!(error, UnpackError::Name { .. }), "{name}: {error}");
        assert!(tree.contained());
    }
}

#[test]
fn links_never_leave_the_root() {
    let mut tree = Tree::any();
    tree.apply(&[
        file("etc/passwd", "inside"),
        link("abs", "/etc/passwd"),
        link("up", "../../../../etc/passwd"),
        link("out", "../.."),
        link("deep/er/up", "../../../../secret"),
        file("out/written", "at the root"),
        link("self", "self"),
    ])
    .unwrap();
    assert_eq!(tree.read("abs"), "inside");
    assert_eq!(tree.read("up"), "inside");
    assert_eq!(tree.read("written"), "at the root");
    assert_eq!(
        fs::read_link(tree.root().join("deep/er/up")).unwrap(),
        Path::new("../../secret")
    );
    assert!(tree.contained());
    let error = tree.apply(&[file("self/x", "x")]).unwrap_err();
    assert!(matches!(error, UnpackError::Circle { .. }), "{error}");
    // A file over a link replaces the link.
    tree.apply(&[file("abs", "new")]).unwrap();
    assert_eq!(tree.read("etc/passwd"), "inside");
}

#[test]
fn hard_links_only_to_files_unpacked_before() {
    let mut tree = Tree::any();
    tree.apply(&[file("a", "x"), hard("b/c", "./a"), link("l", "/a")])
        .unwrap();
    assert_eq!(tree.read("b/c"), "x");
    for target in ["missing", "b", "l"] {
        let error = tree.apply(&[hard("d", target)]).unwrap_err();
        assert!(matches!(error, UnpackError::HardLink { .. }), "{target}: {error}");
    }
    assert!(matches!(
        tree.apply(&[hard("d", "../secret")]).unwrap_err(),
        UnpackError::Name { .. }
    ));
    // Replacing one name leaves the other.
    tree.apply(&[file("a", "y")]).unwrap();
    assert_eq!(tree.read("b/c"), "x");
}

#[test]
fn devices_and_pipes_are_refused() {
    for kind in [
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
        EntryType::new(b'Z'),
    ] {
        let error = Tree::any().apply(&[entry(b"d", kind, b"", b"")]).unwrap_err();
        assert!(matches!(error, UnpackError::Special { .. }), "{error}");
    }
}

#[test]
fn whiteouts_hide_files_of_lower_layers() {
    let mut tree = Tree::any();
    tree.apply(&[
        file("a/1", "1"),
        file("a/2", "2"),
        file("b/3", "3"),
        file("c", "4"),
    ])
    .unwrap();
    tree.apply(&[
        file("a/.wh.1", ""),
        file("b/new/5", "5"),
        file("b/.wh..wh..opq", ""),
        file(".wh.c", ""),
        file(".wh..wh.plnk", ""),
        file("never/.wh.there", ""),
    ])
    .unwrap();
    assert!(!tree.has("a/1") && tree.has("a/2") && !tree.has("b/3") && tree.has("b/new/5") && !tree.has("c"));
    assert!(!tree.has("never"));
    for name in [".wh.", ".wh..", ".wh..."] {
        let error = tree.apply(&[file(name, "")]).unwrap_err();
        assert!(matches!(error, UnpackError::Name { .. }), "{name}: {error}");
    }
    assert!(tree.contained());
}

#[test]
fn later_layers_replace_and_merge() {
    let mut tree = Tree::any();
    let dir = |name: &[u8]| entry(name, EntryType::Directory, b"", b"");
    tree.apply(&[file("d/x", "1"), file("f", "1")]).unwrap();
    tree.apply(&[dir(b"d/"), file("d/y", "2"), dir(b"f")]).unwrap();
    assert!(tree.has("d/x") && tree.has("d/y") && tree.root().join("f").is_dir());
    tree.apply(&[file("d", "now a file")]).unwrap();
    assert_eq!(tree.read("d"), "now a file");
    let error = tree.apply(&[file("d/z", "x")]).unwrap_err();
    assert!(matches!(error, UnpackError::NotADirectory { .. }), "{error}");
}

#[test]
fn only_what_is_below_the_directory() {
    let mut tree = Tree::new("configs/v1", Limits::default());
    tree.apply(&[
        file("configs/v1/a", "1"),
        file("configs/v10/b", "2"),
        file("configs/c", "3"),
        entry(b"dev/null", EntryType::Char, b"", b""),
        file("configs/.wh.v1", ""),
    ])
    .unwrap();
    assert!(
        tree.has("configs/v1/a") && !tree.has("configs/v10") && !tree.has("configs/c") && !tree.has("dev")
    );
    let error = tree.apply(&[hard("configs/v1/b", "configs/c")]).unwrap_err();
    assert!(matches!(error, UnpackError::HardLink { .. }), "{error}");
}

#[test]
fn whiteouts_above_the_directory_hide_it() {
    for (whiteout, hides) in [
        (".wh.configs", true),
        ("configs/.wh.v1", true),
        (".wh..wh..opq", true),
        ("configs/.wh..wh..opq", true),
        (".wh.config", false),
        ("configs/.wh.v10", false),
        ("other/.wh.v1", false),
        ("other/.wh..wh..opq", false),
        ("configs/.wh.", false),
        ("configs/.wh..wh.v1", false),
    ] {
        let mut tree = Tree::new("configs/v1", Limits::default());
        tree.apply(&[file("configs/v1/old", "1")]).unwrap();
        tree.apply(&[file("configs/v1/new", "2"), file(whiteout, "")])
            .unwrap();
        assert_eq!(!tree.has("configs/v1/old"), hides, "{whiteout}");
        assert!(tree.has("configs/v1/new"), "{whiteout}");
        tree.apply(&[file(whiteout, "")]).unwrap();
        assert_eq!(!tree.has("configs/v1/new"), hides, "{whiteout}");
        assert!(tree.contained());
    }
}

#[test]
fn a_whiteout_spares_what_its_own_layer_places() {
    let mut tree = Tree::any();
    tree.apply(&[file("a", "1"), file("b", "1"), file("c/1", "1")])
        .unwrap();
    tree.apply(&[
        file("a", "2"),
        file(".wh.a", ""),
        file(".wh.b", ""),
        file("b", "2"),
        file("c/2", "2"),
        file(".wh.c", ""),
    ])
    .unwrap();
    assert!(tree.has("a") && tree.has("b") && !tree.has("c/1") && tree.has("c/2"));
}

#[test]
fn every_cap_has_its_own_error() {
    let with = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        Tree::new("", limits)
    };
    let two = [file("a", "1"), file("b", "2")];
    let error = with(|limits| limits.entries = 1).apply(&two).unwrap_err();
    assert!(
        matches!(error, UnpackError::TooManyEntries { limit: 1 }),
        "{error}"
    );
    let error = with(|limits| limits.total = 1024).apply(&two).unwrap_err();
    assert!(matches!(error, UnpackError::TooLarge { limit: 1024 }), "{error}");
    let error = with(|limits| limits.file = 3)
        .apply(&[file("a", "1234")])
        .unwrap_err();
    assert!(
        matches!(error, UnpackError::FileTooLarge { limit: 3, .. }),
        "{error}"
    );
    let error = with(|limits| limits.depth = 2)
        .apply(&[file("a/b/c", "1")])
        .unwrap_err();
    assert!(matches!(error, UnpackError::TooDeep { limit: 2, .. }), "{error}");

    let bomb = zstd::encode_all(file("a", &"0".repeat(1 << 20)).as_slice(), 3).unwrap();
    let error = with(|limits| (limits.ratio, limits.ratio_floor) = (10, 4096))
        .apply(&[bomb])
        .unwrap_err();
    assert!(matches!(error, UnpackError::Ratio { limit: 10 }), "{error}");

    let mut tree = Tree::any();
    tree.stop();
    assert!(matches!(tree.apply(&two).unwrap_err(), UnpackError::Stopped));
}

#[test]
fn implied_directories_count_as_entries() {
    let limits = || Limits {
        entries: 10,
        ..Limits::default()
    };
    let mut tree = Tree::new("", limits());
    // Two directories and a file each, which makes 12; the former count was 4.
    let entries: Vec<_> = (0..4).map(|number| file(&format!("{number}/d/f"), "")).collect();
    let error = tree.apply(&entries).unwrap_err();
    assert!(
        matches!(error, UnpackError::TooManyEntries { limit: 10 }),
        "{error}"
    );
    // Existing directories count once.
    let entries: Vec<_> = (0..8).map(|number| file(&format!("d/e/{number}"), "")).collect();
    Tree::new("", limits()).apply(&entries).unwrap();
}

#[test]
fn unpacked_entries_and_their_directories_count_by_themselves() {
    let limits = || Limits {
        unpacked: 4,
        ..Limits::default()
    };
    // Skipped entries do not count: configs, configs/d, and two files do.
    let entries: Vec<_> = ["bin/a", "bin/b", "bin/c", "configs/d/e", "configs/d/f"]
        .map(|name| file(name, ""))
        .into();
    let mut tree = Tree::new("configs", limits());
    tree.apply(&entries).unwrap();
    let error = tree.apply(&[file("configs/g", "")]).unwrap_err();
    assert!(
        matches!(error, UnpackError::TooManyUnpacked { limit: 4 }),
        "{error}"
    );
}

#[test]
fn a_path_counts_without_the_links_in_it() {
    let limits = Limits {
        entries: 8,
        ..Limits::default()
    };
    let mut tree = Tree::new("", limits);
    let (above, below) = ("a".repeat(95), "b".repeat(90));
    tree.apply(&[link("l", &above), file(&format!("{above}/f"), "")])
        .unwrap();
    // Each name has 94 bytes and leads to a path of 188; 1024 bytes are permitted.
    let behind = |number| file(&format!("l/{below}/{number}"), "");
    tree.apply(&[behind(1), behind(2), behind(3)]).unwrap();
    let error = tree.apply(&[behind(4)]).unwrap_err();
    assert!(
        matches!(error, UnpackError::PathsTooLong { limit: 1024 }),
        "{error}"
    );
}

#[test]
fn long_names_and_extension_headers() {
    let long = format!("{}/file", ["d".repeat(100), "e".repeat(100)].join("/"));
    let mut gnu = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    gnu.append_data(&mut header, &long, &b"x"[..]).unwrap();
    let mut tree = Tree::any();
    tree.apply(&[gnu.into_inner().unwrap()]).unwrap();
    assert_eq!(tree.read(&long), "x");

    let pax = |records: &str, name: &str| {
        [
            entry(b"h", EntryType::XHeader, b"", records.as_bytes()),
            file(name, "x"),
        ]
        .concat()
    };
    tree.apply(&[pax("15 path=from/p\n", "ignored")]).unwrap();
    assert_eq!(tree.read("from/p"), "x");
    let error = tree.apply(&[pax("18 path=../secret\n", "a")]).unwrap_err();
    assert!(matches!(error, UnpackError::Name { .. }), "{error}");
    let error = tree
        .apply(&[pax("12 size=999\n", "a"), file("b", "y")])
        .unwrap_err();
    assert!(matches!(error, UnpackError::Header { .. }), "{error}");
    let huge = entry(b"h", EntryType::GNULongName, b"", &vec![b'a'; (1 << 20) + 1]);
    let error = tree.apply(&[huge]).unwrap_err();
    assert!(matches!(error, UnpackError::Header { .. }), "{error}");
    assert!(tree.contained());
}

#[test]
fn a_truncated_archive_is_an_error() {
    let whole = file("a", &"x".repeat(2000));
    let error = Tree::any().apply(&[whole[..1000].to_vec()]).unwrap_err();
    assert!(matches!(error, UnpackError::Read(_)), "{error}");
}

fn any_part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "b",
        "c",
        "..",
        ".",
        "",
        ".wh.a",
        ".wh..wh..opq",
        ".wh...",
    ])
}

fn any_path() -> impl Strategy<Value = String> {
    prop::collection::vec(any_part(), 1..5).prop_map(|parts| parts.join("/"))
}

fn any_entry() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(vec![
        EntryType::Regular,
        EntryType::Directory,
        EntryType::Symlink,
        EntryType::Symlink,
        EntryType::Link,
    ]);
    (any_path(), any_path(), kind).prop_map(|(name, link, kind)| {
        let content: &[u8] = if kind.is_file() { b"content" } else { b"" };
        entry(name.as_bytes(), kind, link.as_bytes(), content)
    })
}

/// Compressed input without output: its start, and a part that can be repeated forever.
fn without_output() -> Vec<(Vec<u8>, Vec<u8>)> {
    let member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast())
        .finish()
        .unwrap();
    let frame = zstd::encode_all(io::empty(), 1).unwrap();
    let (header, empty_block) = (&member[..10], [0, 0, 0, 0xff, 0xff]);
    vec![
        (Vec::new(), member.repeat(1000)),
        (header.to_vec(), empty_block.repeat(1000)),
        (frame.clone(), frame.repeat(1000)),
    ]
}

#[test]
fn input_without_output_ends_with_the_pull() {
    for (start, part) in without_output() {
        for ahead_from in [0, u64::MAX] {
            let mut tree = Tree::alone("", Limits::default());
            tree.unpacker.ahead_from = ahead_from;
            let mut guard = Some(tree.unpacker.budget.guard());
            let (input, mut output) = io::pipe().unwrap();
            let (start, part) = (start.clone(), part.clone());
            let writer = std::thread::spawn(move || {
                output.write_all(&start)?;
                for written in 0..64 * 1024 * 1024 / part.len() {
                    output.write_all(&part)?;
                    if written > 100 {
                        guard.take();
                    }
                }
                Ok::<_, io::Error>(())
            });
            let applied = tree.unpacker.apply(OwnedFd::from(input).into(), 1024);
            assert!(matches!(applied, Err(UnpackError::Stopped)), "{applied:?}");
            writer.join().unwrap().expect_err("it was read to the end");
        }
    }
}

/// An entry is refused while another thread reads such input.
#[test]
fn input_without_output_ends_with_its_reader() {
    let refused = file("../a", "");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // More than a piece, so that the entry arrives before the end of the output.
    gzip.write_all(&[refused, vec![0; 128 * 1024]].concat()).unwrap();
    let start = gzip.finish().unwrap();
    let (_, part) = without_output().swap_remove(0);
    let mut tree = Tree::alone("", Limits::default());
    tree.unpacker.ahead_from = 0;
    let (input, mut output) = io::pipe().unwrap();
    let writer = std::thread::spawn(move || {
        output.write_all(&start)?;
        for _ in 0..64 * 1024 * 1024 / part.len() {
            output.write_all(&part)?;
        }
        Ok::<_, io::Error>(())
    });
    let applied = tree.unpacker.apply(OwnedFd::from(input).into(), 1024);
    assert!(matches!(applied, Err(UnpackError::Name { .. })), "{applied:?}");
    writer.join().unwrap().expect_err("it was read to the end");
}

/// A large layer that is broken in the middle gives the same error and the same files, whoever decompresses it.
#[test]
fn a_broken_stream_is_an_error_wherever_it_breaks() {
    let mut text = String::new();
    for number in 0..200_000_u32 {
        write!(text, "{:x}", number.wrapping_mul(2_654_435_761)).unwrap();
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&[file("a", &text), file("b", &text)].concat())
        .unwrap();
    let packed = gzip.finish().unwrap();
    assert!(packed.len() as u64 > AHEAD_FROM);
    for at in [packed.len() / 4, packed.len() / 2, packed.len() - 4] {
        let mut damaged = packed.clone();
        damaged[at] ^= 0x55;
        damaged[at + 1] ^= 0x55;
        let error = Tree::any().apply(&[damaged]).unwrap_err();
        assert!(matches!(error, UnpackError::Read(_)), "{error}");
        let error = Tree::any().apply(&[packed[..at].to_vec()]).unwrap_err();
        assert!(matches!(error, UnpackError::Read(_)), "{error}");
    }
    Tree::any().apply(&[packed]).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_neither_panic_nor_escape(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        let mut tree = Tree::any();
        let _ = tree.apply(&[bytes]);
        prop_assert!(tree.contained());
    }

    #[test]
    fn any_entries_neither_panic_nor_escape(entries in prop::collection::vec(any_entry(), 1..30)) {
        let mut tree = Tree::any();
        // One layer each, so that a rejected entry does not end the test.
        for entry in entries {
            let _ = tree.apply(&[entry]);
        }
        prop_assert!(tree.contained());
    }
}
