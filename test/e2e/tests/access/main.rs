//! Access control: the rights in `config/` against the used ones, and the optional admission policies, and no content of a
//! Secret where others may read it.

mod admission;
mod catalogd;
mod secrets;
