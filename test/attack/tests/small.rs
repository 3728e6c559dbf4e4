//! A few small attacks of every class on the controllers of this build.

use olm_attack::{Scale, Selection};

#[tokio::test(flavor = "multi_thread")]
async fn every_attack_is_refused_with_a_message_and_affects_no_others() {
    let report = Box::pin(olm_attack::run(Scale::Small, None, &Selection::default()))
        .await
        .unwrap();
    println!("{report}");
    report.check().unwrap();
}
