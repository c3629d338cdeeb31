//! Whether a claim holds: by statements that are compared with numbers, one by one.

use std::fmt;

use crate::mean::Mean;

/// Differences of fewer standard errors decide nothing. A statement that is true to the last digit of equality is contradicted with
/// probability 0.00135, if means are normal.
pub const LIMIT: f64 = 3.0;

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Holds,
    /// So many of so many statements are true.
    InPart([usize; 2], String),
    DoesNotHold(String),
    Undecided(String),
}

impl Default for Verdict {
    /// Of no statements.
    fn default() -> Self {
        Claim::default().verdict()
    }
}

impl Verdict {
    /// In a word or two, with counts where a claim holds in part.
    pub fn brief(&self) -> String {
        match self {
            Verdict::InPart([right, of], _) => format!("in part ({right} of {of})"),
            _ => self.parts().0.to_owned(),
        }
    }

    /// One word, and why.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Verdict::Holds => ("holds", ""),
            Verdict::InPart(_, why) => ("in part", why),
            Verdict::DoesNotHold(why) => ("does not hold", why),
            Verdict::Undecided(why) => ("undecided", why),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (word, "") => f.write_str(word),
            (word, why) => write!(f, "{word}: {why}"),
        }
    }
}

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    True,
    False,
    Undecided,
}

/// The statements that make up a claim.
#[derive(Default)]
pub struct Claim(Vec<(String, Answer)>);

impl Claim {
    /// A statement about closed forms, or about counts.
    pub fn is(&mut self, statement: impl Into<String>, truth: bool) {
        self.0.push((statement.into(), if truth { Answer::True } else { Answer::False }));
    }

    /// That one mean is less than another: true or false where they are [`LIMIT`] standard errors apart.
    pub fn less(&mut self, statement: impl Into<String>, a: Mean, b: Mean) {
        let apart = a.below(b);
        let answer = match apart {
            _ if apart >= LIMIT => Answer::True,
            _ if apart <= -LIMIT => Answer::False,
            _ => Answer::Undecided,
        };
        self.0.push((statement.into(), answer));
    }

    /// That a difference is below a bound to either side.
    pub fn within(&mut self, statement: impl Into<String>, difference: Mean, bound: f64) {
        let apart = Mean { value: difference.value.abs(), ..difference };
        self.less(statement, apart, Mean::exact(bound));
    }

    /// That a mean is not above a bound: false where it is [`LIMIT`] standard errors above.
    pub fn not_above(&mut self, statement: impl Into<String>, mean: Mean, bound: f64) {
        self.is(statement, mean.value - LIMIT * mean.error <= bound);
    }

    /// That two means agree: false where they are [`LIMIT`] standard errors apart, and further than `tolerance` times the second.
    pub fn agree(&mut self, statement: impl Into<String>, a: Mean, b: Mean, tolerance: f64) {
        let apart = (a.value - b.value).abs();
        let near = apart <= tolerance * b.value.abs() || apart <= LIMIT * a.error.hypot(b.error);
        self.is(statement, near);
    }

    /// The claim holds if all statements are true, and does not if none is and some are false; without either it is undecided. Else it
    /// holds in part. What is false or undecided is named.
    pub fn verdict(self) -> Verdict {
        let named = |answer: Answer| -> Vec<&str> {
            self.0.iter().filter(|(_, own)| *own == answer).map(|(text, _)| text.as_str()).collect()
        };
        let (wrong, open) = (named(Answer::False), named(Answer::Undecided));
        if wrong.is_empty() && open.is_empty() && !self.0.is_empty() {
            return Verdict::Holds;
        }
        let list = |what: &str, names: &[&str]| match names.len() {
            0 => None,
            1..=4 => Some(format!("{what}: {}", names.join("; "))),
            more => Some(format!("{what}: {}; and {} more", names[..3].join("; "), more - 3)),
        };
        let true_ones = self.0.len() - wrong.len() - open.len();
        let counts = format!("{true_ones} of {} statements are true", self.0.len());
        let why: Vec<String> = [Some(counts), list("not true", &wrong), list("undecided", &open)]
            .into_iter()
            .flatten()
            .collect();
        let why = why.join(". ");
        match (true_ones, wrong.len()) {
            (0, 0) => Verdict::Undecided(why),
            (0, _) => Verdict::DoesNotHold(why),
            _ => Verdict::InPart([true_ones, self.0.len()], why),
        }
    }
}
