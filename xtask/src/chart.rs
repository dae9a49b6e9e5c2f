//! Holds the chart to what it should render: Helm's own lint, goldens of two ways to install, refusal of values that mean nothing.
//! It installs nothing.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::output;
use crate::gobuild;
use crate::report::{note, phase};
use crate::workspace::{root, write};

/// The oldest Kubernetes that is supported: what renders for it renders for newer ones.
const KUBERNETES: &str = "1.33.0";

/// Ways to install: name of the golden, values.
const WAYS: &[(&str, &[&str])] = &[
    ("defaults", &[]),
    (
        "one-namespace",
        &[
            "watchNamespace=team",
            "interval=5",
            "metricsService.enabled=false",
            "serviceAccount.create=false",
            "serviceAccount.name=mine",
            "image.tag=dev",
            "priorityClassName=high",
            "podAnnotations.a=b",
            "nodeSelector.disk=fast",
            "imagePullSecrets[0].name=pull",
        ],
    ),
];

/// Values that must be refused.
const WRONG: &[&str] =
    &["interval=5s", "interval=0", "logFormat=xml", "replica=2", "image.repo=x", "serviceAccount.create=false"];

/// Checks the chart; with `bless` writes the goldens anew instead of comparing.
///
/// # Errors
/// When Helm finds fault with it, or it renders something else than it did.
pub(crate) fn check(bless: bool) -> Result<()> {
    let helm = gobuild::binaries()?.helm;
    let chart = root().join("charts/kaniop");
    phase("lint", || output(Command::new(&helm).args(["lint", "--strict", "--quiet"]).arg(&chart)))?;
    for (name, values) in WAYS {
        let rendered = phase(&format!("render {name}"), || render(&helm, values))?;
        let golden = golden(name);
        if bless {
            write(&golden, &rendered)?;
            note(format!("wrote {}", golden.display()));
        } else if fs::read_to_string(&golden).with_context(|| format!("read {}", golden.display()))? != rendered {
            let found = golden.with_extension("yaml.new");
            write(&found, &rendered)?;
            bail!(
                "the chart renders something else than {}: compare it with {}; `cargo xtask chart --bless` takes it",
                golden.display(),
                found.display()
            );
        }
    }
    phase("values that mean nothing", || {
        WRONG
            .iter()
            .try_for_each(|value| if render(&helm, &[value]).is_ok() { bail!("{value} is accepted") } else { Ok(()) })
    })
}

fn render(helm: &PathBuf, values: &[&str]) -> Result<String> {
    let mut template = Command::new(helm);
    template.args(["template", "kaniop"]).arg(root().join("charts/kaniop"));
    template.args(["--namespace", "kaniop-system", "--kube-version", KUBERNETES]);
    output(template.args(values.iter().map(|value| format!("--set={value}"))))
}

fn golden(name: &str) -> PathBuf {
    root().join("tests/chart").join(format!("{name}.yaml"))
}
