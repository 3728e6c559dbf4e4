//! Findings of the validation: one defect at one place, with the next step.

use std::fmt;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Catalog tools refuse the catalog, or part of it can never be installed.
    Error,
    /// Accepted by catalog tools, but hardly what the author means.
    Warning,
    /// Worth knowing; nothing is wrong.
    Note,
}

impl Severity {
    /// `error`, `warning` or `note`.
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
            /// Every rule, in the order in which findings of one place are listed.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The rule's identifier, such as `channel-head-multiple`.
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
    /// A meta does not have the shape of its schema.
    Shape = Error "shape",
    /// A meta of a schema without a meaning here; it is stored and served all the same.
    SchemaUnknown = Note "schema-unknown",
    /// A meta names no schema.
    SchemaMissing = Error "schema-missing",
    /// A package has no name.
    PackageNameMissing = Error "package-name-missing",
    /// A package's name is no DNS label.
    PackageNameInvalid = Error "package-name-invalid",
    /// Two packages have one name.
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
    /// An icon names no media type or one that is no image's.
    IconMediaType = Error "icon-media-type",
    /// An icon's bytes are of another type than it says.
    IconMediaTypeMismatch = Warning "icon-media-type-mismatch",
    /// An icon is so large that every client pays for it.
    IconSize = Warning "icon-size",
    /// A channel has no name.
    ChannelNameMissing = Error "channel-name-missing",
    /// Two channels of a package have one name.
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
    /// A `skipRange` does not read; resolution ignores it.
    SkipRangeInvalid = Warning "skip-range-invalid",
    /// Following `replaces` comes back to where it started.
    ReplacesCycle = Error "replaces-cycle",
    /// Following `replaces` and `skips` comes back to where it started.
    SkipsCycle = Warning "skips-cycle",
    /// Every entry of a channel is replaced or skipped by another.
    ChannelHeadMissing = Error "channel-head-missing",
    /// Several entries of a channel are neither replaced nor skipped.
    ChannelHeadMultiple = Error "channel-head-multiple",
    /// Entries are neither skipped nor on the way of `replaces` from a head.
    EntryStranded = Error "entry-stranded",
    /// Versions of two bundles of a channel differ in nothing that orders them.
    ChannelVersionDuplicate = Warning "channel-version-duplicate",
    /// A bundle has no name.
    BundleNameMissing = Error "bundle-name-missing",
    /// Two bundles of a package have one name.
    BundleDuplicate = Error "bundle-duplicate",
    /// A bundle is in no channel.
    BundleNotInChannel = Error "bundle-not-in-channel",
    /// A bundle has no `olm.package` property.
    PackagePropertyMissing = Error "package-property-missing",
    /// A bundle has several `olm.package` properties.
    PackagePropertyMultiple = Error "package-property-multiple",
    /// The `olm.package` property names another package.
    PackagePropertyMismatch = Error "package-property-mismatch",
    /// The version or release in the `olm.package` property does not read.
    VersionInvalid = Error "version-invalid",
    /// Two bundles of a package have one version and release.
    VersionDuplicate = Error "version-duplicate",
    /// A property has no type, no value, or a value of another shape than its type's.
    PropertyInvalid = Error "property-invalid",
    /// An `olm.csv.metadata` is malformed or there are several.
    CsvMetadataInvalid = Error "csv-metadata-invalid",
    /// An `olm.bundle.object` is no base64 of an object.
    BundleObjectInvalid = Error "bundle-object-invalid",
    /// A bundle names no image and holds no objects.
    ImageMissing = Error "image-missing",
    /// An image is no image reference.
    ImageInvalid = Error "image-invalid",
    /// Bundles of a package name their image by a tag, whose content may change.
    ImageTag = Note "image-tag",
    /// A related image is empty or no image reference.
    RelatedImageInvalid = Warning "related-image-invalid",
    /// A package has several `olm.deprecations`; only the first counts.
    DeprecationsDuplicate = Error "deprecations-duplicate",
    /// A thing is deprecated twice.
    DeprecationDuplicate = Error "deprecation-duplicate",
    /// A deprecated package, channel or bundle does not exist.
    DeprecationUnknown = Error "deprecation-unknown",
    /// A deprecation refers to a schema that cannot be deprecated.
    DeprecationSchema = Error "deprecation-schema",
    /// The deprecation of a package names it, or that of a channel or bundle has no name.
    DeprecationReference = Error "deprecation-reference",
    /// A deprecation tells its users nothing.
    DeprecationMessageMissing = Warning "deprecation-message-missing",
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
    /// The file, as it was given.
    pub file: String,
    /// The line where the meta at fault starts, from 1.
    pub line: u64,
    /// The package; empty where the meta names none.
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
