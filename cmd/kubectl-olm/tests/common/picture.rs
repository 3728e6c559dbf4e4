//! Comparison of screenshots with stored ones.
//!
//! Letters differ by a pixel between releases of a browser and its fonts, so squares of pixels are compared by their mean colour:
//! what is missing, moved or without its colour differs in many squares.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// Side of a square in pixels.
const SIDE: usize = 20;
/// Difference of a mean from which a square differs, of 255.
const TOLERANCE: u32 = 24;
/// Most squares that may differ, in percent.
const PERCENT: usize = 3;
/// Variable that makes the tests write the pictures instead of comparing them.
const WRITE: &str = "OLM_WRITE_PICTURES";

/// Mean colours of the squares of a picture, row by row.
struct Squares {
    size: (u32, u32),
    means: Vec<[u32; 3]>,
}

impl Squares {
    fn read(picture: &[u8]) -> Result<Self> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(picture));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let mut bytes = vec![0; reader.output_buffer_size().context("a picture without an end")?];
        let info = reader.next_frame(&mut bytes)?;
        let samples = info.color_type.samples();
        ensure!(samples >= 3, "{:?} is no colour", info.color_type);
        let (width, height) = (info.width as usize, info.height as usize);
        let mut means = Vec::new();
        for top in (0..height).step_by(SIDE) {
            for left in (0..width).step_by(SIDE) {
                let (bottom, right) = ((top + SIDE).min(height), (left + SIDE).min(width));
                let mut sum = [0_u32; 3];
                for row in top..bottom {
                    let start = row * info.line_size;
                    let pixels = &bytes[start + left * samples..start + right * samples];
                    for pixel in pixels.chunks_exact(samples) {
                        for (total, value) in sum.iter_mut().zip(pixel) {
                            *total += u32::from(*value);
                        }
                    }
                }
                let count = u32::try_from((bottom - top) * (right - left))?;
                means.push(sum.map(|total| total / count));
            }
        }
        Ok(Self {
            size: (info.width, info.height),
            means,
        })
    }
}

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/pictures/{name}.png"))
}

/// Checks that a picture looks like the stored one of this name, or stores it.
pub(crate) fn assert_alike(name: &str, picture: &[u8]) -> Result<()> {
    if std::env::var_os(WRITE).is_some() {
        let path = stored(name);
        std::fs::create_dir_all(path.parent().context("no folder")?)?;
        return Ok(std::fs::write(path, picture)?);
    }
    let percent = difference(name, picture)?;
    ensure!(
        percent <= PERCENT,
        "{name}: {percent} % of the squares look different; set {WRITE} to write the pictures anew"
    );
    Ok(())
}

/// Checks that a picture does not look like the stored one of this name.
pub(crate) fn assert_different(name: &str, picture: &[u8]) -> Result<()> {
    ensure!(
        difference(name, picture)? > PERCENT,
        "{name}: nothing looks different"
    );
    Ok(())
}

/// Returns the squares that look different from the stored picture, in percent, rounded up.
fn difference(name: &str, picture: &[u8]) -> Result<usize> {
    let path = stored(name);
    let before =
        std::fs::read(&path).with_context(|| format!("{}: set {WRITE} to write it", path.display()))?;
    let (before, after) = (Squares::read(&before)?, Squares::read(picture)?);
    ensure!(
        before.size == after.size,
        "{name}: {:?}, not {:?}",
        after.size,
        before.size
    );
    let pairs = before.means.iter().zip(&after.means);
    let differing = pairs.filter(|(a, b)| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > TOLERANCE));
    Ok((differing.count() * 100).div_ceil(before.means.len()))
}
