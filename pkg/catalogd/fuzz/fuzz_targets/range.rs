//! `Range` headers: a part is within its content.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (size, text) = data.split_at(data.len().min(8));
    let size = size.iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
    olm_catalogd_fuzz::any_range(text, size);
});
