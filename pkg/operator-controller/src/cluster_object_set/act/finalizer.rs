//! The finalizer of a revision. Before it goes, the number of the revision goes to the extension.

use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use olm_api::names::Segment;
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_decide::numbers;
use olm_decide::object_set as decide;
use olm_runtime::client::is_absent;
use serde_json::json;

use crate::cluster_object_set::context::Context;
use crate::cluster_object_set::error::{Error, limited};

impl Context {
    /// Removes the finalizer of a revision whose objects are gone.
    pub(crate) async fn release(&self, set: &ClusterObjectSet, name: &str) -> Result<(), Error> {
        if decide::is_held(set) {
            match self.leave_number(set, name).await {
                // Others changed the extension meanwhile.
                Err(error) if error.overtaken() => self.leave_number(set, name).await?,
                other => other?,
            }
            self.set_finalizer(set, name, false).await?;
        }
        Ok(())
    }

    /// Writes the number of the revision to its extension, so that [no later revision](numbers) gets it.
    async fn leave_number(&self, set: &ClusterObjectSet, name: &str) -> Result<(), Error> {
        if numbers::has_later(set, self.family(set).iter().map(AsRef::as_ref)) {
            return Ok(());
        }
        // A revision without an owner, or with a label that others made up.
        let Ok(owner) = Segment::new(decide::owner_name(set)) else {
            return Ok(());
        };
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        let read = limited(
            "reading the extension of",
            name,
            extensions.get_metadata_opt(&owner),
        )
        .await?;
        let Some(extension) = read.filter(|extension| numbers::must_be_noted(set, extension)) else {
            return Ok(());
        };
        let number = set.spec.revision.to_string();
        let patch = json!({"metadata": {
            "uid": extension.uid(),
            "resourceVersion": extension.resource_version(),
            "annotations": {keys::HIGHEST_GONE_REVISION_ANNOTATION: number},
        }});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let call = extensions.patch_metadata(&owner, &params, &patch);
        match limited("keeping the number of", name, call).await {
            Err(Error::Call { source, .. }) if is_absent(&source) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Adds or removes the finalizer. Returns true if the revision had to change.
    pub(super) async fn set_finalizer(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        wanted: bool,
    ) -> Result<bool, Error> {
        if decide::is_held(set) == wanted {
            return Ok(false);
        }
        let patched = self.patch_finalizers(name, set.finalizers(), self.written.version(set), wanted);
        match patched.await {
            Err(Error::Call { source, .. }) if is_absent(&source) => return Ok(true),
            Err(error) if error.overtaken() => {}
            other => return other.map(|()| true),
        }
        // Others changed the revision, perhaps its finalizers, which must stay.
        let sets: Api<ClusterObjectSet> = Api::all(self.client.clone());
        let live = limited("reading", name, sets.get_opt(name)).await?;
        let Some(live) = live.filter(|live| live.uid() == set.uid()) else {
            return Ok(true);
        };
        let patched = self.patch_finalizers(name, live.finalizers(), live.resource_version(), wanted);
        match patched.await {
            Err(Error::Call { source, .. }) if is_absent(&source) => Ok(true),
            other => other.map(|()| true),
        }
    }

    /// Sets the finalizers of the revision at `version` to `present`, with or without that of teardowns.
    async fn patch_finalizers(
        &self,
        name: &str,
        present: &[String],
        version: Option<String>,
        wanted: bool,
    ) -> Result<(), Error> {
        let mut finalizers = present.to_vec();
        finalizers.retain(|f| f != keys::TEARDOWN_FINALIZER);
        if wanted {
            finalizers.push(keys::TEARDOWN_FINALIZER.to_owned());
        }
        let sets: Api<ClusterObjectSet> = Api::all(self.client.clone());
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let call = sets.patch_metadata(name, &params, &patch);
        let patched = limited("keeping the finalizer of", name, call).await?;
        if wanted {
            self.written.note(&patched);
        } else {
            self.written.note_release(&patched);
        }
        Ok(())
    }
}
