//! Access control: the rights in `config/` against the used ones, and the optional admission policies.

mod admission;
mod catalogd;
