//! [`Draws`]: classes that were drawn, and how probable that was.

use ndarray::Array2;

/// Classes drawn for some points h, with the probabilities that they had.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Draws {
    /// k classes for each row of h, n × k, independent of each other and with replacement.
    pub classes: Array2<usize>,
    /// ln q of each, n × k.
    pub log_probabilities: Array2<f64>,
    /// For each row the mass that was clipped on the ways to the draws, as a share: the mean over the draws of 1 − Π (1 −
    /// N/(N + P)) over the nodes of a way, where P is the sum of the positive estimates among which the node decides and N
    /// that of the magnitudes of negative ones. 0 for maps without negative features; 1 where nothing was positive but something negative.
    pub clipped: Vec<f64>,
}

impl Draws {
    /// Draws from elsewhere, with ln of their probabilities, n × k each; nothing counts as clipped.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if the sizes differ.
    pub fn new(classes: Array2<usize>, log_probabilities: Array2<f64>) -> crate::Result<Self> {
        let ((n, k), (rows, columns)) = (classes.dim(), log_probabilities.dim());
        crate::error::check_size("the number of rows of the probabilities", n, rows)?;
        crate::error::check_size("the number of columns of the probabilities", k, columns)?;
        Ok(Draws { classes, log_probabilities, clipped: vec![0.0; n] })
    }
}
