//! The opaque name of a login in progress: the engine's session id, signed, as the real server does.
//!
//! A client that sends back the bare `sessionid` of the body instead is refused there, and so it is here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::memcmp;
use openssl::pkey::{PKey, Private};
use openssl::sign::Signer;
use uuid::Uuid;

/// Signs and checks session ids with a key that lives as long as the process.
pub struct LoginSessions(PKey<Private>);

impl LoginSessions {
    /// Draws a key.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn new() -> Result<Self, ErrorStack> {
        let mut key = [0; 32];
        openssl::rand::rand_bytes(&mut key)?;
        Ok(Self(PKey::hmac(&key)?))
    }

    /// The name to hand out.
    ///
    /// # Errors
    /// When signing fails.
    pub fn name(&self, id: Uuid) -> Result<String, ErrorStack> {
        Ok(format!("{id}.{}", URL_SAFE_NO_PAD.encode(self.sign(id)?)))
    }

    /// The session that a name stands for; `None` for anything not handed out by this process.
    pub fn session(&self, name: &str) -> Option<Uuid> {
        let (id, signature) = name.split_once('.')?;
        let id = Uuid::parse_str(id).ok()?;
        let given = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let expected = self.sign(id).ok()?;
        (given.len() == expected.len() && memcmp::eq(&given, &expected)).then_some(id)
    }

    fn sign(&self, id: Uuid) -> Result<Vec<u8>, ErrorStack> {
        let mut signer = Signer::new(MessageDigest::sha256(), &self.0)?;
        signer.sign_oneshot_to_vec(id.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_were_handed_out_stand_for_sessions() {
        let ours = LoginSessions::new().unwrap();
        let id = Uuid::from_u128(7);
        let name = ours.name(id).unwrap();
        assert_eq!(ours.session(&name), Some(id));
        assert_eq!(ours.session(&id.to_string()), None);
        assert_eq!(ours.session(&format!("{id}.AAAA")), None);
        assert_eq!(LoginSessions::new().unwrap().session(&name), None);
    }
}
