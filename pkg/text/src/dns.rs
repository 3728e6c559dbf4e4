//! DNS names (RFC 1123) as the API server checks them.

/// Maximum length of a subdomain, in bytes.
pub const SUBDOMAIN_MAX: usize = 253;
/// Maximum length of a label, in bytes.
pub const LABEL_MAX: usize = 63;

/// Kubernetes' message about invalid characters in a subdomain.
pub const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
     start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Returns true if `text` is a DNS subdomain, such as the name of most objects.
#[must_use]
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && has_subdomain_parts(text)
}

/// Returns true if `text` is a DNS label, such as the name of a namespace.
#[must_use]
pub fn is_label(text: &str) -> bool {
    text.len() <= LABEL_MAX && is_subdomain_part(text)
}

/// Returns true if `text` is a DNS subdomain of any length.
#[must_use]
pub fn has_subdomain_parts(text: &str) -> bool {
    text.split('.').all(is_subdomain_part)
}

/// Returns Kubernetes' messages about an invalid DNS subdomain: first about its length, then about its characters.
#[must_use]
pub fn subdomain_faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        faults.push(format!("must be no more than {SUBDOMAIN_MAX} characters"));
    }
    if !has_subdomain_parts(text) {
        faults.push(SUBDOMAIN_RULE.to_owned());
    }
    faults
}

/// Returns true if `text` is a DNS label of any length, as the parts of a subdomain are.
fn is_subdomain_part(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.chars().all(|c| alphanumeric(c) || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains() {
        for good in ["a", "a-b", "0", &"a".repeat(63)] {
            assert!(is_label(good) && is_subdomain(good), "{good}");
        }
        assert!(is_subdomain("a.b-c") && !is_label("a.b-c"));
        assert!(is_subdomain(&"a".repeat(253)) && !is_label(&"a".repeat(64)));
        for bad in [
            "", ".", "..", "a/b", "Bad", "a_b", ".a", "a..b", "-a", "a-", "a\0", "a b", "ä",
        ] {
            assert!(!is_label(bad) && !is_subdomain(bad), "{bad}");
        }
        assert!(!is_subdomain(&"a".repeat(254)));
    }

    #[test]
    fn faults_in_kubernetes_order() {
        assert!(subdomain_faults("a.b").is_empty());
        let both = subdomain_faults(&"A".repeat(254));
        assert_eq!(both, ["must be no more than 253 characters", SUBDOMAIN_RULE]);
    }
}
