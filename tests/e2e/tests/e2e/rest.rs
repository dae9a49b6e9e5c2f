//! When nothing changes, nothing is done.

use std::time::Instant;

use kaniop_e2e::cluster::Cluster;
use kaniop_e2e::counts::growth;

use super::{SHARED, interval, shared};

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask e2e"]
async fn at_rest_nothing_is_written_anywhere_and_all_kinds_together_are_read_in_two_lists_an_interval() {
    let cluster = Cluster::connect().await;
    let server = shared(&cluster).await;
    // What other tests left behind is settled after two looks of the operator: waiting is the measurement here, and again below.
    tokio::time::sleep(interval() * 2).await;

    let begin = Instant::now();
    let writes = cluster.writes().await;
    let versions = cluster.versions(SHARED).await;
    let asked = cluster.kanidm_requests().await;
    let served = server.requests().await;
    tokio::time::sleep(interval() * 3).await;
    let served_after = server.requests().await;
    let asked_after = cluster.kanidm_requests().await;
    let versions_after = cluster.versions(SHARED).await;
    let writes_after = cluster.writes().await;
    let elapsed = begin.elapsed();

    assert_eq!(versions, versions_after, "objects were written");
    assert_eq!(growth(&writes, &writes_after), [].into(), "the API server counted writes");

    // An interval has a tenth of play; one more look may fall on either end.
    let looks = (elapsed.as_secs_f64() / interval().mul_f64(0.9).as_secs_f64()).floor() + 1.0;
    for (what, by) in growth(&asked, &asked_after) {
        assert!(what.contains("operation=\"list\"") && what.contains("outcome=\"done\""), "{what} grew by {by}");
        // All entries, and who has a credential.
        assert!(by <= looks * 2.0, "{by} reads within {:.1} s", elapsed.as_secs_f64());
        assert!(by >= 2.0, "only {by} reads within {:.1} s: is it looking at all?", elapsed.as_secs_f64());
    }

    let Some((served, served_after)) = served.zip(served_after) else {
        println!("this server does not count its requests: the operator's own count has to do");
        return;
    };
    let before = |route: &str| served[route].as_u64().unwrap_or_default();
    for (route, count) in served_after.as_object().unwrap() {
        let by = count.as_u64().unwrap() - before(route);
        // The kubelet's probe asks for the status, and we for the counts.
        if by == 0 || route == "GET /status" || route == "GET /dev/requests" {
            continue;
        }
        assert_eq!(route, "GET /scim/v1/Entry", "{route} was used {by} times");
        assert!(by as f64 <= looks * 2.0, "{by} lists within {:.1} s", elapsed.as_secs_f64());
    }
}
