//! Access control: the rights in `config/` against the used ones, the optional admission policies, and contents of Secrets, which others must
//! not read.

mod admission;
mod catalogd;
mod secrets;
