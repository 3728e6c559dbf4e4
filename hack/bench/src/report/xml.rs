//! Check for the tests of plots that a document is well-formed XML.

use markup5ever_rcdom::RcDom;
use xml5ever::driver::{XmlParseOpts, parse_document};
use xml5ever::tendril::TendrilSink as _;

/// Returns the errors of the parser; none for a well-formed document.
pub(crate) fn errors(text: &str) -> Vec<String> {
    let dom = parse_document(RcDom::default(), XmlParseOpts::default()).one(text);
    let errors = dom.errors.borrow();
    errors.iter().map(ToString::to_string).collect()
}
