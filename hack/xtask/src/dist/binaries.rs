//! Static binaries of all programs, for each platform of a release.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

use super::archive::{Entry, tar_gz};
use super::release::Release;
use crate::code::Files;
use crate::shell::{self, cargo, output, root};

/// Names of the programs in a release.
pub(super) const PROGRAMS: [&str; 3] = ["catalogd", "operator-controller", "kubectl-olm"];

/// A platform of a release.
struct Target {
    /// Name of the architecture in OCI and krew.
    arch: &'static str,
    triple: &'static str,
    /// C compilers that can link for the platform. The first installed one is used.
    linkers: &'static [&'static str],
}

const TARGETS: [Target; 2] = [
    Target {
        arch: "amd64",
        triple: "x86_64-unknown-linux-musl",
        linkers: &["x86_64-linux-musl-gcc", "musl-gcc"],
    },
    Target {
        arch: "arm64",
        triple: "aarch64-unknown-linux-musl",
        linkers: &["aarch64-linux-musl-gcc"],
    },
];

/// Returns the names of the architectures of a release, also of those for which this machine cannot link.
pub(crate) fn architectures() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|target| target.arch)
}

/// Folders of a compilation.
pub(super) struct Place {
    sources: PathBuf,
    target: PathBuf,
    /// Folder that is removed at the end.
    _temporary: Option<TempDir>,
}

impl Place {
    /// Returns the folders of the checkout.
    pub(super) fn here() -> Self {
        Self {
            sources: root(),
            target: shell::target_dir(),
            _temporary: None,
        }
    }

    /// Copies the checkout to a temporary folder, which needs about 3 GB. A copy below the checkout would also have its settings of cargo.
    pub(super) fn elsewhere() -> anyhow::Result<Self> {
        let temporary = tempfile::tempdir().context("cannot create a temporary folder")?;
        let place = Self {
            sources: temporary.path().join("copy/of/the/sources"),
            target: temporary.path().join("build"),
            _temporary: Some(temporary),
        };
        fs::create_dir_all(&place.sources)
            .with_context(|| format!("cannot create {}", place.sources.display()))?;
        Files::now()?.write(&place.sources)?;
        Ok(place)
    }
}

/// Folders of binaries, by architecture.
pub(super) struct Binaries(BTreeMap<&'static str, PathBuf>);

impl Binaries {
    /// Takes the binaries of an existing folder.
    pub(super) fn existing(folder: &Path) -> anyhow::Result<Self> {
        eprintln!(
            "binaries for amd64 are those of {}; NOT BUILT: arm64",
            folder.display()
        );
        Self::complete(BTreeMap::from([("amd64", folder.to_owned())]))
    }

    /// Compiles the binaries for each platform for which this machine can link.
    pub(super) fn compile(release: &Release, place: &Place) -> anyhow::Result<Self> {
        let mut folders = BTreeMap::new();
        for target in &TARGETS {
            match target.linker() {
                Ok(linker) => {
                    folders.insert(target.arch, target.compile(linker, release, place)?);
                }
                Err(missing) => eprintln!("NOT BUILT: {}: {missing}", target.arch),
            }
        }
        ensure!(!folders.is_empty(), "no platform can be linked here");
        Self::complete(folders)
    }

    /// Fails if a binary is missing.
    fn complete(folders: BTreeMap<&'static str, PathBuf>) -> anyhow::Result<Self> {
        let binaries = Self(folders);
        for (arch, program) in binaries.all() {
            let path = binaries.path(arch, program)?;
            ensure!(path.is_file(), "{} does not exist", path.display());
        }
        Ok(binaries)
    }

    /// Returns the architectures.
    pub(super) fn architectures(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// Returns all binaries, as architecture and program.
    fn all(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.architectures()
            .flat_map(|arch| PROGRAMS.map(|program| (arch, program)))
    }

    /// Returns the path of a binary.
    pub(super) fn path(&self, arch: &str, program: &str) -> anyhow::Result<PathBuf> {
        let folder = self
            .0
            .get(arch)
            .with_context(|| format!("no binaries for {arch}"))?;
        Ok(folder.join(program))
    }

    /// Writes one archive per binary, which also contains the licence.
    pub(super) fn archive(&self, out: &Path, release: &Release) -> anyhow::Result<()> {
        let licence = fs::read(root().join("LICENSE")).context("cannot read LICENSE")?;
        for (arch, program) in self.all() {
            let path = self.path(arch, program)?;
            let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let files = BTreeMap::from([
                entry(program, content, true),
                entry("LICENSE", licence.clone(), false),
            ]);
            tar_gz(&out.join(archive_name(program, arch)), &files, release.epoch)?;
        }
        Ok(())
    }
}

fn entry(name: &str, content: Vec<u8>, executable: bool) -> (String, Entry) {
    (name.to_owned(), Entry { content, executable })
}

/// Returns the file name of a binary's archive.
pub(super) fn archive_name(program: &str, arch: &str) -> String {
    format!("{program}-linux-{arch}.tar.gz")
}

impl Target {
    /// Returns the linker for the platform, or a sentence about the missing part.
    fn linker(&self) -> Result<&'static str, String> {
        let sysroot = sysroot().map_err(|error| format!("{error:#}"))?;
        let library = Path::new(&sysroot).join("lib/rustlib").join(self.triple);
        if !library.is_dir() {
            return Err(format!("run `rustup target add {}`", self.triple));
        }
        self.linkers
            .iter()
            .copied()
            .find(|linker| output(Command::new(linker).arg("--version")).is_ok())
            .ok_or_else(|| format!("none of the linkers {} is installed", self.linkers.join(", ")))
    }

    /// Compiles all programs and returns their folder.
    fn compile(&self, linker: &str, release: &Release, place: &Place) -> anyhow::Result<PathBuf> {
        let variable = self.triple.to_uppercase().replace('-', "_");
        let lower = self.triple.replace('-', "_");
        let maps = path_maps(place)?;
        let rust: Vec<String> = maps
            .iter()
            .map(|(from, to)| format!("--remap-path-prefix={from}={to}"))
            .collect();
        let c: Vec<String> = maps
            .iter()
            .map(|(from, to)| format!("-ffile-prefix-map={from}={to}"))
            .collect();
        let mut command = cargo();
        command
            .current_dir(&place.sources)
            .env("CARGO_TARGET_DIR", &place.target)
            .args(["build", "--release", "--locked", "--target", self.triple])
            .args(PROGRAMS.iter().flat_map(|program| ["--package", program]))
            // Flags of the environment would replace those of .cargo/config.toml; a setting adds to them.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS")
            .arg("--config")
            .arg(format!("target.{}.rustflags={rust:?}", self.triple))
            .env(format!("CFLAGS_{lower}"), c.join(" "))
            .env(format!("CC_{lower}"), linker)
            .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
            .env("OLM_VERSION", &release.version)
            .env("OLM_COMMIT", &release.commit)
            .env("OLM_TREE_STATE", release.tree_state)
            .env("OLM_BUILD_DATE", release.date()?);
        // rustc links musl by itself on its own architecture. For another architecture, it needs a C compiler of that platform.
        if !self.triple.starts_with(std::env::consts::ARCH) {
            command.env(format!("CARGO_TARGET_{variable}_LINKER"), linker);
        }
        shell::run(&mut command)?;
        Ok(place.target.join(self.triple).join("release"))
    }
}

/// Returns the folder of the toolchain.
fn sysroot() -> anyhow::Result<String> {
    let mut rustc = Command::new("rustc");
    let printed = output(rustc.current_dir(root()).args(["--print", "sysroot"]))?;
    Ok(printed.trim().to_owned())
}

/// Returns the folders of this machine whose paths must not be in binaries, with their replacements.
fn path_maps(place: &Place) -> anyhow::Result<Vec<(String, &'static str)>> {
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || std::env::home_dir().map(|home| home.join(".cargo")),
        |home| Some(PathBuf::from(home)),
    );
    let home = home.context("neither CARGO_HOME nor a home directory is known")?;
    // rustc applies the last match: the inner folder follows the outer one.
    Ok(vec![
        (home.display().to_string(), "/cargo"),
        (sysroot()?, "/rust"),
        (place.sources.display().to_string(), "/olm"),
        (place.target.display().to_string(), "/target"),
    ])
}
