//! Server-side apply in phases: plan, ownership, collisions, probes, drift watches, teardown.
