//! `search`: packages by words, best match first.

use olm_packages::{PackageListing, Rank, Texts};
use olm_text::name::CatalogName;
use olm_text::summary;
use serde::Serialize;

use crate::cli::SearchArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::Sources;
use crate::style::{Paint, Style};
use crate::table::Table;

/// Maximum length of a description on a terminal; `show` prints more.
const DESCRIPTION: usize = 72;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hit<'a> {
    catalog: &'a CatalogName,
    #[serde(flatten)]
    package: PackageListing,
    #[serde(skip)]
    rank: Rank,
}

/// Lists the packages that have every word in their name, keywords, provider or description.
pub(crate) async fn run(args: SearchArgs, style: Style) -> Result<Report, Failure> {
    let sources = Sources::open(&args.source).await?;
    let words: Vec<String> = args.words.iter().map(|word| word.to_lowercase()).collect();
    let mut hits = Vec::new();
    let mut unread = Vec::new();
    for catalog in &sources.catalogs {
        match catalog.packages().await {
            Ok(packages) => {
                hits.extend(packages.into_iter().filter_map(|package| {
                    Some(Hit {
                        catalog: &catalog.name,
                        rank: Texts::of(&package).rank(&words)?,
                        package,
                    })
                }));
            }
            Err(error) => unread.push((catalog.name.clone(), error)),
        }
    }
    hits.sort_by(|a, b| (a.rank, &a.package.name, a.catalog).cmp(&(b.rank, &b.package.name, b.catalog)));
    super::common::warn_unread(&mut unread, hits.is_empty())?;
    let mut table = Table::new(&["PACKAGE", "CATALOG", "DEFAULT CHANNEL", "DESCRIPTION"]);
    for hit in &hits {
        let package = &hit.package;
        table.row(
            Paint::Plain,
            [
                package.name.as_str(),
                hit.catalog,
                &package.default_channel,
                &summary(&package.description, style.at_most(DESCRIPTION)),
            ],
        );
    }
    let text = if table.is_empty() {
        "No package found.\n".to_owned()
    } else {
        table.text(style, "")
    };
    let value = serde_json::json!({"packages": hits});
    Ok(Report::new(value, text).positive(!hits.is_empty()))
}
