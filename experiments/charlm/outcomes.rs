//! What came out of runs, in a file, so that no run is made twice.

use std::path::PathBuf;

use experiments::transformer::checkpoint;
use serde::{Serialize, de::DeserializeOwned};

/// What came out for each thing that was asked.
pub struct Outcomes<Q, A> {
    path: PathBuf,
    all: Vec<(Q, A)>,
}

impl<Q, A> Outcomes<Q, A>
where
    Q: Clone + PartialEq + Serialize + DeserializeOwned,
    A: Clone + Serialize + DeserializeOwned,
{
    /// The outcomes that a file holds, if there is one. It is written at once: a folder where that fails is noticed before a run.
    pub fn read(path: PathBuf) -> Result<Self, String> {
        let all = checkpoint::read(&path)?.unwrap_or_default();
        checkpoint::write(&path, &all)?;
        Ok(Outcomes { path, all })
    }

    /// What is known, or what comes out of `run`, which is written to the file.
    pub fn of(&mut self, asked: &Q, run: impl FnOnce() -> Result<A, String>) -> Result<A, String> {
        if let Some((_, answer)) = self.all.iter().find(|(known, _)| known == asked) {
            return Ok(answer.clone());
        }
        let answer = run()?;
        self.all.push((asked.clone(), answer.clone()));
        checkpoint::write(&self.path, &self.all)?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_out_is_not_run_again() {
        let directory = std::env::temp_dir().join(format!("charlm-outcomes-{}", std::process::id()));
        let read = || Outcomes::<u8, f64>::read(directory.join("numbers.results")).unwrap();
        let mut first = read();
        assert_eq!(first.of(&1, || Ok(0.5)), Ok(0.5));
        assert_eq!(first.of(&2, || Err("it failed".into())), Err("it failed".into()));
        let again = || -> Result<f64, String> { panic!("it is run again") };
        assert_eq!(first.of(&1, again), Ok(0.5));
        let mut second = read();
        assert_eq!(second.of(&1, again), Ok(0.5));
        // What failed is tried again.
        assert_eq!(second.of(&2, || Ok(1.5)), Ok(1.5));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
