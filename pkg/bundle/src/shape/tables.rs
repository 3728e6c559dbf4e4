//! The structures of CRDs (`apiextensions.k8s.io/v1`) and CSVs (`operators.coreos.com/v1alpha1`).

use std::collections::BTreeMap;

use super::presence::{Presence, usual};
use super::{Field, Shape, Types};

/// Name of the `CustomResourceDefinition` in the tables.
pub(crate) const CRD: &str = "Crd";
/// Name of the `ClusterServiceVersion` in the tables.
pub(crate) const CSV: &str = "Csv";

/// One structure per line: its name, then `field:shape`. `[x]` is a list, `{x}` a map, `x?` a structure or boolean,
/// `x*` a structure or list, `x+` a structure or texts. Fields have the presence of [`usual`], except those with a
/// mark: `!` always, `~` as given even if empty, `-` unless empty. Only the deployments of CSVs are written, so CSV
/// fields need none.
const TABLE: &str = "\
Crd apiVersion:s kind:s metadata:io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta! spec:CrdSpec! status:CrdStatus!
CrdSpec group:s! names:CrdNames! scope:s! versions:[CrdVersion]! conversion:CrdConversion preserveUnknownFields:b
CrdNames plural:s! singular:s shortNames:[s] kind:s! listKind:s categories:[s]
CrdStatus conditions:[CrdCondition]! acceptedNames:CrdNames! storedVersions:[s]! observedGeneration:l-
CrdCondition type:s! status:s! lastTransitionTime:t! reason:s message:s observedGeneration:l-
CrdVersion name:s! served:b! storage:b! deprecated:b deprecationWarning:s~ schema:CrdValidation \
subresources:CrdSubresources additionalPrinterColumns:[CrdColumn] selectableFields:[CrdSelectable]
CrdValidation openAPIV3Schema:CrdSchema
CrdSubresources status:CrdEmpty scale:CrdScale
CrdEmpty
CrdScale specReplicasPath:s! statusReplicasPath:s! labelSelectorPath:s~
CrdColumn name:s! type:s! format:s description:s priority:i- jsonPath:s!
CrdSelectable jsonPath:s!
CrdConversion strategy:s! webhook:CrdWebhook
CrdWebhook clientConfig:CrdClientConfig conversionReviewVersions:[s]!
CrdClientConfig url:s~ service:CrdService caBundle:y
CrdService namespace:s! name:s! path:s~ port:i
CrdDocs description:s url:s
CrdRule rule:s! message:s messageExpression:s reason:s~ fieldPath:s optionalOldSelf:b~
CrdSchema id:s $schema:s $ref:s~ description:s type:s format:s title:s default:a maximum:f exclusiveMaximum:b \
minimum:f exclusiveMinimum:b maxLength:l minLength:l pattern:s maxItems:l minItems:l uniqueItems:b multipleOf:f \
enum:[a] maxProperties:l minProperties:l required:[s] items:CrdSchema* allOf:[CrdSchema] oneOf:[CrdSchema] \
anyOf:[CrdSchema] not:CrdSchema properties:{CrdSchema} additionalProperties:CrdSchema? \
patternProperties:{CrdSchema} dependencies:{CrdSchema+} additionalItems:CrdSchema? definitions:{CrdSchema} \
externalDocs:CrdDocs example:a nullable:b x-kubernetes-preserve-unknown-fields:b~ x-kubernetes-embedded-resource:b \
x-kubernetes-int-or-string:b x-kubernetes-list-map-keys:[s] x-kubernetes-list-type:s~ x-kubernetes-map-type:s~ \
x-kubernetes-validations:[CrdRule]
Csv apiVersion:s kind:s metadata:io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta spec:CsvSpec
CsvSpec install:CsvInstall version:s maturity:s customresourcedefinitions:CsvCrds apiservicedefinitions:CsvApis \
webhookdefinitions:[CsvWebhook] nativeAPIs:[CsvKind] minKubeVersion:s displayName:s description:s keywords:[s] \
maintainers:[CsvPerson] provider:CsvLink links:[CsvLink] icon:[CsvIcon] installModes:[CsvMode] replaces:s \
labels:{s} annotations:{s} selector:io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector cleanup:CsvCleanup \
skips:[s] relatedImages:[CsvImage]
CsvInstall strategy:s spec:CsvStrategy
CsvStrategy deployments:[CsvDeployment] permissions:[CsvPermission] clusterPermissions:[CsvPermission]
CsvDeployment name:s label:{s} spec:io.k8s.api.apps.v1.DeploymentSpec
CsvPermission serviceAccountName:s rules:[CsvRule]
CsvRule verbs:[s] apiGroups:[s] resources:[s] resourceNames:[s] nonResourceURLs:[s]
CsvCrds owned:[CsvCrd] required:[CsvCrd]
CsvCrd name:s version:s kind:s displayName:s description:s resources:[CsvResource] \
statusDescriptors:[CsvDescriptor] specDescriptors:[CsvDescriptor] actionDescriptors:[CsvDescriptor]
CsvResource name:s kind:s version:s
CsvDescriptor path:s displayName:s description:s x-descriptors:[s] value:a
CsvApis owned:[CsvApi] required:[CsvApi]
CsvApi name:s group:s version:s kind:s deploymentName:s containerPort:i displayName:s description:s \
resources:[CsvResource] statusDescriptors:[CsvDescriptor] specDescriptors:[CsvDescriptor] \
actionDescriptors:[CsvDescriptor]
CsvWebhook generateName:s type:s deploymentName:s containerPort:i targetPort:p rules:[CsvWebhookRule] \
failurePolicy:s matchPolicy:s objectSelector:io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector sideEffects:s \
timeoutSeconds:i admissionReviewVersions:[s] reinvocationPolicy:s webhookPath:s conversionCRDs:[s]
CsvWebhookRule apiGroups:[s] apiVersions:[s] operations:[s] resources:[s] scope:s
CsvKind group:s version:s kind:s
CsvPerson name:s email:s
CsvLink name:s url:s
CsvIcon base64data:s mediatype:s
CsvMode type:s supported:b
CsvCleanup enabled:b
CsvImage name:s image:s";

pub(super) fn types() -> Types {
    TABLE
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default().to_owned();
            (name, words.filter_map(field).collect::<BTreeMap<_, _>>())
        })
        .collect()
}

fn field(word: &str) -> Option<(String, Field)> {
    let (name, marked) = word.split_once(':')?;
    let notation = marked.trim_end_matches(['!', '~', '-']);
    let shape = parse(notation);
    let required = marked.ends_with('!');
    let presence = match marked.chars().last() {
        Some('~') => Presence::AsGiven,
        Some('-') => Presence::UnlessEmpty,
        _ => usual(&shape, required),
    };
    let field = Field {
        shape,
        required,
        presence,
    };
    Some((name.to_owned(), field))
}

fn parse(notation: &str) -> Shape {
    let between = |open: char, close: char| {
        notation
            .strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close))
    };
    if let Some(item) = between('[', ']') {
        return Shape::List(Box::new(parse(item)));
    }
    if let Some(item) = between('{', '}') {
        return Shape::Map(Box::new(parse(item)));
    }
    for (mark, shape) in [
        ('?', Shape::NamedOrBool as fn(String) -> Shape),
        ('*', Shape::NamedOrList),
        ('+', Shape::NamedOrTexts),
    ] {
        if let Some(name) = notation.strip_suffix(mark) {
            return shape(name.to_owned());
        }
    }
    match notation {
        "s" => Shape::Str,
        "y" => Shape::Bytes,
        "b" => Shape::Bool,
        "i" => Shape::Int,
        "l" => Shape::Int64,
        "p" => Shape::IntOrString,
        "f" => Shape::Float,
        "t" => Shape::Time,
        "a" => Shape::Any,
        name => Shape::Named(name.to_owned()),
    }
}
