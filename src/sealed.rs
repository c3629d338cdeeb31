//! [`Sealed`]: what is stored, with the version of the format, the scalar type and a checksum.
//!
//! Formats without checksums read a changed number as another one, and what was stored in `f64` as `f32`. What is sealed
//! is refused then.

use std::hash::Hasher;

use postcard::ser_flavors::Flavor;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Real;
use crate::digest::Digest;

/// The version of the format. Readers reject other versions.
const VERSION: u32 = 2;

/// What is stored of a value of which `data` is the plain form.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Stored")]
struct Sealed<B> {
    version: u32,
    scalar: String,
    checksum: Checksum,
    data: B,
}

/// A checksum, stored as text, so that no format rounds it.
#[derive(Serialize, Deserialize, PartialEq)]
struct Checksum(String);

/// The scalar of data that are the same for all scalars.
pub(crate) enum AnyScalar {}

/// The name of a scalar type, as it is stored.
pub(crate) trait Scalar {
    const NAME: &'static str;
}

impl Scalar for AnyScalar {
    const NAME: &'static str = "any";
}

impl<T: Real> Scalar for T {
    const NAME: &'static str = if size_of::<T>() == 4 { "f32" } else { "f64" };
}

/// Stores the plain form of a value, for this scalar.
pub(crate) fn seal<K: Scalar, S: Serializer>(
    data: &impl Serialize,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let Ok(checksum) = Checksum::of(data) else {
        // The format gives the reason, which the binary form of the checksum does not keep.
        data.serialize(serializer)?;
        return Err(serde::ser::Error::custom("data without a binary form cannot be stored"));
    };
    Sealed { version: VERSION, scalar: K::NAME.into(), checksum, data }.serialize(serializer)
}

/// Reads the plain form of a value that was stored for this scalar.
pub(crate) fn unseal<'de, K: Scalar, B, D>(deserializer: D) -> Result<B, D::Error>
where
    B: Serialize + DeserializeOwned,
    D: Deserializer<'de>,
{
    let Sealed { version, scalar, checksum, data } = Sealed::<B>::deserialize(deserializer)?;
    let expected = K::NAME;
    if version != VERSION {
        return Err(Error::custom(format!("format version {version}, but must be {VERSION}")));
    }
    if scalar != expected {
        return Err(Error::custom(format!("this was stored for {scalar}, but must be for {expected}")));
    }
    let found = Checksum::of(&data).map_err(Error::custom)?;
    if checksum != found {
        let message =
            format!("the checksum of the data is {}, but that of what was stored {}", found.0, checksum.0);
        return Err(Error::custom(message));
    }
    Ok(data)
}

impl Checksum {
    /// That of the bytes of a binary form, whatever the format is.
    fn of(data: &impl Serialize) -> postcard::Result<Self> {
        postcard::serialize_with_flavor(data, Words::default())
            .map(|digest| Checksum(format!("{digest:016x}")))
    }
}

/// Bytes that are hashed eight at a time.
struct Words {
    digest: Digest,
    word: [u8; 8],
    used: usize,
}

impl Default for Words {
    fn default() -> Self {
        Words { digest: Digest::new(), word: [0; 8], used: 0 }
    }
}

impl Flavor for Words {
    type Output = u64;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.word[self.used] = byte;
        self.used += 1;
        if self.used == 8 {
            self.digest.write_u64(u64::from_le_bytes(self.word));
            (self.word, self.used) = ([0; 8], 0);
        }
        Ok(())
    }

    fn finalize(mut self) -> postcard::Result<u64> {
        self.digest.write_u64(u64::from_le_bytes(self.word));
        self.digest.write_u64(self.used as u64);
        Ok(self.digest.finish())
    }
}
