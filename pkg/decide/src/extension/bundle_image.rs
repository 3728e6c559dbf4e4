//! Image reference of a bundle.

use olm_image::{Reference, ReferenceError};
use olm_text::name::ImageText;

/// Image reference of a bundle as written in its catalog, with the result of one parse: it may be invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleImage {
    text: ImageText,
    reference: Result<Reference, ReferenceError>,
}

impl BundleImage {
    /// Returns the reference as written.
    pub fn text(&self) -> &ImageText {
        &self.text
    }

    /// Returns the parsed reference.
    pub fn reference(&self) -> Result<&Reference, &ReferenceError> {
        self.reference.as_ref()
    }
}

impl From<ImageText> for BundleImage {
    fn from(text: ImageText) -> Self {
        let reference = text.parse();
        Self { text, reference }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_reference_keeps_its_text() {
        for (text, is_valid) in [("registry.example/a:1", true), ("registry.example/A b", false)] {
            let image = BundleImage::from(ImageText::from(text));
            assert_eq!(image.text(), &ImageText::from(text));
            assert_eq!(image.reference().is_ok(), is_valid, "{text}");
        }
    }
}
