//! registry+v1 bundles: parse, validate, render to plain manifests.
