//! Pages about catalogs and clusters as HTML that needs no script: lists, packages, keywords, upgrade graphs, extensions.
//!
//! The crate is pure: values in, HTML out. Every text of a catalog or a cluster is untrusted. Templates escape texts; Markdown passes
//! through a sanitiser; icons and pictures are files of their own, named by digests; names of packages become file names only
//! through [`Slug`]. [`Site`] is a whole site of static files; [`live`] has the pages about a cluster.

mod catalogs;
mod icon;
mod keywords;
mod layout;
pub mod live;
mod markdown;
mod package;
mod packages;
mod paths;
mod picture;
mod search;
mod site;
mod slug;
mod text;

pub use catalogs::{CatalogView, catalogs_page};
pub use icon::{IconFile, icon_name};
pub use layout::{ICON, LIVE_POLICY, Medium, POLICY, SCRIPT, STYLE};
pub use markdown::markdown;
pub use package::{Installed, package_page};
pub use packages::packages_page;
pub use picture::{has_picture, picture};
pub use search::{Hit, Search};
pub use site::{File, Site, SiteError};
pub use slug::Slug;
