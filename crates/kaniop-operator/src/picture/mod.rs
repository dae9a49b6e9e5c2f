//! Fetches a picture from where a user says: one attempt, from public addresses only, under a deadline. It decides nothing about when to
//! fetch or what to do with the picture, and never tries again.
//!
//! Whoever writes a spec chooses what is connected to, from inside the cluster's network. [`kaniop_core::picture`] judges the URL, each address
//! and the content; what is added here is that nothing is asked which was not judged. The host is looked up once, and connections go to
//! the addresses of that answer, in every redirect too. An answer in which a single address is not public is not used at all.

mod error;
mod fetch;
mod names;
mod rules;
#[cfg(test)]
mod tests;

pub use error::{Error, RedirectProblem};
pub use fetch::{Fetched, Validators, fetch};
#[cfg(test)]
pub(crate) use names::Told;
pub use rules::Rules;
