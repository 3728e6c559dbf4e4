//! `cargo xtask render-loss DIR...`: lists the values of bundles' manifests that the rendered objects lack, one line for each
//! value.
//!
//! A line is `FOLDER<tab>OBJECT<tab>PATH<tab>VALUE`, in the order of the given folders. Values that upstream also drops are not
//! listed (see [`olm_bundle::losses`]). A refused bundle has no lines. A folder that cannot be read has the line
//! `FOLDER<tab>error<tab>REASON`. The last line, on standard error, has the totals. Exit status: 0 if no value is lost, 1 if a
//! value is lost or a folder could not be read, 2 for wrong usage.

use std::io;
use std::path::Path;

use anyhow::bail;
use olm_bundle::{Loss, RenderOptions, losses};

use crate::sweep::{self, Args, Failure};

/// Prints the lost values, and fails if there is one.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folders = args.folders();
    let options = args.options();
    let (mut rendered, mut refused, mut lost, mut unreadable) = (0_usize, 0_usize, 0_usize, 0_usize);
    sweep::print(
        io::stdout().lock(),
        &folders,
        |folder| lost_in(folder, &options),
        |folder, outcome| {
            let folder = folder.display();
            match outcome {
                Ok(found) => {
                    rendered += 1;
                    lost += found.len();
                    let lines: Vec<String> = found.iter().map(|loss| format!("{folder}\t{loss}\n")).collect();
                    lines.concat()
                }
                Err(Failure::Refused(_)) => {
                    refused += 1;
                    String::new()
                }
                Err(Failure::Unreadable(reason)) => {
                    unreadable += 1;
                    format!("{folder}\terror\t{}\n", sweep::escape(&reason))
                }
            }
        },
    )?;
    eprintln!("{rendered} bundles rendered, {refused} refused, {unreadable} unreadable, {lost} values lost");
    if lost > 0 || unreadable > 0 {
        bail!(
            "{lost} values of the manifests are in no rendered object, {unreadable} folders could not be read"
        );
    }
    Ok(())
}

/// Returns the values that the rendered objects of a bundle lack.
fn lost_in(folder: &Path, options: &RenderOptions) -> Result<Vec<Loss>, Failure> {
    let (files, objects) = sweep::render_folder(folder, options)?;
    Ok(losses(&files, &objects))
}

#[cfg(test)]
mod tests {
    use olm_bundle::Certificates;

    use super::*;

    /// The project's own bundles lose no value. The tests of `olm_bundle` show that a loss is found.
    #[test]
    fn own_bundles_lose_nothing() {
        let options = RenderOptions {
            certificates: Certificates::CertManager,
            ..RenderOptions::new("olm-test")
        };
        let mut folders = Vec::new();
        sweep::find(&crate::shell::root().join("test/testdata"), &mut folders);
        let mut rendered = 0;
        for folder in folders {
            match lost_in(&folder, &options) {
                Ok(lost) => {
                    assert_eq!(lost, [], "{}", folder.display());
                    rendered += 1;
                }
                Err(Failure::Refused(_)) => {}
                Err(Failure::Unreadable(reason)) => panic!("{}: {reason}", folder.display()),
            }
        }
        assert!(rendered > 3, "{rendered}");
    }
}
