//! catalogd's HTTP client and its cache of packages by catalog digest.
