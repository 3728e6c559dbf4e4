//! A file system of which only synced parts survive a crash.
//!
//! Bytes of a file are durable once the file is synced, entries of a folder once the folder is synced. Everything else survives or not,
//! each on its own. A rename is one change: it survives as a whole or not at all.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs as unix,
    path::{Component, Path},
};

/// File, folder or symlink, with an identity of its own: its index in [`Image::nodes`].
#[derive(Clone, Debug)]
pub(crate) enum Node {
    File(Vec<u8>),
    Folder(BTreeMap<String, usize>),
    Link(String),
}

/// Change of the disk.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Makes a node that no folder names yet.
    Make(Node),
    Append {
        file: usize,
        bytes: Vec<u8>,
    },
    Empty {
        file: usize,
    },
    Entry {
        folder: usize,
        name: String,
        node: Option<usize>,
    },
    Rename {
        folder: usize,
        from: String,
        to: String,
        node: usize,
    },
    SyncFile(usize),
    SyncFolder(usize),
}

/// Bytes that were not synced, after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsynced {
    Kept,
    /// The last write is torn in the middle.
    Torn,
    Gone,
}

/// Entries of folders that a crash loses if they are not synced. The bytes of files are kept, torn or lost in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Losses {
    /// None, or all together.
    Together,
    /// Also each one alone.
    Single,
    /// Also all combinations of the last ones.
    Combined,
}

/// Content of a disk. Node 0 is the root.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    nodes: Vec<Node>,
}

impl Image {
    /// Reads a real folder.
    pub(crate) fn read(path: &Path) -> Self {
        let mut image = Self { nodes: Vec::new() };
        image.read_node(path);
        image
    }

    fn read_node(&mut self, path: &Path) -> usize {
        let at = self.nodes.len();
        let kind = fs::symlink_metadata(path).unwrap().file_type();
        if kind.is_symlink() {
            let target = fs::read_link(path).unwrap();
            self.nodes.push(Node::Link(target.to_string_lossy().into_owned()));
        } else if kind.is_file() {
            self.nodes.push(Node::File(fs::read(path).unwrap()));
        } else {
            self.nodes.push(Node::Folder(BTreeMap::new()));
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let node = self.read_node(&entry.path());
                self.folder(at)
                    .insert(entry.file_name().into_string().unwrap(), node);
            }
        }
        at
    }

    /// Writes the image into an empty real folder.
    pub(crate) fn write(&self, path: &Path) {
        let Node::Folder(entries) = &self.nodes[0] else {
            return;
        };
        self.write_entries(entries, path);
    }

    fn write_entries(&self, entries: &BTreeMap<String, usize>, path: &Path) {
        for (name, &node) in entries {
            let path = path.join(name);
            match &self.nodes[node] {
                Node::File(bytes) => fs::write(path, bytes).unwrap(),
                Node::Link(target) => unix::symlink(target, path).unwrap(),
                Node::Folder(entries) => {
                    fs::create_dir(&path).unwrap();
                    self.write_entries(entries, &path);
                }
            }
        }
    }

    /// Returns all paths with their content: equal disks have equal texts.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.describe(0, "", &mut text);
        text
    }

    fn describe(&self, node: usize, path: &str, text: &mut String) {
        use std::fmt::Write as _;
        match &self.nodes[node] {
            Node::File(bytes) => writeln!(text, "{path}: {}", data_encoding::HEXLOWER.encode(bytes)),
            Node::Link(target) => writeln!(text, "{path} -> {target}"),
            Node::Folder(entries) => {
                for (name, &node) in entries {
                    self.describe(node, &format!("{path}/{name}"), text);
                }
                writeln!(text, "{path}/")
            }
        }
        .unwrap();
    }

    fn folder(&mut self, node: usize) -> &mut BTreeMap<String, usize> {
        match &mut self.nodes[node] {
            Node::Folder(entries) => entries,
            other => panic!("no folder: {other:?}"),
        }
    }

    fn bytes(&mut self, node: usize) -> &mut Vec<u8> {
        match &mut self.nodes[node] {
            Node::File(bytes) => bytes,
            other => panic!("no file: {other:?}"),
        }
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Make(node) => self.nodes.push(node.clone()),
            Op::Append { file, bytes } => self.bytes(*file).extend_from_slice(bytes),
            Op::Empty { file } => self.bytes(*file).clear(),
            Op::Entry {
                folder,
                name,
                node: Some(node),
            } => {
                self.folder(*folder).insert(name.clone(), *node);
            }
            Op::Entry { folder, name, .. } => {
                self.folder(*folder).remove(name);
            }
            Op::Rename {
                folder,
                from,
                to,
                node,
            } => {
                self.folder(*folder).remove(from);
                self.folder(*folder).insert(to.clone(), *node);
            }
            Op::SyncFile(_) | Op::SyncFolder(_) => {}
        }
    }
}

/// A disk and its changes.
pub(crate) struct Recording {
    base: Image,
    now: Image,
    pub(crate) ops: Vec<Op>,
}

impl Recording {
    pub(crate) fn new(base: Image) -> Self {
        Self {
            now: base.clone(),
            base,
            ops: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, op: Op) {
        self.now.apply(&op);
        self.ops.push(op);
    }

    /// Returns the node of a path.
    pub(crate) fn find(&self, path: &Path) -> usize {
        let mut at = 0;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            let Node::Folder(entries) = &self.now.nodes[at] else {
                panic!("{} is below no folder", path.display())
            };
            at = entries[name.to_str().unwrap()];
        }
        at
    }

    fn split(&self, path: &Path) -> (usize, String) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (self.find(path.parent().unwrap()), name)
    }

    pub(crate) fn add(&mut self, path: &Path, node: Node) {
        let (folder, name) = self.split(path);
        let made = self.now.nodes.len();
        self.push(Op::Make(node));
        self.push(Op::Entry {
            folder,
            name,
            node: Some(made),
        });
    }

    pub(crate) fn create(&mut self, path: &Path) {
        let (folder, name) = self.split(path);
        match self.now.folder(folder).get(&name) {
            Some(&file) => self.push(Op::Empty { file }),
            None => self.add(path, Node::File(Vec::new())),
        }
    }

    /// Both paths are in one folder.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) {
        let (folder, from_name) = self.split(from);
        let (other, to) = self.split(to);
        assert_eq!(folder, other);
        self.push(Op::Rename {
            folder,
            from: from_name,
            to,
            node: self.find(from),
        });
    }

    /// Removes a file, or a folder with its entries one by one.
    pub(crate) fn remove(&mut self, path: &Path) {
        if let Node::Folder(entries) = &self.now.nodes[self.find(path)] {
            for name in entries.keys().cloned().collect::<Vec<_>>() {
                self.remove(&path.join(name));
            }
        }
        let (folder, name) = self.split(path);
        self.push(Op::Entry {
            folder,
            name,
            node: None,
        });
    }

    /// Returns the disks that a crash after the first `count` changes may leave.
    pub(crate) fn after_crash(&self, count: usize, losses: Losses) -> Vec<Image> {
        /// Number of entries whose combinations are tried.
        const MANY: usize = 9;
        let unsynced: Vec<usize> = (0..count).filter(|&at| !self.durable(at, count)).collect();
        let entries: Vec<usize> = unsynced
            .iter()
            .copied()
            .filter(|&at| matches!(self.ops[at], Op::Entry { .. } | Op::Rename { .. }))
            .collect();
        let mut lost: Vec<Vec<usize>> = vec![Vec::new(), entries.clone()];
        if losses == Losses::Combined {
            let newest = &entries[entries.len().saturating_sub(MANY)..];
            lost.extend((1..1_usize << newest.len()).map(|set| {
                let chosen = newest.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
                chosen.map(|(_, &at)| at).collect()
            }));
        }
        if losses != Losses::Together {
            lost.extend(entries.iter().map(|&at| vec![at]));
        }
        let all = [Unsynced::Kept, Unsynced::Torn, Unsynced::Gone];
        let writes = unsynced
            .iter()
            .any(|&at| matches!(self.ops[at], Op::Append { .. }));
        let mut images = Vec::new();
        for lost in &lost {
            for bytes in &all[..if writes { 3 } else { 1 }] {
                images.push(self.survivors(count, &unsynced, lost, *bytes));
            }
        }
        images
    }

    /// Returns the disk after the first `count` changes.
    pub(crate) fn clean_cut(&self, count: usize) -> Image {
        self.survivors(count, &[], &[], Unsynced::Kept)
    }

    fn durable(&self, at: usize, count: usize) -> bool {
        let later = &self.ops[at..count];
        match &self.ops[at] {
            Op::Append { file, .. } | Op::Empty { file } => later
                .iter()
                .any(|op| matches!(op, Op::SyncFile(synced) if synced == file)),
            Op::Entry { folder, .. } | Op::Rename { folder, .. } => later
                .iter()
                .any(|op| matches!(op, Op::SyncFolder(synced) if synced == folder)),
            _ => true,
        }
    }

    fn survivors(&self, count: usize, unsynced: &[usize], lost: &[usize], bytes: Unsynced) -> Image {
        let is_write = |at: usize| matches!(self.ops[at], Op::Append { .. });
        let torn = unsynced.iter().copied().rfind(|&at| is_write(at));
        let mut image = self.base.clone();
        for (at, op) in self.ops[..count].iter().enumerate() {
            if lost.contains(&at) {
                continue;
            }
            match op {
                Op::Append { .. } if bytes == Unsynced::Gone && unsynced.contains(&at) => {}
                Op::Append { file, bytes: written } if bytes == Unsynced::Torn && Some(at) == torn => {
                    image.apply(&Op::Append {
                        file: *file,
                        bytes: written[..written.len() / 2].to_vec(),
                    });
                }
                op => image.apply(op),
            }
        }
        image
    }
}
