//! Short retries of transient failures.
//!
//! The caller handles longer outages: it starts over with its own backoff.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::RegistryError;
use crate::limits::Limits;

/// Attempts of one request.
pub(super) struct Attempts<'a> {
    limits: &'a Limits,
    failed: u32,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self { limits, failed: 0 }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// Returns the failure if it is permanent, occurred too often, or asks for too long a delay.
    pub(super) async fn wait_after(&mut self, error: RegistryError) -> Result<(), RegistryError> {
        let Some(wait) = self.wait(&error) else {
            return Err(error);
        };
        tracing::debug!(%error, ?wait, "retrying");
        tokio::time::sleep(wait).await;
        Ok(())
    }

    fn wait(&mut self, error: &RegistryError) -> Option<Duration> {
        let requested = error.retry_delay()?;
        let backoff = self.limits.retry_wait.saturating_mul(1 << self.failed.min(16));
        self.failed += 1;
        let wait = requested.max(backoff.min(self.limits.retry_wait_max));
        (self.failed <= self.limits.retries && wait <= self.limits.retry_wait_max).then_some(wait)
    }
}

/// Parses a `Retry-After` value: delay in seconds or an HTTP date.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(after: Option<u64>) -> RegistryError {
        RegistryError::TooManyRequests {
            host: "h".to_owned(),
            what: "w".to_owned(),
            after: after.map(Duration::from_secs),
        }
    }

    #[test]
    fn waits_longer_each_time_and_not_for_ever() {
        let limits = Limits {
            retries: 3,
            retry_wait: Duration::from_secs(1),
            retry_wait_max: Duration::from_secs(3),
            ..Limits::default()
        };
        let mut attempts = Attempts::new(&limits);
        let seconds = |wait: Option<Duration>| wait.map(|wait| wait.as_secs());
        assert_eq!(seconds(attempts.wait(&limited(None))), Some(1));
        assert_eq!(seconds(attempts.wait(&limited(None))), Some(2));
        assert_eq!(seconds(attempts.wait(&limited(Some(1)))), Some(3));
        assert_eq!(seconds(attempts.wait(&limited(None))), None);
        let mut attempts = Attempts::new(&limits);
        assert_eq!(seconds(attempts.wait(&limited(Some(3)))), Some(3));
        assert_eq!(
            seconds(attempts.wait(&limited(Some(4)))),
            None,
            "asks for too long a wait"
        );
        let unknown = RegistryError::NotFound {
            host: "h".to_owned(),
            what: "w".to_owned(),
        };
        assert_eq!(seconds(Attempts::new(&limits).wait(&unknown)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_as_long_as_the_registry_asks_for() {
        let limits = Limits {
            retries: 2,
            retry_wait: Duration::from_secs(1),
            retry_wait_max: Duration::from_mins(1),
            ..Limits::default()
        };
        let start = tokio::time::Instant::now();
        let mut attempts = Attempts::new(&limits);
        attempts.wait_after(limited(None)).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 1);
        attempts.wait_after(limited(Some(50))).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 51);
        attempts.wait_after(limited(None)).await.unwrap_err();
        assert_eq!(
            start.elapsed().as_secs(),
            51,
            "the last failure is returned at once"
        );
    }

    #[test]
    fn reads_both_forms() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(
            read("Sun, 06 Nov 1994 08:50:00 GMT"),
            Some(Duration::from_secs(23))
        );
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
