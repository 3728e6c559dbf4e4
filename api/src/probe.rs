//! Probes of a ClusterObjectSet: conditions for an object to count as rolled out.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{parts, rules};

/// Assertions about the objects of a selector.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ProgressionProbe {
    /// Selector of the objects to probe.
    pub selector: ObjectSelector,

    /// Assertions that must hold for each selected object.
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub assertions: Vec<Assertion>,
}

/// Selector of objects: one member for each selector type.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::member_of_type("groupKind", "GroupKind"),
    validation = rules::member_of_type("label", "Label")
)]
pub struct ObjectSelector {
    /// Kind of selector.
    #[serde(rename = "type")]
    pub type_: SelectorType,

    /// Objects of one kind; required if `type` is `GroupKind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_kind: Option<GroupKind>,

    /// Objects by their labels; required if `type` is `Label`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::label_selector")]
    #[x_kube(validation = Rule::new(
        "(has(self.matchExpressions) && !has(self.matchLabels)) || (!has(self.matchExpressions) && has(self.matchLabels))"
    ).message("exactly one of matchLabels or matchExpressions must be set"))]
    pub label: Option<LabelSelector>,
}

/// Kinds of selector.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SelectorType {
    /// Objects of a kind.
    #[default]
    GroupKind,
    /// Objects with labels.
    Label,
}

/// A kind of any version.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub struct GroupKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
}

/// Assertion about an object: one member for each assertion type.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::member_of_type("conditionEqual", "ConditionEqual"),
    validation = rules::member_of_type("fieldsEqual", "FieldsEqual"),
    validation = rules::member_of_type("fieldValue", "FieldValue"),
    validation = rules::member_of_type("celExpression", "CELExpression")
)]
pub struct Assertion {
    /// Kind of assertion.
    #[serde(rename = "type")]
    pub type_: AssertionType,

    /// The object has a condition of this type and status; required if `type` is `ConditionEqual`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition_equal: Option<ConditionEqual>,

    /// Two fields of the object are equal; required if `type` is `FieldsEqual`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields_equal: Option<FieldsEqual>,

    /// A field of the object has this value; required if `type` is `FieldValue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_value: Option<FieldValue>,

    /// An expression on the object is true; required if `type` is `CELExpression`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel_expression: Option<CelExpression>,
}

/// Kinds of assertion.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AssertionType {
    /// A condition has a status.
    #[default]
    ConditionEqual,
    /// Two fields are equal.
    FieldsEqual,
    /// A field has a value.
    FieldValue,
    /// An expression is true.
    #[serde(rename = "CELExpression")]
    CelExpression,
}

/// A condition and the status it must have.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ConditionEqual {
    /// Type of the condition.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 200))]
    pub type_: String,

    /// Status the condition must have.
    pub status: ConditionStatus,
}

/// Status a probed condition can be required to have.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// `True`.
    #[default]
    True,
    /// `False`.
    False,
}

/// Two fields that must be equal.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FieldsEqual {
    /// Path of the first field, names joined by dots.
    #[schemars(length(min = 1, max = 200))]
    #[x_kube(validation = rules::field_path())]
    pub field_a: String,

    /// Path of the second field, names joined by dots.
    #[schemars(length(min = 1, max = 200))]
    #[x_kube(validation = rules::field_path())]
    pub field_b: String,
}

/// A field and the value it must have.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FieldValue {
    /// Path of the field, names joined by dots.
    #[schemars(length(min = 1, max = 200))]
    #[x_kube(validation = rules::field_path())]
    pub field_path: String,

    /// Value the field must have.
    #[schemars(length(min = 1, max = 200))]
    pub value: String,
}

/// An expression that must be true.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CelExpression {
    /// Expression in the Common Expression Language (CEL). The object is called `self`. The value must be a boolean.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,

    /// Text of the condition while the expression is not true; the expression itself by default.
    #[schemars(length(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
