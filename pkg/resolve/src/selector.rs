//! Label selector of catalogs.

use std::collections::{BTreeMap, BTreeSet};

use olm_text::dns::{SUBDOMAIN_MAX, SUBDOMAIN_RULE, has_subdomain_parts};

/// Requirement on a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

/// Comparisons that a requirement can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is absent.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// A parsed selector; the empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// Syntax error of a selector. Terminal: only another request can succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The operator is unknown.
    #[error("{} is not a valid label selector operator", olm_version::go_quote(operator))]
    Operator {
        /// The operator as written.
        operator: String,
    },
    /// A label key is malformed.
    #[error("key: Invalid value: {}: {reason}", olm_version::go_quote(key))]
    Key {
        /// The key.
        key: String,
        /// Description of the syntax error.
        reason: String,
    },
    /// A label value is malformed.
    #[error(
        "values[{index}][{key}]: Invalid value: {}: {reason}",
        olm_version::go_quote(value)
    )]
    Value {
        /// The key.
        key: String,
        /// Index of the value.
        index: usize,
        /// The value.
        value: String,
        /// Description of the defect.
        reason: String,
    },
    /// The number of values does not match the operator.
    #[error("values: Invalid value: {values}: {reason}")]
    Count {
        /// The values, as a list in JSON.
        values: String,
        /// Number of values that the operator takes.
        reason: &'static str,
    },
}

impl Selector {
    /// Parses a selector from its labels and its expressions (key, operator, values).
    ///
    /// # Errors
    /// [`SelectorError`] for the first defect.
    pub fn new<'a>(
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        expressions: impl IntoIterator<Item = (&'a str, &'a str, &'a [String])>,
    ) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for (key, value) in labels {
            requirements.push(requirement(key, Operator::In, &[value.to_owned()])?);
        }
        for (key, operator, values) in expressions {
            let operator = match operator {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return Err(SelectorError::Operator {
                        operator: other.to_owned(),
                    });
                }
            };
            requirements.push(requirement(key, operator, values)?);
        }
        Ok(Self { requirements })
    }

    /// Returns true if `labels` meet every requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            let among = || value.is_some_and(|value| requirement.values.contains(value));
            match requirement.operator {
                Operator::In => among(),
                Operator::NotIn => !among(),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }
}

const NAME_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn requirement(key: &str, operator: Operator, values: &[String]) -> Result<Requirement, SelectorError> {
    check_key(key).map_err(|reason| SelectorError::Key {
        key: key.to_owned(),
        reason,
    })?;
    let takes_values = matches!(operator, Operator::In | Operator::NotIn);
    if takes_values == values.is_empty() {
        return Err(SelectorError::Count {
            values: serde_json::json!(values).to_string(),
            reason: if takes_values {
                "for 'in', 'notin' operators, values set can't be empty"
            } else {
                "values set must be empty for exists and does not exist"
            },
        });
    }
    for (index, value) in values.iter().enumerate() {
        let wrong = if value.len() > 63 {
            Some("must be no more than 63 characters")
        } else if value.is_empty() || is_name(value) {
            None
        } else {
            Some(VALUE_RULE)
        };
        if let Some(reason) = wrong {
            return Err(SelectorError::Value {
                key: key.to_owned(),
                index,
                value: value.clone(),
                reason: reason.to_owned(),
            });
        }
    }
    Ok(Requirement {
        key: key.to_owned(),
        operator,
        values: values.iter().cloned().collect(),
    })
}

fn check_key(key: &str) -> Result<(), String> {
    let name = match key.split_once('/') {
        None => key,
        Some(("", _)) => return Err("prefix part must be non-empty".to_owned()),
        Some((prefix, _)) if prefix.len() > SUBDOMAIN_MAX => {
            return Err("prefix part must be no more than 253 characters".to_owned());
        }
        Some((prefix, _)) if !has_subdomain_parts(prefix) => {
            return Err(format!("prefix part {SUBDOMAIN_RULE}"));
        }
        Some((_, name)) => name,
    };
    if name.is_empty() {
        Err("name part must be non-empty".to_owned())
    } else if name.len() > 63 {
        Err("name part must be no more than 63 characters".to_owned())
    } else if is_name(name) {
        Ok(())
    } else {
        Err(NAME_RULE.to_owned())
    }
}

fn is_name(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests;
