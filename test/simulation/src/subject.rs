//! The subject of a call: the object that the calling task reconciles.
//!
//! The queues of the controllers hand out objects in random order, and two passes may send equal calls at the same time. The
//! subject, which comes from the tracing span of the pass, orders such calls, so that a schedule repeats exactly.

use std::fmt::{Debug, Write as _};
use std::sync::LazyLock;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Metadata, Span, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Names of the spans that the controllers open around a pass.
const PASSES: [&str; 2] = ["extension", "revision"];

static SUBJECTS: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Registry::default().with(Subjects)));

/// Installs a tracing subscriber on this thread that records the subjects of spans, until the result is dropped. It logs nothing.
pub(crate) fn follow() -> DefaultGuard {
    tracing::dispatcher::set_default(&SUBJECTS)
}

/// Returns the subject of the current task; empty outside of a pass.
pub(crate) fn current() -> String {
    let found = Span::current().with_subscriber(|(id, dispatch)| {
        let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
        let subject = span.extensions().get::<Subject>()?.0.clone();
        Some(subject)
    });
    found.flatten().unwrap_or_default()
}

/// Fields of a span, as text.
#[derive(Default)]
struct Subject(String);

impl Visit for Subject {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

/// Tracing layer that stores the subject in each span of a pass.
struct Subjects;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Subjects {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.is_span() && PASSES.contains(&metadata.name())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut subject = Subject::default();
        attributes.record(&mut subject);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_names_its_object() {
        let _following = follow();
        assert_eq!(current(), "");
        let pass = tracing::info_span!("revision", revision = "alpha-1").entered();
        assert_eq!(current(), "revision=\"alpha-1\" ");
        let step = tracing::info_span!("step", step = "render").entered();
        assert_eq!(current(), "revision=\"alpha-1\" ", "other spans do not count");
        drop((step, pass));
        assert_eq!(current(), "");
    }
}
