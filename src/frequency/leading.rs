//! The first blocks of a draw, as frequencies of their own: what a search over their number compares.

use ndarray::{Array2, s};

use super::frequencies::{Frequencies, FrequencyForm};
use super::structured::Structured;
use crate::error::Result;
use crate::theory::{BlockLaw, Dependence, Law, Run};

impl Frequencies {
    /// The first whole blocks that hold `count` frequencies or more, or all frequencies if there are fewer. A draw of a single
    /// block, such as one of independent rows, is cut after any row, or after any pair if rows come in pairs.
    ///
    /// By its provenance the result is given numbers, so no map knows that it shares them with the whole draw.
    ///
    /// # Errors
    /// Frequencies of a sound law cause none.
    pub(crate) fn leading(&self, count: usize) -> Result<Frequencies> {
        let law = leading(self.law(), count);
        if law.len() >= self.m() {
            return Ok(self.clone());
        }
        let form = match self.structured() {
            None => {
                let rows: Array2<f64> = self.rows().slice(s![..law.len(), ..]).to_owned();
                FrequencyForm::Dense(rows)
            }
            Some(structured) => {
                let mut left = law.len();
                let mut blocks = Vec::new();
                for block in structured.blocks() {
                    let mut block = block.clone();
                    block.radii.truncate(left);
                    left -= block.radii.len();
                    blocks.push(block);
                }
                blocks.retain(|block| !block.radii.is_empty());
                FrequencyForm::Structured(Structured::new(structured.dim(), structured.padded(), blocks)?)
            }
        };
        Frequencies::given(form, law)
    }
}

/// The law of the first whole blocks with `count` rows or more, or of all blocks. A single block is cut to `count` rows, or
/// to the next even number of them if they come in pairs.
fn leading(law: &Law, count: usize) -> Law {
    if let [Run { block, count: 1, .. }] = law.runs() {
        let count = count.clamp(1, block.size);
        let size = if block.antithetic { count.next_multiple_of(2) } else { count };
        let size = size.min(block.size);
        let dependence = match block.dependence {
            // Some radii of a block are not coupled as all of them.
            Dependence::CoupledRadii(_) | Dependence::OverallRadii(_) if size < block.size => {
                Dependence::Unknown
            }
            own => own,
        };
        return Law::of_blocks([BlockLaw { size, dependence, ..block.clone() }]);
    }
    let mut left = count.max(1);
    let whole = law.runs().iter().map_while(|Run { block, count, .. }| {
        let blocks = left.div_ceil(block.size).min(*count);
        left = left.saturating_sub(blocks * block.size);
        (blocks > 0).then(|| Run::new(block.clone(), blocks))
    });
    Law::of_blocks(whole)
}

#[cfg(test)]
mod tests {
    use super::super::{Antithetic, Coupling, Hadamard, Independent, Orthogonal, Simplex, Sobol};
    use crate::theory::{Dependence, Law, RadiusCoupling};

    /// Some radii of a block are not coupled as all of them.
    #[test]
    fn a_part_of_a_block_with_coupled_radii_has_no_known_law() {
        let omega = Orthogonal.with_coupled_radii(RadiusCoupling::Paired).draw(8, 8, 3).unwrap();
        let dependence = |count: usize| omega.leading(count).unwrap().law().runs()[0].block.dependence;
        assert_eq!(dependence(5), Dependence::Unknown);
        assert!(matches!(dependence(8), Dependence::CoupledRadii(_)));
    }

    #[test]
    fn blocks_stay_whole() {
        let counts = |coupling: &dyn Coupling, m: usize, asked: usize| {
            let omega = coupling.draw(5, m, 3).unwrap();
            let leading = omega.leading(asked).unwrap();
            let rows = omega.rows();
            let first = rows.slice(ndarray::s![..leading.m(), ..]);
            let difference = &leading.rows() - &first;
            assert!(difference.iter().all(|v| v.abs() < 1e-12), "{coupling:?}");
            assert_eq!(leading.law().len(), leading.m());
            leading.m()
        };
        assert_eq!(counts(&Independent, 40, 7), 7);
        assert_eq!((counts(&Orthogonal, 40, 7), counts(&Orthogonal, 40, 10)), (10, 10));
        assert_eq!((counts(&Orthogonal, 42, 41), counts(&Orthogonal, 42, 50)), (42, 42));
        assert_eq!(counts(&Simplex::default(), 40, 1), 5);
        assert_eq!(counts(&Antithetic(Orthogonal), 40, 11), 20);
        assert_eq!(counts(&Antithetic(Independent), 40, 11), 12);
        assert_eq!(counts(&Antithetic(Independent), 41, usize::MAX), 41);
        assert_eq!(counts(&Hadamard::default(), 40, 17), 32);
        assert_eq!(counts(&Sobol, 40, 17), 17);
    }

    #[test]
    fn the_law_is_that_of_the_blocks() {
        let law = Orthogonal.draw(5, 13, 1).unwrap().leading(6).unwrap().law().clone();
        assert_eq!(law, Law::orthogonal(5, 10));
        let one = Orthogonal.draw(5, 4, 1).unwrap().leading(2).unwrap();
        assert_eq!(one.law().runs()[0].block.dependence, Dependence::Orthogonal);
        assert_eq!(one.m(), 2);
        let whole = Orthogonal.draw(5, 13, 1).unwrap();
        assert_eq!(whole.leading(13).unwrap(), whole);
    }
}
