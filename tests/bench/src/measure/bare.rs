//! (a) What the server does for a plain loop: one creation after the other, by the operator's own client, with nothing around it.

use std::time::Instant;

use anyhow::Result;
use kaniop_core::entry::{Attr, Collection, Shape, Step, Value};
use uuid::Uuid;

use super::Run;
use crate::cpu;
use crate::population::{displayname, person_name};
use crate::server::Server;
use crate::statistics::{millis, number};

/// Name of the row.
pub(super) const RATE: &str = "people created by a plain loop, one after the other";

const DISPLAYNAME: Attr = Attr::new("displayname", Shape::Text);
const MAIL: Attr = Attr::new("mail", Shape::Mails);

pub(super) async fn measure(run: &mut Run<'_>) -> Result<()> {
    println!("\na plain loop");
    let server = Server::start(&run.programs.server).await?;
    let client = server.as_operator()?;
    let (busy, began) = (cpu::time(server.pid())?, Instant::now());
    for nth in 0..run.scale.bare {
        client.execute(&creation(nth), &[DISPLAYNAME, MAIL]).await?;
    }
    let rate = number(run.scale.bare) / began.elapsed().as_secs_f64();
    run.report.fact('a', RATE, (rate, "objects/s"));
    let busy = cpu::time(server.pid())?.saturating_sub(busy);
    let each = millis(busy) / number(run.scale.bare);
    run.report.fact('a', "… processor time of the Kanidm server for each", (each, "ms"));
    Ok(())
}

/// The same that the operator sends for such a person.
fn creation(nth: usize) -> Step {
    let name = person_name("bare", nth);
    let mail = Value::Mails(vec![format!("{name}@example.com")]);
    let attrs =
        vec![(Attr::NAME, Value::Text(name.clone())), (DISPLAYNAME, Value::Text(displayname(nth))), (MAIL, mail)];
    Step::Create { collection: Collection::Person, uuid: Uuid::new_v5(&Uuid::NAMESPACE_DNS, name.as_bytes()), attrs }
}
