package app

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// Duration is a time span as Go and Istio write it, such as 250ms, 10s or 1m30s.
//
// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
// +kubebuilder:validation:MaxLength=32
type Duration string

// duration reads a time span that the CRD has let through; "" gives nil, which leaves the field to Istio.
func (b *builder) duration(d Duration, path []string) *durationpb.Duration {
	if d == "" {
		return nil
	}
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		b.fail(path, "write 250ms, 10s or 1m30s", "%q is not a duration", string(d))
		return nil
	}
	return durationpb.New(parsed)
}
