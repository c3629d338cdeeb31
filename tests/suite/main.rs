//! The integration tests, in one program: what is generic is compiled once.

mod common;

mod activation_gradients;
mod arrays;
#[cfg(feature = "arrow")]
mod arrow;
mod attention;
mod clusters;
mod composed;
mod conditioned;
#[cfg(feature = "serde")]
mod config;
mod conformance;
mod counting;
mod coupled_radii;
mod dense;
mod draws;
mod engine;
mod exact_points;
mod faults;
mod fold;
mod for_kernel;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod glm;
mod guards;
mod hybrid;
mod identity;
mod kernel_gradients;
mod kernels;
#[cfg(any(feature = "arrow", feature = "sparse"))]
mod layouts;
mod lengthscale;
mod limits;
mod maps;
mod metrics;
mod moments;
mod nonlinear;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod nystroem;
mod own_kernel;
mod pairs;
mod parameter_gradients;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod pca;
mod periodic;
mod planner;
mod points;
mod powered_exponential;
mod quasi;
mod redraw;
mod ridge;
mod shaping;
mod sketch;
mod smoother;
mod softmax_sampling;
#[cfg(feature = "sparse")]
mod sparse;
mod spectral_mixture;
mod standing;
mod statistics;
mod stopped;
#[cfg(feature = "serde")]
mod stored;
mod structured;
mod sum_norm;
mod theory;
mod threads;
mod weighted_sum;

#[path = "../sets/mod.rs"]
mod sets;

/// Whole maps against naive loops, where they are exact, hybrids of them, and identities. What is learnt from many draws follows
/// from that: it is the same on each instruction set up to rounding, far below a standard error. How work is cut for threads does
/// not depend on the set, and that a batch has the bits of its rows is tested on each. Shapes are checked before anything is computed.
#[test]
fn whole_maps_on_each_instruction_set() {
    let of_any_set = [
        "conformance::threads_change_no_bit",
        "conformance::parallel_regions_change_no_bit",
        "conformance::wrong_shapes_are_refused_and_nothing_is_written",
    ];
    let others: Vec<&str> = hybrid::BY_DRAWS.into_iter().chain(of_any_set).collect();
    sets::run_on_each(&["conformance", "exact_points", "hybrid", "identity"], &others);
}
