//! Options of the command lines of the programs beside this folder.

use std::ops::RangeInclusive;

use pico_args::Arguments;

/// A whole number in a range, or the default.
pub fn whole(
    arguments: &mut Arguments,
    option: &'static str,
    default: usize,
    range: RangeInclusive<usize>,
) -> Result<usize, String> {
    let text: Option<String> = arguments.opt_value_from_str(option).map_err(|error| error.to_string())?;
    let Some(text) = text else { return Ok(default) };
    let number = text.parse().ok().filter(|number| range.contains(number));
    let (least, most) = range.into_inner();
    number.ok_or_else(|| format!("{option} takes a whole number from {least} to {most}, not '{text}'"))
}

/// Refuses what no option has taken.
pub fn nothing_left(arguments: Arguments) -> Result<(), String> {
    match arguments.finish().first() {
        None => Ok(()),
        Some(other) => Err(format!("'{}' is not understood; --help names the options", other.display())),
    }
}
