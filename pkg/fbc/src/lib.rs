//! File-based catalogs: metas, packages, channels, bundles, deprecations, canonical blobs.
