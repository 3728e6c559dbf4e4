//! Control plane, registry, image builders and pod stand-in for tests and the demo.
//!
//! All components are real except nodes, which [`PodStandIn`] replaces. No process outlives the process that started
//! it, however that one ends.

mod aggregated;
pub mod assets;
pub mod audit;
mod control_plane;
pub mod controller_image;
pub mod controllers;
mod crds;
pub mod demo;
mod growing_file;
pub mod host_libraries;
pub mod image;
pub mod kstatus;
mod kubeconfig;
pub mod layout;
pub mod pki;
pub mod ports;
pub mod process;
mod process_stats;
pub mod registries_conf;
mod registry;
pub mod scratch;
mod settings;
mod stand_in;
pub mod stub;
pub mod tls;
pub mod wait;
pub mod workspace;

pub use aggregated::AggregatedServer;
pub use assets::Assets;
pub use control_plane::ControlPlane;
pub use controllers::{Catalogd, ControllerOptions, OperatorController, build_controllers, kubectl_olm};
pub use crds::{apply_crds, install_crds};
pub use growing_file::GrowingFile;
pub use image::{Format, ImageBuilder, bundle_image_from_dir, catalog_image_from_dir};
pub use process::{Process, Spawn};
pub use process_stats::ProcessStats;
pub use registry::{Registry, RegistryOptions, TokenService};
pub use stand_in::PodStandIn;
pub use wait::eventually;

/// Returns a short random part of a name, valid in names of Kubernetes and of images: eight lower-case hex digits.
pub fn unique_id() -> String {
    data_encoding::HEXLOWER.encode(&rand::random::<[u8; 4]>())
}
