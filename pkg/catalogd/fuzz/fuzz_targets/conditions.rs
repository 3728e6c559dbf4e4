//! Headers of conditional requests and `Accept-Encoding`: conditions follow the RFC, whatever the lists and dates hold.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| olm_catalogd_fuzz::any_conditions(data));
