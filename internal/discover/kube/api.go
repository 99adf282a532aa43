package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Resource is a kind of object that is read.
type Resource string

// The resources.
const (
	Pods       Resource = "pods"
	Nodes      Resource = "nodes"
	ConfigMaps Resource = "configmaps"
)

// empty makes an empty object of the resource, and an empty list.
func (r Resource) empty() (object, list runtime.Object) {
	switch r {
	case Pods:
		return &corev1.Pod{}, &corev1.PodList{}
	case Nodes:
		return &corev1.Node{}, &corev1.NodeList{}
	default:
		return &corev1.ConfigMap{}, &corev1.ConfigMapList{}
	}
}

// API is the part of an API server that is read and written.
type API interface {
	List(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (watch.Interface, error)
	CreateEvent(ctx context.Context, e *corev1.Event) error
}

// client is an API server over the network. It is built without client-go's clientset, which would bring the types of
// every API group there is into memory.
type client struct {
	*rest.RESTClient
	options runtime.ParameterCodec
}

// Connect makes a client of the API server that a kubeconfig file names, or of the cluster in which this process is a
// pod. No request is sent yet: the API server may be away.
func Connect(kubeconfig, userAgent string) (API, error) {
	config, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	return clientOf(config, userAgent)
}

func clientOf(config *rest.Config, userAgent string) (client, error) {
	types := runtime.NewScheme()
	if err := corev1.AddToScheme(types); err != nil {
		return client{}, fmt.Errorf("kubernetes client: %w", err)
	}
	config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = serializer.NewCodecFactory(types).WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = userAgent
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return client{}, fmt.Errorf("kubernetes client: %w", err)
	}
	return client{c, runtime.NewParameterCodec(types)}, nil
}

func load(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("kubernetes: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: read %s: %w", kubeconfig, err)
	}
	return config, nil
}

func (c client) List(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	_, list := r.empty()
	err := c.Get().Namespace(namespace).Resource(string(r)).VersionedParams(&o, c.options).Do(ctx).Into(list)
	return list, err
}

func (c client) Watch(ctx context.Context, r Resource, namespace string,
	o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return c.Get().Namespace(namespace).Resource(string(r)).VersionedParams(&o, c.options).Watch(ctx)
}

func (c client) CreateEvent(ctx context.Context, e *corev1.Event) error {
	return c.Post().Namespace(e.Namespace).Resource("events").Body(e).Do(ctx).Error()
}
