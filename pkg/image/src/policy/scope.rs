//! Scopes of a policy that match a reference, most specific first.

use crate::{hosts::without_port, reference::Reference};

/// Returns the scopes: the image, its repository, the namespaces above up to the registry, then `*.` with each parent
/// domain of the registry, without its port.
pub(super) fn of(requested: &Reference) -> Vec<String> {
    let repository = requested.repository();
    let mut scopes = vec![requested.to_string()];
    let mut name = repository.to_string();
    loop {
        scopes.push(name.clone());
        match name.rfind('/') {
            Some(slash) => name.truncate(slash),
            None => break,
        }
    }
    let mut domain = without_port(repository.domain());
    while let Some((_, above)) = domain.split_once('.') {
        scopes.push(format!("*.{above}"));
        domain = above;
    }
    scopes
}

/// Checks the syntax of a scope.
pub(super) fn validate(scope: &str) -> Result<(), &'static str> {
    let Some(domain) = scope.strip_prefix('*') else {
        return if scope.contains('*') {
            Err("* stands for subdomains, at the beginning only")
        } else {
            Ok(())
        };
    };
    if !domain.starts_with('.') || domain.contains(['*', '/', '@']) {
        return Err("what begins with * must be *.DOMAIN");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_specific_first() {
        let scopes = of(&"reg.example.com:5000/team/app:v1".parse().unwrap());
        assert_eq!(
            scopes,
            [
                "reg.example.com:5000/team/app:v1",
                "reg.example.com:5000/team/app",
                "reg.example.com:5000/team",
                "reg.example.com:5000",
                "*.example.com",
                "*.com",
            ]
        );
        for good in ["", "quay.io", "*.example.com", "quay.io/a:v1"] {
            assert!(validate(good).is_ok(), "{good}");
        }
        for bad in ["*", "*example.com", "*.a/b", "quay.io/*"] {
            assert!(validate(bad).is_err(), "{bad}");
        }
    }
}
