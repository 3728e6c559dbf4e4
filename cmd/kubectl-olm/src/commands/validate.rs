//! `validate`: findings in a catalog directory.

use crate::cli::ValidateArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::style::Style;

pub(crate) fn run(args: &ValidateArgs, _style: Style) -> Result<Report, Failure> {
    Err(Failure::Usage(format!("{}: not yet", args.dir.display())))
}
