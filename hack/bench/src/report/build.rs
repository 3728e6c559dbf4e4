//! Names of builds: the Rust target and the profile of the measured programs.

use std::path::Path;

/// Returns the build of the programs in a folder, such as `x86_64-unknown-linux-musl, release`. Cargo names the folder after both; it
/// leaves out the target if that is the machine's own. `environment` is that of the build, and may change the profile by variables such
/// as `CARGO_PROFILE_RELEASE_LTO`.
pub fn build(programs: &Path, environment: impl Iterator<Item = (String, String)>) -> String {
    let name = |path: Option<&Path>| Some(path?.file_name()?.to_string_lossy().into_owned());
    let target =
        name(programs.parent()).filter(|parent| parent.split('-').count() > 2 && parent.contains("linux"));
    let profile = name(Some(programs)).unwrap_or_default();
    let prefix = prefix(&profile);
    let mut words = vec![
        target.unwrap_or_else(|| "target of the machine".to_owned()),
        profile,
    ];
    let changes = environment.filter(|(key, _)| key.starts_with(&prefix));
    let mut changes: Vec<String> = changes.map(|(key, value)| format!("{key}={value}")).collect();
    changes.sort();
    words.extend(changes);
    words.join(", ")
}

/// Returns the prefix of the variables that change the profile with this folder.
fn prefix(folder: &str) -> String {
    let profile = if folder == "debug" { "dev" } else { folder };
    format!("CARGO_PROFILE_{}_", profile.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_names_its_target_and_what_changes_its_profile() {
        let of = |path: &str, environment: &[(&str, &str)]| {
            let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            build(Path::new(path), environment.iter().map(owned))
        };
        let musl = "/a/target/x86_64-unknown-linux-musl/release";
        assert_eq!(of(musl, &[]), "x86_64-unknown-linux-musl, release");
        assert_eq!(
            of(
                musl,
                &[
                    ("HOME", "/"),
                    ("CARGO_PROFILE_RELEASE_LTO", "off"),
                    ("CARGO_PROFILE_DEV_DEBUG", "0"),
                ]
            ),
            "x86_64-unknown-linux-musl, release, CARGO_PROFILE_RELEASE_LTO=off"
        );
        assert_eq!(
            of("/my-linux/target/debug", &[("CARGO_PROFILE_DEV_DEBUG", "0")]),
            "target of the machine, debug, CARGO_PROFILE_DEV_DEBUG=0"
        );
    }
}
