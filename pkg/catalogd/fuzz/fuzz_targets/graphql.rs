//! GraphQL: a query that passes the limits is small, and the schema of any objects is valid.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    olm_catalogd_fuzz::any_graphql(text);
    olm_catalogd_fuzz::any_schema(text);
});
