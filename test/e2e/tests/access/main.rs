//! Who may do what: the rights that `config/` grants and those that are used, and the optional admission policies.

mod admission;
mod catalogd;
