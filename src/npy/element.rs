//! Numbers as they are stored.

use std::io::{self, Read, Write};

use ndarray::{ArrayRef, Dimension};

/// A number that a `.npy` file can hold: `f32`, `f64` or an integer of 8 to 64 bits with or without a sign.
///
/// The trait is sealed: no other type can have it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number that a .npy file can hold",
    note = "a file holds `f32`, `f64` or integers of 8 to 64 bits"
)]
pub trait NpyElement: Stored {}

impl<A: Stored> NpyElement for A {}

/// Public in a private module: it seals [`NpyElement`].
pub trait Stored: Copy {
    /// The name in Rust.
    const NAME: &'static str;
    /// NumPy's name, without the order of bytes.
    const CODE: &'static str;

    /// The number with these bytes, of which the lowest is first.
    fn of_bytes(bytes: &[u8]) -> Self;

    /// The number with these bytes, of which the highest is first.
    fn of_reversed_bytes(bytes: &[u8]) -> Self;

    /// The bytes of a number, of which the lowest is first.
    fn bytes(self) -> impl AsRef<[u8]>;
}

macro_rules! stored {
    ($($T:ident: $code:literal),*) => {$(
        impl Stored for $T {
            const NAME: &'static str = stringify!($T);
            const CODE: &'static str = $code;

            fn of_bytes(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$T>()];
                own.copy_from_slice(bytes);
                $T::from_le_bytes(own)
            }

            fn of_reversed_bytes(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$T>()];
                own.copy_from_slice(bytes);
                $T::from_be_bytes(own)
            }

            fn bytes(self) -> impl AsRef<[u8]> {
                self.to_le_bytes()
            }
        }
    )*};
}

stored!(f32: "f4", f64: "f8");
stored!(i8: "i1", i16: "i2", i32: "i4", i64: "i8", u8: "u1", u16: "u2", u32: "u4", u64: "u8");

/// NumPy's Boolean: a byte.
#[derive(Clone, Copy, Debug)]
pub struct Boolean(pub bool);

impl Stored for Boolean {
    const NAME: &'static str = "bool";
    const CODE: &'static str = "b1";

    fn of_bytes(bytes: &[u8]) -> Self {
        Boolean(bytes != [0])
    }

    fn of_reversed_bytes(bytes: &[u8]) -> Self {
        Self::of_bytes(bytes)
    }

    fn bytes(self) -> impl AsRef<[u8]> {
        [u8::from(self.0)]
    }
}

/// Bytes that are read together: whole numbers.
const PIECE: usize = 1 << 15;

/// Reads so many numbers from a file.
pub fn read<A: Stored>(mut file: impl Read, count: usize, reversed: bool) -> io::Result<Vec<A>> {
    let (mut values, mut piece) = (Vec::with_capacity(count), [0; PIECE]);
    while values.len() < count {
        let bytes = &mut piece[..PIECE.min((count - values.len()) * size_of::<A>())];
        file.read_exact(bytes)?;
        let numbers = bytes.chunks_exact(size_of::<A>());
        if reversed {
            values.extend(numbers.map(A::of_reversed_bytes));
        } else {
            values.extend(numbers.map(A::of_bytes));
        }
    }
    Ok(values)
}

/// Writes all numbers of an array, row by row.
pub fn write<A: Stored, D: Dimension>(mut file: impl Write, array: &ArrayRef<A, D>) -> io::Result<()> {
    array.iter().try_for_each(|value| file.write_all(value.bytes().as_ref()))
}
