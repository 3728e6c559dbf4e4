use super::*;

const HEAD: &str = r#"{"default":[{"type":"reject"}],"transports":{"docker":"#;

fn policy(docker: &str) -> Result<Policy, PolicyError> {
    Policy::parse("p.json".into(), format!("{HEAD}{docker}}}}}").as_bytes())
}

fn scope(policy: &Policy, requested: &str) -> String {
    policy.verdict(&requested.parse().unwrap()).scope
}

#[test]
fn the_most_specific_scope_decides() {
    let accept = r#"[{"type":"insecureAcceptAnything"}]"#;
    let scopes = [
        "",
        "quay.io",
        "quay.io/team",
        "quay.io/team/app",
        "quay.io/team/app:v1",
        "*.example.com",
    ];
    let docker: Vec<String> = scopes.iter().map(|scope| format!("{scope:?}:{accept}")).collect();
    let policy = policy(&format!("{{{}}}", docker.join(","))).unwrap();
    for (requested, expected) in [
        ("quay.io/team/app:v1", "scope quay.io/team/app:v1"),
        ("quay.io/team/app:v2", "scope quay.io/team/app"),
        ("quay.io/team/other:v1", "scope quay.io/team"),
        ("quay.io/teammate/app:v1", "scope quay.io"),
        ("a.b.example.com:5000/x:v1", "scope *.example.com"),
        ("example.com/x:v1", "default of transport docker"),
    ] {
        assert_eq!(scope(&policy, requested), expected, "{requested}");
    }
    let policy = self::policy(r#"{"quay.io":[{"type":"insecureAcceptAnything"}]}"#).unwrap();
    assert_eq!(scope(&policy, "ghcr.io/x:v1"), "default");
    let refused = policy
        .verdict(&"ghcr.io/x:v1".parse().unwrap())
        .reject_early()
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Source image rejected: Running image docker://ghcr.io/x:v1 is rejected by policy (p.json, default)"
    );
}

#[test]
fn unsupported_requirements_are_refused() {
    for (rule, kind) in [
        (
            r#"{"type":"signedBy","keyType":"GPGKeys","keyPath":"/k"}"#,
            "signedBy",
        ),
        (
            r#"{"type":"sigstoreSigned","fulcio":{"oidcIssuer":"x"},"rekorPublicKeyData":"eA=="}"#,
            "fulcio",
        ),
        (
            r#"{"type":"sigstoreSigned","keyPath":"/k","rekorPublicKeyPath":"/r"}"#,
            "Rekor",
        ),
    ] {
        let policy = policy(&format!(r#"{{"":[{rule}]}}"#)).unwrap();
        let error = policy
            .verdict(&"quay.io/a:v1".parse().unwrap())
            .reject_early()
            .unwrap_err();
        assert!(
            matches!(&error, PolicyError::Unsupported { kind: found, .. } if found.contains(kind)),
            "{error}"
        );
    }
}

#[test]
fn an_unknown_policy_is_refused() {
    for docker in [
        r#"{"":[]}"#,
        r#"{"":[{"type":"acceptAll"}]}"#,
        r#"{"":[{"type":"reject","more":1}]}"#,
        r#"{"":[{"type":"reject"}],"":[{"type":"insecureAcceptAnything"}]}"#,
        r#"{"*":[{"type":"reject"}]}"#,
        r#"{"":[{"type":"sigstoreSigned"}]}"#,
        r#"{"":[{"type":"sigstoreSigned","keyPath":"/a","keyData":"eA=="}]}"#,
        r#"{"":[{"type":"sigstoreSigned","keyPath":"/does/not/exist"}]}"#,
        r#"{"":[{"type":"sigstoreSigned","keyData":"eA=="}]}"#,
        r#"{"":[{"type":"sigstoreSigned","keyData":"eA==","surprise":true}]}"#,
        r#"{"":[{"type":"signedBy"}]}"#,
    ] {
        assert!(policy(docker).is_err(), "{docker}");
    }
    for text in [
        "",
        "{}",
        "[]",
        r#"{"default":[]}"#,
        r#"{"default":[{"type":"reject"}],"x":1}"#,
    ] {
        assert!(Policy::parse("p.json".into(), text.as_bytes()).is_err(), "{text}");
    }
    // The scopes of other transports are parsed and ignored.
    let text = r#"{"default":[{"type":"reject"}],"transports":{"docker-daemon":{"":[{"type":"insecureAcceptAnything"}]}}}"#;
    let policy = Policy::parse("p.json".into(), text.as_bytes()).unwrap();
    assert_eq!(scope(&policy, "quay.io/a:v1"), "default");
}

#[tokio::test]
async fn only_default_files_may_be_missing() {
    let missing = Path::new("/does/not/exist/policy.json");
    assert!(matches!(
        Policy::read(Some(missing)).await.unwrap_err(),
        PolicyError::Read { .. }
    ));
    assert!(exists(Some(missing)));
}
