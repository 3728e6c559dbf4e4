//! The olm.operatorframework.io/v1 kinds: schema, validation rules, condition types and reasons.
