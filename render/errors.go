package render

import (
	"errors"
	"fmt"
	"slices"
)

// Error is one fault in a repository that its author can mend.
type Error struct {
	// File is relative to the repository's root; empty when no single file is at fault.
	File string
	// Line counts from 1; 0 when it is not known.
	Line int
	// Err says what is wrong.
	Err error
	// Hint says what to do about it; may be empty.
	Hint string
}

// Error writes "overlays/prod/route.yaml:12: what is wrong; what to do".
func (e *Error) Error() string {
	s := e.Err.Error()
	if e.File != "" {
		s = Origin{File: e.File, Line: e.Line}.String() + ": " + s
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors takes a possibly joined error apart, in order. What is not an *Error is left out.
func Errors(err error) []*Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, one := range e.Unwrap() {
			all = append(all, Errors(one)...)
		}
		return all
	default:
		return Errors(errors.Unwrap(err))
	}
}

// fault makes an Error at a place.
func fault(file string, line int, hint, format string, args ...any) *Error {
	return &Error{File: file, Line: line, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// told is an error with a text of our own that keeps the library's in the chain: that one may be pages long and hold Secrets.
type told struct {
	text  string
	cause error
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.cause }

// maxFaults is how many faults are told at once: a user mends a few at a time, and a status field has little room.
const maxFaults = 20

// faults collects errors up to a bound.
type faults struct {
	list []error
	more int
}

func (f *faults) add(err error) {
	if err == nil || slices.ContainsFunc(f.list, func(e error) bool { return e.Error() == err.Error() }) {
		return
	}
	if len(f.list) < maxFaults {
		f.list = append(f.list, err)
	} else {
		f.more++
	}
}

// join gives nil when there is none.
func (f *faults) join() error {
	if f.more == 0 {
		return errors.Join(f.list...)
	}
	return errors.Join(append(f.list, fmt.Errorf("and %d more", f.more))...)
}

// Faults collects faults for an [Expander]: each once, and as many as are told at once. The zero value is ready to use.
type Faults struct{ all faults }

// Add notes an error; nil is none.
func (f *Faults) Add(err error) { f.all.add(err) }

// Any says whether there is one.
func (f *Faults) Any() bool { return len(f.all.list) > 0 }

// Join gives all of them as one error, or nil when there is none.
func (f *Faults) Join() error { return f.all.join() }
