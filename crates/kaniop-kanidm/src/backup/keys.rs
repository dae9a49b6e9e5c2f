//! A digest of a JSON value that does not depend on the order of its members, taken while it is read: the value, which may be a private key, is never kept.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use sha2::{Digest as _, Sha256};

/// A digest.
pub(super) type Digest = [u8; 32];

/// Takes it.
pub(super) struct Digested;

fn digest(kind: u8, bytes: &[u8]) -> Digest {
    Sha256::new().chain_update([kind]).chain_update(bytes).finalize().into()
}

impl<'de> DeserializeSeed<'de> for Digested {
    type Value = Digest;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Digest, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Digested {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Digest, E> {
        Ok(digest(b'b', &[u8::from(value)]))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Digest, E> {
        Ok(digest(b'i', &value.to_be_bytes()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Digest, E> {
        Ok(digest(b'u', &value.to_be_bytes()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Digest, E> {
        Ok(digest(b'f', &value.to_bits().to_be_bytes()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Digest, E> {
        Ok(digest(b's', value.as_bytes()))
    }

    fn visit_unit<E>(self) -> Result<Digest, E> {
        Ok(digest(b'n', &[]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Digest, A::Error> {
        let mut all = Sha256::new().chain_update(b"[");
        while let Some(item) = items.next_element_seed(Self)? {
            all.update(item);
        }
        Ok(all.finalize().into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Digest, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = members.next_key_seed(Self)? {
            pairs.push([key, members.next_value_seed(Self)?].concat());
        }
        pairs.sort_unstable();
        Ok(digest(b'{', &pairs.concat()))
    }
}
