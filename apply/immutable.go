package apply

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// saysImmutable are the words with which Kubernetes' own validation (apimachinery's ValidateImmutableField, Service, StatefulSet, RoleBinding,
// StorageClass, Pod) and the usual CEL rules refuse a change, not a value.
var saysImmutable = regexp.MustCompile(`(?i)\bimmutable\b|may not change once set|cannot change roleRef|` +
	`updates to (statefulset spec|parameters|provisioner|reclaimPolicy|volumeBindingMode) .*forbidden|updates to \w+ are forbidden|` +
	`may not be changed in an update|updates may not change fields|cannot be changed`)

// immutableFields gives the fields that the server will not change, when that is all that it objects to. A schema error, or one beside an immutable
// field, is not that: to delete the object would lose it, because it could not be created again.
func immutableFields(err error) ([]string, bool) {
	if !apierrors.IsInvalid(err) {
		return nil, false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil, false
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if !saysImmutable.MatchString(cause.Message) {
			return nil, false
		}
		fields = append(fields, cause.Field)
	}
	return fields, len(fields) > 0
}

// isSchemaError is true when the server does not like what is written, as far as it knows the kind. What it cannot even parse it answers
// with 500 and words (apimachinery's managedfields), not with a reason.
func isSchemaError(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		err != nil && strings.Contains(err.Error(), "failed to create typed patch object")
}

// neverReplaced are kinds whose deletion takes with it what nobody can write again.
func neverReplaced(gk schema.GroupKind) bool {
	return gk == kindDefinition || gk == kindNamespace || gk == kindClaim
}

// immutableError says how to mend.
func immutableError(id render.ID, fields []string, err error) error {
	if neverReplaced(id.GroupKind()) {
		return fmt.Errorf("%w; %s cannot change, and Mooring never deletes a %s to create it again: put back the old value",
			err, strings.Join(fields, ", "), id.Kind)
	}
	return fmt.Errorf("%w; %s cannot change: put back the old value, or annotate the object %s: enabled, which deletes and creates it again",
		err, strings.Join(fields, ", "), ForceAnnotation)
}

// immutableDiffs shows the values of the fields that make a replacement necessary.
func immutableDiffs(id render.ID, fields []string, live, want *unstructured.Unstructured) []FieldDiff {
	var diffs []FieldDiff
	for _, field := range fields {
		path := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(field), ".")
		diffs = append(diffs, FieldDiff{Path: "/" + strings.Join(path, "/"), Live: lookup(live.Object, path), Want: lookup(want.Object, path)})
	}
	return mask(id, diffs)
}

func lookup(at any, path []string) any {
	for _, name := range path {
		switch v := at.(type) {
		case map[string]any:
			at = v[name]
		case []any:
			i := -1
			if _, err := fmt.Sscanf(name, "%d", &i); err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// discreet takes out of an API error about a Secret what could be a value of it. The server prints what it cannot parse.
func discreet(gk schema.GroupKind, err error) error {
	var api apierrors.APIStatus
	if gk != kindSecret || !errors.As(err, &api) {
		return err
	}
	status := api.Status()
	switch status.Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonInternalError, metav1.StatusReasonUnknown:
	default:
		return err
	}
	var causes []metav1.StatusCause
	var fields []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			said := "not shown, because it may hold a value"
			if words := saysImmutable.FindString(cause.Message); words != "" {
				said = words
			}
			causes = append(causes, metav1.StatusCause{Type: cause.Type, Field: cause.Field, Message: said})
			fields = append(fields, cause.Field)
		}
		details := *status.Details
		details.Causes = causes
		status.Details = &details
	}
	where := ""
	if len(fields) > 0 {
		where = " for " + strings.Join(fields, ", ")
	}
	status.Message = fmt.Sprintf("the API server refuses the Secret%s (%d %s); what it says is not shown, because it may hold a value",
		where, status.Code, cmp.Or(status.Reason, "without a reason"))
	return &apierrors.StatusError{ErrStatus: status}
}
