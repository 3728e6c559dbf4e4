//! Findings of the validation: one defect at one place, with the next step.

use std::fmt;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Catalog tools reject the catalog, or part of it can never be installed.
    Error,
    /// Catalog tools accept it, but it is hardly intended.
    Warning,
    /// Information; nothing is wrong.
    Note,
}

impl Severity {
    /// Returns `error`, `warning` or `note`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Declares the rules once: variant, severity, identifier, meaning.
macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $variant:ident = $severity:ident $text:literal,)+) => {
        /// Rules of the validation. The identifiers are stable: scripts may filter by them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Rule {
            /// All rules, in the order in which findings of one place are listed.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the rule's identifier, such as `channel-head-multiple`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Returns the severity of a breach of the rule.
            pub fn severity(self) -> Severity {
                match self {
                    $(Self::$variant => Severity::$severity,)+
                }
            }
        }
    };
}

rules! {
    /// A meta does not match its schema.
    Shape = Error "shape",
    /// A meta has an unknown schema; it is stored and served nevertheless.
    SchemaUnknown = Note "schema-unknown",
    /// A meta names no schema.
    SchemaMissing = Error "schema-missing",
    /// A package has no name.
    PackageNameMissing = Error "package-name-missing",
    /// A package's name is not a DNS label.
    PackageNameInvalid = Error "package-name-invalid",
    /// Two packages have the same name.
    PackageDuplicate = Error "package-duplicate",
    /// A blob belongs to a package that has no `olm.package`.
    PackageUnknown = Error "package-unknown",
    /// A channel, bundle or deprecation names no package.
    PackageReferenceMissing = Error "package-reference-missing",
    /// A package has no channel.
    PackageEmpty = Error "package-empty",
    /// A package names no default channel.
    DefaultChannelMissing = Error "default-channel-missing",
    /// A package's default channel does not exist.
    DefaultChannelUnknown = Error "default-channel-unknown",
    /// An icon holds no data.
    IconEmpty = Error "icon-empty",
    /// An icon is not base64.
    IconEncoding = Error "icon-encoding",
    /// An icon has no media type, or one that is not an image's.
    IconMediaType = Error "icon-media-type",
    /// An icon's content has another type than its media type.
    IconMediaTypeMismatch = Warning "icon-media-type-mismatch",
    /// An icon is large, at the expense of every client.
    IconSize = Warning "icon-size",
    /// A channel has no name.
    ChannelNameMissing = Error "channel-name-missing",
    /// Two channels of a package have the same name.
    ChannelDuplicate = Error "channel-duplicate",
    /// A channel has no entries.
    ChannelEmpty = Error "channel-empty",
    /// An entry has no name.
    EntryNameMissing = Error "entry-name-missing",
    /// A channel lists a bundle twice.
    EntryDuplicate = Error "entry-duplicate",
    /// An entry's bundle does not exist.
    EntryWithoutBundle = Error "entry-without-bundle",
    /// An entry replaces itself.
    EntryReplacesItself = Error "entry-replaces-itself",
    /// An entry skips itself.
    EntrySkipsItself = Warning "entry-skips-itself",
    /// An entry skips an empty name.
    EntrySkipsNothing = Error "entry-skips-nothing",
    /// A `skipRange` cannot be parsed; resolution ignores it.
    SkipRangeInvalid = Warning "skip-range-invalid",
    /// `replaces` edges form a cycle.
    ReplacesCycle = Error "replaces-cycle",
    /// `replaces` and `skips` edges form a cycle.
    SkipsCycle = Warning "skips-cycle",
    /// Every entry of a channel is replaced or skipped by another.
    ChannelHeadMissing = Error "channel-head-missing",
    /// Several entries of a channel are neither replaced nor skipped.
    ChannelHeadMultiple = Error "channel-head-multiple",
    /// Entries are neither skipped nor reachable from a head by `replaces`.
    EntryStranded = Error "entry-stranded",
    /// The versions of two bundles of a channel have equal precedence.
    ChannelVersionDuplicate = Warning "channel-version-duplicate",
    /// A bundle has no name.
    BundleNameMissing = Error "bundle-name-missing",
    /// Two bundles of a package have the same name.
    BundleDuplicate = Error "bundle-duplicate",
    /// A bundle is in no channel.
    BundleNotInChannel = Error "bundle-not-in-channel",
    /// A bundle has no `olm.package` property.
    PackagePropertyMissing = Error "package-property-missing",
    /// A bundle has several `olm.package` properties.
    PackagePropertyMultiple = Error "package-property-multiple",
    /// The `olm.package` property names another package.
    PackagePropertyMismatch = Error "package-property-mismatch",
    /// The version or release in the `olm.package` property cannot be parsed.
    VersionInvalid = Error "version-invalid",
    /// Two bundles of a package have the same version and release.
    VersionDuplicate = Error "version-duplicate",
    /// A property has no type, no value, or a value that does not match its type.
    PropertyInvalid = Error "property-invalid",
    /// An `olm.csv.metadata` is malformed, or there are several.
    CsvMetadataInvalid = Error "csv-metadata-invalid",
    /// An `olm.bundle.object` is not a base64-encoded object.
    BundleObjectInvalid = Error "bundle-object-invalid",
    /// A bundle has neither an image nor objects.
    ImageMissing = Error "image-missing",
    /// An image is not an image reference.
    ImageInvalid = Error "image-invalid",
    /// Bundles of a package refer to their image by a tag, whose content may change.
    ImageTag = Note "image-tag",
    /// A related image is empty or not an image reference.
    RelatedImageInvalid = Warning "related-image-invalid",
    /// A package has several `olm.deprecations`; only the first counts.
    DeprecationsDuplicate = Error "deprecations-duplicate",
    /// An object is deprecated twice.
    DeprecationDuplicate = Error "deprecation-duplicate",
    /// A deprecated package, channel or bundle does not exist.
    DeprecationUnknown = Error "deprecation-unknown",
    /// A deprecation refers to a schema that cannot be deprecated.
    DeprecationSchema = Error "deprecation-schema",
    /// The deprecation of a package names it, or that of a channel or bundle has no name.
    DeprecationReference = Error "deprecation-reference",
    /// A deprecation has no message for users.
    DeprecationMessageMissing = Warning "deprecation-message-missing",
    /// The lifecycle of a version, or all of an object, cannot be read and is ignored.
    LifecycleInvalid = Warning "lifecycle-invalid",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Defect at one place.
///
/// Findings are ordered by file, line, package, severity, rule and message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file as passed in.
    pub file: String,
    /// Line where the defective meta starts, from 1.
    pub line: u64,
    /// The package; empty if the meta names none.
    pub package: String,
    /// Severity of the finding; always the severity of its rule.
    pub severity: Severity,
    /// Rule that the catalog breaks.
    pub rule: Rule,
    /// Description of the defect, with the name of the object.
    pub message: String,
    /// The next step.
    pub hint: String,
}
