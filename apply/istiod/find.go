package istiod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Where the debug interface listens: istiod's port for monitoring, and the one for all plain HTTP where that is switched off.
const (
	monitoringPort = 15014
	plainPort      = 8080
)

// istiodLabel marks the Pods of every revision of istiod.
const istiodLabel = "app=istiod"

// revisionLabel is on istiod, on objects that are for one revision alone, and on injection webhooks.
const revisionLabel = "istio.io/rev"

var webhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}

// place is where an istiod is.
type place struct {
	key      string // the Pod's UID, or the URL
	name     string // for messages
	revision string // empty when it is not known
	url      string // empty for a Pod
	pod      *corev1.Pod
}

// found is what a look for istiods gave.
type found struct {
	places []place
	// unready are Pods of istiod that are not ready, when none is.
	unready []string
	// nobody is true when nothing reads the objects: there is no istiod, and nothing that would need one.
	nobody bool
}

// find looks for the istiods whose answer counts: those that are ready. One that is not has no proxies, or is about to lose them.
func (m *Mesh) find(ctx context.Context) (found, error) {
	if m.policy.Ask == Service && len(m.client.opts.URLs) > 0 {
		return m.client.named(), nil
	}
	pods, err := m.client.core.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: istiodLabel})
	if err != nil {
		return found{}, askable(fmt.Errorf("look for istiod: %w", err))
	}
	var f found
	for i := range pods.Items {
		pod := &pods.Items[i]
		if name := pod.Namespace + "/" + pod.Name; ready(pod) {
			f.places = append(f.places, place{key: string(pod.UID), name: "istiod " + name, revision: pod.Labels[revisionLabel], pod: pod})
		} else if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			f.unready = append(f.unready, name)
		}
	}
	if len(f.places) > 0 || len(f.unready) > 0 {
		slices.Sort(f.unready)
		return f, nil
	}
	return m.client.absent(ctx)
}

func (c *Client) named() found {
	var f found
	for _, url := range c.opts.URLs {
		f.places = append(f.places, place{key: url, name: "istiod " + url, url: strings.TrimSuffix(url, "/")})
	}
	return f
}

// absent tells a cluster without Istio from one whose istiod is down or elsewhere: the latter has injection webhooks.
func (c *Client) absent(ctx context.Context) (found, error) {
	hooks, err := c.metadata.Resource(webhooks).List(ctx, metav1.ListOptions{LabelSelector: revisionLabel})
	if err != nil {
		return found{}, askable(fmt.Errorf("there is no Pod labelled %s, and whether Istio is there at all cannot be seen: %w", istiodLabel, err))
	}
	if len(hooks.Items) > 0 {
		return found{}, &unaskableError{reason: fmt.Sprintf(
			"there is no Pod labelled %s, although MutatingWebhookConfiguration/%s says that Istio is there: is istiod down, or outside of this cluster?",
			istiodLabel, hooks.Items[0].Name)}
	}
	return found{nobody: true}, nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// askable marks an error of the API server that another try does not cure.
func askable(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return &unaskableError{reason: err.Error()}
	}
	return err
}

// open makes a way to an istiod. The port is the first of the two that answers.
func (m *Mesh) open(ctx context.Context, at place) (*line, error) {
	if at.url != "" {
		return m.client.line(at.url, m.client.opts.TokenFile, (&net.Dialer{}).DialContext, nil), nil
	}
	if m.policy.Ask == Service {
		if at.pod.Status.PodIP == "" {
			return nil, errors.New("it has no address yet")
		}
		return firstPort(ctx, func(port int) *line {
			return m.client.line("http://"+net.JoinHostPort(at.pod.Status.PodIP, strconv.Itoa(port)), m.client.opts.TokenFile, (&net.Dialer{}).DialContext, nil)
		})
	}
	url := m.client.core.RESTClient().Get().Resource("pods").Namespace(at.pod.Namespace).Name(at.pod.Name).SubResource("portforward").URL()
	tunnel, err := dialPod(ctx, m.client.config, url)
	if err != nil {
		if apierrors.IsForbidden(err) {
			return nil, &unaskableError{reason: fmt.Sprintf("%v (deploy/rbac/propagation.yaml gives the right)", err)}
		}
		return nil, askable(err)
	}
	l, err := firstPort(ctx, func(port int) *line {
		dial := func(context.Context, string, string) (net.Conn, error) { return tunnel.dial(port) }
		return m.client.line("http://localhost:"+strconv.Itoa(port), "", dial, tunnel.close)
	})
	if err != nil {
		tunnel.close()
	}
	return l, err
}

// line makes a client of its own for each istiod, so that all of its connections can be ended with it.
func (c *Client) line(base, token string, dial func(context.Context, string, string) (net.Conn, error), end func()) *line {
	transport := &http.Transport{DialContext: dial, ResponseHeaderTimeout: answerTime, MaxIdleConnsPerHost: 2}
	return &line{client: &http.Client{Transport: transport, CheckRedirect: noRedirect}, base: base, token: token, end: end}
}

// noRedirect keeps the token from going anywhere else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// firstPort gives a way through the first port that anybody listens on.
func firstPort(ctx context.Context, to func(port int) *line) (*line, error) {
	var first error
	for _, port := range []int{monitoringPort, plainPort} {
		l := to(port)
		_, err := l.reads(ctx)
		if err == nil {
			return l, nil
		}
		closeIdle(l.client)
		if first == nil {
			first = err
		}
		if !refused(err) {
			return nil, err
		}
	}
	return nil, first
}

// refused is true when nobody listens: said by the kernel, or by a kubelet in words.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "connection refused")
}
