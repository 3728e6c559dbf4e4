use proptest::prelude::*;

use super::*;

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn message(text: &str) -> String {
    text.parse::<Reference>().expect_err(text).to_string()
}

#[test]
fn accepts_explicit_references() {
    for text in [
        "quay.io/ns/app:v1".to_owned(),
        "docker.io/library/nginx:1".to_owned(),
        "localhost/app:1".to_owned(),
        "localhost:5000/app:1".to_owned(),
        "[::1]:5000/app:1".to_owned(),
        "127.0.0.1:5000/a/b/c_d__e-f--g.h:T_a.g-1".to_owned(),
        format!("quay.io/ns/app@sha256:{HEX}"),
        format!("quay.io/ns/app@sha512:{HEX}{HEX}"),
    ] {
        let reference: Reference = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(reference.to_string(), text);
    }
}

#[test]
fn splits_port_and_tag() {
    let reference: Reference = "127.0.0.1:5000/ns/app:v1".parse().unwrap();
    assert_eq!(reference.repository().domain(), "127.0.0.1:5000");
    assert_eq!(reference.repository().path(), "ns/app");
    assert_eq!(reference.version(), &TagOrDigest::Tag("v1".to_owned()));
    assert!(reference.canonical().is_none());
}

#[test]
fn refuses_with_upstreams_texts() {
    for short in [
        "nginx:1",
        "ns/app:1",
        "docker.io/nginx:1",
        "index.docker.io/library/nginx:1",
        "nginx",
    ] {
        assert_eq!(
            message(short),
            format!("error parsing image reference \"{short}\": repository name must be canonical")
        );
    }
    for bad in [
        "",
        ":",
        "quay.io/",
        "quay.io/a b:1",
        "quay.io/app:",
        "quay.io/app:-x",
        "quay.io//a:1",
        "quay.io/a@sha256:12",
        "-quay.io/a:1",
        "quay.io/a/../b:1",
        "quay.io:x/a:1",
        "http://quay.io/a:1",
    ] {
        assert_eq!(
            message(bad),
            format!("error parsing image reference \"{bad}\": invalid reference format")
        );
    }
    assert!(message("quay.io/App:1").contains("must be lowercase"));
    assert!(message(&format!("quay.io/a@sha256:{}", &HEX[..62])).contains("invalid checksum digest length"));
    assert!(message(&format!("quay.io/a@sha256:{}", HEX.to_uppercase())).contains("digest format"));
    assert!(message(&format!("quay.io/a@md5:{HEX}")).contains("unsupported digest algorithm"));
    assert!(message(&format!("quay.io/{}:1", "a".repeat(255))).contains("255 characters"));
    assert_eq!(
        message("quay.io/ns/app"),
        "error creating reference: Docker reference quay.io/ns/app is not for an unknown digest case; tag or digest is needed"
    );
    assert_eq!(
        message(&format!("quay.io/ns/app:1@sha256:{HEX}")),
        "error creating reference: Docker references with both a tag and digest are currently not supported"
    );
}

proptest! {
    #[test]
    fn any_text_is_taken_or_refused_and_never_changed(text in "\\PC{0,80}") {
        if let Ok(reference) = text.parse::<Reference>() {
            prop_assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn near_references_keep_their_parts_clean(text in "[a-zA-Z.:\\[\\]-]{1,12}(/[a-zA-Z0-9._-]{0,6}){0,3}(:[a-z.-]{0,4})?(@[a-z0-9:]{0,8})?") {
        if let Ok(reference) = text.parse::<Reference>() {
            let repository = reference.repository();
            prop_assert!(repository.path().split('/').all(|part| !part.is_empty() && part != "." && part != ".."));
            prop_assert!(!repository.domain().contains('/') && !repository.domain().contains('@'));
            prop_assert_eq!(reference.to_string(), text);
        }
    }
}
