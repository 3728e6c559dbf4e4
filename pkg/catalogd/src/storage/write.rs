//! Writing one generation into a temporary folder.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufWriter, Write},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};

use super::{
    Manifest, Origin, StorageError, WalkLimits, files,
    generation::{CONTENT, CONTENT_GZIP, CONTENT_ZSTD, INDEX, MANIFEST},
    index::Builder,
    walk,
};

/// Most bytes of canonical blobs of one catalog.
const MAX_CONTENT: u64 = 8 * 1024 * 1024 * 1024;
/// zstd's level: as fast as gzip's fastest, smaller than its best.
const ZSTD_LEVEL: i32 = 3;

/// Reads the catalog below `source` and writes a whole generation into the existing, empty folder
/// `target`, synced. `stored_at` says, for the content's digest, since when there is such content;
/// `interrupted` is asked before every file.
pub(super) fn write(
    source: &Path,
    target: &Path,
    origin: Origin,
    stored_at: impl FnOnce(&str) -> i64,
    interrupted: &dyn Fn() -> bool,
) -> Result<Manifest, StorageError> {
    let (content_path, gzip_path, zstd_path) = (
        target.join(CONTENT),
        target.join(CONTENT_GZIP),
        target.join(CONTENT_ZSTD),
    );
    let mut content = files::create(&content_path)?;
    let mut gzip = GzEncoder::new(files::create(&gzip_path)?, Compression::default());
    let mut zstd = zstd::Encoder::new(files::create(&zstd_path)?, ZSTD_LEVEL)
        .map_err(StorageError::io("compress", &zstd_path))?;
    let mut index = Builder::new();
    let mut size = 0;
    for (path, name) in walk(source, &WalkLimits::default())? {
        if interrupted() {
            return Err(StorageError::Interrupted);
        }
        let file = fs::File::open(&path).map_err(StorageError::io("open", &path))?;
        for meta in olm_fbc::decode(file, &olm_fbc::Limits::default()) {
            let meta = meta.map_err(|source| StorageError::Decode {
                file: name.clone(),
                source,
            })?;
            size += meta.blob.len() as u64;
            if size > MAX_CONTENT {
                return Err(StorageError::TooLarge {
                    what: "bytes",
                    limit: MAX_CONTENT,
                });
            }
            index.add(&meta)?;
            content
                .write_all(&meta.blob)
                .map_err(StorageError::io("write", &content_path))?;
            gzip.write_all(&meta.blob)
                .map_err(StorageError::io("write", &gzip_path))?;
            zstd.write_all(&meta.blob)
                .map_err(StorageError::io("write", &zstd_path))?;
        }
    }
    let mut infos = BTreeMap::new();
    let content = files::seal(content, &content_path)?;
    let digest = content.sha256.clone();
    infos.insert(CONTENT.to_owned(), content);
    let gzip = gzip.finish().map_err(StorageError::io("write", &gzip_path))?;
    infos.insert(CONTENT_GZIP.to_owned(), files::seal(gzip, &gzip_path)?);
    let zstd = zstd.finish().map_err(StorageError::io("write", &zstd_path))?;
    infos.insert(CONTENT_ZSTD.to_owned(), files::seal(zstd, &zstd_path)?);
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
