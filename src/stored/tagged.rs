//! [`tagged!`] and [`named!`]: enums that are stored, and identified, by the names of their variants.
//!
//! Formats that number variants would misread data that was stored before a variant was added. A tagged enum is stored as a
//! pair of a name and the content of the variant; variants may be added, moved and renamed as long as their tags stay.

/// Implements `tag` and, with the feature `serde`, storage for an enum. Each variant has a line with its tag, its name, and the
/// name and type of its content, if any. Brackets are for numbers without a name in the variant, which are stored to the bit,
/// as numbers with a name are. Variants after `never` cannot be stored, for the reason given.
macro_rules! named {
    ($Enum:ident $(<$M:ident>)?, $what:literal {
        $($tag:literal => $Variant:ident $(($held:ident: $Held:ty))? $([$number:ident: $Number:ty])?
            $({ $field:ident: $Field:ty })?,)*
    } $(never {
        $($other_tag:literal => $Other:ident($other:ident): $reason:literal,)*
    })?) => {
        impl $(<$M>)? $Enum $(<$M>)? {
            /// The names of all variants that can be stored.
            #[allow(dead_code, reason = "not every enum is asked")]
            pub(crate) const TAGS: &[&'static str] = &[$($tag),*];

            /// The name under which the variant is stored and identified.
            #[allow(dead_code, reason = "not every enum is asked")]
            pub(crate) fn tag(&self) -> &'static str {
                match self {
                    $($Enum::$Variant { .. } => $tag,)*
                    $($($Enum::$Other { .. } => $other_tag,)*)?
                }
            }
        }

        #[cfg(feature = "serde")]
        impl $(<$M: serde::Serialize>)? serde::Serialize for $Enum $(<$M>)? {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[allow(unused_imports, reason = "not every enum holds numbers")]
                use $crate::exact::Exact;
                match self {
                    $($Enum::$Variant $(($held))? $(($number))? $({ $field })? => {
                        let held = $crate::tagged::held!($(($held))? $((&<$Number as Exact>::to_stored($number)))?
                            $((&<$Field as Exact>::to_stored($field)))?);
                        serde::Serialize::serialize(&($tag, held), serializer)
                    })*
                    $($($Enum::$Other(_) => Err(serde::ser::Error::custom($reason)),)*)?
                }
            }
        }

        #[cfg(feature = "serde")]
        impl<'de $(, $M: serde::Deserialize<'de>)?> serde::Deserialize<'de> for $Enum $(<$M>)? {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Pair<E>(std::marker::PhantomData<E>);

                impl<'de $(, $M: serde::Deserialize<'de>)?> serde::de::Visitor<'de> for Pair<$Enum $(<$M>)?> {
                    type Value = $Enum $(<$M>)?;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("the name of ", $what, " and what it holds"))
                    }

                    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut pair: A) -> Result<Self::Value, A::Error> {
                        #[allow(unused_imports, reason = "not every enum holds numbers")]
                        use $crate::{exact::Exact, tagged::next};
                        let tag: String = next(&mut pair)?;
                        match tag.as_str() {
                            $($tag => {
                                $(let $held: $Held = next(&mut pair)?;)?
                                $(let $number = <$Number as Exact>::from_stored(next(&mut pair)?);)?
                                $(let $field = <$Field as Exact>::from_stored(next(&mut pair)?);)?
                                $crate::tagged::nothing!(pair $($held)? $($number)? $($field)?);
                                Ok($Enum::$Variant $(($held))? $(($number))? $({ $field })?)
                            })*
                            _ => Err(serde::de::Error::custom(format!("“{tag}” is not the name of {}", $what))),
                        }
                    }
                }

                deserializer.deserialize_tuple(2, Pair(std::marker::PhantomData))
            }
        }
    };
}

/// Does what [`named!`] does, and implements [`Identify`](crate::digest::Identify) by the tag and the content of the variant.
macro_rules! tagged {
    ($Enum:ident $(<$M:ident>)?, $what:literal {
        $($tag:literal => $Variant:ident $(($held:ident: $Held:ty))? $([$number:ident: $Number:ty])?
            $({ $field:ident: $Field:ty })?,)*
    } $(never {
        $($other_tag:literal => $Other:ident($other:ident): $reason:literal,)*
    })?) => {
        $crate::tagged::named!($Enum $(<$M>)?, $what {
            $($tag => $Variant $(($held: $Held))? $([$number: $Number])? $({ $field: $Field })?,)*
        } $(never {
            $($other_tag => $Other($other): $reason,)*
        })?);

        impl $(<$M: $crate::digest::Identify>)? $crate::digest::Identify for $Enum $(<$M>)? {
            fn identify(&self, digest: &mut $crate::digest::Digest) {
                digest.text(self.tag());
                match self {
                    $($Enum::$Variant $(($held))? $(($number))? $({ $field })? => {
                        $($crate::digest::Identify::identify($held, digest);)?
                        $($crate::digest::Identify::identify($number, digest);)?
                        $($crate::digest::Identify::identify($field, digest);)?
                    })*
                    $($($Enum::$Other($other) => $crate::digest::Identify::identify($other, digest),)*)?
                }
            }
        }
    };
}

pub(crate) use {named, tagged};

/// The content of a variant; the unit if there is none.
#[cfg(feature = "serde")]
macro_rules! held {
    () => {
        ()
    };
    ($held:expr) => {
        $held
    };
}

/// Reads the unit, if a variant has no content.
#[cfg(feature = "serde")]
macro_rules! nothing {
    ($pair:ident) => {
        let () = $crate::tagged::next(&mut $pair)?;
    };
    ($pair:ident $held:ident) => {};
}

#[cfg(feature = "serde")]
pub(crate) use {held, nothing};

/// The next element of a stored pair.
#[cfg(feature = "serde")]
pub(crate) fn next<'de, T: serde::Deserialize<'de>, A: serde::de::SeqAccess<'de>>(
    pair: &mut A,
) -> Result<T, A::Error> {
    pair.next_element()?.ok_or_else(|| serde::de::Error::custom("a name without what it names"))
}
