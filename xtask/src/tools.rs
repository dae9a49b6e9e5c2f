//! What must be on the machine, how to see whether it is, and which Debian package brings it.
//! It installs nothing; `setup` does.

use std::path::{Path, PathBuf};

/// How the presence of a tool shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Probe {
    /// A program on the search path.
    Program(&'static str),
    /// Any one of these files.
    File(&'static [&'static str]),
}

/// What a tool is needed for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Need {
    /// Running the development cluster.
    Cluster,
    /// Building container images.
    Images,
    /// Compiling the Rust parts, the development server among them.
    Build,
}

/// One requirement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    pub(crate) probe: Probe,
    pub(crate) package: &'static str,
    pub(crate) need: Need,
}

const fn program(name: &'static str, package: &'static str, need: Need) -> Tool {
    Tool { probe: Probe::Program(name), package, need }
}

/// Places where distributions put the CNI plugins.
pub(crate) const CNI_BRIDGE: &[&str] = &["/usr/lib/cni/bridge", "/opt/cni/bin/bridge", "/usr/libexec/cni/bridge"];

/// Everything that is not Rust, Go or part of a minimal Debian.
pub(crate) const TOOLS: &[Tool] = &[
    program("containerd", "containerd", Need::Cluster),
    program("ctr", "containerd", Need::Cluster),
    program("runc", "runc", Need::Cluster),
    Tool { probe: Probe::File(CNI_BRIDGE), package: "containernetworking-plugins", need: Need::Cluster },
    program("iptables", "iptables", Need::Cluster),
    program("iptables-restore", "iptables", Need::Cluster),
    program("ip", "iproute2", Need::Cluster),
    program("sysctl", "procps", Need::Cluster),
    program("modprobe", "kmod", Need::Cluster),
    program("mount", "mount", Need::Cluster),
    program("nsenter", "util-linux", Need::Cluster),
    program("setsid", "util-linux", Need::Cluster),
    program("setpriv", "util-linux", Need::Cluster),
    program("busybox", "busybox-static", Need::Cluster),
    program("buildah", "buildah", Need::Images),
    program("cc", "gcc", Need::Build),
    program("pkg-config", "pkg-config", Need::Build),
    Tool {
        probe: Probe::File(&["/usr/include/openssl/ssl.h", "/usr/local/include/openssl/ssl.h"]),
        package: "libssl-dev",
        need: Need::Build,
    },
];

/// Folders that the search path of `su` or `sudo` may lack: administration tools, and Go's usual place.
const ADMIN: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/go/bin"];

/// The search path for us and what we start: the environment's, with those that it may lack.
pub(crate) fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let extra = ADMIN.iter().filter(|folder| !path.split(':').any(|part| part == **folder));
    extra.fold(path.clone(), |all, folder| format!("{all}:{folder}"))
}

/// The file that a program's name stands for, if it is installed.
pub(crate) fn locate(program: &str) -> Option<PathBuf> {
    search_path().split(':').map(|folder| Path::new(folder).join(program)).find(|file| file.is_file())
}

/// The tools for these needs that the machine lacks.
pub(crate) fn lacking(needs: &[Need]) -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| needs.contains(&tool.need) && !present(tool)).collect()
}

/// One line that says what is missing and how to get it.
pub(crate) fn missing(name: &str) -> String {
    let brings = |tool: &&Tool| matches!(tool.probe, Probe::Program(program) if program == leaf(name));
    match (name, TOOLS.iter().find(brings)) {
        ("go", _) => "Go is not installed: the development cluster is built from source, install Go 1.24 or newer \
                      (Debian package golang-go of a recent release, or https://go.dev/dl) and put it on the PATH"
            .to_owned(),
        (_, Some(tool)) => {
            format!(
                "{} is not installed: run `cargo xtask setup`, or install the Debian package {}",
                name, tool.package
            )
        }
        (_, None) => format!("{name} is not installed"),
    }
}

/// One line for several missing tools, or none.
pub(crate) fn complaint(lacking: &[&Tool]) -> Option<String> {
    if lacking.is_empty() {
        return None;
    }
    let names: Vec<_> = lacking.iter().map(|tool| label(tool)).collect();
    Some(format!(
        "not installed: {}; run `cargo xtask setup`, or `apt-get install {}`",
        names.join(", "),
        packages(lacking).join(" ")
    ))
}

/// The packages that bring these tools, each once, in order.
pub(crate) fn packages(tools: &[&Tool]) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for tool in tools {
        if !names.contains(&tool.package) {
            names.push(tool.package);
        }
    }
    names
}

fn present(tool: &Tool) -> bool {
    match tool.probe {
        Probe::Program(name) => locate(name).is_some(),
        Probe::File(places) => places.iter().any(|place| Path::new(place).exists()),
    }
}

fn label(tool: &Tool) -> &'static str {
    match tool.probe {
        Probe::Program(name) => name,
        Probe::File(places) => places.first().copied().unwrap_or(tool.package),
    }
}

fn leaf(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_one_line_with_its_package() {
        for name in ["ip", "/usr/sbin/ip"] {
            let text = missing(name);
            assert!(text.contains("iproute2") && !text.contains('\n'), "{text}");
        }
        assert!(missing("go").contains("install Go"));
    }

    #[test]
    fn several_missing_tools_are_one_line_and_name_each_package_once() {
        let lacking: Vec<&Tool> = TOOLS.iter().filter(|t| t.package == "containerd" || t.package == "runc").collect();
        let text = complaint(&lacking).unwrap();
        assert!(text.contains("apt-get install containerd runc") && !text.contains('\n'), "{text}");
        assert_eq!(complaint(&[]), None);
    }

    #[test]
    fn the_search_path_has_the_folders_that_it_may_lack_once() {
        let path = search_path();
        for folder in ADMIN {
            assert_eq!(path.split(':').filter(|part| part == folder).count(), 1, "{folder} in {path}");
        }
    }
}
