//! The store's system calls, carried out, recorded and refused.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs as unix,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;

use crate::image::{Image, Node, Op, Recording};

/// Error numbers of refused calls.
pub(crate) const EIO: i32 = 5;
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EROFS: i32 = 30;

/// Few bytes, so that the files of the histories are synced while they are written.
pub(crate) const SYNC_EVERY: u64 = 8;

/// Calls that fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// The first call that fails, counted from 0.
    pub(crate) from: usize,
    /// True if only this call fails; false if all later ones fail, too.
    pub(crate) once: bool,
    /// Error number.
    pub(crate) errno: i32,
}

/// The calls of one run.
#[derive(Default)]
struct Calls {
    root: PathBuf,
    recording: Option<Recording>,
    refusal: Option<Refusal>,
    count: usize,
}

static CALLS: Mutex<Option<Calls>> = Mutex::new(None);

/// Starts the recording of calls below `root`.
pub(crate) fn record(root: &Path) {
    *CALLS.lock() = Some(Calls {
        root: root.to_owned(),
        recording: Some(Recording::new(Image::read(root))),
        ..Calls::default()
    });
}

/// Counts the calls from here on, and refuses some of them.
pub(crate) fn refuse(refusal: Option<Refusal>) {
    let mut calls = CALLS.lock();
    let calls = calls.get_or_insert_default();
    (calls.refusal, calls.count) = (refusal, 0);
}

/// Returns the number of calls since the last [`refuse`].
pub(crate) fn count() -> usize {
    CALLS.lock().as_ref().map_or(0, |calls| calls.count)
}

/// Returns the number of operations that are recorded so far.
pub(crate) fn recorded() -> usize {
    let calls = CALLS.lock();
    let recording = calls.as_ref().and_then(|calls| calls.recording.as_ref());
    recording.map_or(0, |recording| recording.ops.len())
}

/// Ends the recording.
pub(crate) fn finish() -> Option<Recording> {
    CALLS.lock().take()?.recording
}

/// Carries a call out unless it is refused, and records it.
fn attempt<T>(
    call: impl FnOnce() -> io::Result<T>,
    note: impl FnOnce(&mut Recording, &dyn Fn(&Path) -> PathBuf),
) -> io::Result<T> {
    crate::interleave::step();
    let mut calls = CALLS.lock();
    let Some(calls) = calls.as_mut() else {
        return call();
    };
    let at = calls.count;
    calls.count += 1;
    if let Some(refusal) = calls.refusal
        && (at == refusal.from || (at > refusal.from && !refusal.once))
    {
        return Err(io::Error::from_raw_os_error(refusal.errno));
    }
    let done = call()?;
    if let Some(recording) = &mut calls.recording {
        let root = calls.root.clone();
        note(recording, &move |path| {
            path.strip_prefix(&root).unwrap().to_owned()
        });
    }
    Ok(done)
}

/// File that is being written.
pub(crate) struct Output {
    file: File,
    path: PathBuf,
}

impl Output {
    pub(crate) fn create_new(path: &Path) -> io::Result<Self> {
        Self::open(path, || File::create_new(path))
    }

    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Self::open(path, || File::create(path))
    }

    fn open(path: &Path, call: impl FnOnce() -> io::Result<File>) -> io::Result<Self> {
        let file = attempt(call, |recording, name| recording.create(&name(path)))?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            file: self.file.try_clone()?,
            path: self.path.clone(),
        })
    }

    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        attempt(
            || Ok(()),
            |recording, name| {
                let file = recording.find(&name(&self.path));
                recording.push(Op::SyncFile(file));
            },
        )
    }
}

impl Write for Output {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let path = self.path.clone();
        attempt(
            || self.file.write_all(buffer),
            |recording, name| {
                let file = recording.find(&name(&path));
                recording.push(Op::Append {
                    file,
                    bytes: buffer.to_vec(),
                });
            },
        )?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

pub(crate) fn create_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    attempt(
        || fs::create_dir(path),
        |recording, name| recording.add(&name(path), Node::Folder(BTreeMap::new())),
    )
}

pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    attempt(
        || fs::metadata(path).map(|_| ()),
        |recording, name| {
            let folder = recording.find(&name(path));
            recording.push(Op::SyncFolder(folder));
        },
    )
}

pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    attempt(
        || fs::rename(from, to),
        |recording, name| recording.rename(&name(from), &name(to)),
    )
}

pub(crate) fn symlink(target: impl AsRef<Path>, path: &Path) -> io::Result<()> {
    attempt(
        || unix::symlink(&target, path),
        |recording, name| {
            let target = target.as_ref().to_string_lossy().into_owned();
            recording.add(&name(path), Node::Link(target));
        },
    )
}

pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    attempt(
        || fs::remove_file(path),
        |recording, name| recording.remove(&name(path)),
    )
}

pub(crate) fn remove_dir_all(path: &Path) -> io::Result<()> {
    attempt(
        || fs::remove_dir_all(path),
        |recording, name| recording.remove(&name(path)),
    )
}
