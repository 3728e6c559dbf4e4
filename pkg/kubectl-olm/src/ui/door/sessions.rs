//! Readers who have shown a token. Everything is in memory: a restart ends all sessions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::ui::reader::Reader;

/// Maximum number of sessions.
const SESSIONS: usize = 256;
/// Maximum number of sessions of one user; a new one ends the one that was used longest ago.
const OF_USER: usize = 8;
/// Time after which a session ends in any case.
const LIFETIME: Duration = Duration::from_hours(8);
/// Time after which a session without requests ends.
const IDLE: Duration = Duration::from_hours(1);
/// Time after which a full table gives up a session without requests.
const SPARE: Duration = Duration::from_mins(5);
/// Time after which the API server is asked again if the token is valid.
const REVIEW: Duration = Duration::from_mins(1);

/// Digest of what identifies a session: the table itself opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::ui) struct SessionKey([u8; 32]);

impl SessionKey {
    /// Returns the key of the session with this random identity.
    pub(super) fn of_cookie(id: &str) -> Self {
        Self(Sha256::digest(format!("cookie\n{id}")).into())
    }

    /// Returns the key of the requests with this bearer token.
    pub(super) fn of_bearer(token: &str) -> Self {
        Self(Sha256::digest(format!("bearer\n{token}")).into())
    }
}

struct Session {
    reader: Arc<Reader>,
    user: String,
    began: Instant,
    used: Instant,
    reviewed: Instant,
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now - self.began >= LIFETIME || now - self.used >= IDLE
    }
}

/// A session that is not over.
pub(super) struct Known {
    pub(super) reader: Arc<Reader>,
    /// True if the token has to be reviewed again.
    pub(super) due: bool,
}

/// The sessions. Those that end cancel their readers' token.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<SessionKey, Session>>);

impl Sessions {
    /// Adds a session; false if there are too many.
    pub(super) fn add(&self, key: SessionKey, reader: Arc<Reader>, user: &str, now: Instant) -> bool {
        let mut kept = self.0.lock();
        end(&mut kept, |_, session| session.is_over(now));
        let of_user = kept.values().filter(|session| session.user == user).count();
        if of_user >= OF_USER {
            end_oldest(&mut kept, |session| session.user == user);
        }
        if kept.len() >= SESSIONS {
            end_oldest(&mut kept, |session| now - session.used >= SPARE);
        }
        if kept.len() >= SESSIONS {
            return false;
        }
        let session = Session {
            reader,
            user: user.to_owned(),
            began: now,
            used: now,
            reviewed: now,
        };
        if let Some(former) = kept.insert(key, session) {
            former.reader.ended.cancel();
        }
        true
    }

    /// Returns a session for a request.
    pub(super) fn used(&self, key: SessionKey, now: Instant) -> Option<Known> {
        let mut kept = self.0.lock();
        end(&mut kept, |other, session| *other == key && session.is_over(now));
        let session = kept.get_mut(&key)?;
        session.used = now;
        Some(Known {
            reader: session.reader.clone(),
            due: now - session.reviewed >= REVIEW,
        })
    }

    /// Returns true if the session is not over, without using it.
    pub(super) fn has(&self, key: SessionKey, now: Instant) -> bool {
        let kept = self.0.lock();
        kept.get(&key).is_some_and(|session| !session.is_over(now))
    }

    /// Records that the token is valid.
    pub(super) fn reviewed(&self, key: SessionKey, now: Instant) {
        if let Some(session) = self.0.lock().get_mut(&key) {
            session.reviewed = now;
        }
    }

    /// Ends a session.
    pub(super) fn remove(&self, key: SessionKey) {
        if let Some(session) = self.0.lock().remove(&key) {
            session.reader.ended.cancel();
        }
    }
}

fn end(kept: &mut HashMap<SessionKey, Session>, ends: impl Fn(&SessionKey, &Session) -> bool) {
    for (_, session) in kept.extract_if(|key, session| ends(key, session)) {
        session.reader.ended.cancel();
    }
}

/// Ends the session that was used longest ago among those that `may_end`.
fn end_oldest(kept: &mut HashMap<SessionKey, Session>, may_end: impl Fn(&Session) -> bool) {
    let candidates = kept.iter().filter(|(_, session)| may_end(session));
    if let Some((key, _)) = candidates.min_by_key(|(_, session)| session.used) {
        let key = *key;
        end(kept, |other, _| *other == key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> SessionKey {
        SessionKey::of_cookie(&number.to_string())
    }

    fn reader() -> Arc<Reader> {
        Arc::new(Reader::for_tests())
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_is_old_or_idle() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let (active, idle) = (reader(), reader());
        assert!(sessions.add(key(1), active.clone(), "a", now));
        assert!(sessions.add(key(2), idle.clone(), "a", now));
        let mut at = now;
        while at + IDLE / 2 < now + LIFETIME {
            at += IDLE / 2;
            assert!(sessions.used(key(1), at).is_some());
        }
        assert!(sessions.used(key(2), at).is_none() && idle.ended.is_cancelled());
        assert!(!active.ended.is_cancelled());
        assert!(sessions.used(key(1), now + LIFETIME).is_none() && active.ended.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_reviewed_again() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        assert!(sessions.add(key(1), reader(), "a", now));
        let due = |at| sessions.used(key(1), at).unwrap().due;
        assert!(!due(now));
        assert!(due(now + REVIEW));
        sessions.reviewed(key(1), now + REVIEW);
        assert!(!due(now + REVIEW));
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_has_few_sessions_and_ends_only_own_ones() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let other = reader();
        assert!(sessions.add(key(1000), other.clone(), "b", now));
        let first = reader();
        assert!(sessions.add(key(0), first.clone(), "a", now));
        for number in 1..=OF_USER {
            let later = now + Duration::from_secs(number as u64);
            assert!(sessions.add(key(number), reader(), "a", later));
        }
        assert!(first.ended.is_cancelled() && !other.ended.is_cancelled());
        assert_eq!(sessions.0.lock().len(), OF_USER + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_table_ends_only_what_nobody_uses() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        for number in 0..SESSIONS {
            assert!(sessions.add(key(number), reader(), &number.to_string(), now));
        }
        assert!(!sessions.add(key(SESSIONS), reader(), "late", now));
        let later = now + SPARE;
        for number in 1..SESSIONS {
            assert!(sessions.used(key(number), later).is_some());
        }
        assert!(sessions.add(key(SESSIONS), reader(), "late", later));
        assert!(sessions.used(key(0), later).is_none());
        assert_eq!(sessions.0.lock().len(), SESSIONS);
    }

    #[test]
    fn a_bearer_token_is_no_cookie() {
        assert_ne!(SessionKey::of_cookie("a"), SessionKey::of_bearer("a"));
    }
}
