package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// provisionerName is what a StorageClass names to have its volumes made here.
const provisionerName = "kaniop.rs/local"

// storage makes volumes as folders below root. They are of type "local" because the kubelet
// applies a pod's fsGroup to those and not to host-path ones, so that a non-root server can write.
type storage struct{ root, node string }

// Provision creates the folder and describes it. It belongs to root with mode 0755: a pod that
// forgets its fsGroup fails here as it would on a real cluster.
func (s storage) Provision(_ context.Context, o controller.ProvisionOptions) (*core.PersistentVolume, controller.ProvisioningState, error) {
	path := filepath.Join(s.root, o.PVName)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	reclaim := core.PersistentVolumeReclaimDelete
	if o.StorageClass.ReclaimPolicy != nil {
		reclaim = *o.StorageClass.ReclaimPolicy
	}
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: o.PVName},
		Spec: core.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: reclaim,
			AccessModes:                   o.PVC.Spec.AccessModes,
			Capacity:                      core.ResourceList{core.ResourceStorage: o.PVC.Spec.Resources.Requests[core.ResourceStorage]},
			PersistentVolumeSource:        core.PersistentVolumeSource{Local: &core.LocalVolumeSource{Path: path}},
			NodeAffinity:                  s.affinity(),
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the folder. A folder that is already gone is not an error.
func (s storage) Delete(_ context.Context, volume *core.PersistentVolume) error {
	return os.RemoveAll(filepath.Join(s.root, volume.Name))
}

// affinity binds a volume to the node that holds its folder; local volumes require it.
func (s storage) affinity() *core.VolumeNodeAffinity {
	return &core.VolumeNodeAffinity{Required: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
		MatchExpressions: []core.NodeSelectorRequirement{{
			Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{s.node},
		}},
	}}}}
}

// runStorage provisions, deletes and expands volumes until it is told to end.
func runStorage() int {
	kubeconfig := flag.String("kubeconfig", "", "credentials file")
	root := flag.String("root", "", "folder that holds the volumes")
	node := flag.String("node", "", "name of the node")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return storageFailed(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return storageFailed(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := startExpansion(ctx, client); err != nil {
		return storageFailed(err)
	}
	controller.NewProvisionController(ctx, client, provisionerName, storage{*root, *node}, controller.LeaderElection(false)).Run(ctx)
	return 0
}

func storageFailed(err error) int {
	fmt.Fprintf(os.Stderr, "storage: %v\n", err)
	return 1
}
