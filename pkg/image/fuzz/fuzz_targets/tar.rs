//! Layers of any bytes: nothing beside the root changes, and no link leads out of it.
#![no_main]

use std::{fs, path::Path};

use libfuzzer_sys::fuzz_target;

fuzz_target!(|layer: &[u8]| {
    let memory = Path::new("/dev/shm");
    let outer = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    }
    .expect("a scratch directory");
    let root = outer.path().join("root");
    fs::create_dir(&root).expect("a root");
    olm_image_fuzz::unpack(layer, &root).expect("a scratch file");
    assert_eq!(fs::read_dir(outer.path()).expect("the scratch directory").count(), 1);
    contained(&root, &root);
});

fn contained(root: &Path, directory: &Path) {
    for entry in fs::read_dir(directory).expect("a directory of ours") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("its kind");
        if kind.is_dir() {
            contained(root, &entry.path());
        } else if kind.is_symlink() {
            match entry.path().canonicalize() {
                Ok(real) => assert!(real.starts_with(root), "{real:?}"),
                Err(_) => assert!(!fs::read_link(entry.path()).expect("a link").is_absolute()),
            }
        } else {
            assert!(kind.is_file());
        }
    }
}
