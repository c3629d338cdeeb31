//! [`Draw`]: a draw as plain data; [`draw_with`]: draws from any coupling and radii.

use super::any_coupling::AnyCoupling;
use super::blocks;
use super::coupling::Coupling;
use super::frequencies::Frequencies;
use crate::digest::{Digest, Identify, identified};
use crate::error::Result;
use crate::generator::{Generator, rng_of_step};
use crate::kernel::{Radii, Radius};
use crate::theory::Law;

/// A draw of frequencies as plain data, which can be stored, compared and repeated.
///
/// ```
/// use random_features::frequency::Orthogonal;
/// use random_features::recipe::Draw;
/// let draw = Draw::new(16, 40, Orthogonal);
/// assert_eq!(draw.draw(7)?, Orthogonal.draw(16, 40, 7)?);
/// assert_eq!(&draw.law(), draw.draw(7)?.law());
/// assert_ne!(draw.clone().with_stream(3).draw(7)?, draw.draw(7)?);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Equal draws of one seed give equal frequencies. Draws that differ in d, m, coupling, radii or
/// [stream](Draw::with_stream) share no numbers: the generator of a draw is ChaCha8 of the seed, in the stream whose
/// number is a hash of the whole draw.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Draw {
    /// d, the dimension of each frequency.
    pub d: usize,
    /// m, the number of frequencies.
    pub m: usize,
    /// How the frequencies depend on each other.
    pub coupling: AnyCoupling,
    /// The law of the norms ‖ω‖. Couplings with a law of coordinates, such as [`Product`](super::Product), ignore it.
    pub radii: Radius,
    /// The number of the stream: streams of one seed are independent.
    pub stream: u64,
}

identified! { Draw { d, m, coupling, radii, stream } }

impl Draw {
    /// A draw of m frequencies in ℝᵈ with radii χ_d, from stream 0. Equal draws that must be independent need different
    /// [streams](Draw::with_stream).
    pub fn new(d: usize, m: usize, coupling: impl Into<AnyCoupling>) -> Self {
        Draw { d, m, coupling: coupling.into(), radii: Radius::Chi, stream: 0 }
    }

    /// Sets the law of the radii. [Drawing](Draw::draw) needs a law with a name, as every law of this crate has.
    #[must_use]
    pub fn with_radii(self, radii: impl Radii) -> Self {
        Draw { radii: radii.law(), ..self }
    }

    /// Sets the number of the random stream: draws of one seed from different streams are independent. It is 0 unless set.
    #[must_use]
    pub fn with_stream(self, stream: u64) -> Self {
        Draw { stream, ..self }
    }

    /// The draw that [`draw_with`] makes; `None` if the coupling or the law of its radii has no name.
    fn named(d: usize, m: usize, coupling: &dyn Coupling, radii: &dyn Radii) -> Option<Self> {
        let radii = coupling.radius(radii.law());
        let coupling = coupling.recipe().filter(|_| radii.names_radii())?;
        Some(Draw { d, m, coupling, radii, stream: 0 })
    }

    /// The law of the frequencies. Cost O(1).
    pub fn law(&self) -> Law {
        blocks::law(self.d, self.m, &self.coupling, self.radii)
    }

    /// The dimension to which points are padded: N for structured couplings, else d.
    pub fn padded_dim(&self) -> usize {
        self.coupling.padded_dim(self.d)
    }

    /// The frequencies of this draw for a seed.
    ///
    /// # Errors
    /// The errors of [`Orthogonal::draw`](super::Orthogonal::draw), and those of the radii; [`Sampler`](crate::Error::Sampler) if a law has no name.
    pub fn draw(&self, seed: u64) -> Result<Frequencies> {
        let (radii, mut rng) = (self.radii.radii()?, generator(seed, "draw", self));
        let form = blocks::draw_rows(self.d, self.m, &self.coupling, radii.as_ref(), &mut rng)?;
        Frequencies::drawn(form, self.clone(), seed)
    }
}

/// The generator of a draw: a stream of its own for every description of what is drawn.
pub(super) fn generator(seed: u64, kind: &str, description: &impl Identify) -> Generator {
    let mut digest = Digest::new();
    digest.text(kind);
    description.identify(&mut digest);
    rng_of_step(seed, std::hash::Hasher::finish(&digest))
}

/// Draws `m` frequencies in ℝᵈ with radii of this law.
///
/// Where coupling and radii have a name, this is the [`Draw`] of these names. A draw from a coupling or radii of one's own
/// has a stream of its own too, which depends on their `Debug` text.
pub fn draw_with(
    d: usize,
    m: usize,
    coupling: &dyn Coupling,
    radii: &dyn Radii,
    seed: u64,
) -> Result<Frequencies> {
    if let Some(draw) = Draw::named(d, m, coupling, radii) {
        return draw.draw(seed);
    }
    let own = Own { d, m, text: format!("{coupling:?} {radii:?}") };
    let form = blocks::draw_rows(d, m, coupling, radii, &mut generator(seed, "own draw", &own))?;
    Frequencies::given(form, blocks::law(d, m, coupling, radii.law()))
}

/// The description of a draw from a coupling or radii without a name.
struct Own {
    d: usize,
    m: usize,
    text: String,
}

impl Identify for Own {
    fn identify(&self, digest: &mut Digest) {
        [self.d, self.m].identify(digest);
        digest.text(&self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::{
        Antithetic, Givens, Hadamard, Halton, Independent, Orthogonal, Product, RotationLaw, Simplex,
        SimplexPlus, Sobol,
    };
    use crate::kernel::{Cauchy, Smoothness};
    use crate::theory::RadiusCoupling;

    /// Streams and stored identities follow from these: a change here is a change of both.
    #[test]
    fn identities_are_pinned() {
        let of = |coupling: AnyCoupling| Draw::new(3, 4, coupling);
        let hadamard = Hadamard::default();
        let with = |radii| Draw { radii, ..of(Independent.into()) };
        let pinned = [
            (of(Independent.into()), "4080a9fd1da7c21c"),
            (of(Orthogonal.into()), "8200b060af57e493"),
            (of(Simplex::default().into()), "64e9ddbf08289203"),
            (of(Simplex::default().with_truncated_blocks().into()), "9920b5e349982e49"),
            (of(Simplex::on(RotationLaw::Hadamard(hadamard)).into()), "4a17331ea21672e3"),
            (of(Simplex::on(RotationLaw::Givens(Givens::default())).into()), "9a754758a0ebe7dc"),
            (of(SimplexPlus::default().into()), "41a6b7c5b482fcdb"),
            (of(hadamard.into()), "673bdc22d28e2142"),
            (of(Givens::default().into()), "efe321b6ac0f42d1"),
            (of(Givens::default().with_rounds(3).into()), "a6b60e4965c4d3b3"),
            (of(Halton.into()), "af357e9162aa0952"),
            (of(Sobol.into()), "b99baf98239e8150"),
            (of(Product(Cauchy).into()), "a2017180369a8761"),
            (of(Halton.with_marginal(Cauchy).into()), "4f8a28d89d2552b4"),
            (of(Sobol.with_marginal(Cauchy).into()), "d52f5b62275e0e0b"),
            (of(Antithetic(Independent).into()), "196fc2f7f65ee28c"),
            (of(Orthogonal.with_coupled_radii(RadiusCoupling::Antithetic).into()), "8fd9a6ea772c2339"),
            (of(Orthogonal.with_coupled_radii(RadiusCoupling::Stratified).into()), "84beedc7a82244d8"),
            (of(Orthogonal.with_coupled_radii(RadiusCoupling::Systematic).into()), "7a56ce57a7e855bf"),
            (of(Orthogonal.with_coupled_radii(RadiusCoupling::Paired).into()), "210617b5ae622302"),
            (of(Orthogonal.with_coupled_radii(RadiusCoupling::Overall).into()), "ffd55e888dc0a9ef"),
            (of(Hadamard::default().with_coupled_radii(RadiusCoupling::Paired).into()), "198ed3fcd2a88238"),
            (with(Radius::RootDim), "4e5e09f2b0ba975f"),
            (with(Radius::Matern(Smoothness::Half)), "cdba579c247ca6c9"),
            (with(Radius::Matern(Smoothness::ThreeHalves)), "f4c3812c18398e3b"),
            (with(Radius::Matern(Smoothness::FiveHalves)), "41844768e26639fa"),
            (with(Radius::Matern(Smoothness::Nu(0.8))), "75711d9111b72a84"),
            (with(Radius::RationalQuadratic { alpha: 1.5 }), "3a103a18f8c590fe"),
            (with(Radius::PoweredExponential { alpha: 1.5 }), "c56db044fca0da14"),
            (with(Radius::Cauchy), "6c8d1922bcebebce"),
            (with(Radius::Other), "16f0fabc35e5dba4"),
            (with(Radius::OtherProduct), "95b26123e72192e5"),
            (with(Radius::Unstated), "bac6a0e9f2bfe1b8"),
            (Draw::new(4, 4, Independent), "5cc79b4cd23a6680"),
            (Draw::new(3, 5, Independent), "3d4a73f8b4995617"),
            (of(Independent.into()).with_stream(1), "a016d1a0946a1e3c"),
        ];
        let found = pinned.each_ref().map(|(draw, _)| format!("{:016x}", Digest::of(draw)));
        assert_eq!(found, pinned.each_ref().map(|(_, identity)| *identity));
    }

    /// Drawn frequencies are identified by draw and seed, given ones by numbers and law.
    #[test]
    fn provenance_is_identity() {
        let omega = Draw::new(3, 4, Orthogonal).draw(7).unwrap();
        assert_eq!(format!("{:016x}", Digest::of(&omega)), "3394d48068c1bc9a");
        let again = Draw::new(3, 4, Orthogonal).draw(7).unwrap();
        assert!(omega.same_draw(&again) && omega.rows() == again.rows());
        let other = Draw::new(3, 4, Orthogonal).draw(8).unwrap();
        assert!(!omega.same_draw(&other) && omega.rows() != other.rows());
        let rows = || ndarray::arr2(&[[0.5, -1.0], [2.0, 0.25]]);
        let given = Frequencies::from_rows(rows()).unwrap();
        assert_eq!(format!("{:016x}", Digest::of(&given)), "2759a98c33244680");
        let stated = Frequencies::from_parts(rows(), Law::independent(2)).unwrap();
        assert!(given.same_draw(&stated) && given.rows() == stated.rows());
        assert_ne!(Digest::of(&given), Digest::of(&stated));
        let copied = Frequencies::from_parts(omega.rows().into_owned(), omega.law().clone()).unwrap();
        assert!(!copied.same_draw(&omega) && copied.rows() == omega.rows());
    }
}
