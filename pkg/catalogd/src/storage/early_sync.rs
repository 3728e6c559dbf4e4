//! Sync of a large file while it is being written.
//!
//! The kernel starts to write a file to disk late. A sync after the last byte would wait for all of the file, with nothing else left to
//! do. These syncs make nothing durable that a reader relies on: the one at the end of the file does.

use std::{
    io,
    sync::mpsc::{SyncSender, sync_channel},
    thread::{self, Scope, ScopedJoinHandle},
};

use crate::disk::{Output, SYNC_EVERY};

/// Thread that syncs a file after every [`SYNC_EVERY`] bytes. It starts with the first sync; a small file has none.
pub(super) struct EarlySync<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    /// Bytes written since the last request.
    unsynced: u64,
    running: Option<Syncer<'scope>>,
}

struct Syncer<'scope> {
    requests: SyncSender<()>,
    thread: ScopedJoinHandle<'scope, io::Result<()>>,
}

impl<'scope, 'env> EarlySync<'scope, 'env> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        Self {
            scope,
            unsynced: 0,
            running: None,
        }
    }

    /// Counts bytes that were written to `file`, and asks for a sync once there are enough. Does not wait for it: a sync that takes long
    /// covers all that was written before the next one.
    pub(super) fn written(&mut self, count: usize, file: &Output) {
        self.unsynced = self.unsynced.saturating_add(count as u64);
        if self.unsynced < SYNC_EVERY {
            return;
        }
        if self.running.is_none() {
            // Without the thread, the sync at the end only takes longer.
            self.running = Syncer::start(self.scope, file).ok();
        }
        let asked = self
            .running
            .as_ref()
            .is_none_or(|running| running.requests.try_send(()).is_ok());
        if asked {
            self.unsynced = 0;
        }
    }

    /// Waits for the syncs that were asked for.
    ///
    /// # Errors
    /// One of them failed, so that bytes of the file may be lost.
    pub(super) fn finish(self) -> io::Result<()> {
        let Some(Syncer { requests, thread }) = self.running else {
            return Ok(());
        };
        drop(requests);
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the sync ended abnormally")))
    }
}

impl<'scope> Syncer<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>, file: &Output) -> io::Result<Self> {
        let file = file.try_clone()?;
        let (requests, asked) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("sync".to_owned())
            .spawn_scoped(scope, move || asked.iter().try_for_each(|()| file.sync_data()))?;
        Ok(Self { requests, thread })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn only_a_large_file_is_synced_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = Output::create_new(&folder.path().join("file")).unwrap();
        let half = usize::try_from(SYNC_EVERY / 2).unwrap();
        thread::scope(|scope| {
            let mut early = EarlySync::new(scope);
            early.written(half, &file);
            assert!(early.running.is_none());
            early.written(half, &file);
            assert!(early.running.is_some());
            assert_eq!(early.unsynced, 0);
            early.finish().unwrap();
        });
    }

    /// The kernel does not report it a second time.
    #[test]
    fn an_error_of_an_early_sync_is_not_lost() {
        // A device cannot be synced.
        let file = Output::create(Path::new("/dev/full")).unwrap();
        thread::scope(|scope| {
            let mut early = EarlySync::new(scope);
            early.written(usize::try_from(SYNC_EVERY).unwrap(), &file);
            early.finish().unwrap_err();
        });
    }
}
