//! From a host's name to the addresses that may be connected to: looked up once, judged one by one, and then the only ones there are.

#[cfg(test)]
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
#[cfg(test)]
use std::sync::{Arc, Mutex};

use kaniop_core::picture::address::is_allowed;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::error::Error;
use super::rules::Rules;

/// Who says which addresses a name has.
#[derive(Clone, Debug)]
pub(super) enum Names {
    /// The system's resolver.
    System,
    /// A test.
    #[cfg(test)]
    Told(Arc<Told>),
}

impl Names {
    async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        match self {
            Self::System => {
                Ok(tokio::net::lookup_host((absolute(host), 0)).await?.map(|address| address.ip()).collect())
            }
            #[cfg(test)]
            Self::Told(told) => told.look_up(host),
        }
    }
}

/// The name as the root of DNS knows it. Without the dot, a pod's resolver tries the cluster's own domains first.
fn absolute(host: &str) -> String {
    format!("{host}.")
}

/// The addresses of this host, if all of them may be asked.
pub(super) async fn resolve(host: &str, rules: &Rules) -> Result<Checked, Error> {
    let unresolved = |why: String| Error::Unresolved { host: host.to_owned(), why };
    let found = rules.names.look_up(host).await.map_err(|error| unresolved(error.to_string()))?;
    if found.is_empty() {
        return Err(unresolved("it has no address".to_owned()));
    }
    if !found.iter().all(|address| allows(rules, *address)) {
        return Err(Error::NotPublic { host: host.to_owned() });
    }
    // Port 0 stands for the one of the URL, which may change with a redirect.
    let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
    Ok(Checked { host: host.to_owned(), addresses })
}

fn allows(rules: &Rules, address: IpAddr) -> bool {
    #[cfg(test)]
    if rules.excepted.contains(&address) {
        return true;
    }
    is_allowed(address, &rules.refused)
}

/// All names that a client knows: the one that was looked up and judged.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let answer: Result<Addrs, _> = if name.as_str().eq_ignore_ascii_case(&self.host) {
            Ok(Box::new(self.addresses.clone().into_iter()))
        } else {
            Err(format!("{} was not checked", name.as_str()).into())
        };
        Box::pin(std::future::ready(answer))
    }
}

/// The names of a test: for each host its answers, one after another, the last one for ever.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Told {
    answers: Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

#[cfg(test)]
impl Told {
    /// The next answer for this host.
    pub(crate) fn answer(&self, host: &str, addresses: &[IpAddr]) {
        self.answers.lock().unwrap().entry(host.to_owned()).or_default().push_back(addresses.to_vec());
    }

    /// Which hosts were looked up.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut all = self.answers.lock().unwrap();
        let answers = all.get_mut(host).ok_or_else(|| io::Error::other("no such name"))?;
        let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Ok(next.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_knows_no_other_name_than_the_checked_one() {
        let checked = Checked { host: "a.example.com".to_owned(), addresses: vec![([1, 1, 1, 1], 0).into()] };
        let ask = |name: &str| checked.resolve(name.parse().unwrap());
        assert_eq!(ask("A.example.com").await.unwrap().collect::<Vec<_>>(), [SocketAddr::from(([1, 1, 1, 1], 0))]);
        for other in ["b.example.com", "example.com", "a.example.com.", "localhost"] {
            assert!(ask(other).await.is_err(), "{other}");
        }
    }

    #[test]
    fn no_domain_of_the_cluster_is_put_behind_a_name() {
        assert_eq!(absolute("kubernetes.default"), "kubernetes.default.");
    }
}
