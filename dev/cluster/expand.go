package main

import (
	"context"
	"encoding/json"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// provisionedBy is the annotation that the provisioner library puts on each volume it makes.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// expansion grows volumes of ours whose claim asks for more. A folder has no size, so growing
// one is only bookkeeping: first the volume's capacity, then the claim's status. The events' resync
// repeats what failed or was interrupted between the two.
type expansion struct {
	ctx    context.Context
	client kubernetes.Interface
}

// startExpansion watches claims in the background until ctx ends.
func startExpansion(ctx context.Context, client kubernetes.Interface) error {
	e := expansion{ctx, client}
	factory := informers.NewSharedInformerFactory(client, 30*time.Second)
	_, err := factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    e.handle,
		UpdateFunc: func(_, now any) { e.handle(now) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return nil
}

func (e expansion) handle(object any) {
	claim, ok := object.(*core.PersistentVolumeClaim)
	if !ok || !wantsMore(claim) {
		return
	}
	if err := e.grow(claim); err != nil {
		klog.ErrorS(err, "expand", "claim", klog.KObj(claim))
	}
}

// wantsMore reports whether a bound claim asks for more than it has.
func wantsMore(claim *core.PersistentVolumeClaim) bool {
	has, known := claim.Status.Capacity[core.ResourceStorage]
	return claim.Status.Phase == core.ClaimBound && known && has.Cmp(requested(claim)) < 0
}

func requested(claim *core.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[core.ResourceStorage]
}

func (e expansion) grow(claim *core.PersistentVolumeClaim) error {
	volumes := e.client.CoreV1().PersistentVolumes()
	volume, err := volumes.Get(e.ctx, claim.Spec.VolumeName, meta.GetOptions{})
	if err != nil || volume.Annotations[provisionedBy] != provisionerName {
		return err
	}
	capacity := map[string]any{"capacity": core.ResourceList{core.ResourceStorage: requested(claim)}}
	patch, err := json.Marshal(map[string]any{"spec": capacity})
	if err != nil {
		return err
	}
	if _, err = volumes.Patch(e.ctx, volume.Name, types.MergePatchType, patch, meta.PatchOptions{}); err != nil {
		return err
	}
	capacity["conditions"] = nil // "Resizing" of the controller-manager no longer holds
	if patch, err = json.Marshal(map[string]any{"status": capacity}); err != nil {
		return err
	}
	_, err = e.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(e.ctx, claim.Name, types.MergePatchType, patch, meta.PatchOptions{}, "status")
	return err
}
