//! Gherkin features and steps.
