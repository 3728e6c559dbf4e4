//! Reserved ports on the loopback interface.
//!
//! Binding a free port and closing it leaves a gap in which another process or client connection can take it. So
//! ports come from below the ephemeral range, and each is locked by a file as long as its [`Port`] lives.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};
use rand::Rng;

use crate::scratch;

// Linux assigns ephemeral ports from 32768.
const RANGE: std::ops::Range<u16> = 20_000..32_000;
const MAX_ATTEMPTS: usize = 500;

/// A port on 127.0.0.1 that is reserved while this lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Reserves a port without a listener.
    ///
    /// # Errors
    /// The lock files are not writable, or no port is free.
    pub fn reserve() -> Result<Self> {
        let dir = scratch::base()?.join("ports");
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        for _ in 0..MAX_ATTEMPTS {
            let number = rand::rng().random_range(RANGE);
            let path = dir.join(number.to_string());
            let lock = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
            if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("none of {MAX_ATTEMPTS} ports tried in {RANGE:?} on 127.0.0.1 is free");
    }

    /// Returns the number of the port.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}
