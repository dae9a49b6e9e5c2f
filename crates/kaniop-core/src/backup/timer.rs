//! The server's own timer for backups, and what a reload of its certificate does to it: each makes it drop its next run. A restart does not.

use jiff::{SignedDuration, Timestamp};

use super::SWITCHES;
use crate::cluster::ValidatedCluster;

/// The run after a dropped one follows within a day, give or take the hour of a schedule that names two.
const SOON: SignedDuration = SignedDuration::from_hours(25);

/// Whether a reload of this pod's server would cost more than it is worth. `last`: when the newest proven backup of the schedule was made.
///
/// One dropped run is worth it where the next follows within a day; two in a row are not, or certificates that are renewed as often as backups are made
/// would leave none. What a user's own environment asks of the server, nobody here knows, so nothing of it is dropped.
#[must_use]
pub fn reload_costs(cluster: &ValidatedCluster, pod: &str, last: Option<Timestamp>, now: Timestamp) -> bool {
    let Some(plan) = &cluster.backup else {
        return cluster.spec.env.iter().flatten().any(|var| SWITCHES.contains(&var.name.as_str()));
    };
    if pod != cluster.primary {
        return false;
    }
    let missed = last.and_then(|last| plan.schedule.next(last)).is_none_or(|due| due < now);
    let mut runs = plan.schedule.after(now);
    let gap = runs.next().zip(runs.next()).map(|(dropped, kept)| kept.duration_since(dropped));
    missed || gap.is_none_or(|gap| gap > SOON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::validate;

    fn cluster(spec: &str) -> ValidatedCluster {
        let yaml = format!(
            "{{apiVersion: kaniop.rs/v1beta1, kind: Kanidm, metadata: {{name: idm, namespace: default}}, spec: {{domain: a.example.com, \
             replicaGroups: [{{name: a, replicas: 2, primaryNode: true}}], \
             storage: {{volumeClaimTemplate: {{spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}}}}}, {spec}}}}}"
        );
        validate(&serde_norway::from_str(&yaml).unwrap()).unwrap()
    }

    #[test]
    fn a_reload_may_drop_one_run_that_is_soon_made_up_for_and_never_two() {
        let at = |time: &str| -> Timestamp { time.parse().unwrap() };
        let now = at("2030-06-03T12:00:00Z");
        let (fresh, stale) = (at("2030-06-03T02:00:01Z"), at("2030-06-02T02:00:01Z"));
        for (schedule, last, costs) in [
            ("0 2 * * *", Some(fresh), false),
            ("0 2 * * *", Some(stale), true),
            ("0 2 * * *", None, true),
            ("*/30 * * * *", Some(at("2030-06-03T11:30:01Z")), false),
            ("*/30 * * * *", Some(at("2030-06-03T11:00:01Z")), true),
            ("0 2 * * SUN", Some(at("2030-06-02T02:00:01Z")), true),
        ] {
            let cluster = cluster(&format!("backup: {{schedule: '{schedule}'}}"));
            assert_eq!(reload_costs(&cluster, "idm-a-0", last, now), costs, "{schedule} {last:?}");
            assert!(!reload_costs(&cluster, "idm-a-1", last, now), "only the primary makes backups");
        }
        assert!(!reload_costs(&cluster("env: []"), "idm-a-0", None, now));
        let switched = cluster("env: [{name: KANIDM_ONLINE_BACKUP_SCHEDULE, value: '@daily'}]");
        assert!(reload_costs(&switched, "idm-a-1", None, now));
    }
}
