//! Slow registries do not delay other work.

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_does_not_wait_for_others_registries() {
    let fair = Box::pin(olm_attack::fairness()).await.unwrap();
    println!("{fair:?}");
}
