//! `registries.conf` files that let a test reach only its own registry.

use std::fmt::Write;

/// Hosts in real catalogs whose images a test may have pushed to its own registry.
const REWRITTEN: [&str; 1] = ["quay.io"];
const BLOCKED: [&str; 12] = [
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "icr.io",
    "k8s.gcr.io",
    "mcr.microsoft.com",
    "nvcr.io",
    "public.ecr.aws",
    "registry.access.redhat.com",
    "registry.connect.redhat.com",
    "registry.k8s.io",
    "registry.redhat.io",
];
/// The format has no `*` alone, but wildcards for the hosts below a domain.
const BLOCKED_BELOW: [&str; 8] = ["aws", "cloud", "com", "dev", "io", "net", "org", "sh"];

/// Redirects images of `quay.io` to the same path at `host`, and blocks every other registry.
pub fn only(host: &str) -> String {
    let mut text = String::from("unqualified-search-registries = []\n");
    for name in REWRITTEN {
        let _ = write!(
            text,
            "\n[[registry]]\nprefix = \"{name}\"\nlocation = \"{host}\"\n"
        );
    }
    for name in BLOCKED {
        let _ = write!(
            text,
            "\n[[registry]]\nprefix = \"{name}\"\nlocation = \"{name}\"\nblocked = true\n"
        );
    }
    for domain in BLOCKED_BELOW {
        let _ = write!(text, "\n[[registry]]\nprefix = \"*.{domain}\"\nblocked = true\n");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn others_are_blocked() {
        let text = super::only("127.0.0.1:5000");
        assert!(
            text.contains("prefix = \"quay.io\"\nlocation = \"127.0.0.1:5000\"\n"),
            "{text}"
        );
        assert!(text.contains("prefix = \"*.com\"\nblocked = true\n"), "{text}");
    }
}
