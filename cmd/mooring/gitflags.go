package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync"
)

// addGitFlags adds what bounds the fetching and reading of repositories. Their names are those that the errors of package repos name.
func addGitFlags(f *pflag.FlagSet, o *sync.Options) {
	o.FetchTimeout, o.Git = time.Minute, repos.DefaultLimits()
	f.Var((*period)(&o.FetchTimeout), repos.FlagTimeout, "how long any conversation with a Git server may take")
	f.Var((*number)(&o.Git.TreeEntries), repos.FlagTreeEntries, "how many files and folders a commit may have")
	f.Var((*byteSize)(&o.Git.BlobBytes), repos.FlagBlobBytes, "how large a file may be that is read, as a `quantity`; larger ones may be there")
	f.Var((*byteSize)(&o.Git.TotalBytes), repos.FlagTotalBytes, "how much one fetch may bring, as a `quantity`: on the wire, and of all files unpacked")
}

var errNothing = errors.New("it must be more than nothing")

// byteSize is a flag for a number of bytes, written as a quantity of Kubernetes: 10Mi, 1G, 4096.
type byteSize int64

// String is the value as it is.
func (b *byteSize) String() string {
	return resource.NewQuantity(int64(*b), resource.BinarySI).String()
}

// Set reads a quantity of whole bytes.
func (b *byteSize) Set(s string) error {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return errors.New("write a number of bytes, such as 10Mi, 1G or 4096")
	}
	n, whole := q.AsInt64()
	switch {
	case q.Sign() <= 0:
		return errNothing
	case !whole || n > 1<<50:
		return fmt.Errorf("%s is no number of whole bytes, or more than 1Pi", s)
	}
	*b = byteSize(n)
	return nil
}

// Type is what help calls the value.
func (b *byteSize) Type() string { return "quantity" }

// number is a flag for a number of at least one.
type number int

// String is the value as it is.
func (n *number) String() string { return strconv.Itoa(int(*n)) }

// Set reads a whole number.
func (n *number) Set(s string) error {
	v, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return errors.New("write a whole number, such as 200000")
	case v <= 0:
		return errNothing
	}
	*n = number(v)
	return nil
}

// Type is what help calls the value.
func (n *number) Type() string { return "int" }

// period is a flag for a duration of some length.
type period time.Duration

// String is the value as it is.
func (p *period) String() string { return time.Duration(*p).String() }

// Set reads a duration.
func (p *period) Set(s string) error {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return errors.New("write a duration, such as 30s or 2m")
	case d <= 0:
		return errNothing
	}
	*p = period(d)
	return nil
}

// Type is what help calls the value.
func (p *period) Type() string { return "duration" }
