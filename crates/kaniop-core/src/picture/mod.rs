//! Pictures that a spec names by URL: which URL may be fetched, which addresses may be asked for it, and whether what comes is a picture.
//!
//! Whoever writes a spec chooses what the operator connects to, from inside the cluster's network. So everything here refuses in doubt, and
//! says so in words for people. Nothing here fetches: that is the operator's `picture`.

pub mod address;
pub mod content;
pub mod source;
mod svg;
pub mod upload;
