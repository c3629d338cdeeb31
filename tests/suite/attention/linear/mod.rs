//! Linear attention: sums over keys, and what queries read from them.

mod ends;
mod finish;
mod quadratic;
mod scan;
