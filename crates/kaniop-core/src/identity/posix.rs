//! What makes an account or a group a POSIX one.

use crate::entry::{Attr, Shape};

/// Class of POSIX accounts.
pub const ACCOUNT: &str = "posixaccount";
/// Class of POSIX groups.
pub const GROUP: &str = "posixgroup";
/// Numeric id.
pub const GID: Attr = Attr::new("gidnumber", Shape::Int);
/// Login shell.
pub const SHELL: Attr = Attr::new("loginshell", Shape::Text);
