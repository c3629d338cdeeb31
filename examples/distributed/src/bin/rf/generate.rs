//! `rf generate`.

use random_features_distributed::fault::sentence;
use random_features_distributed::generate::Generator;

use crate::arguments::Generate;
use crate::say::say;
use crate::stop;

pub fn run(asked: Generate) -> Result<(), String> {
    let Generate { folder, rows, columns, files, group, list, skewed, seed } = asked;
    let generator = Generator { rows, columns, files, group, list, skewed, seed };
    generator.write_while(&folder, || !stop::asked()).map_err(|error| sentence(&error))?;
    say(&format!("{rows} rows of {columns} coordinates in {files} files in {}", folder.display()))
}
