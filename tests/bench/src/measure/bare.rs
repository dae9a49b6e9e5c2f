//! (a) What the server does for a plain loop: one creation after the other, by the operator's own client, with nothing around it.

use std::time::Instant;

use anyhow::Result;
use kaniop_core::entry::{Attr, Collection, Shape, Step, Value};
use uuid::Uuid;

use super::Run;
use crate::cpu;
use crate::population::{MEMBERS, Population, displayname, person_name};
use crate::server::Server;
use crate::statistics::{millis, number};

/// Name of the row that others are compared with.
pub(super) const RATE: &str = "people created by a plain loop, one after the other";
/// Name of the row with groups too.
pub(super) const MIXED: &str = "… people and groups, one in eleven, likewise";

const DISPLAYNAME: Attr = Attr::new("displayname", Shape::Text);
const MAIL: Attr = Attr::new("mail", Shape::Mails);
const MEMBER: Attr = Attr::new("member", Shape::References);

pub(super) async fn measure(run: &mut Run<'_>) -> Result<()> {
    println!("\na plain loop");
    let server = Server::start(&run.programs.server).await?;
    let client = server.as_operator()?;
    let (busy, began) = (cpu::time(server.pid())?, Instant::now());
    let people = run.scale.bare;
    for nth in 0..people {
        client.execute(&person(nth), &[DISPLAYNAME, MAIL]).await?;
    }
    let rate = number(people) / began.elapsed().as_secs_f64();
    run.report.fact('a', RATE, (rate, "objects/s"));
    let busy = cpu::time(server.pid())?.saturating_sub(busy);
    let each = millis(busy) / number(people);
    run.report.fact('a', "… processor time of the Kanidm server for each", (each, "ms"));

    let groups = Population::of(people + people / 10).groups;
    for nth in 0..groups {
        client.execute(&group(nth, people), &[MEMBER]).await?;
    }
    run.report.fact('a', MIXED, (number(people + groups) / began.elapsed().as_secs_f64(), "objects/s"));
    Ok(())
}

fn uuid(name: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_DNS, name.as_bytes())
}

/// The same that the operator sends for such a person.
fn person(nth: usize) -> Step {
    let name = person_name("bare", nth);
    let mail = Value::Mails(vec![format!("{name}@example.com")]);
    let uuid = uuid(&name);
    let attrs = vec![(Attr::NAME, Value::Text(name)), (DISPLAYNAME, Value::Text(displayname(nth))), (MAIL, mail)];
    Step::Create { collection: Collection::Person, uuid, attrs }
}

/// The same that the operator sends for a group whose members are all there.
fn group(nth: usize, people: usize) -> Step {
    let name = format!("bare-group-{nth:05}");
    let members = (0..MEMBERS.min(people)).map(|member| uuid(&person_name("bare", (nth * 10 + member) % people)));
    let uuid = uuid(&name);
    let attrs = vec![(Attr::NAME, Value::Text(name)), (MEMBER, Value::References(members.collect()))];
    Step::Create { collection: Collection::Group, uuid, attrs }
}
