//! `kubectl olm ui-server` on a real control plane and a real catalogd, with the rights of `config/optional/ui`: who sees what.

#[path = "../common/mod.rs"]
mod common;

mod cluster;
mod pages;
mod readers;
mod sessions;

use std::time::Duration;

use anyhow::Result;
use cluster::World;

const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn every_reader_sees_what_the_own_token_may_read() -> Result<()> {
    let world = World::start().await?;
    readers::the_servers_account_reads_nothing(&world).await?;
    readers::nobody_is_answered_without_a_token(&world).await?;
    readers::a_reader_sees_the_pages(&world).await?;
    readers::what_is_cached_is_for_those_who_may_read_it(&world).await?;
    readers::a_stranger_sees_nothing(&world).await?;
    readers::changes_reach_only_who_may_see_them(&world).await?;
    pages::are_usable_in_a_browser(&world).await?;
    sessions::begin_with_the_form_of_these_pages(&world).await?;
    sessions::are_apart(&world).await?;
    sessions::end_with_their_token(&world).await?;
    sessions::failed_attempts_are_limited(&world).await?;
    world.assert_log_without_tokens()
}
