//! Shared functions of commands.

use std::io::{BufRead, IsTerminal as _, Write};

use olm_resolve::{CatalogInput, CatalogLookup, FailureCause, ResolveError, Selector, did_you_mean};
use olm_text::name::{CatalogName, PackageName};

use crate::cli::SourceArgs;
use crate::failure::Failure;
use crate::source::{SourceError, Sources};
use crate::table::clean;

/// Writes a warning to standard error.
pub(crate) fn warn(text: &str) {
    // A failed write cannot be reported.
    let _ = writeln!(std::io::stderr().lock(), "warning: {}", clean(text));
}

/// Returns `None`, with a warning, if the catalogs that tell the next version cannot be read: the controller reads them with rights of
/// its own.
///
/// # Errors
/// Any other failure. A catalog that is absent or unavailable is a negative answer, because the controller cannot read it either.
pub(crate) fn unless_unreadable<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Failure::CouldNotAsk(error @ SourceError::NoSuchCatalog { .. })) => {
            Err(Failure::NegativeAnswer(format!("nothing is written: {error}")))
        }
        Err(failure @ Failure::CouldNotAsk(_)) => {
            warn_untold(&failure.message());
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Warns like [`unless_unreadable`] if no bundle is chosen because a catalog that could change the choice cannot be read.
///
/// # Errors
/// The catalogs have no suitable bundle: `refused`.
pub(crate) fn unless_unread(error: &ResolveError, refused: String) -> Result<(), Failure> {
    if matches!(error.cause, FailureCause::UnreadCatalog { .. }) {
        warn_untold(&error.head());
        return Ok(());
    }
    Err(Failure::NegativeAnswer(refused))
}

fn warn_untold(reason: &str) {
    warn(&format!("the version cannot be told in advance: {reason}"));
}

/// Writes a line of progress to standard error.
pub(crate) fn progress(text: &str) {
    // A failed write cannot be reported.
    let _ = writeln!(std::io::stderr().lock(), "{}", clean(text));
}

/// Asks a question on the terminal.
///
/// # Errors
/// There is no terminal to ask on: `unasked`. The user does not agree: `refused`.
pub(crate) fn confirm(question: &str, unasked: &str, refused: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(unasked.to_owned()));
    }
    if agrees(question, std::io::stdin().lock(), std::io::stderr().lock()) {
        return Ok(());
    }
    Err(Failure::NegativeAnswer(refused.to_owned()))
}

fn agrees(question: &str, mut input: impl BufRead, mut output: impl Write) -> bool {
    // A failed write cannot be reported; the read decides.
    let _ = write!(output, "{} [y/N] ", clean(question));
    let _ = output.flush();
    let mut answer = String::new();
    let read = input.read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Warns of the catalogs that could not be read.
///
/// # Errors
/// The first error, if `nothing` was found in the other catalogs.
pub(crate) fn warn_unread(
    unread: &mut Vec<(CatalogName, SourceError)>,
    nothing: bool,
) -> Result<(), Failure> {
    if nothing && !unread.is_empty() {
        return Err(unread.swap_remove(0).1.into());
    }
    for (catalog, error) in unread.drain(..) {
        warn(&format!(
            "catalog {catalog} is left out: {}",
            Failure::from(error).message()
        ));
    }
    Ok(())
}

/// Looks up a package in all catalogs.
///
/// # Errors
/// No catalog can be read, or none has the package. Other unreadable catalogs are named on standard error.
pub(crate) async fn package(
    source: &SourceArgs,
    package: &PackageName,
) -> Result<Vec<CatalogInput>, Failure> {
    let sources = Sources::open(source).await?;
    look_up(&sources, package).await
}

/// Looks up a package in these catalogs.
///
/// # Errors
/// Like [`package`].
pub(crate) async fn look_up(sources: &Sources, package: &PackageName) -> Result<Vec<CatalogInput>, Failure> {
    let inputs = sources.lookup(package, &Selector::default()).await;
    let found = crate::installed::found(&inputs).next().is_some();
    for input in &inputs {
        let reason = match &input.lookup {
            CatalogLookup::Failed(reason) => reason.clone(),
            CatalogLookup::NotServing => "it is not being served".to_owned(),
            _ => continue,
        };
        if !found {
            return Err(SourceError::Unread {
                catalog: input.name.clone(),
                reason,
            }
            .into());
        }
        warn(&format!("catalog {} is left out: {reason}", input.name));
    }
    if found {
        return Ok(inputs);
    }
    let names: Vec<CatalogName> = inputs.iter().map(|input| input.name.clone()).collect();
    if names.is_empty() {
        return Err(Failure::NegativeAnswer("there are no catalogs".to_owned()));
    }
    let absent = format!(
        "package {package:?} is in none of the catalogs: {}",
        names.join(", ")
    );
    let similar = sources.similar(package, &Selector::default(), &inputs).await;
    Err(unknown(absent, &similar))
}

/// Returns the failure about an unknown name, with similar names.
pub(crate) fn unknown<S: AsRef<str>>(absent: String, similar: &[S]) -> Failure {
    Failure::NegativeAnswer(match did_you_mean(similar) {
        None => absent,
        Some(question) => format!("{absent}. {question}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_controls_no_terminal_and_defaults_to_no() {
        for (answer, agreed) in [("y\n", true), (" YES \n", true), ("", false), ("no\n", false)] {
            let mut shown = Vec::new();
            assert_eq!(
                agrees("version 1\u{1b}[2J. Continue?", answer.as_bytes(), &mut shown),
                agreed,
                "{answer:?}"
            );
            let shown = String::from_utf8(shown).unwrap();
            assert!(
                !shown.contains('\u{1b}') && shown.ends_with(". Continue? [y/N] "),
                "{shown:?}"
            );
        }
    }

    #[test]
    fn an_absent_catalog_is_not_an_unreadable_one() {
        let absent = SourceError::NoSuchCatalog {
            name: "sy".into(),
            present: vec!["sky".into()],
        };
        let refused = unless_unreadable::<()>(Err(absent.into())).unwrap_err();
        assert_eq!(
            (refused.code(), refused.message().as_str()),
            (
                1,
                "nothing is written: there is no catalog \"sy\"; available: sky"
            )
        );
        let slow = SourceError::Slow { what: String::new() };
        assert!(unless_unreadable::<()>(Err(slow.into())).unwrap().is_none());
    }

    #[test]
    fn an_unread_catalog_refuses_nothing() {
        let unread = FailureCause::UnreadCatalog {
            package: "kite".into(),
            catalog: "sky".into(),
            reason: "403".to_owned(),
        };
        assert!(unless_unread(&unread.into(), String::new()).is_ok());
        let none = FailureCause::NoSingleBundle {
            sentence: "no bundles found".to_owned(),
            tied: Vec::new(),
        };
        let refused = unless_unread(&none.into(), "nothing is changed".to_owned()).unwrap_err();
        assert_eq!(
            (refused.code(), refused.message().as_str()),
            (1, "nothing is changed")
        );
    }
}
