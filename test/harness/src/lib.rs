//! The control plane, registry, image builders and pod stand-in of the tests and the demo.
