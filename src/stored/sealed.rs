//! [`sealed!`]: stores data with the version of the format, the scalar type and a checksum.
//!
//! Formats without checksums read a changed number as another one, and data stored in `f64` as `f32`. Sealed data is refused
//! then. Results (maps, frequencies, sums, models, statistics of data) are sealed; parameters (kernels, couplings, laws) are
//! parts of them.

use std::hash::Hasher;
use std::marker::PhantomData;

use postcard::ser_flavors::Flavor;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Real;
use crate::digest::Digest;

/// The version of the format. Readers reject other versions.
const VERSION: u32 = 4;

/// Stores a type as its plain form, sealed for a scalar. The plain form is made by `From<&Type>` and checked by
/// `TryInto<Type>`.
macro_rules! sealed {
    ($Type:ty, $Plain:ty, $Scalar:ty $(, [$($generics:tt)*])?) => {
        impl$(<$($generics)*>)? serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::sealed::seal::<$Scalar, S>(&<$Plain>::from(self), serializer)
            }
        }

        impl<'de $(, $($generics)*)?> serde::Deserialize<'de> for $Type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let what = stringify!($Type);
                let plain = $crate::sealed::unseal::<$Scalar, $Plain, D>(what, deserializer)?;
                plain.try_into().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Stores a type by [`sealed!`] with a plain form whose fields the type has too.
macro_rules! sealed_fields {
    ($Type:ident $(<$T:ident>)?, $Scalar:ty,
        $(#[$meta:meta])* $visibility:vis struct $Plain:ident { $($(#[$attribute:meta])* $field:ident: $Field:ty,)* }
    ) => {
        #[derive(serde::Serialize, serde::Deserialize)]
        $(#[$meta])*
        $visibility struct $Plain $(<$T: $crate::Real>)? {
            $($(#[$attribute])* $field: $Field,)*
        }

        impl $(<$T: $crate::Real>)? From<&$Type $(<$T>)?> for $Plain $(<$T>)? {
            fn from(value: &$Type $(<$T>)?) -> Self {
                $Plain { $($field: Clone::clone(&value.$field),)* }
            }
        }

        $crate::sealed::sealed!($Type $(<$T>)?, $Plain $(<$T>)?, $Scalar $(, [$T: $crate::Real])?);
    };
}

pub(crate) use {sealed, sealed_fields};

/// The stored form of a value with the plain form `data`. Fields are read in this order, so that data of another version or
/// scalar are not looked at.
#[derive(Serialize, Deserialize)]
#[serde(
    rename = "Stored",
    bound(serialize = "B: Serialize", deserialize = "K: ScalarName, B: Deserialize<'de>")
)]
struct Sealed<K, B> {
    version: Version,
    scalar: Name<K>,
    checksum: Checksum,
    data: B,
}

/// The version of the format, refused if it is another one.
#[derive(Serialize)]
struct Version(u32);

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            VERSION => Ok(Version(VERSION)),
            other => Err(Error::custom(format!("format version {other}, but must be {VERSION}"))),
        }
    }
}

/// The name of the scalar type, refused if it is another one.
#[derive(Serialize)]
#[serde(transparent)]
struct Name<K>(String, PhantomData<K>);

impl<'de, K: ScalarName> Deserialize<'de> for Name<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == K::NAME {
            return Ok(Name(name, PhantomData));
        }
        Err(Error::custom(format!(
            "this was stored for {name}, but must be for {}: recipes and data are for any scalar, maps and models for one",
            K::NAME
        )))
    }
}

/// A checksum, stored as text, so that no format rounds it.
#[derive(Serialize, Deserialize, PartialEq)]
struct Checksum(String);

/// The scalar of data that do not depend on a scalar.
pub(crate) enum AnyScalar {}

/// The name of a scalar type, as it is stored.
pub(crate) trait ScalarName {
    const NAME: &'static str;
}

impl ScalarName for AnyScalar {
    const NAME: &'static str = "any";
}

impl<T: Real> ScalarName for T {
    const NAME: &'static str = if size_of::<T>() == 4 { "f32" } else { "f64" };
}

/// Stores the plain form of a value, for this scalar.
pub(crate) fn seal<K: ScalarName, S: Serializer>(
    data: &impl Serialize,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let Ok(checksum) = Checksum::of(data) else {
        // The format gives the reason, which the binary form of the checksum does not keep.
        data.serialize(serializer)?;
        return Err(serde::ser::Error::custom("data without a binary form cannot be stored"));
    };
    let scalar = Name::<K>(K::NAME.into(), PhantomData);
    Sealed { version: Version(VERSION), scalar, checksum, data }.serialize(serializer)
}

/// Reads the plain form of a value that was stored for this scalar; `what` is the value's type, for errors.
pub(crate) fn unseal<'de, K: ScalarName, B, D>(what: &str, deserializer: D) -> Result<B, D::Error>
where
    B: Serialize + DeserializeOwned,
    D: Deserializer<'de>,
{
    let sealed = Sealed::<K, B>::deserialize(deserializer);
    let Sealed { checksum, data, .. } = sealed.map_err(|error| of_another_type(what, error))?;
    let found = Checksum::of(&data).map_err(Error::custom)?;
    if checksum != found {
        let message =
            format!("the checksum of the data is {}, but that of what was stored {}", found.0, checksum.0);
        return Err(Error::custom(message));
    }
    Ok(data)
}

/// Adds the type that was to be read to the error, if the form is that of another type: fields are then missing or of another
/// kind.
fn of_another_type<E: Error>(what: &str, error: E) -> E {
    let text = error.to_string();
    // The type's parameters are left out.
    let what = what.split('<').next().unwrap_or(what);
    // A field that is sealed itself has named its own type.
    let text = text.find("missing field").map_or(&text[..], |at| &text[at..]);
    let is_another =
        ["missing field", "invalid type", "invalid length"].iter().any(|begin| text.starts_with(begin));
    if is_another { E::custom(format!("this is not the stored form of {what}: {text}")) } else { error }
}

impl Checksum {
    /// The checksum of the bytes of a binary form, whatever the format is.
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
