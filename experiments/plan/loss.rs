//! What a plan minimises.

use experiments::command::Request;
use random_features::planner::Loss;

/// The loss that is asked for.
pub fn requested(request: &Request) -> Result<Loss, String> {
    match request.text("--loss").as_deref() {
        None | Some("gram") => Ok(Loss::Gram),
        Some("weights") => Ok(Loss::AttentionWeights),
        Some("mean") => Ok(Loss::RelativeMean),
        Some("median") => Ok(Loss::RelativeMedian),
        Some("90") => Ok(Loss::RelativeNinety),
        Some("99") => Ok(Loss::RelativeNinetyNine),
        Some(name) => Err(format!("--loss {name} is not known: gram, weights, mean, median, 90 or 99")),
    }
}
