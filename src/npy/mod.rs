//! Arrays in files of NumPy's `.npy` format (feature `npy`).
//!
//! [`write()`] and [`read()`] exchange arrays of any dimension with `numpy.load` and `numpy.save` in Python.
//!
//! ```
//! use random_features::ndarray::{Array2, Ix2, array};
//! use random_features::npy;
//!
//! # let folder = std::env::temp_dir().join(format!("random-features-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let path = folder.join("points.npy");
//! let points: Array2<f64> = array![[1.0, 2.0], [3.0, 0.1]];
//! npy::write(&path, &points)?;
//! assert_eq!(npy::read::<f64, Ix2>(&path)?, points);
//!
//! let single = npy::read_as::<f32, Ix2>(&path)?; // rounds
//! assert_eq!(single[[1, 1]], 0.1f32);
//! let message = npy::read::<f32, Ix2>(&path).unwrap_err().to_string();
//! assert!(message.ends_with("holds elements of type '<f8', not f32"));
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), random_features::Error>(())
//! ```
//! [NumPy's reference](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) describes the format.

mod element;
mod header;

use std::fmt::Display;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{Array, ArrayRef, Dimension, Ix1, IxDyn, ShapeBuilder};

use element::Boolean;
pub use element::NpyElement;

use crate::Real;
use crate::error::{Error, Result};
use header::{Header, MAGIC};

/// Reads the array in a file of elements of type `A`. `D` is its dimension, such as [`Ix2`](type@ndarray::Ix2) or [`IxDyn`](type@ndarray::IxDyn).
///
/// Both byte orders and both axis orders are read; an array in Fortran order keeps it.
///
/// # Errors
/// [`Npy`](Error::Npy) if the file cannot be read, has another format, holds elements of another type or an array of
/// another dimension, or is shorter or longer than its header, or the length of that, says.
#[doc(alias = "numpy", alias = "load")]
pub fn read<A: NpyElement, D: Dimension>(path: impl AsRef<Path>) -> Result<Array<A, D>> {
    let path = path.as_ref();
    let (mut file, header) = open(path)?;
    if !header.holds::<A>() {
        return Err(wrong_type(path, &header, A::NAME));
    }
    if let Some(wanted) = D::NDIM.filter(|&wanted| wanted != header.shape.len()) {
        let reason = format!("holds an array of dimension {}, not {wanted}", header.shape.len());
        return Err(failure(path, reason));
    }
    let checked = check_length::<A>(&mut file, &header);
    checked.and_then(|()| contents(file, header)).map_err(|reason| failure(path, reason))
}

/// Runs code for the type of integers that a file holds, or other code if it holds none.
macro_rules! with_integers {
    ($header:expr, $A:ident => $body:expr, $($Integer:ty)*; else $other:expr) => {
        $(if $header.holds::<$Integer>() {
            type $A = $Integer;
            $body
        } else)* {
            $other
        }
    };
    ($header:expr, $A:ident => $body:expr, else $other:expr) => {
        with_integers!($header, $A => $body, i64 i32 u8 i8 i16 u16 u32 u64; else $other)
    };
}

/// Reads the array in a file of numbers of any type, as `T`. Floating-point numbers are rounded to the nearest `T` and become infinite on
/// overflow; integers must be numbers of `T` exactly, as all up to 2²⁴ are of `f32` and all up to 2⁵³ of `f64`.
///
/// # Errors
/// [`Npy`](Error::Npy) if the file cannot be [read](read()), or with the first integer that `T` would round.
pub fn read_as<T: Real, D: Dimension>(path: impl AsRef<Path>) -> Result<Array<T, D>> {
    let path = path.as_ref();
    let header = open(path)?.1;
    if header.holds::<f32>() {
        return Ok(read::<f32, D>(path)?.mapv(|x| T::narrow(f64::from(x))));
    }
    if header.holds::<f64>() {
        return Ok(read::<f64, D>(path)?.mapv(T::narrow));
    }
    with_integers!(header, A => {
        let integers = read::<A, D>(path)?;
        let rounded = integers.iter().find(|integer| exactly::<T>(i128::from(**integer)).is_none());
        match rounded {
            None => Ok(integers.mapv(|integer| T::narrow(integer as f64))),
            Some(integer) => {
                let scalar = if size_of::<T>() == 4 { "f32" } else { "f64" };
                Err(failure(path, format!("holds the integer {integer}, which {scalar} would round")))
            }
        }
    }, else Err(wrong_type(path, &header, "f32, f64 or integers")))
}

/// Reads labels from a file of one dimension: the classes of points, counted from 0, in integers of any type, such as NumPy's
/// default `int64`, or as Booleans.
///
/// ```
/// use random_features::npy;
/// # let folder = std::env::temp_dir().join(format!("random-features-labels-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("labels.npy");
/// npy::write(&path, &random_features::ndarray::arr1(&[2i64, 0, 1]))?;
/// assert_eq!(npy::read_labels(&path)?, [2, 0, 1]);
/// npy::write(&path, &random_features::ndarray::arr1(&[1i64, -1]))?;
/// let message = npy::read_labels(&path).unwrap_err().to_string();
/// assert!(message.contains("holds the label -1 in row 1"));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`Npy`](Error::Npy) if the file cannot be [read](read()) or its elements are no integers, or with the first label that is
/// negative or beyond `usize`.
pub fn read_labels(path: impl AsRef<Path>) -> Result<Vec<usize>> {
    let path = path.as_ref();
    let header = open(path)?.1;
    if header.holds::<Boolean>() {
        return Ok(read::<Boolean, Ix1>(path)?.iter().map(|label| usize::from(label.0)).collect());
    }
    with_integers!(header, A => {
        let labels = read::<A, Ix1>(path)?;
        let label = |(row, label): (usize, &A)| {
            let wrong = || failure(path, format!("holds the label {label} in row {row}, but labels are counted from 0"));
            usize::try_from(i128::from(*label)).map_err(|_| wrong())
        };
        labels.iter().enumerate().map(label).collect()
    }, else Err(wrong_type(path, &header, "integers")))
}

/// A whole number, if it is one of `T`.
fn exactly<T: Real>(whole: i128) -> Option<T> {
    let wide = whole as f64;
    let value = T::narrow(wide);
    (wide as i128 == whole && value.widen() == wide).then_some(value)
}

/// Writes an array of any layout, replacing an existing file.
///
/// The array is written to a temporary file in the same folder, which is renamed when it is complete and on disk.
/// Readers never see a partial file, and on error an existing file is unchanged. The permissions of an existing file
/// are kept.
///
/// # Errors
/// [`Npy`](Error::Npy) if the folder does not exist or cannot be written to, or the disk is full.
#[doc(alias = "numpy", alias = "save")]
pub fn write<A: NpyElement, D: Dimension>(path: impl AsRef<Path>, array: &ArrayRef<A, D>) -> Result<()> {
    let path = path.as_ref();
    let part = beside(path).ok_or_else(|| failure(path, "is not the name of a file"))?;
    let written =
        write_new(&part, fs::metadata(path).ok(), array).and_then(|()| Ok(fs::rename(&part, path)?));
    written.map_err(|reason| {
        // The error that matters is the first one.
        let _ = fs::remove_file(&part);
        failure(path, reason)
    })
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Opens a file and reads its header, behind which the file then stands.
fn open(path: &Path) -> Result<(BufReader<File>, Header)> {
    let opened = || -> Outcome<_> {
        let mut file = BufReader::new(File::open(path)?);
        let header = Header::parse(&header_text(&mut file)?)?;
        Ok((file, header))
    };
    opened().map_err(|reason| failure(path, reason))
}

/// Reads the text of the header of a file, from its beginning.
fn header_text(file: &mut BufReader<File>) -> Outcome<String> {
    if bytes(file)? != MAGIC {
        return Err("is not of NumPy's format".into());
    }
    let length = match bytes(file)? {
        [1, 0] => u64::from(u16::from_le_bytes(bytes(file)?)),
        [2 | 3, 0] => u64::from(u32::from_le_bytes(bytes(file)?)),
        [major, minor] => return Err(format!("has the unknown version {major}.{minor}").into()),
    };
    // The length is up to 4 GB: memory is allocated only for what the file holds.
    let rest = rest(file)?;
    if length > rest {
        return Err(format!("has a header of {length} bytes, of which the file holds {rest}").into());
    }
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text)?;
    // After a wrong length, elements would begin at a wrong byte.
    if text.last() != Some(&b'\n') {
        return Err("has a header that does not end with a line".into());
    }
    String::from_utf8(text).map_err(|_| "has a header that is not in UTF-8".into())
}

/// The next bytes of a file, up to its header.
fn bytes<const N: usize>(file: &mut BufReader<File>) -> Outcome<[u8; N]> {
    let mut bytes = [0; N];
    match file.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err("ends before its header".into()),
        read => Ok(read.map(|()| bytes)?),
    }
}

/// The number of bytes that follow in a file.
fn rest(file: &mut BufReader<File>) -> io::Result<u64> {
    Ok(file.get_ref().metadata()?.len().saturating_sub(file.stream_position()?))
}

/// Checks the length of the data against the header before allocating memory.
fn check_length<A>(file: &mut BufReader<File>, header: &Header) -> Outcome<()> {
    // With lengths of 0 taken as `least`.
    let bytes = |least: usize| {
        header.shape.iter().try_fold(size_of::<A>(), |bytes, &n| bytes.checked_mul(n.max(least)))
    };
    // An array without elements must be one that ndarray can have, too.
    let possible = bytes(1).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    let rest = rest(file)?;
    if possible && bytes(0).is_some_and(|bytes| bytes as u64 == rest) {
        return Ok(());
    }
    Err(format!("has {rest} bytes of elements, which is not an array of shape {:?}", header.shape).into())
}

/// Reads the array of a file that stands behind its header and has been checked for its length.
fn contents<A: NpyElement, D: Dimension>(file: BufReader<File>, header: Header) -> Outcome<Array<A, D>> {
    let reversed = header.is_reversed();
    let shape = IxDyn(&header.shape).set_f(header.fortran);
    let values = element::read(file, header.shape.iter().product(), reversed)?;
    Ok(Array::from_shape_vec(shape, values)?.into_dimensionality()?)
}

/// Writes a file that must not exist yet, with the permissions of the one that it will replace.
fn write_new<A: NpyElement, D: Dimension>(
    path: &Path,
    old: Option<fs::Metadata>,
    array: &ArrayRef<A, D>,
) -> Outcome<()> {
    let file = File::create_new(path)?;
    if let Some(old) = old {
        file.set_permissions(old.permissions())?;
    }
    let mut writer = BufWriter::new(&file);
    // Elements are written in the order of memory where that is one of the two.
    let fortran = !array.is_standard_layout() && array.t().is_standard_layout();
    Header::of(array, fortran).write(&mut writer)?;
    if fortran {
        element::write(&mut writer, &array.t())?;
    } else {
        element::write(&mut writer, array)?;
    }
    writer.flush()?;
    drop(writer);
    Ok(file.sync_all()?)
}

/// A short name in the same folder that no other write uses.
fn beside(path: &Path) -> Option<PathBuf> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let mut hasher = DefaultHasher::new();
    path.file_name()?.hash(&mut hasher);
    let (file, process, write) =
        (hasher.finish(), std::process::id(), WRITES.fetch_add(1, Ordering::Relaxed));
    Some(path.with_file_name(format!(".{file:016x}.{process}-{write}.part")))
}

fn wrong_type(path: &Path, header: &Header, wanted: &str) -> Error {
    failure(path, format!("holds elements of type {}, not {wanted}", header.kind))
}

fn failure(path: &Path, reason: impl Display) -> Error {
    Error::Npy { file: path.display().to_string(), reason: reason.to_string() }
}
