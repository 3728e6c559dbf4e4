//! Markdown of strangers as safe HTML.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use maud::{Markup, PreEscaped};
use olm_text::{cut, printable};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::text::address;

/// Longest description that is rendered, in bytes.
const LIMIT: usize = 40 * 1024;

/// Maximum depth of elements in elements: parsers of HTML take quadratic time for deep ones.
const DEPTH: usize = 32;

/// Elements of a description. Headings start below those of the page.
const ELEMENTS: [&str; 32] = [
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "dd",
    "del",
    "dl",
    "dt",
    "em",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "kbd",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

/// Elements whose text is dropped with them.
const DROPPED: [&str; 12] = [
    "script", "style", "title", "textarea", "noscript", "iframe", "svg", "math", "template", "xmp", "select",
    "object",
];

/// Allow-list of elements, attributes and schemes of links.
/// Every list is set: the defaults of the library are wider.
static SANITISER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::new();
    builder
        .tags(HashSet::from(ELEMENTS))
        .clean_content_tags(HashSet::from(DROPPED))
        .tag_attributes(HashMap::from([("a", HashSet::from(["href"]))]))
        .generic_attributes(HashSet::new())
        .url_schemes(HashSet::from(["http", "https"]))
        .url_relative(UrlRelative::Deny)
        .attribute_filter(|_, attribute, value| match attribute {
            // The address as a browser reads it: `https:/path` as it stands is a path of the page's own host.
            "href" => address(value).map(Cow::Owned),
            _ => Some(value.into()),
        })
        .link_rel(Some("noopener noreferrer nofollow"));
    builder
});

/// Returns Markdown as HTML of plain elements and links to other hosts. Pictures become their text; HTML in the Markdown is
/// held to the same list of elements.
pub fn markdown(text: &str) -> Markup {
    let text = text.replace("\r\n", "\n");
    let text = cut(&text, LIMIT);
    let text = printable(&text);
    let parser = || Parser::new_ext(&text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let levels = parser().filter_map(|event| match event {
        Event::Start(Tag::Heading { level, .. }) => Some(level),
        _ => None,
    });
    let highest = levels.min().unwrap_or(HeadingLevel::H1);
    let mut depth = 0;
    let events = parser()
        .filter(|event| is_shallow(event, &mut depth))
        .filter_map(|event| on_page(event, highest));
    let mut unsafe_html = String::new();
    html::push_html(&mut unsafe_html, events);
    PreEscaped(SANITISER.clean(&unsafe_html).to_string())
}

/// Returns the text of the first paragraph of Markdown, without its markup.
pub(crate) fn first_paragraph(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let (mut is_open, mut pictures) = (false, 0_usize);
    let mut found = String::new();
    for event in Parser::new(&cut(&text, LIMIT)) {
        match event {
            Event::Start(Tag::Paragraph) => is_open = true,
            Event::End(TagEnd::Paragraph) if !found.trim().is_empty() => break,
            Event::Start(Tag::Image { .. }) => pictures += 1,
            Event::End(TagEnd::Image) => pictures = pictures.saturating_sub(1),
            Event::Text(text) | Event::Code(text) if is_open && pictures == 0 => found.push_str(&text),
            Event::SoftBreak | Event::HardBreak if is_open => found.push(' '),
            _ => {}
        }
    }
    found
}

/// Returns false for the start and the end of an element below too many others; counts the open ones in `depth`.
fn is_shallow(event: &Event<'_>, depth: &mut usize) -> bool {
    match event {
        Event::Start(_) => {
            *depth += 1;
            *depth <= DEPTH
        }
        Event::End(_) => {
            *depth = depth.saturating_sub(1);
            *depth < DEPTH
        }
        _ => true,
    }
}

/// Returns an event as it is rendered: headings below those of the page, of which `highest` becomes the first; pictures without
/// their frame.
fn on_page(event: Event<'_>, highest: HeadingLevel) -> Option<Event<'_>> {
    match event {
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        Event::Start(Tag::Heading { level, .. }) => Some(Event::Start(Tag::Heading {
            level: below(level, highest),
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        })),
        Event::End(TagEnd::Heading(level)) => Some(Event::End(TagEnd::Heading(below(level, highest)))),
        event => Some(event),
    }
}

/// Returns the level of a heading if `highest` is the third.
fn below(level: HeadingLevel, highest: HeadingLevel) -> HeadingLevel {
    match (level as usize).saturating_sub(highest as usize) {
        0 => HeadingLevel::H3,
        1 => HeadingLevel::H4,
        2 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::{first_paragraph, markdown};

    #[test]
    fn markdown_becomes_plain_elements() {
        let html = markdown(
            "# Kite\r\n\r\nFlies *high*, ![a kite](https://e.org/k.png)\n\n- [home](https://e.org)\n\
             - [x](javascript:1)\n\n|a|b|\n|-|-|\n|1|2|",
        )
        .into_string();
        assert_eq!(
            html,
            "<h3>Kite</h3>\n<p>Flies <em>high</em>, a kite</p>\n<ul>\n\
             <li><a href=\"https://e.org/\" rel=\"noopener noreferrer nofollow\">home</a></li>\n\
             <li><a rel=\"noopener noreferrer nofollow\">x</a></li>\n</ul>\n\
             <table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td>2</td></tr>\n</tbody></table>\n"
        );
    }

    #[test]
    fn the_first_paragraph_has_no_markup() {
        for (text, first) in [
            (
                "# Kite\n\n![logo](l.png)\n\nFlies *high* on [wind](https://e.org)\nwith `rope`.\n\nMore.",
                "Flies high on wind with rope.",
            ),
            (
                "# Kite\n\n[![](b.svg)](https://e.org)\n\nFlies <b>high</b>\r\nsafely.",
                "Flies high safely.",
            ),
            ("Flies", "Flies"),
            ("# Kite", ""),
            ("", ""),
        ] {
            assert_eq!(first_paragraph(text), first);
        }
    }

    #[test]
    fn html_in_markdown_is_held_to_the_list() {
        let html = markdown(
            "<h1 id=x style='color:red' onclick=a()>A</h1><div class=c>b</div><img src=x onerror=a()><br>\n\n\
             <svg><p>q</p></svg>",
        )
        .into_string();
        assert!(
            !html.contains(['=', 'x']) && html.contains("<br>") && html.contains('b'),
            "{html}"
        );
    }

    #[test]
    fn headings_start_below_those_of_the_page() {
        let html = markdown("### a\n\n#### b\n\n###### c").into_string();
        assert_eq!(html, "<h3>a</h3>\n<h4>b</h4>\n<h6>c</h6>\n");
    }

    #[test]
    fn links_keep_only_addresses_of_pages() {
        let link = |attributes: &str| markdown(&format!("<a {attributes}>x</a>")).into_string();
        let rel = "rel=\"noopener noreferrer nofollow\"";
        assert_eq!(
            link("href='http://e.org' title=t lang=de target=_blank"),
            format!("<p><a href=\"http://e.org/\" {rel}>x</a></p>\n")
        );
        // A browser would take this for a path of the page's own host.
        assert_eq!(
            link("href='https:/e.org'"),
            format!("<p><a href=\"https://e.org/\" {rel}>x</a></p>\n")
        );
        for refused in [
            "mailto:a@e.org",
            "ftp://e.org",
            "/a",
            "a",
            "//e.org",
            "data:x",
            "https://a:b@e.org",
            "#main",
        ] {
            assert_eq!(
                link(&format!("href='{refused}'")),
                format!("<p><a {rel}>x</a></p>\n"),
                "{refused}"
            );
        }
    }

    #[test]
    fn deep_and_long_texts_end() {
        for text in [
            ">".repeat(60_000),
            "<div>".repeat(12_000),
            "<b>".repeat(20_000),
            "<table><tr><td>".repeat(4_000),
            "[".repeat(60_000),
            "*a_".repeat(20_000),
            "`a``".repeat(15_000),
            "- ".repeat(30_000),
            "<!--".repeat(15_000),
            "é".repeat(60_000),
        ] {
            assert!(markdown(&text).into_string().len() < 8 << 20);
        }
    }
}
