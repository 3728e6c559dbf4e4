//! Refusals of lists that a retry does not change.

/// Status codes of the API server for what it never lists, or not for this client.
const REFUSED: [u16; 4] = [403, 404, 405, 406];
/// Status code of the API server for a failure of its own, or of a conversion webhook.
const INTERNAL: u16 = 500;

/// Returns true if a list that failed with this status code may fail so for good: the API server refuses it, or the webhook that
/// converts the listed objects does not work, if there is one. All else passes, such as an outage of etcd.
pub(crate) fn lasts(code: u16, converted: bool) -> bool {
    REFUSED.contains(&code) || (code == INTERNAL && converted)
}

#[cfg(test)]
mod tests {
    use super::lasts;

    #[test]
    fn only_refusals_and_broken_webhooks_last() {
        for converted in [false, true] {
            for code in [403, 404, 405, 406] {
                assert!(lasts(code, converted), "{code}");
            }
            for code in [0, 400, 401, 409, 410, 422, 429, 502, 503, 504] {
                assert!(!lasts(code, converted), "{code}");
            }
        }
        assert!(lasts(500, true) && !lasts(500, false));
    }
}
