//! Bundle that operator-controller keeps although no catalog is selected.

use kube::ResourceExt as _;
use olm_api::{ClusterExtension, ClusterObjectSet};
use olm_decide::extension::{BundleRef, History, kept};
use olm_fbc::Property;
use olm_resolve::{DeprecationInfo, Explanation, Resolution};
use olm_version::RequestedRange;

use crate::failure::Failure;
use crate::resolution_input::selects;
use crate::source::Cluster;

/// Bundle of a revision that stays.
#[derive(Debug)]
pub(crate) struct Kept(BundleRef);

impl Kept {
    /// Returns the bundle that the extension keeps, if the selector matches no `ClusterCatalog` and `range` asks for no other version.
    ///
    /// # Errors
    /// The cluster cannot be read, or the selector is invalid.
    pub(crate) async fn find(
        cluster: &Cluster,
        extension: &ClusterExtension,
        range: Option<&RequestedRange>,
    ) -> Result<Option<Self>, Failure> {
        let selector = selects(extension)?;
        let catalogs = cluster.cluster_catalogs().await?;
        // An unavailable catalog that is selected counts.
        if catalogs.iter().any(|catalog| selector.matches(catalog.labels())) {
            return Ok(None);
        }
        let revisions = cluster.revisions(Some(&extension.name_any())).await?;
        Ok(Self::of(&revisions, range))
    }

    fn of(revisions: &[ClusterObjectSet], range: Option<&RequestedRange>) -> Option<Self> {
        kept(&History::read(revisions), range).cloned().map(Self)
    }

    /// Returns name and version of the bundle.
    pub(crate) fn title(&self) -> String {
        format!("{} ({})", self.0.name, self.0.version)
    }

    /// Returns true if `want` is the version or the name of the bundle.
    pub(crate) fn is(&self, want: &str) -> bool {
        want == self.0.version.as_str() || want == self.0.name.as_str()
    }

    /// Returns the bundle as if it was resolved; none if its recorded version cannot be parsed. No catalog tells its properties.
    pub(crate) fn resolution(&self) -> Option<Resolution> {
        let bundle = &self.0;
        Some(Resolution {
            catalog: bundle.catalog.clone().unwrap_or_default(),
            bundle: bundle.name.clone(),
            image: bundle.image.text().clone(),
            version: bundle.version.parsed().ok()?.clone(),
            properties: Vec::<Property>::new(),
            min_kube_version: None,
            deprecation: DeprecationInfo::default(),
            left_out: Vec::new(),
            moved_from: None,
            held_back: None,
            explanation: Explanation::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::stand_in::revision;

    #[test]
    fn the_newest_bundle_stays_unless_the_spec_asks_for_another() {
        let revisions = [revision(1, "1.0.0", true), revision(2, "1.1.0", false)];
        let kept = |range: Option<&str>| {
            let range = range.and_then(RequestedRange::new);
            Kept::of(&revisions, range.as_ref()).map(|kept| kept.title())
        };
        assert_eq!(kept(None).as_deref(), Some("kite.v1.1.0 (1.1.0)"));
        assert_eq!(kept(Some("1.0.0")).as_deref(), Some("kite.v1.0.0 (1.0.0)"));
        // operator-controller compares the text of the range.
        assert_eq!(kept(Some("1.x")), None);
        assert!(Kept::of(&[], None).is_none());
    }

    #[test]
    fn a_kept_bundle_is_that_of_its_revision() {
        let kept = Kept::of(&[revision(1, "1.0.0", true)], None).unwrap();
        assert!(kept.is("1.0.0") && kept.is("kite.v1.0.0") && !kept.is("1.1.0"));
        let found = kept.resolution().unwrap();
        assert_eq!(
            (found.catalog.as_str(), found.bundle.as_str(), &*found.image),
            ("sky", "kite.v1.0.0", "r.example/kite")
        );
    }
}
