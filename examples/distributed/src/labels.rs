//! [`ClassNames`]: labels as places among classes.

use datafusion::arrow::datatypes::DataType;

/// The names of classes, and how labels are compared with them.
#[derive(Clone, Debug)]
pub struct ClassNames<'a> {
    names: &'a [String],
    /// The names as numbers, for labels that are: a label 1.0 is of the class 1.
    numbers: Option<Vec<Option<f64>>>,
}

impl<'a> ClassNames<'a> {
    /// The names of classes, for labels of a type. Floats and decimals are compared as numbers, all other labels as texts.
    pub fn new(names: &'a [String], labels: &DataType) -> Self {
        let are_numbers = labels.is_floating() || labels.is_decimal();
        let numbers = are_numbers.then(|| names.iter().map(|name| name.parse().ok()).collect());
        ClassNames { names, numbers }
    }

    /// The place of a label's class; a sentence, which begins with the column, if there is none.
    pub fn place(&self, label: &str, column: &str) -> Result<usize, String> {
        let place = match &self.numbers {
            Some(numbers) => {
                label.parse().ok().and_then(|label: f64| numbers.iter().position(|own| *own == Some(label)))
            }
            None => self.names.iter().position(|name| name == label),
        };
        let names = self.names;
        place.ok_or_else(|| format!("{column} holds {label:?}, which is none of the classes {names:?}"))
    }
}
