//! Flow collections: `[a, b]` and `{a: b}`.

use super::{EventResult, Parser, State};
use crate::cursor::Mark;
use crate::events::Event;
use crate::token::Kind;

impl Parser<'_> {
    pub(super) fn flow_entry(&mut self, start: Mark, first: bool) -> EventResult {
        if *self.kind()? == Kind::FlowSequenceEnd {
            return self.take_end();
        }
        if !first {
            if *self.kind()? != Kind::FlowEntry {
                return Err(self.fault(start, "did not find expected ',' or ']'"));
            }
            self.take()?;
        }
        match self.kind()? {
            Kind::FlowSequenceEnd => self.take_end(),
            Kind::Key => {
                let mark = self.take()?.mark;
                self.states.push(State::FlowEntry(start, false));
                self.states.push(State::PairEnd);
                self.states.push(State::PairKey);
                Ok(Some((Event::Mapping { anchor: None }, mark.line)))
            }
            _ => {
                self.states.push(State::FlowEntry(start, false));
                self.node(false, false)
            }
        }
    }

    pub(super) fn pair_key(&mut self) -> EventResult {
        self.states.push(State::PairValue);
        match self.kind()? {
            Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd => {
                let event = self.empty_scalar()?;
                // A missing key consumes the next token, like in Go's reader.
                self.take()?;
                Ok(event)
            }
            _ => self.node(false, false),
        }
    }

    pub(super) fn pair_value(&mut self) -> EventResult {
        if *self.kind()? == Kind::Value {
            self.take()?;
            if !matches!(self.kind()?, Kind::FlowEntry | Kind::FlowSequenceEnd) {
                return self.node(false, false);
            }
        }
        self.empty_scalar()
    }

    pub(super) fn flow_key(&mut self, start: Mark, first: bool) -> EventResult {
        if *self.kind()? == Kind::FlowMappingEnd {
            return self.take_end();
        }
        if !first {
            if *self.kind()? != Kind::FlowEntry {
                return Err(self.fault(start, "did not find expected ',' or '}'"));
            }
            self.take()?;
        }
        match self.kind()? {
            Kind::FlowMappingEnd => return self.take_end(),
            Kind::Key => {
                self.take()?;
                self.states.push(State::FlowKey(start, false));
                self.states.push(State::FlowValue);
            }
            _ => {
                self.states.push(State::FlowKey(start, false));
                self.states.push(State::FlowNoValue);
                return self.node(false, false);
            }
        }
        match self.kind()? {
            Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd => self.empty_scalar(),
            _ => self.node(false, false),
        }
    }

    pub(super) fn flow_value(&mut self) -> EventResult {
        if *self.kind()? == Kind::Value {
            self.take()?;
            if !matches!(self.kind()?, Kind::FlowEntry | Kind::FlowMappingEnd) {
                return self.node(false, false);
            }
        }
        self.empty_scalar()
    }
}
