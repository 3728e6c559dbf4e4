//! Checks of the registry, for the status. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use olm_api::CatalogPoll;

use super::decide::{History, RequestedImage};

/// Returns the last check and the time of the next one; `None` before the first check of this process.
pub(super) fn poll_status(history: &History, image: Option<&RequestedImage>) -> Option<CatalogPoll> {
    let check = history.check.as_ref()?;
    let next = match &history.failure {
        Some(failure) => failure.retry,
        None => image
            .and_then(|image| image.poll)
            .zip(history.poll)
            .map(|(interval, poll)| poll.next(interval)),
    };
    Some(CatalogPoll {
        image: check.reference.clone(),
        last_time: whole_seconds(check.at),
        result: check.result,
        next_time: next.map(whole_seconds),
    })
}

/// Returns a time as the API stores it, so that a time that was read equals the one that was written.
fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use olm_api::CatalogPollResult;

    use super::*;
    use crate::controller::{Check, Failure, Poll};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_000_000_000 + millis).unwrap()
    }

    #[test]
    fn the_next_check_is_the_poll_or_the_retry() {
        let image = RequestedImage {
            reference: "r.example/c:v1".to_owned(),
            poll: Some(Duration::from_mins(10)),
        };
        let mut history = History::default();
        assert_eq!(poll_status(&history, Some(&image)), None);
        history.check = Some(Check {
            reference: image.reference.clone(),
            at: at(500),
            result: CatalogPollResult::Unchanged,
        });
        history.poll = Some(Poll {
            at: at(500),
            jitter: 0.01,
        });
        let status = poll_status(&history, Some(&image)).unwrap();
        assert_eq!(
            (status.last_time, status.next_time),
            (Time(at(0)), Some(Time(at(606_000))))
        );
        let unpolled = RequestedImage {
            poll: None,
            ..image.clone()
        };
        assert_eq!(poll_status(&history, Some(&unpolled)).unwrap().next_time, None);
        history.failure = Some(Failure {
            generation: 1,
            reference: image.reference.clone(),
            message: "no route".to_owned(),
            retry: Some(at(5000)),
        });
        let status = poll_status(&history, Some(&image)).unwrap();
        assert_eq!(status.next_time, Some(Time(at(5000))));
    }
}
