//! Removes the parts of error texts that vary between attempts.

use std::sync::LazyLock;

use regex::Regex;

/// Endpoints of a connection: the local port differs at every attempt.
static ENDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const END: &str = r"((?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-fA-F:]+\])(?::\d+)?)";
    Regex::new(&format!("(read|write) (tcp|udp) {END}->{END}(: )?")).ok()
});

/// Returns the text without the endpoints of connections.
pub fn stable(text: &str) -> String {
    match ENDS.as_ref() {
        Some(ends) => ends.replace_all(text, "").into_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::stable;

    #[test]
    fn leaves_out_the_ends_of_connections() {
        assert_eq!(
            stable("x: read tcp 10.0.0.1:4321->10.0.0.2:443: reset"),
            "x: reset"
        );
        assert_eq!(stable("write udp [fe80::1]:1->[fe80::2]:53"), "");
        assert_eq!(
            stable("dial tcp 10.0.0.1:1->10.0.0.2:2: no"),
            "dial tcp 10.0.0.1:1->10.0.0.2:2: no"
        );
    }
}
