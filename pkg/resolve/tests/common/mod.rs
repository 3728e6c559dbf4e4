//! Small random catalogs and requests, drawn from a tape of bytes: shorter tapes and smaller bytes give simpler
//! cases, so that shrinking the tape shrinks the case.

use olm_fbc::lifecycle::Lifecycles;
use olm_fbc::{
    Bundle, Channel, DeprecationEntry, Deprecations, Entry, Package, PackageContent, Property, Reference,
    schema,
};
use olm_resolve::{CatalogInput, CatalogLookup, Installed, Request, Selection};
use olm_version::RequestedRange;
use serde_json::json;
use std::sync::Arc;

/// The versions of the bundles `p.0`, `p.1`, ...
pub(crate) const VERSIONS: [&str; 9] = [
    "1.0.0",
    "1.0.1",
    "1.1.0",
    "1.1.0+1",
    "1.1.0+2",
    "2.0.0-rc.1",
    "2.0.0",
    "3.0.0",
    "broken",
];
const CHANNELS: [&str; 3] = ["a", "b", "c"];
const CATALOGS: [&str; 3] = ["x", "y", "z"];

/// A case to resolve.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) request: Request,
    pub(crate) catalogs: Vec<CatalogInput>,
    pub(crate) wanted: Option<String>,
}

struct Tape<'a>(std::slice::Iter<'a, u8>);

impl Tape<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or_default()
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    /// True in one of `odds` cases, and never at the tape's end.
    fn one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == odds - 1
    }

    fn of<'t>(&mut self, items: &[&'t str]) -> &'t str {
        items[self.below(items.len())]
    }
}

/// Most bytes that a case reads.
pub(crate) const TAPE: usize = 160;

/// The case that `tape` stands for.
pub(crate) fn case(tape: &[u8]) -> Case {
    let mut tape = Tape(tape.iter());
    let request = request(&mut tape);
    let wanted = match tape.below(4) {
        0 => None,
        1 => Some(bundle(tape.below(VERSIONS.len()))),
        _ => Some(tape.of(&VERSIONS).to_owned()),
    };
    let count = 1 + tape.below(3);
    let catalogs = CATALOGS
        .iter()
        .take(count)
        .map(|name| catalog(&mut tape, name))
        .collect();
    Case {
        request,
        catalogs,
        wanted,
    }
}

fn request(tape: &mut Tape<'_>) -> Request {
    let version = match tape.below(4) {
        0 | 1 => None,
        2 => Some(tape.of(&["1.x", ">=2.0.0", "1.0.1", "2.0.0-rc.1", "<2", ">=9", "no range"])),
        _ => Some(tape.of(&["", "1.1.0", ">=1.0.0-0", "^1.0.0"])),
    };
    let channels = match tape.below(5) {
        0..3 => Vec::new(),
        3 => vec![tape.of(&["a", "b", "nowhere"]).to_owned()],
        _ => vec!["b".to_owned(), "c".to_owned()],
    };
    let installed = (tape.below(3) > 0).then(|| {
        let at = tape.below(VERSIONS.len() - 1);
        Installed {
            name: bundle(at).into(),
            version: if tape.one_in(32) { "nope" } else { VERSIONS[at] }.into(),
            catalog: match tape.below(6) {
                0..2 => None,
                2 => Some("gone".into()),
                at => Some(CATALOGS[at - 3].into()),
            },
        }
    });
    Request {
        package: "p".into(),
        range: version.and_then(RequestedRange::new),
        channels,
        self_certified: tape.one_in(5),
        installed,
        release_support: tape.one_in(4),
        selection: if tape.one_in(4) {
            Selection::Upstream
        } else {
            Selection::Ours
        },
        similar: Vec::new(),
    }
}

fn bundle(at: usize) -> String {
    format!("p.{at}")
}

fn catalog(tape: &mut Tape<'_>, name: &str) -> CatalogInput {
    let priority = [0, 1, 2][tape.below(3)];
    let lookup = match tape.below(12) {
        9 => CatalogLookup::NoSuchPackage,
        10 => CatalogLookup::NotServing,
        11 => CatalogLookup::Failed("refused".to_owned()),
        _ => CatalogLookup::Found(Arc::new(content(tape))),
    };
    CatalogInput {
        name: name.into(),
        priority,
        lookup,
    }
}

fn content(tape: &mut Tape<'_>) -> PackageContent {
    let (low, high) = (tape.byte(), tape.byte());
    let there: Vec<usize> = (0..VERSIONS.len())
        .filter(|at| if *at < 8 { low >> at & 1 == 1 } else { high > 200 })
        .collect();
    let needy = tape.byte();
    let bundles = there.iter().map(|at| {
        let mut properties = vec![property(
            "olm.package",
            &json!({"packageName": "p", "version": VERSIONS[*at]}),
        )];
        if needy > 160 && usize::from(needy & 7) == *at {
            properties.push(property("olm.gvk.required", &json!({})));
        }
        Bundle {
            name: bundle(*at),
            image: format!("registry.test/p:{at}"),
            properties,
            min_kube_version: None,
        }
    });
    let bundles = bundles.collect();
    let channels = CHANNELS
        .iter()
        .take(tape.below(4))
        .map(|name| channel(tape, name, &there));
    let channels = channels.collect();
    let deprecated = tape.byte() & tape.byte();
    let entries: Vec<_> = there
        .iter()
        .filter(|at| **at < 8 && deprecated >> **at & 1 == 1)
        .map(|at| DeprecationEntry {
            reference: Reference {
                schema: schema::BUNDLE.to_owned(),
                name: bundle(*at),
            },
            message: "old".to_owned(),
        })
        .collect();
    PackageContent {
        name: "p".to_owned(),
        package: Some(Package {
            name: "p".to_owned(),
            default_channel: String::new(),
            description: String::new(),
        }),
        channels,
        bundles,
        deprecations: if entries.is_empty() {
            Vec::new()
        } else {
            vec![Deprecations { entries }]
        },
        lifecycles: Lifecycles::default(),
    }
}

fn property(type_: &str, value: &serde_json::Value) -> Property {
    Property {
        type_: type_.to_owned(),
        value: value.clone(),
    }
}

fn channel(tape: &mut Tape<'_>, name: &str, there: &[usize]) -> Channel {
    let listed = tape.byte();
    let listed = there.iter().filter(|at| **at >= 8 || listed >> **at & 1 == 1);
    let mut entries = Vec::new();
    for at in listed {
        let replaces = match tape.below(3) {
            0 => String::new(),
            1 if *at > 0 => bundle(at - 1),
            _ => bundle(tape.below(VERSIONS.len())),
        };
        let skips = if tape.one_in(4) {
            vec![bundle(tape.below(VERSIONS.len()))]
        } else {
            Vec::new()
        };
        let skip_range = if tape.one_in(4) {
            tape.of(&["<2.0.0", ">=1.0.0 <1.1.0", "<v2.0.0", "1.1.0"])
        } else {
            ""
        };
        entries.push(Entry {
            name: bundle(*at),
            replaces,
            skips,
            skip_range: skip_range.to_owned(),
        });
    }
    Channel {
        name: name.to_owned(),
        entries,
    }
}
