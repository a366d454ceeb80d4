package app

import "encoding/json"

// Percent is a number from 0 to 100, such as 0.5.
//
// +kubebuilder:validation:Type=number
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=100
type Percent float64

// MarshalJSON writes the number. That the type has the method keeps the CRD's generator from refusing it as a float.
func (p Percent) MarshalJSON() ([]byte, error) { return json.Marshal(float64(p)) }

// UnmarshalJSON reads the number.
func (p *Percent) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, (*float64)(p)) }
