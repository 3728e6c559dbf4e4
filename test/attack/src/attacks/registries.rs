//! Attacks by registries: wrong content, slow or endless transfers, and redirects.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::{StreamExt as _, stream};
use olm_harness::stub::{Answer, Image, RecordedRequest, answer};

use super::{catalog_image, plain_layer};
use crate::{Case, Expect, Scale, Subject};

pub(super) fn cases(scale: Scale) -> Vec<Case> {
    let image = catalog_image(&plain_layer([(
        "configs/catalog.yaml",
        b"schema: olm.package\nname: a\n".as_slice(),
    )]));
    let layer = |name: &str, words, lie: fn(&Image) -> Answer| {
        let image = image.clone();
        case(name, Expect::Refused(words), move |request| {
            if request.path.contains(&image.layer_path()) {
                return lie(&image);
            }
            image.serve(request)
        })
    };
    let to = |location: &'static str| move |_: &RecordedRequest| answer(307, &[("location", location)], "");
    let mut cases = vec![
        case(
            "unavailable",
            Expect::Refused("is unavailable, status 503"),
            |_| answer(503, &[("retry-after", "3600")], ""),
        ),
        layer("wrong-digest", "sent wrong content", |image| {
            answer(200, &[], vec![0; image.layer.len()])
        }),
        layer("too-much", "is larger than the limit of", |image| {
            answer(200, &[], vec![0; image.layer.len() + 1])
        }),
        layer("endless-body", "is larger than the limit of", |_| {
            let chunks = stream::repeat_with(|| Ok::<_, Infallible>(vec![0_u8; 64 << 10]));
            answer(200, &[], Body::from_stream(chunks))
        }),
        case("redirect-loop", Expect::Refused("too often"), |request| {
            answer(307, &[("location", &request.path)], "")
        }),
        case(
            "redirect-port",
            Expect::Refused("leads to a refused host"),
            to("http://127.0.0.1:9/"),
        ),
        case(
            "redirect-metadata",
            Expect::Refused("leads to a refused host"),
            to("http://169.254.169.254/"),
        ),
        case(
            "redirect-file",
            Expect::Refused("redirects"),
            to("file:///etc/passwd"),
        ),
        case(
            "endless-manifest",
            Expect::Refused("larger than the limit of 4194304"),
            |_| {
                let chunks = stream::repeat_with(|| Ok::<_, Infallible>(vec![b' '; 64 << 10]));
                answer(200, &[], Body::from_stream(chunks))
            },
        ),
        case("no-manifest", Expect::Refused("malformed"), |_| {
            answer(200, &[], "[".repeat(100_000))
        }),
    ];
    if scale == Scale::Full {
        cases.push(layer("too-little", "was complete", |_| answer(200, &[], "x")));
        cases.push(layer("dripping", "too slowly", |image| {
            let drops = stream::iter(image.layer.clone()).then(|byte| async move {
                tokio::time::sleep(Duration::from_millis(500)).await;
                Ok::<_, Infallible>(vec![byte])
            });
            answer(200, &[], Body::from_stream(drops))
        }));
    }
    cases
}

fn case(
    name: &str,
    expect: Expect,
    handler: impl Fn(&RecordedRequest) -> Answer + Send + Sync + 'static,
) -> Case {
    Case::new(name, Subject::Catalog(Arc::new(handler)), expect)
}
