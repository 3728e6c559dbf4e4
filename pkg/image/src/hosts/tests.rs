use super::*;

fn policy(allowed: &[&str]) -> HostPolicy {
    HostPolicy {
        allowed: allowed.iter().map(|text| text.parse().unwrap()).collect(),
        api_server: Some("10.96.0.1".parse().unwrap()),
        search: cluster_domains(
            "search olm.svc.example.org svc.example.org example.org\nnameserver 10.96.0.10\n",
        ),
        answers: BTreeMap::new(),
    }
}

fn class(policy: &HostPolicy, url: &str) -> Option<HostClass> {
    policy
        .check(&url.parse().unwrap())
        .err()
        .map(|refused| refused.class)
}

#[test]
fn hosts_refused_by_default() {
    let policy = policy(&[]);
    for (host, expected) in [
        ("quay.io", None),
        ("10.1.2.3:5000", None),
        ("[2001:db8::1]", None),
        ("svc.example.com", None),
        ("registry.example.org", None),
        ("127.0.0.1:5000", Some(HostClass::Loopback)),
        ("localhost", Some(HostClass::Loopback)),
        ("[::1]:5000", Some(HostClass::Loopback)),
        ("[::ffff:127.0.0.1]", Some(HostClass::Loopback)),
        ("2130706433", Some(HostClass::Loopback)),
        ("0x7f.1", Some(HostClass::Loopback)),
        ("169.254.169.254", Some(HostClass::LinkLocal)),
        ("[64:ff9b::a9fe:a9fe]", Some(HostClass::LinkLocal)),
        ("[fe80::1]", Some(HostClass::LinkLocal)),
        ("[fd00:ec2::254]", Some(HostClass::Metadata)),
        ("100.100.100.200", Some(HostClass::Metadata)),
        ("0.0.0.0", Some(HostClass::Reserved)),
        ("224.0.0.1", Some(HostClass::Reserved)),
        ("[::]", Some(HostClass::Reserved)),
        ("registry:5000", Some(HostClass::Cluster)),
        ("registry.ns.svc:5000", Some(HostClass::Cluster)),
        ("Registry.NS.svc.cluster.local.", Some(HostClass::Cluster)),
        ("registry.ns.svc.example.org", Some(HostClass::Cluster)),
        ("1-2-3-4.ns.pod.example.org", Some(HostClass::Cluster)),
        ("10.96.0.1", Some(HostClass::Cluster)),
    ] {
        assert_eq!(class(&policy, &format!("https://{host}/v2/")), expected, "{host}");
    }
}

#[test]
fn what_can_be_allowed() {
    let allowed = |rule: &str, host: &str| class(&policy(&[rule]), &format!("https://{host}/")).is_none();
    for (rule, host) in [
        ("*", "127.0.0.1"),
        ("*", "registry.ns.svc"),
        ("loopback", "[::1]"),
        ("loopback", "localhost"),
        ("link-local", "169.254.1.1"),
        ("cluster", "registry.ns.svc"),
        ("cluster", "10.96.0.1"),
        ("registry.ns.svc", "registry.ns.svc:5000"),
        ("*.ns.svc", "a.ns.svc"),
        ("127.0.0.1", "127.0.0.1:5000"),
        ("127.0.0.1:5000", "127.0.0.1:5000"),
        ("[::1]:443", "[::1]"),
        ("[::1]", "[::1]:5000"),
        ("registry.ns.svc:5000", "registry.ns.svc:5000"),
        ("127.0.0.0/8", "127.9.9.9"),
        ("fe80::/10", "[fe80::7]"),
        ("0.0.0.0/0", "127.0.0.1"),
    ] {
        assert!(allowed(rule, host), "{rule} {host}");
    }
    for (rule, host) in [
        ("loopback", "169.254.169.254"),
        ("127.0.0.1", "127.0.0.2"),
        // Another port of an allowed host is another service.
        ("127.0.0.1:5000", "127.0.0.1:5001"),
        ("127.0.0.1:5000", "127.0.0.1"),
        ("[::1]:5000", "[::1]:5001"),
        ("registry.ns.svc:5000", "registry.ns.svc:5001"),
        ("link-local", "[fd00:ec2::254]"),
        ("registry.ns.svc", "other.ns.svc"),
        ("*.ns.svc", "ns.svc"),
        ("::/0", "127.0.0.1"),
    ] {
        assert!(!allowed(rule, host), "{rule} {host}");
    }
    for bad in [
        "",
        "a b",
        "10.0.0.0/33",
        "a/8",
        "*.",
        "host:",
        "host:70000",
        "[]",
        "[127.0.0.1]",
        "[::1",
        "*.ns.svc:5000",
        "10.0.0.0/8:5000",
    ] {
        assert!(bad.parse::<AllowedHost>().is_err(), "{bad}");
    }
    assert!(
        policy(&[])
            .allowing("[::1]:5000")
            .check(&"http://[::1]:5000/".parse().unwrap())
            .is_ok()
    );
    assert!(
        policy(&[])
            .allowing("[::1]:5000")
            .check(&"http://[::1]:5001/".parse().unwrap())
            .is_err()
    );
}
