//! Live pages about a hostile cluster: every payload in every text.

use olm_status::overview::{Mood, Overview, Remark, StateWord};
use olm_ui::live::{
    AccountView, ChoiceView, ClusterUpgradeView, ExtensionView, Fact, PlanView, Row, TableView, WhatIf,
    account_page, cluster_upgrade_page, error_page, extension_page, extensions_page, plan_page, sign_in_page,
    what_if_page,
};
use olm_ui::{Installed, Medium, Search, catalogs_page, package_page, packages_page};

use crate::common::{TODAY, profiles, view};
use crate::page::Page;
use crate::payloads::{PAYLOADS, everywhere};

fn table(text: &str) -> TableView {
    TableView {
        title: text.to_owned(),
        heads: vec![text.to_owned(), "B".to_owned()],
        rows: vec![Row {
            mood: Mood::Bad,
            cells: vec![text.to_owned(), text.to_owned()],
        }],
        more: 3,
    }
}

fn overview(text: &str) -> Overview {
    Overview {
        name: text.to_owned(),
        package: text.to_owned(),
        version: text.into(),
        bundle: text.to_owned(),
        catalog: text.to_owned(),
        namespace: text.to_owned(),
        state: StateWord {
            word: text.to_owned(),
            mood: Mood::Waiting,
        },
        held_back: text.to_owned(),
        remarks: vec![Remark {
            about: text.to_owned(),
            message: text.to_owned(),
        }],
    }
}

fn choice(text: &str) -> ChoiceView {
    ChoiceView {
        facts: vec![Fact {
            mood: Mood::Good,
            name: "Package",
            text: text.to_owned(),
        }],
        catalogs: vec![table(text)],
        notes: vec![text.to_owned()],
        suggestion: text.to_owned(),
    }
}

fn what_if(text: &str) -> WhatIf {
    WhatIf {
        package: text.to_owned(),
        installed: text.to_owned(),
        range: text.to_owned(),
        channels: text.to_owned(),
        self_certified: true,
    }
}

/// Returns every live page with `text` in every field, readable and not.
fn pages(text: &str) -> Vec<(&'static str, String)> {
    let bad = || text.to_owned();
    let extension = ExtensionView {
        overview: overview(text),
        conditions: table(text),
        phases: Ok(vec![table(text)]),
        revisions: Ok(table(text)),
        events: Ok(table(text)),
        choice: Ok(choice(text)),
        request: Some(what_if(text)),
    };
    let unread = ExtensionView {
        phases: Err(bad()),
        revisions: Err(bad()),
        events: Err(bad()),
        choice: Err(bad()),
        ..extension.clone()
    };
    let plan = PlanView {
        facts: choice(text).facts,
        sections: vec![table(text)],
    };
    let upgrade = ClusterUpgradeView {
        current: bad(),
        target: bad(),
        free: false,
        tables: vec![table(text)],
        remarks: vec![bad()],
    };
    let account = AccountView {
        user: Ok(choice(text).facts),
        rights: table(text),
        signs_out: true,
    };
    let nobody = AccountView {
        user: Err(bad()),
        ..account.clone()
    };
    let catalog = view(text, profiles(&everywhere(text)));
    let search = Search::new([&catalog]);
    let installed = [Installed {
        extension: bad(),
        version: bad(),
    }];
    let remarks = [bad()];
    let package = package_page(
        Medium::Live,
        catalog.name(),
        &catalog.packages()[0],
        &installed,
        TODAY.parse().unwrap(),
    );
    vec![
        ("extensions", extensions_page(&[overview(text)]).into_string()),
        ("extension", extension_page(&extension).into_string()),
        ("unread extension", extension_page(&unread).into_string()),
        ("plan", plan_page(text, &Ok(plan)).into_string()),
        ("no plan", plan_page(text, &Err(bad())).into_string()),
        (
            "packages",
            packages_page(text, &search.find(""), &remarks).into_string(),
        ),
        ("package", package.into_string()),
        (
            "catalogs",
            catalogs_page(Medium::Live, &[&catalog], &remarks).into_string(),
        ),
        (
            "what if",
            what_if_page(&what_if(text), Some(&Ok(choice(text)))).into_string(),
        ),
        (
            "no answer",
            what_if_page(&what_if(text), Some(&Err(bad()))).into_string(),
        ),
        (
            "cluster upgrade",
            cluster_upgrade_page(text, &Ok(upgrade)).into_string(),
        ),
        (
            "no cluster upgrade",
            cluster_upgrade_page(text, &Err(bad())).into_string(),
        ),
        ("error", error_page("Not found", text).into_string()),
        ("account", account_page(&account).into_string()),
        ("nobody", account_page(&nobody).into_string()),
        ("sign in", sign_in_page(text, text).into_string()),
    ]
}

#[test]
fn payloads_in_every_field_of_live_pages_stay_text() {
    for payload in PAYLOADS {
        for (name, page) in pages(payload) {
            Page::parse(&page).assert_live(name, payload);
        }
    }
}

/// Every table, fact and remark of an extension is on its page, and what cannot be read says why.
#[test]
fn live_pages_show_what_they_are_given() {
    for (name, page) in pages("kite-7") {
        assert!(page.contains("kite-7"), "{name}");
        assert!(page.starts_with("<!DOCTYPE html>"), "{name}");
    }
    let all = pages("kite-7");
    let page = |wanted: &str| &all.iter().find(|(name, _)| *name == wanted).unwrap().1;
    assert!(page("unread extension").contains("Not shown: kite-7"));
    assert!(page("extension").contains("../what-if.html?package=kite-7&amp;installed=kite-7"));
    assert!(page("extension").contains("../packages/kite-7/kite-7.html"));
    assert!(page("package").contains("../../extensions/kite-7.html"));
    assert!(page("package").contains("?extension=kite-7"));
    assert!(
        page("extensions").contains("1 extension: 1 not ready, 1 in need of somebody, 1 with an upgrade")
    );
}
