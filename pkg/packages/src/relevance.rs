//! Ranking of search results.

use std::cmp::Reverse;

use crate::listing::PackageListing;

/// Maximum number of counted mentions in a description.
const MENTIONS: usize = 100;

/// Sort key of a result, best first: the sum of the places of its words, then the number of mentions in the
/// description.
pub type Rank = (usize, Reverse<usize>);

/// Match of a word in a text, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    Word,
    Prefix,
    Part,
}

/// Returns the words of a query in lower case.
pub fn words(query: &str) -> Vec<String> {
    query.split_whitespace().map(str::to_lowercase).collect()
}

/// Searchable texts of a package, in lower case.
#[derive(Clone, Debug)]
pub struct Texts {
    name: String,
    display_name: String,
    keywords: Vec<String>,
    provider: String,
    description: String,
}

impl Texts {
    /// Returns the texts of a package.
    pub fn of(package: &PackageListing) -> Self {
        Self {
            name: package.name.to_lowercase(),
            display_name: package.display_name.to_lowercase(),
            keywords: package.keywords.iter().map(|word| word.to_lowercase()).collect(),
            provider: package.provider.to_lowercase(),
            description: package.description.to_lowercase(),
        }
    }

    /// Returns the rank of the package; none if it lacks a word. `words` are in lower case.
    pub fn rank(&self, words: &[String]) -> Option<Rank> {
        let places: Option<Vec<usize>> = words.iter().map(|word| self.place(word)).collect();
        let mentions = words.iter().map(|word| self.mentions(word)).sum();
        Some((places?.iter().sum(), Reverse(mentions)))
    }

    /// Returns the best place of the word: from 0, the whole name, to 7, a part of any word.
    fn place(&self, word: &str) -> Option<usize> {
        let in_name = best_match(&self.name, word);
        let display = best_match(&self.display_name, word);
        let keyword = self
            .keywords
            .iter()
            .filter_map(|text| best_match(text, word))
            .min();
        let provider = best_match(&self.provider, word);
        let description = best_match(&self.description, word);
        let is_word = |fit: Option<Match>| fit.is_some_and(|fit| fit < Match::Part);
        let places = [
            self.name == word,
            self.name.starts_with(word),
            in_name == Some(Match::Word),
            is_word(in_name) || display == Some(Match::Word),
            is_word(keyword),
            is_word(provider),
            is_word(description),
            [in_name, display, keyword, provider, description]
                .iter()
                .any(Option::is_some),
        ];
        places.iter().position(|found| *found)
    }

    fn mentions(&self, word: &str) -> usize {
        let found = self.description.matches(word);
        found.take(MENTIONS).count()
    }
}

/// Returns the best match of `word` in `text`.
fn best_match(text: &str, word: &str) -> Option<Match> {
    let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let places = text.match_indices(word).map(|(at, found)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text
            .get(at + found.len()..)
            .and_then(|after| after.chars().next());
        match (joins(before), joins(after)) {
            (false, false) => Match::Word,
            (false, true) => Match::Prefix,
            (true, _) => Match::Part,
        }
    });
    places.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(
        name: &str,
        display_name: &str,
        keywords: &[&str],
        provider: &str,
        description: &str,
    ) -> PackageListing {
        PackageListing {
            name: name.into(),
            default_channel: String::new(),
            description: description.to_owned(),
            display_name: display_name.to_owned(),
            keywords: keywords.iter().map(|&word| word.to_owned()).collect(),
            provider: provider.to_owned(),
        }
    }

    #[test]
    fn packages_are_sorted_by_place() {
        // In the order that is expected of a search for "harbour".
        let packages = [
            package("harbour", "", &[], "", ""),
            package("harbour-operator", "", &[], "", ""),
            package("my-harbour-operator", "", &[], "", "A Harbour for harbour boats"),
            package("a-harbour", "", &[], "", "boats"),
            package("b-harbour", "", &[], "", "boats"),
            package("my-harbours", "", &[], "", ""),
            package("z", "", &["Harbour"], "", ""),
            package("y", "", &[], "Harbour Inc.", ""),
            package("x", "", &[], "", "Boats of a harbour"),
            package("a", "", &[], "", "Unharboured boats"),
        ];
        let words = ["harbour".to_owned()];
        let mut found: Vec<(Rank, &str)> = packages
            .iter()
            .rev()
            .filter_map(|package| Some((Texts::of(package).rank(&words)?, package.name.as_str())))
            .collect();
        found.sort_unstable();
        let names: Vec<&str> = found.iter().map(|(_, name)| *name).collect();
        let expected: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn every_word_must_be_found_somewhere() {
        let package = package("lamp", "Big Lamp", &["light"], "Acme", "shines");
        let place = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            Texts::of(&package).rank(&words).map(|(place, _)| place)
        };
        assert_eq!(place(&[]), Some(0));
        assert_eq!(place(&["lamp", "acme"]), Some(5));
        assert_eq!(place(&["big"]), Some(3));
        assert_eq!(place(&["lamp", "dark"]), None);
    }
}
