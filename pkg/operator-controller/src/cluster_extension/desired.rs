//! The revision that an extension needs, for the namespaces that it selects by labels.

use olm_decide::extension::desired_state::Settings;
use olm_decide::extension::identity::config;
use olm_decide::extension::{self as decide, DesiredState, History, RenderInputs, Resolved};

use super::failed::Failed;
use super::failure::Failure;
use super::gather::image::Located;
use super::pass::Pass;

impl Pass<'_> {
    /// Returns the revision that the extension needs, and its selected namespaces; `None` without a selector. Namespaces that changed
    /// lately are no reason for a new revision yet; the next pass rolls them out. Every other change is rolled out now.
    pub(super) fn desired(
        &self,
        resolved: &Resolved,
        history: &History,
        located: &Located<'_>,
        settings: Settings<'_>,
    ) -> Result<(DesiredState, Option<Vec<String>>), Failed> {
        let config = config(self.extension);
        let state = |namespaces: Option<&[String]>| {
            let inputs = RenderInputs {
                bundle: &resolved.bundle,
                canonical_image: &located.image,
                namespace: self
                    .extension
                    .spec
                    .namespace
                    .as_deref()
                    .or(history.chosen_namespace()),
                config: config.as_ref(),
                namespaces,
                provider: located.provider,
            };
            let moved_from = resolved.moved_from.as_ref();
            decide::desired_state(&self.name, settings, &inputs, moved_from, history, self.now)
                .map_err(Failed::Refused)
        };
        let newest = history.newest();
        let selected = self.namespaces.clone().map_err(Failure::NamespacesUnread)?;
        let settling = selected
            .as_ref()
            .is_some_and(|selected| selected.settles.is_some());
        let namespaces = selected.map(|selected| selected.names);
        let wanted = state(namespaces.as_deref())?;
        let before = newest.and_then(|newest| newest.namespaces.clone());
        if settling && before.is_some() && wanted.is_other() {
            let former = state(before.as_deref())?;
            if !former.is_other() {
                return Ok((former, before));
            }
        }
        Ok((wanted, namespaces))
    }
}
