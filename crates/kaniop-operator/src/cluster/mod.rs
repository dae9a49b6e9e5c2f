//! The Kanidm cluster controller (being written).
use crate::context::Context;
/// Runs the controller until `stop` resolves.
pub async fn run(_ctx: Context, stop: impl Future<Output = ()> + Send + Sync + 'static) { stop.await; }
