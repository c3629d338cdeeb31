//! Whether a claim holds: by statements that are compared with numbers, one by one.

use std::fmt;

use crate::mean::Mean;
use crate::table::Table;

/// Differences of fewer standard errors decide nothing. A statement that is true to the last digit of equality is contradicted with
/// probability 0.00135, if means are normal.
pub const LIMIT: f64 = 3.0;

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    True,
    False,
    Undecided,
}

impl Answer {
    fn name(self) -> &'static str {
        match self {
            Answer::True => "true",
            Answer::False => "not true",
            Answer::Undecided => "undecided",
        }
    }
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

    pub fn verdict(self) -> Verdict {
        Verdict(self.0)
    }
}

/// What became of the statements of a claim. It holds if all of them are true, and does not if none is and some are false; without either it is
/// undecided. Else it holds in part.
#[derive(Default)]
pub struct Verdict(Vec<(String, Answer)>);

/// So many statements that are not true are named.
const NAMED: usize = 4;

impl Verdict {
    /// The statements with an answer.
    fn with(&self, answer: Answer) -> Vec<&str> {
        self.0.iter().filter(|(_, own)| *own == answer).map(|(text, _)| text.as_str()).collect()
    }

    /// In a word or two, with counts where a claim holds in part.
    pub fn brief(&self) -> String {
        match self.word() {
            "in part" => format!("in part ({} of {})", self.with(Answer::True).len(), self.0.len()),
            word => word.to_owned(),
        }
    }

    fn word(&self) -> &'static str {
        let count = |answer| self.with(answer).len();
        match (count(Answer::True), count(Answer::False)) {
            (0, 0) => "undecided",
            (right, _) if right == self.0.len() => "holds",
            (0, _) => "does not hold",
            _ => "in part",
        }
    }

    /// All statements.
    pub fn table(&self) -> Table {
        let mut table = Table::new("Statements", ["statement", "answer"]);
        for (statement, answer) in &self.0 {
            table.row(statement, [answer.name()]);
        }
        table
    }
}

impl fmt::Display for Verdict {
    /// What is false or undecided is named.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        f.write_str(word)?;
        if word == "holds" {
            return Ok(());
        }
        write!(f, ": {} of {} statements are true", self.with(Answer::True).len(), self.0.len())?;
        for (what, answer) in [("not true", Answer::False), ("undecided", Answer::Undecided)] {
            let names = self.with(answer);
            match names.len() {
                0 => {}
                count if count <= NAMED => write!(f, ". {what}: {}", names.join("; "))?,
                count => {
                    let more = count - NAMED + 1;
                    write!(f, ". {what}: {}; and {more} more", names[..NAMED - 1].join("; "))?;
                }
            }
        }
        Ok(())
    }
}
