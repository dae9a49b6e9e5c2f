// Command kube is every component of a one-node Kubernetes in one static binary: the first
// argument names the component, the rest are that component's own flags.
//
// It decides nothing about how the components are wired together; `cargo xtask cluster` does.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components maps a component's name to what runs it. Each reads os.Args as if it were alone,
// with its own name in os.Args[0], and returns the exit code.
var components = map[string]func() int{
	"coredns":                 runDNS,
	"etcd":                    runEtcd,
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllers.NewControllerManagerCommand),
	"kube-proxy":              command(proxy.NewProxyCommand),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 command(kubectl.NewDefaultKubectlCommand),
	"kubelet":                 command(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"storage":                 runStorage,
}

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	run, known := components[os.Args[1]]
	if !known {
		usage()
	}
	os.Args = os.Args[1:]
	os.Exit(run())
}

// command defers building the component: constructing one registers its flags and metrics
// globally, which must happen for the chosen one only.
func command(build func() *cobra.Command) func() int {
	return func() int { return cli.Run(build()) }
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func runDNS() int {
	// The order of the directives is the order of the plugin chain.
	dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "template", "kubernetes"}
	coremain.Run()
	return 0
}

func usage() {
	names := slices.Sorted(maps.Keys(components))
	fmt.Fprintf(os.Stderr, "usage: kube COMPONENT [FLAGS]\ncomponents: %s\n", strings.Join(names, ", "))
	os.Exit(2)
}
