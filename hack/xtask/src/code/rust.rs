//! Splits Rust source into code and tests. This module is pure.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Attribute, Item};

/// Items of a file as normalized text, without comments and doc comments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    /// Items outside of test modules, without imports.
    pub(super) code: Vec<String>,
    /// Imports outside of test modules.
    imports: Vec<String>,
    /// Items that are compiled only for tests, without imports.
    pub(super) tests: Vec<String>,
    /// Paths, without `.rs`, of test modules in files of their own.
    pub(super) test_modules: Vec<String>,
}

impl Split {
    /// Returns the whole code without tests, as text.
    pub(super) fn all(&self) -> String {
        format!("{}\n{}", self.imports.join("\n"), self.code.join("\n"))
    }
}

/// Splits the file at `path`; `None` if the text is not Rust.
pub(super) fn split(path: &str, text: &str) -> Option<Split> {
    let file = syn::parse_file(text).ok()?;
    let mut split = Split::default();
    for item in file.items {
        if attributes(&item).iter().any(is_for_tests) {
            if let Item::Mod(module) = &item
                && module.content.is_none()
            {
                split
                    .test_modules
                    .push(module_path(path, &module.ident.to_string(), &module.attrs));
            }
            tests(item, &mut split.tests);
        } else if matches!(item, Item::Use(_)) {
            split.imports.push(normalized(&item));
        } else {
            split.code.push(normalized(&item));
        }
    }
    Some(split)
}

/// Adds the items of a test module, or a single item that is compiled only for tests.
fn tests(item: Item, found: &mut Vec<String>) {
    match item {
        Item::Mod(module) => {
            let items = module.content.map(|(_, items)| items).unwrap_or_default();
            for item in items {
                tests(item, found);
            }
        }
        // A new test may need a new import, and imports check nothing.
        Item::Use(_) => {}
        item => found.push(normalized(&item)),
    }
}

/// Returns the path, without `.rs`, of the file of a module that is declared in the file `parent`.
fn module_path(parent: &str, name: &str, attributes: &[Attribute]) -> String {
    let (folder, file) = parent.rsplit_once('/').unwrap_or(("", parent));
    let given = attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => {
            let text = pair.value.to_token_stream().to_string();
            Some(text.trim_matches('"').trim_end_matches(".rs").to_owned())
        }
        _ => None,
    });
    if let Some(given) = given {
        return format!("{folder}/{given}");
    }
    match file {
        "mod.rs" | "lib.rs" | "main.rs" => format!("{folder}/{name}"),
        _ => format!("{folder}/{}/{name}", file.trim_end_matches(".rs")),
    }
}

/// Returns true for the attribute `cfg(test)`.
fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args::<syn::Path>()
            .is_ok_and(|path| path.is_ident("test"))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the item as text that does not depend on formatting and doc comments.
fn normalized(item: &Item) -> String {
    without_docs(item.to_token_stream()).to_string()
}

/// Returns the tokens without doc comments. A doc comment is an attribute in the form of tokens.
fn without_docs(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_doc(&group) => {
                // The tokens before the group are `#` or `#!`.
                while matches!(kept.last(), Some(TokenTree::Punct(sign)) if matches!(sign.as_char(), '#' | '!'))
                {
                    kept.pop();
                }
            }
            TokenTree::Group(group) => {
                let inner = without_docs(group.stream());
                kept.push(proc_macro2::Group::new(group.delimiter(), inner).into());
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

fn is_doc(group: &proc_macro2::Group) -> bool {
    let mut tokens = group.stream().into_iter();
    group.delimiter() == Delimiter::Bracket
        && matches!(tokens.next(), Some(TokenTree::Ident(ident)) if ident == "doc")
        && matches!(tokens.next(), Some(TokenTree::Punct(sign)) if sign.as_char() == '=')
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "use a::b;\n/// Doc.\npub fn f(x: u8) -> u8 { x }\n";

    fn with(more: &str) -> Split {
        split("pkg/x/src/y.rs", &format!("{CODE}{more}")).unwrap()
    }

    #[test]
    fn comments_documents_and_format_are_no_code() {
        let other = "use a::b;\n\n//! x\n".replace("//! x", "// x")
            + "/** Other. */ pub fn f(x: u8)\n-> u8 {\n    // Why.\n    x }";
        assert_eq!(split("pkg/x/src/y.rs", &other).unwrap(), with(""));
        assert_ne!(with("").all(), with("fn g() {}").all());
    }

    #[test]
    fn every_item_of_a_test_module_counts_by_itself() {
        let one = with("#[cfg(test)] mod tests { use super::*; #[test] fn a() { f(1); } }");
        let two = with("#[cfg(test)] mod tests { use super::f; #[test] fn b() {} #[test] fn a() { f(1); } }");
        assert_eq!(one.all(), two.all());
        assert_eq!(one.all(), with("").all());
        assert_eq!(one.tests.len(), 1);
        assert!(two.tests.contains(&one.tests[0]));
        assert_eq!(with("#[cfg(test)] fn helper() {}").tests.len(), 1);
    }

    #[test]
    fn modules_of_tests_lead_to_their_files() {
        let modules = |path: &str, text: &str| split(path, text).unwrap().test_modules;
        let text = "#[cfg(test)] mod tests;";
        assert_eq!(modules("pkg/x/src/lib.rs", text), ["pkg/x/src/tests"]);
        assert_eq!(modules("pkg/x/src/y.rs", text), ["pkg/x/src/y/tests"]);
        let given = "#[cfg(test)] #[path = \"y_tests.rs\"] mod tests;";
        assert_eq!(modules("pkg/x/src/y.rs", given), ["pkg/x/src/y_tests"]);
        assert_eq!(modules("pkg/x/src/y.rs", "mod code;"), [""; 0]);
    }

    #[test]
    fn a_text_that_is_no_rust_is_not_split() {
        assert_eq!(split("a.rs", "fn {"), None);
    }
}
