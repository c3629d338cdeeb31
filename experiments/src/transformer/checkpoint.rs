//! Checkpoints: the state of a run in a file, which is there as a whole or not at all, with a checksum at its end.

use std::path::{Path, PathBuf};

use flate2::Crc;
use serde::{Serialize, de::DeserializeOwned};

use super::train::Plan;

/// The file of a run: "text-exact-96x2-1200x8-0.005-0.run" of so wide and so many layers, so many steps of so many windows, a rate
/// and a seed.
pub fn path(directory: &Path, plan: &Plan) -> PathBuf {
    let (Plan { task, steps, batch, rate, seed, size, .. }, method) = (plan, plan.method.replace('/', "+"));
    let name = format!("{task:?}-{method}-{}x{}-{steps}x{batch}-{rate}-{seed}.run", size.width, size.layers);
    directory.join(name.to_lowercase())
}

/// Writes to a file beside it, which then takes its name.
pub fn write(path: &Path, state: &impl Serialize) -> Result<(), String> {
    let cannot = |error: &dyn std::fmt::Display| format!("{} cannot be written: {error}", path.display());
    let mut bytes = postcard::to_stdvec(state).map_err(|error| cannot(&error))?;
    bytes.extend(checksum(&bytes));
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let new = path.with_extension("new");
    let written =
        directory.map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&new, bytes));
    written.and_then(|()| std::fs::rename(&new, path)).map_err(|error| cannot(&error))
}

/// What a file holds, or `None` if there is no such file.
pub fn read<S: DeserializeOwned>(path: &Path) -> Result<Option<S>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let none = |why: &dyn std::fmt::Display| format!("{} is no checkpoint: {why}", path.display());
    let (state, sum) = bytes.split_last_chunk().ok_or_else(|| none(&"it is too short"))?;
    if *sum != checksum(state) {
        return Err(none(&"its checksum is wrong"));
    }
    postcard::from_bytes(state).map(Some).map_err(|error| none(&error))
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}
