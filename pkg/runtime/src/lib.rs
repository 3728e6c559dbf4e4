//! What both controllers run on: telemetry, metrics, health, TLS, leases, backoff, events, shutdown.
