//! Page as a browser's parser reads it.

use html5ever::tendril::TendrilSink as _;
use html5ever::{local_name, ns, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

/// Elements of the pages.
const ELEMENTS: [&str; 53] = [
    "html",
    "head",
    "meta",
    "title",
    "link",
    "body",
    "header",
    "nav",
    "main",
    "article",
    "section",
    "figure",
    "figcaption",
    "div",
    "span",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "p",
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "hr",
    "i",
    "kbd",
    "pre",
    "s",
    "strong",
    "sub",
    "sup",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "img",
    "details",
    "summary",
];
/// Attributes of the pages.
const ATTRIBUTES: [&str; 22] = [
    "type",
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "rel",
    "href",
    "src",
    "alt",
    "width",
    "height",
    "loading",
    "class",
    "id",
    "aria-label",
    "aria-current",
    "aria-labelledby",
    "aria-hidden",
    "role",
    "tabindex",
    "scope",
];
/// Elements and attributes that live pages have besides.
const LIVE_ELEMENTS: [&str; 7] = ["script", "form", "input", "label", "select", "option", "button"];
const LIVE_ATTRIBUTES: [&str; 17] = [
    "data-root",
    "data-watched",
    "defer",
    "open",
    "action",
    "method",
    "for",
    "value",
    "placeholder",
    "maxlength",
    "required",
    "autocomplete",
    "spellcheck",
    "selected",
    "aria-describedby",
    "aria-live",
    "title",
];
/// Elements and attributes of a drawing.
const SHAPES: [&str; 13] = [
    "html", "head", "body", "svg", "title", "defs", "marker", "path", "rect", "text", "g", "circle", "line",
];

/// Element with its attributes.
struct Element {
    name: String,
    is_html: bool,
    attributes: Vec<(String, String)>,
}

/// Elements of a parsed document.
pub(crate) struct Page {
    elements: Vec<Element>,
}

impl Page {
    pub(crate) fn parse(text: &str) -> Self {
        let dom = parse_document(RcDom::default(), html5ever::ParseOpts::default()).one(text);
        let mut elements = Vec::new();
        let mut open: Vec<Handle> = vec![dom.document.clone()];
        while let Some(node) = open.pop() {
            if let NodeData::Element {
                name,
                attrs,
                template_contents,
                ..
            } = &node.data
            {
                assert!(template_contents.borrow().is_none() || name.local == local_name!("template"));
                let attributes = attrs.borrow();
                let attributes = attributes
                    .iter()
                    .map(|attribute| (attribute.name.local.to_string(), attribute.value.to_string()));
                elements.push(Element {
                    name: name.local.to_string(),
                    is_html: name.ns == ns!(html),
                    attributes: attributes.collect(),
                });
            }
            open.extend(node.children.borrow().iter().cloned());
        }
        assert!(elements.len() > 3);
        Self { elements }
    }

    /// Returns what the page has beside the elements, attributes and addresses of the pages.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for element in &self.elements {
            let name = &element.name;
            if !element.is_html || !ELEMENTS.contains(&name.as_str()) {
                faults.push(format!("<{name}>"));
            }
            for (attribute, value) in &element.attributes {
                if !ATTRIBUTES.contains(&attribute.as_str()) || !is_harmless(name, attribute, value) {
                    faults.push(format!("<{name} {attribute}={value:?}>"));
                }
            }
            let kind = element.attribute("http-equiv").filter(|_| name == "meta");
            if kind.is_some_and(|kind| kind != "Content-Security-Policy") {
                faults.push(format!("<meta http-equiv={kind:?}>"));
            }
        }
        faults
    }

    /// Checks that a live page has nothing beside what such pages have: one script of our own, and forms to our own addresses.
    pub(crate) fn assert_live(&self, page: &str, payload: &str) {
        let mut scripts = Vec::new();
        for element in &self.elements {
            let name = element.name.as_str();
            assert!(
                element.is_html && (ELEMENTS.contains(&name) || LIVE_ELEMENTS.contains(&name)),
                "{page}: <{name}> of {payload}"
            );
            for (attribute, value) in &element.attributes {
                let known =
                    ATTRIBUTES.contains(&attribute.as_str()) || LIVE_ATTRIBUTES.contains(&attribute.as_str());
                let address = matches!(attribute.as_str(), "href" | "src" | "action");
                let is_link = name == "a" && is_foreign(value);
                assert!(
                    known && (!address || is_own(value) || is_link),
                    "{page}: <{name} {attribute}={value:?}> of {payload}"
                );
            }
            if name == "script" {
                scripts.push(element.attribute("src").unwrap_or_default());
            }
        }
        assert!(
            matches!(
                scripts.as_slice(),
                ["ui.js" | "../ui.js" | "../../ui.js" | "/ui.js"]
            ),
            "{page}: {scripts:?} of {payload}"
        );
    }

    /// Checks that the page has no fault, and one policy.
    pub(crate) fn assert_harmless(&self, path: &str, payload: &str) {
        assert_eq!(self.faults(), [""; 0], "{path}: {payload}");
        let policies = self
            .elements
            .iter()
            .filter(|element| element.attribute("http-equiv").is_some());
        assert_eq!(policies.count(), 1, "{path}: {payload}");
    }

    /// Checks that only shapes and texts occur.
    pub(crate) fn assert_drawing(&self, path: &str, payload: &str) {
        for element in &self.elements {
            let name = &element.name;
            assert!(SHAPES.contains(&name.as_str()), "{path}: <{name}> of {payload}");
            for (attribute, value) in &element.attributes {
                assert!(
                    !attribute.starts_with("on") && attribute != "href" && attribute != "style",
                    "{path}: {attribute} of {payload}"
                );
                assert!(!value.contains("javascript"), "{path}: {value} of {payload}");
            }
        }
    }

    /// Checks that a picture is one image in a frame of ours.
    pub(crate) fn assert_framed(&self, payload: &str) {
        let names: Vec<&str> = self
            .elements
            .iter()
            .map(|element| element.name.as_str())
            .collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["body", "head", "html", "image", "svg"], "{payload}");
        let image = self.elements.iter().find(|element| element.name == "image");
        let address = image
            .and_then(|image| image.attribute("href"))
            .unwrap_or_default();
        assert!(
            address.starts_with("data:image/svg+xml;base64,"),
            "{payload}: {address}"
        );
    }

    /// Returns the addresses that are not of other hosts and not of the page itself.
    pub(crate) fn own_addresses(&self) -> impl Iterator<Item = &str> {
        let attributes = self.elements.iter().flat_map(|element| &element.attributes);
        let addresses = attributes.filter(|(name, _)| name == "href" || name == "src");
        addresses
            .map(|(_, value)| value.as_str())
            .filter(|value| !is_foreign(value) && !value.starts_with('#'))
    }
}

impl Element {
    fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        attributes
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }
}

fn is_foreign(address: &str) -> bool {
    address.starts_with("https://") || address.starts_with("http://")
}

/// Returns true for an address of the server itself, with a query of escaped texts if it has one.
fn is_own(address: &str) -> bool {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '#');
    let escaped = |c: char| c.is_ascii_alphanumeric() || "-_.~*%+=&".contains(c);
    path.chars().all(plain) && !path.starts_with("//") && query.chars().all(escaped)
}

/// Returns false for an attribute with an address that is neither in the site nor a link to another host.
fn is_harmless(element: &str, attribute: &str, value: &str) -> bool {
    let own = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '#');
    let is_foreign_link = element == "a" && is_foreign(value);
    !matches!(attribute, "href" | "src") || value.chars().all(own) || is_foreign_link
}
