//! [`State`]: sums as they travel.

use datafusion::common::Result;
use random_features::apply::RidgeStatistics;
use random_features::apply::pca::PcaStatistics;
use random_features::data::Reservoir;
use random_features::data::shaping::Moments;
use random_features::reduce::GramSums;

use super::kind::Kind;
use super::moments::Held;
use super::read;
use crate::columns::Scalar;
use crate::fault::{external, refuse};
use crate::map::MapSpec;

/// The first bytes of a state, with the version of its form.
const MAGIC: &[u8; 4] = b"rfs2";
/// The bytes before the sums: magic, kind, scalar, whether rows are known, mark of the constants, checksum.
const HEAD: usize = 15;

/// Sums as they travel: what they are of, with a mark of the constants, whether their rows are known, a checksum, and the library's stored form, with the rows
/// that are held and the identity of the map.
///
/// ```
/// use random_features_distributed::sums::State;
/// assert!(State::of_bytes(b"something else").is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// What is summed.
    pub(super) kind: Kind,
    /// Whether points and features are of `f64`.
    pub(super) double: bool,
    /// Whether rows are numbered over the whole table.
    pub(super) rows: bool,
    /// [`Constants::mark`](super::Constants::mark).
    pub(super) mark: u32,
    /// The stored form.
    pub(super) sums: Vec<u8>,
}

impl State {
    /// The bytes that travel.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.sums.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.about());
        bytes.extend_from_slice(&self.checksum().to_le_bytes());
        bytes.extend_from_slice(&self.sums);
        bytes
    }

    /// The state of bytes that have travelled.
    ///
    /// # Errors
    /// A sentence if they are not a state, or have changed.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self> {
        let Some((head, sums)) = bytes.split_at_checked(HEAD).filter(|(head, _)| head.starts_with(MAGIC))
        else {
            return refuse("these bytes are not a state of sums");
        };
        let [_, _, _, _, kind, double, rows, m0, m1, m2, m3, checksum @ ..] = head else {
            return refuse("these bytes are not a state of sums");
        };
        let mark = u32::from_le_bytes([*m0, *m1, *m2, *m3]);
        let (Some(kind), 0..=1, 0..=1) = (Kind::of_tag(*kind), double, rows) else {
            return refuse(
                "a state of sums is of an unknown kind: it has changed on its way, or is of another version",
            );
        };
        let state = State { kind, double: *double == 1, rows: *rows == 1, mark, sums: sums.to_vec() };
        match state.checksum().to_le_bytes() == *checksum {
            true => Ok(state),
            false => refuse("a state of sums has changed on its way: its checksum is wrong"),
        }
    }

    /// What stands before the checksum.
    fn about(&self) -> [u8; 7] {
        let [m0, m1, m2, m3] = self.mark.to_le_bytes();
        [self.kind.tag(), u8::from(self.double), u8::from(self.rows), m0, m1, m2, m3]
    }

    fn checksum(&self) -> u32 {
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&self.about());
        checksum.update(&self.sums);
        checksum.finalize()
    }

    /// What is summed.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the points were `f64`, and not `f32`.
    pub fn is_double(&self) -> bool {
        self.double
    }

    /// Whether rows are numbered over the whole table: only then is a row that counts twice an error.
    pub fn knows_rows(&self) -> bool {
        self.rows
    }

    /// The number of rows.
    ///
    /// # Errors
    /// A sentence if the sums cannot be read.
    pub fn count(&self) -> Result<u64> {
        match (self.kind, self.double) {
            (Kind::Sample, _) => Ok(self.sample()?.rows()),
            (Kind::Moments, _) => Ok(self.moments()?.rows()),
            (_, false) => Ok(self.gram::<f32>()?.rows()),
            (_, true) => Ok(self.gram::<f64>()?.rows()),
        }
    }

    /// The sums of products of features.
    ///
    /// # Errors
    /// A sentence if these are no such sums, or those of another scalar.
    pub fn gram<T: Scalar>(&self) -> Result<GramSums<T>> {
        read(&self.sums)
    }

    /// The statistics of a ridge regression, with the map.
    ///
    /// # Errors
    /// A sentence if these are other sums or those of another scalar, and as [`RidgeStatistics::of_sums`].
    pub fn ridge<T: Scalar>(&self, map: &MapSpec) -> Result<RidgeStatistics<T>> {
        match self.kind {
            Kind::Ridge | Kind::Classes => {
                RidgeStatistics::of_sums(map.draw()?, self.gram()?).map_err(external)
            }
            other => refuse(format!("a state of {} is not one of a ridge regression", other.name())),
        }
    }

    /// The statistics of a kernel PCA, with the map.
    ///
    /// # Errors
    /// As [`ridge`](State::ridge).
    pub fn pca<T: Scalar>(&self, map: &MapSpec) -> Result<PcaStatistics<T>> {
        match self.kind {
            Kind::Pca => PcaStatistics::of_sums(map.draw()?, self.gram()?).map_err(external),
            other => refuse(format!("a state of {} is not one of a PCA", other.name())),
        }
    }

    /// The statistics and the sample.
    ///
    /// # Errors
    /// A sentence if these are other sums.
    pub fn sample(&self) -> Result<Reservoir> {
        match self.kind {
            Kind::Sample => read(&self.sums),
            other => refuse(format!("a state of {} is not a sample", other.name())),
        }
    }

    /// The means and second moments.
    ///
    /// # Errors
    /// A sentence if these are other sums.
    pub fn moments(&self) -> Result<Moments> {
        match self.kind {
            Kind::Moments => Ok(read::<Held>(&self.sums)?.moments),
            other => refuse(format!("a state of {} has no second moments", other.name())),
        }
    }

    /// Rejects a state of other sums than those of a kind, with these constants.
    pub(super) fn check(&self, kind: Kind, double: bool, mark: u32) -> Result<()> {
        let scalar = |double: bool| if double { "f64" } else { "f32" };
        if (self.kind, self.double) != (kind, double) {
            return refuse(format!(
                "a state of {} in {} is not merged with one of {} in {}",
                self.kind.name(),
                scalar(self.double),
                kind.name(),
                scalar(double)
            ));
        }
        match self.mark == mark {
            true => Ok(()),
            false => refuse(format!(
                "two states of {} have other constants: recipe and seed, classes and their order, or the size and seed of the sample",
                kind.name()
            )),
        }
    }

    /// Adds another state, of the same kind and with the same constants.
    ///
    /// # Errors
    /// A sentence if kinds, scalars or constants differ, or a row is in both.
    pub fn merge(self, other: &State) -> Result<State> {
        other.check(self.kind, self.double, self.mark)?;
        let sums = match (self.kind, self.double) {
            (Kind::Sample, _) => {
                let mut sums = self.sample()?;
                sums.merge(&other.sample()?).map_err(external)?;
                super::stored(&sums)?
            }
            (Kind::Moments, _) => {
                let mut sums: Held = read(&self.sums)?;
                sums.merge(&read(&other.sums)?)?;
                super::stored(&sums)?
            }
            (_, false) => merged::<f32>(&self, other)?,
            (_, true) => merged::<f64>(&self, other)?,
        };
        Ok(State { sums, rows: self.rows && other.rows, ..self })
    }
}

/// The sums of both.
fn merged<T: Scalar>(one: &State, other: &State) -> Result<Vec<u8>> {
    let mut sums = one.gram::<T>()?;
    sums.merge(&other.gram()?).map_err(external)?;
    super::stored(&sums)
}
