//! Pages about catalogs: lists, packages, keywords and upgrade graphs, as HTML that needs no script.
//!
//! The crate is pure: values in, HTML out. Every text of a catalog is untrusted. Templates escape texts; Markdown passes
//! through a sanitiser; icons and pictures are files of their own, named by digests; names of packages become file names only
//! through [`Slug`]. [`Site`] is a whole site of static files.

mod catalogs;
mod icon;
mod keywords;
mod layout;
mod markdown;
mod package;
mod packages;
mod paths;
mod picture;
mod search;
mod site;
mod slug;
mod text;

pub use catalogs::CatalogView;
pub use icon::IconFile;
pub use layout::{POLICY, STYLE};
pub use markdown::markdown;
pub use package::package_page;
pub use packages::packages_page;
pub use picture::picture;
pub use search::{Hit, Search};
pub use site::{File, Site, SiteError};
pub use slug::Slug;
