//! JSON values as variables, and the functions that expressions may call.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cel::objects::Key;
use cel::{Env, Value as Cel};
use serde_json::Value;

use super::matches;

/// Returns a JSON value as expressions see it without a schema.
#[must_use]
pub fn value(json: &Value) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(float)) => Cel::Float(float),
            (None, None) => Cel::Null,
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(list) => Cel::List(Arc::new(list.iter().map(value).collect())),
        Value::Object(map) => {
            let map: HashMap<Key, Cel> = map
                .iter()
                .map(|(key, field)| (Key::from(key.clone()), value(field)))
                .collect();
            Cel::from(map)
        }
    }
}

/// Returns the standard functions and the string extension, like Kubernetes' API server; created once.
#[must_use]
pub fn environment() -> Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    let environment = ENVIRONMENT.get_or_init(|| {
        let mut environment = with_matches();
        // Without this extension its functions would be unknown, and expressions that call them fail.
        let _ = environment.add_extension(cel::extensions::strings);
        Arc::new(environment)
    });
    Arc::clone(environment)
}

/// Returns the standard functions alone; created once.
#[must_use]
pub fn standard_environment() -> Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    Arc::clone(ENVIRONMENT.get_or_init(|| Arc::new(with_matches())))
}

fn with_matches() -> Env {
    let mut environment = Env::stdlib();
    // It is known only with the library's own form, which is left out.
    let _ = matches::add(&mut environment);
    environment
}
