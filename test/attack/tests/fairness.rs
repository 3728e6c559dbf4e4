//! Test that slow registries do not delay the work for others.

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_does_not_wait_for_others_registries() {
    let fair = Box::pin(olm_attack::fairness()).await.unwrap();
    println!("{fair:?}");
}
