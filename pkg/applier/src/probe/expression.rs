//! Assertions by an expression.

use olm_api::CelExpression;
use olm_cel::Predicate;
use olm_text::{cut, printable};
use serde_json::Value;

/// Maximum length of an expression and of an error in a message, in bytes.
const SHOWN: usize = 240;

/// Compiled expression of an assertion, with the text of its failure.
#[derive(Clone, Debug)]
pub(super) struct ExpressionCheck {
    predicate: Predicate,
    message: Option<String>,
}

impl ExpressionCheck {
    /// Compiles an expression.
    ///
    /// The error is the expression, and the reason why it is refused, both in a form for messages.
    pub(super) fn new(wanted: &CelExpression) -> Result<Self, (String, String)> {
        let predicate =
            Predicate::parse(&wanted.expression).map_err(|why| (shown(&wanted.expression), shown(&why)))?;
        let message = wanted.message.as_deref().filter(|message| !message.is_empty());
        Ok(Self {
            predicate,
            message: message.map(|message| printable(message).into_owned()),
        })
    }

    /// Returns the text of the failure; `None` if the expression is true.
    pub(super) fn failure(&self, object: &Value) -> Option<String> {
        let why = match self.predicate.holds(object) {
            Ok(true) => return None,
            Ok(false) => None,
            Err(why) => Some(shown(&why)),
        };
        let expression = || shown(self.predicate.source());
        Some(match (&self.message, why) {
            (Some(message), None) => message.clone(),
            (Some(message), Some(why)) => format!("{message} (the expression has no value: {why})"),
            (None, None) => format!("expression {:?} is not true", expression()),
            (None, Some(why)) => format!("expression {:?} has no value: {why}", expression()),
        })
    }
}

fn shown(text: &str) -> String {
    printable(&cut(text, SHOWN)).into_owned()
}
