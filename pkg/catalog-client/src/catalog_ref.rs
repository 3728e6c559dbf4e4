//! Reference to the content of a catalog.

use olm_text::name::CatalogName;
use url::Url;

use crate::error::ClientError;

/// Catalog according to its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogRef {
    /// Name of the catalog.
    pub name: CatalogName,
    /// `status.urls.base`.
    pub base_url: String,
    /// `status.resolvedSource.image.ref` or its digest, the key of the cache. Responses with another digest are
    /// rejected; if empty, any content is accepted.
    pub digest: String,
}

impl CatalogRef {
    /// Returns the URL of an endpoint of the catalog's content API.
    pub(crate) fn url(&self, endpoint: &str, query: &[(&str, &str)]) -> Result<Url, ClientError> {
        let invalid = || ClientError::Url {
            catalog: self.name.clone(),
            url: self.base_url.clone(),
        };
        let mut url = Url::parse(&self.base_url).map_err(|_| invalid())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid());
        }
        url.path_segments_mut()
            .map_err(|()| invalid())?
            .pop_if_empty()
            .extend(["api", "v1", endpoint]);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let mut catalog = CatalogRef {
            name: "c".into(),
            base_url: "https://catalogd.svc/catalogs/c/".to_owned(),
            digest: "d".to_owned(),
        };
        let built = catalog.url("metas", &[("package", "a&b c")]).unwrap();
        assert_eq!(
            built.as_str(),
            "https://catalogd.svc/catalogs/c/api/v1/metas?package=a%26b+c"
        );
        for bad in ["", "file:///etc", "catalogd"] {
            bad.clone_into(&mut catalog.base_url);
            assert!(catalog.url("all", &[]).is_err(), "{bad}");
        }
    }
}
