//! Versions, releases and the two range grammars of OLM.
