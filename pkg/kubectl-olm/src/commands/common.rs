//! Shared functions of commands.

use std::io::{IsTerminal as _, Write as _};

use olm_resolve::{CatalogInput, CatalogLookup, Selector, did_you_mean};
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
/// Any other failure.
pub(crate) fn unless_unreadable<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(failure @ Failure::CouldNotAsk(_)) => {
            warn(&format!(
                "the version cannot be told in advance: {}",
                failure.message()
            ));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
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
    let mut err = std::io::stderr().lock();
    // A failed write cannot be reported; the read decides.
    let _ = write!(err, "{} [y/N] ", clean(question));
    let _ = err.flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::NegativeAnswer(refused.to_owned()))
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
