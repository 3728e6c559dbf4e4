//! Parser from tokens to events.
//!
//! The grammar of YAML 1.1 as an automaton with a stack: each step pops a state, pushes the following states and
//! returns one event. Nesting therefore needs no recursion.

mod flow;

use crate::YamlError;
use crate::cursor::Mark;
use crate::events::Event;
use crate::scanner::Scanner;
use crate::token::{Kind, Token};

/// Tag handles that need no directive.
const KNOWN_HANDLES: [(&str, &str); 2] = [("!", "!"), ("!!", "tag:yaml.org,2002:")];

/// Maximum number of %TAG directives of a document. Each tag and each directive is compared with all handles, and handles are in no
/// budget of memory. Real documents have none.
const MAX_HANDLES: usize = 64;

/// State of the parser: the expected content. A mark is the start of a collection.
#[derive(Clone, Copy, Debug)]
enum State {
    Document,
    DocumentContent,
    /// An entry of a block sequence is next.
    BlockEntry(Mark),
    /// An entry of a block sequence with the indentation of its key is next.
    IndentlessEntry,
    /// A key of a block mapping is next.
    BlockKey(Mark),
    /// The value of a block mapping's key is next.
    BlockValue,
    /// The first (true) or a later entry of a flow sequence is next.
    FlowEntry(Mark, bool),
    /// The key, the value and the end of a mapping of one pair in a flow sequence are next.
    PairKey,
    PairValue,
    PairEnd,
    /// The first (true) or a later key of a flow mapping is next.
    FlowKey(Mark, bool),
    /// The value of a flow mapping's key is next.
    FlowValue,
    /// The absent value of a flow mapping's entry is next.
    FlowNoValue,
}

/// Parser of the first document.
pub(crate) struct Parser<'a> {
    scanner: Scanner<'a>,
    states: Vec<State>,
    handles: Vec<(String, String)>,
}

type EventResult = Result<Option<(Event, u64)>, YamlError>;

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            scanner: Scanner::new(text),
            states: vec![State::Document],
            handles: Vec::new(),
        }
    }

    /// Returns the next event and its line, counted from 0, or `None` at the end of the document. Text after the first
    /// document is not parsed.
    pub(crate) fn next(&mut self) -> EventResult {
        let Some(state) = self.states.pop() else {
            // The token after the document is scanned and may be invalid.
            self.scanner.peek()?;
            return Ok(None);
        };
        match state {
            State::Document => self.document(),
            State::DocumentContent => match self.kind()? {
                Kind::Version(..)
                | Kind::TagPrefix(..)
                | Kind::DocumentStart
                | Kind::DocumentEnd
                | Kind::StreamEnd => self.empty_scalar(),
                _ => self.node(true, false),
            },
            State::BlockEntry(start) => self.block_entry(start),
            State::IndentlessEntry => self.indentless_entry(),
            State::BlockKey(start) => self.block_key(start),
            State::BlockValue => self.block_value(),
            State::FlowEntry(start, first) => self.flow_entry(start, first),
            State::PairKey => self.pair_key(),
            State::PairValue => self.pair_value(),
            State::PairEnd => self.end(),
            State::FlowKey(start, first) => self.flow_key(start, first),
            State::FlowValue => self.flow_value(),
            State::FlowNoValue => self.empty_scalar(),
        }
    }

    fn kind(&mut self) -> Result<&Kind<'a>, YamlError> {
        Ok(&self.scanner.peek()?.kind)
    }

    fn mark(&mut self) -> Result<Mark, YamlError> {
        Ok(self.scanner.peek()?.mark)
    }

    fn take(&mut self) -> Result<Token<'a>, YamlError> {
        self.scanner.peek()?;
        self.scanner
            .take()
            .ok_or_else(|| YamlError::problem("unexpected end of the tokens"))
    }

    /// Returns an empty plain scalar, which is null.
    fn empty_scalar(&mut self) -> EventResult {
        let mark = self.mark()?;
        let event = Event::Scalar {
            text: String::new(),
            implicit: true,
            tag: None,
            anchor: None,
        };
        Ok(Some((event, mark.line)))
    }

    fn end(&mut self) -> EventResult {
        Ok(Some((Event::End, self.mark()?.line)))
    }

    /// Ends a collection with the next token.
    fn take_end(&mut self) -> EventResult {
        Ok(Some((Event::End, self.take()?.mark.line)))
    }

    /// Returns an error at the next token, in a collection that starts at `context`.
    fn fault(&mut self, context: Mark, problem: &str) -> YamlError {
        match self.mark() {
            Ok(mark) => fault(mark, context, problem),
            Err(error) => error,
        }
    }

    fn document(&mut self) -> EventResult {
        let directives = matches!(self.kind()?, Kind::Version(..) | Kind::TagPrefix(..));
        if !directives && *self.kind()? == Kind::StreamEnd {
            return Ok(None);
        }
        self.directives()?;
        if *self.kind()? == Kind::DocumentStart {
            self.take()?;
            self.states.push(State::DocumentContent);
        } else if directives {
            return Err(self.fault(Mark::default(), "did not find expected <document start>"));
        } else {
            return self.node(true, false);
        }
        self.next()
    }

    fn directives(&mut self) -> Result<(), YamlError> {
        let mut version = false;
        while matches!(self.kind()?, Kind::Version(..) | Kind::TagPrefix(..)) {
            let Token { kind, mark } = self.take()?;
            let problem = match kind {
                Kind::Version(..) if version => "found duplicate %YAML directive",
                Kind::Version(1, 1) => {
                    version = true;
                    continue;
                }
                Kind::TagPrefix(..) if self.handles.len() >= MAX_HANDLES => "found too many %TAG directives",
                Kind::TagPrefix(handle, prefix) if self.handles.iter().all(|(known, _)| *known != handle) => {
                    self.handles.push((handle, prefix));
                    continue;
                }
                Kind::TagPrefix(..) => "found duplicate %TAG directive",
                _ => "found incompatible YAML document",
            };
            return Err(fault(mark, Mark::default(), problem));
        }
        let known = KNOWN_HANDLES.map(|(handle, prefix)| (handle.to_owned(), prefix.to_owned()));
        self.handles.extend(known);
        Ok(())
    }

    /// Reads a value with its anchor and tag. `block` admits block collections, `indentless` a block sequence without
    /// indentation.
    fn node(&mut self, block: bool, indentless: bool) -> EventResult {
        let start = self.mark()?;
        if let Kind::Alias(name) = self.kind()? {
            let event = Event::Alias((*name).to_owned());
            self.take()?;
            return Ok(Some((event, start.line)));
        }
        let mut anchor = self.anchor()?;
        let tag = self.tag(start)?;
        if anchor.is_none() {
            anchor = self.anchor()?;
        }
        let mark = self.mark()?;
        let state = match self.kind()? {
            Kind::Scalar { .. } => return self.scalar(start, anchor, tag),
            Kind::BlockEntry if indentless => {
                self.states.push(State::IndentlessEntry);
                return Ok(Some((Event::Sequence { anchor }, start.line)));
            }
            Kind::FlowSequence => State::FlowEntry(mark, true),
            Kind::FlowMapping => State::FlowKey(mark, true),
            Kind::BlockSequence if block => State::BlockEntry(mark),
            Kind::BlockMapping if block => State::BlockKey(mark),
            _ if anchor.is_some() || tag.as_ref().is_some_and(|tag| !tag.is_empty()) => {
                let event = Event::Scalar {
                    text: String::new(),
                    implicit: tag.is_none(),
                    tag,
                    anchor,
                };
                return Ok(Some((event, start.line)));
            }
            _ => return Err(self.fault(start, "did not find expected node content")),
        };
        self.take()?;
        self.states.push(state);
        let event = match state {
            State::FlowEntry(..) | State::BlockEntry(_) => Event::Sequence { anchor },
            _ => Event::Mapping { anchor },
        };
        Ok(Some((event, start.line)))
    }

    fn scalar(&mut self, start: Mark, anchor: Option<String>, tag: Option<String>) -> EventResult {
        let Kind::Scalar { text, plain } = self.take()?.kind else {
            return Err(self.fault(start, "did not find expected node content"));
        };
        let implicit = match tag.as_deref() {
            None => plain,
            Some(tag) => tag == "!",
        };
        let event = Event::Scalar {
            text,
            implicit,
            tag,
            anchor,
        };
        Ok(Some((event, start.line)))
    }

    fn anchor(&mut self) -> Result<Option<String>, YamlError> {
        let Kind::Anchor(name) = self.kind()? else {
            return Ok(None);
        };
        let name = (*name).to_owned();
        self.take()?;
        Ok(Some(name))
    }

    /// Reads a tag and returns its full form.
    fn tag(&mut self, node: Mark) -> Result<Option<String>, YamlError> {
        if !matches!(self.kind()?, Kind::Tag(..)) {
            return Ok(None);
        }
        let token = self.take()?;
        let Kind::Tag(handle, suffix) = token.kind else {
            return Ok(None);
        };
        if handle.is_empty() {
            return Ok(Some(suffix));
        }
        match self.handles.iter().find(|(known, _)| *known == handle) {
            Some((_, prefix)) => Ok(Some(format!("{prefix}{suffix}"))),
            None => Err(fault(token.mark, node, "found undefined tag handle")),
        }
    }

    fn block_entry(&mut self, start: Mark) -> EventResult {
        match self.kind()? {
            Kind::BlockEntry => {
                self.take()?;
                self.states.push(State::BlockEntry(start));
                match self.kind()? {
                    Kind::BlockEntry | Kind::BlockEnd => self.empty_scalar(),
                    _ => self.node(true, false),
                }
            }
            Kind::BlockEnd => self.take_end(),
            _ => Err(self.fault(start, "did not find expected '-' indicator")),
        }
    }

    fn indentless_entry(&mut self) -> EventResult {
        if *self.kind()? != Kind::BlockEntry {
            return self.end();
        }
        self.take()?;
        self.states.push(State::IndentlessEntry);
        match self.kind()? {
            Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => self.empty_scalar(),
            _ => self.node(true, false),
        }
    }

    fn block_key(&mut self, start: Mark) -> EventResult {
        match self.kind()? {
            Kind::Key => {
                self.take()?;
                self.states.push(State::BlockKey(start));
                self.states.push(State::BlockValue);
                self.block_content()
            }
            Kind::BlockEnd => self.take_end(),
            _ => Err(self.fault(start, "did not find expected key")),
        }
    }

    fn block_value(&mut self) -> EventResult {
        if *self.kind()? != Kind::Value {
            return self.empty_scalar();
        }
        self.take()?;
        self.block_content()
    }

    /// Reads a key or a value of a block mapping.
    fn block_content(&mut self) -> EventResult {
        match self.kind()? {
            Kind::Key | Kind::Value | Kind::BlockEnd => self.empty_scalar(),
            _ => self.node(true, true),
        }
    }
}

/// Returns a syntax error at `place`. Go's reader counts these lines from 0 and omits line 0.
fn fault(place: Mark, context: Mark, problem: &str) -> YamlError {
    let line = [place.line, context.line].into_iter().find(|line| *line > 0);
    YamlError::Syntax {
        line,
        problem: problem.to_owned(),
    }
}
