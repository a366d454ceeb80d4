package v1alpha1

// Check says which findings keep a commit out of the cluster.
type Check struct {
	// The mildest level that keeps a commit out: Error, Warning or Info. Findings that the mesh has already, that are about
	// objects of somebody else, or that are ignored or suppressed never do.
	// +optional
	// +kubebuilder:default=Error
	FailOn CheckLevel `json:"failOn,omitempty"`

	// Codes of findings that nobody wants to hear of, such as IST0102. They are not looked at wherever they are; suppress accepts
	// them for some objects.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	Ignore []CheckCode `json:"ignore,omitempty"`

	// Findings that are known and accepted. The annotation mooring.dev/suppress does the same for the object that carries it,
	// and says why.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Suppress []Suppression `json:"suppress,omitempty"`

	// Rules of the house, in CEL, beside those of Mooring and of Istio.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Policies []PolicySource `json:"policies,omitempty"`
}

// CheckLevel is how bad a finding is.
//
// +kubebuilder:validation:Enum=Error;Warning;Info
type CheckLevel string

// The levels, from the worst to the mildest.
const (
	// CheckError keeps out what breaks traffic or is not as safe as it is written.
	CheckError CheckLevel = "Error"
	// CheckWarning keeps out what is probably not meant, too.
	CheckWarning CheckLevel = "Warning"
	// CheckInfo keeps out everything that there is a word about.
	CheckInfo CheckLevel = "Info"
)

// CheckCode names a rule.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Z0-9_-]*[0-9]+$')",message="a code is written as in the finding, such as MOOR012 or IST0102"
type CheckCode string

// Suppression accepts the findings of one code about some objects.
type Suppression struct {
	// The code, such as IST0118; "*" stands for all.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[A-Z][A-Z0-9_-]*[0-9]+$')",message="a code is written as in the finding, such as MOOR012 or IST0102, or is * for all"
	Code string `json:"code"`
	// The objects, as Kind/namespace/name or, for what lives in no namespace, Kind/name. A * stands for any run of characters but
	// a slash: Service/apps/*.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9*]+(/[A-Za-z0-9.:*-]+){1,2}$')",message="resource is Kind/namespace/name, such as Service/apps/*, or Kind/name for what lives in no namespace"
	Resource string `json:"resource"`
}

// PolicySource is where rules of the house are kept: exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="[has(self.path), has(self.configMapRef)].filter(set, set).size() == 1",message="exactly one of path and configMapRef must be set"
type PolicySource struct {
	// A file, or a folder of *.yaml files, of the same repository and commit, relative to the root of the repository.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/')",message="path is relative to the root of the repository: write policies/mesh.yaml, not /policies/mesh.yaml"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|/)[.][.](/|$)')",message="path cannot lead out of the repository: it must not contain .."
	Path string `json:"path,omitempty"`
	// A ConfigMap of the Mooring's namespace: rules that whoever writes to the repository cannot change. It is read at each pass.
	// +optional
	ConfigMapRef *ConfigMapReference `json:"configMapRef,omitempty"`
}

// ConfigMapReference names a ConfigMap in the Mooring's own namespace.
type ConfigMapReference struct {
	// Its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// The one key that is read; all of them without it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}
