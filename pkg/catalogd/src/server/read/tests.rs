use std::fmt::Write as _;

use super::*;
use crate::{
    server::large::LargeObjects,
    storage::{Filter, Origin, Store, ValidCatalogName},
};

/// Returns content of small and large objects of several packages.
fn content(folder: &std::path::Path) -> Arc<Generation> {
    let source = folder.join("source");
    std::fs::create_dir(&source).unwrap();
    let mut text = String::new();
    for number in 0..4000_usize {
        let filling = if number % 500 == 7 { 3 * CHUNK } else { number % 90 };
        let package = number / 2 % 3;
        let filling = "x".repeat(filling);
        writeln!(
            text,
            "{{\"schema\":\"s\",\"name\":\"n{number}\",\"package\":\"p{package}\",\"text\":\"{filling}\"}}"
        )
        .unwrap();
    }
    std::fs::write(source.join("catalog.json"), text).unwrap();
    let store = Store::open(folder.join("catalogs")).unwrap();
    let origin = Origin {
        requested: "r".to_owned(),
        resolved: "r@sha256:a".to_owned(),
        unpacked_at: 0,
        verified: None,
    };
    let name = ValidCatalogName::new("c").unwrap();
    store.store(&name, &source, origin, 0, &|| false).unwrap()
}

#[test]
fn memory_is_freed_between_the_chunks_of_a_projection() {
    let folder = tempfile::tempdir().unwrap();
    let generation = content(folder.path());
    let filter = Filter {
        package: Some("p1".to_owned()),
        ..Filter::default()
    };
    let source = |is_whole: bool| {
        let reader = if is_whole {
            ContentReader::whole(generation.clone())
        } else {
            let selection = generation.select(&filter).unwrap().unwrap();
            ContentReader::selected(generation.clone(), selection)
        };
        let projection = Projection::new(Some("name"), None).unwrap();
        Source::new(reader, projection, LargeObjects::default().nothing())
    };
    for is_whole in [true, false] {
        let (mut expected, abandoned) = (Vec::new(), Abandoned::default());
        while source(is_whole)
            .fill(&mut expected, usize::MAX, &abandoned)
            .unwrap()
        {}
        assert!(expected.len() > 10_000);
        for step in [1, 100, 5000] {
            let (mut source, mut found) = (source(is_whole), Vec::new());
            loop {
                let enough = found.len() + step;
                let more = source.fill(&mut found, enough, &abandoned).unwrap();
                source.release();
                let Source::Projected { lines, .. } = &source else {
                    panic!("the source is not projected");
                };
                assert_eq!(lines.bytes.capacity(), 0);
                if !more {
                    break;
                }
            }
            assert!(found == expected, "steps of {step} bytes");
        }
    }
}

#[tokio::test]
async fn large_objects_are_projected_again_when_their_memory_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let generation = content(folder.path());
    let filter = Filter {
        package: Some("p1".to_owned()),
        ..Filter::default()
    };
    let source = |is_whole: bool, large: &LargeObjects| {
        let reader = if is_whole {
            ContentReader::whole(generation.clone())
        } else {
            let selection = generation.select(&filter).unwrap().unwrap();
            ContentReader::selected(generation.clone(), selection)
        };
        Source::new(
            reader,
            Projection::new(None, Some("name")).unwrap(),
            large.nothing(),
        )
    };
    let abandoned = Abandoned::default();
    for is_whole in [true, false] {
        let mut expected = Vec::new();
        source(is_whole, &LargeObjects::default())
            .fill(&mut expected, usize::MAX, &abandoned)
            .unwrap();
        let large = LargeObjects::default();
        // All memory is taken, up to a large object that is just too large.
        let mut others = large.nothing();
        others.cover(32 * 1024 * 1024 - 3 * CHUNK).unwrap();
        let (mut source, mut found, mut refused) = (source(is_whole, &large), Vec::new(), 0);
        loop {
            let mut chunk = Vec::new();
            let filled = source.fill(&mut chunk, CHUNK / 2, &abandoned);
            source.release();
            let more = match filled {
                Err(ReadError::TooManyLarge { size }) => {
                    refused += 1;
                    assert_eq!(chunk.capacity(), 0);
                    let taken = others.take(usize::MAX);
                    others = large.nothing();
                    drop(taken);
                    source.wait_for_memory(size).await;
                    true
                }
                other => other.unwrap(),
            };
            if let Some(permits) = source.take_memory(chunk.len()) {
                assert_eq!(permits.num_permits(), chunk.len());
                drop(permits);
                others.cover(32 * 1024 * 1024 - 3 * CHUNK).unwrap();
            }
            found.append(&mut chunk);
            if !more {
                break;
            }
        }
        assert!(found == expected);
        assert!(refused > 1, "{refused}");
    }
}
