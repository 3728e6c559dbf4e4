//! Image references, registry access, pull, safe unpack and the content cache.
