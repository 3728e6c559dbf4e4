//! Writing one generation into a temporary folder.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufWriter, Write},
    path::Path,
    thread,
};

use olm_catalog_files::walk;
use olm_runtime::parsing;

use super::{
    Limits, Manifest, Origin, StorageError, files,
    forms::Forms,
    generation::{CONTENT, INDEX, MANIFEST},
    index::Builder,
};

/// Reads the catalog below `source` and writes a whole generation into the existing, empty folder
/// `target`, synced. `stored_at` says, for the content's digest, since when there is such content;
/// `interrupted` is asked before every file and every so many objects.
pub(super) fn write(
    source: &Path,
    target: &Path,
    limits: &Limits,
    origin: Origin,
    stored_at: impl FnOnce(&str) -> i64,
    interrupted: &dyn Fn() -> bool,
) -> Result<Manifest, StorageError> {
    let mut index = Builder::new(target, limits.objects);
    let forms = thread::scope(|scope| {
        let mut forms = Forms::start(scope, target)?;
        let read = read(source, limits, &mut index, &mut forms, interrupted);
        // Why a thread could not write explains more than that the reading stopped.
        let written = forms.finish();
        match (read, written) {
            (Err(error), _) | (Ok(()), Err(error)) => Err(error),
            (Ok(()), Ok(forms)) => Ok(forms),
        }
    })?;
    let mut infos: BTreeMap<_, _> = forms
        .into_iter()
        .map(|(name, info)| (name.to_owned(), info))
        .collect();
    let digest = infos
        .get(CONTENT)
        .map(|info| info.sha256.clone())
        .unwrap_or_default();
    let counts = index.counts();
    let index_path = target.join(INDEX);
    let mut index_file = files::create(&index_path)?;
    index.write(&mut index_file, &index_path)?;
    infos.insert(INDEX.to_owned(), files::seal(index_file, &index_path)?);
    let manifest = Manifest::new(origin, counts, stored_at(&digest), digest, infos);
    let manifest_path = target.join(MANIFEST);
    let file = fs::File::create_new(&manifest_path).map_err(StorageError::io("create", &manifest_path))?;
    let mut file = BufWriter::new(file);
    file.write_all(&manifest.to_bytes())
        .and_then(|()| file.flush())
        .and_then(|()| file.get_ref().sync_all())
        .map_err(StorageError::io("write", &manifest_path))?;
    files::sync_folder(target)?;
    Ok(manifest)
}

/// Reads all files of a catalog once, in order.
fn read(
    source: &Path,
    limits: &Limits,
    index: &mut Builder,
    forms: &mut Forms<'_>,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), StorageError> {
    /// How many objects are read between two questions.
    const OFTEN: u64 = 256;
    let mut size = 0;
    for (path, name) in walk(source, &limits.tree)? {
        if interrupted() {
            return Err(StorageError::Interrupted);
        }
        let file = fs::File::open(&path).map_err(StorageError::io("open", &path))?;
        let length = file.metadata().map_err(StorageError::io("read", &path))?.len();
        let mut turn = parsing::turn(length);
        for meta in olm_fbc::decode(file, &limits.of_a_file()) {
            let meta = meta.map_err(|source| StorageError::Decode {
                file: name.clone(),
                source,
            })?;
            size += meta.blob.len() as u64;
            if size > limits.content {
                return Err(StorageError::TooLarge {
                    what: "bytes",
                    limit: limits.content,
                });
            }
            index.add(&meta)?;
            if !forms.add(&meta.blob) {
                return Ok(());
            }
            if index.counts().metas.is_multiple_of(OFTEN) {
                if interrupted() {
                    return Err(StorageError::Interrupted);
                }
                // A long file lets others in.
                drop(turn);
                turn = parsing::turn(length);
            }
        }
    }
    Ok(())
}
