//! The hash of a text, in the form in which it is stored in files.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An XXH3-128 hash, serialized as 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ContentHash(pub u128);

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = u128::from_str_radix(&text, 16);
        number.map(Self).map_err(|_| serde::de::Error::custom("not a hash of hex digits"))
    }
}
