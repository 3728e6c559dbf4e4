//! Ports on the loopback that no other test is going to take.
//!
//! Asking the system for a free port and giving it back leaves a gap in which anyone, also a
//! client's connection, can take it. So ports come from below the range the system hands out,
//! and each is held by a lock on a file for as long as its [`Port`] lives.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};
use rand::Rng;

use crate::scratch;

// Linux hands out 32768 and above to clients.
const RANGE: std::ops::Range<u16> = 20_000..32_000;
const TRIES: usize = 500;

/// A port on 127.0.0.1 reserved for its owner while this lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Reserves a port on which nothing listens.
    ///
    /// # Errors
    /// When the lock files cannot be written, or no port is free.
    pub fn reserve() -> Result<Self> {
        let dir = scratch::base()?.join("ports");
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        for _ in 0..TRIES {
            let number = rand::rng().random_range(RANGE);
            let path = dir.join(number.to_string());
            let lock = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
            if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("none of {TRIES} ports tried in {RANGE:?} on 127.0.0.1 is free");
    }

    /// The port's number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}
