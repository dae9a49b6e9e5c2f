//! Which pod is restarted next, when servers must take over a newer template: one at a time, and the next only when every other one serves.

use super::pods::PodSeen;

/// The pod that is to be deleted now, so that it is made again from the newest template.
///
/// `wanted` is that template's hash. Call it only when the StatefulSet's controller has seen the template, or the pod comes back as it was.
#[must_use]
pub fn next<'a>(pods: &'a [PodSeen], wanted: &str, primary: &str) -> Option<&'a PodSeen> {
    if pods.iter().any(|pod| pod.ending) {
        return None;
    }
    let outdated = |pod: &&PodSeen| pod.template_hash.as_deref() != Some(wanted);
    // One that does not serve has nothing to lose, and the newer template may be what heals it.
    if let Some(pod) = pods.iter().filter(outdated).find(|pod| !pod.ready) {
        return Some(pod);
    }
    let all_serve = pods.iter().all(|pod| pod.ready);
    // The primary last: until then it serves the writes, and the others have something to compare with.
    pods.iter().filter(outdated).filter(|_| all_serve).min_by_key(|pod| (pod.name == primary, &pod.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, hash: &str, ready: bool) -> PodSeen {
        PodSeen { name: name.to_owned(), template_hash: Some(hash.to_owned()), ready, ..PodSeen::default() }
    }

    fn chosen(pods: &[PodSeen]) -> Option<&str> {
        next(pods, "new", "idm-a-0").map(|pod| pod.name.as_str())
    }

    #[test]
    fn nothing_is_restarted_when_every_pod_is_of_the_newest_template() {
        assert_eq!(chosen(&[pod("idm-a-0", "new", true), pod("idm-a-1", "new", false)]), None);
    }

    #[test]
    fn replicas_are_restarted_first_and_the_primary_last() {
        assert_eq!(chosen(&[pod("idm-a-0", "old", true), pod("idm-a-1", "old", true)]), Some("idm-a-1"));
        assert_eq!(chosen(&[pod("idm-a-0", "old", true), pod("idm-a-1", "new", true)]), Some("idm-a-0"));
    }

    #[test]
    fn a_pod_that_serves_waits_until_every_other_one_serves() {
        assert_eq!(chosen(&[pod("idm-a-0", "old", true), pod("idm-a-1", "new", false)]), None);
    }

    #[test]
    fn a_pod_that_cannot_start_is_replaced_at_once() {
        assert_eq!(chosen(&[pod("idm-a-0", "old", false)]), Some("idm-a-0"));
    }

    #[test]
    fn while_a_pod_ends_no_other_is_touched() {
        let ending = PodSeen { ending: true, ..pod("idm-a-1", "old", false) };
        assert_eq!(chosen(&[pod("idm-a-0", "old", true), ending]), None);
    }
}
