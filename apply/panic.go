package apply

import (
	"fmt"
	"runtime/debug"
)

// Panic is a panic below the work on one object or kind, made its error. It is found with errors.As; its stack is for logs.
type Panic struct {
	Value any
	Stack []byte
}

// Error says what the panic said.
func (p *Panic) Error() string {
	return fmt.Sprintf("internal error: %v; the agent's log has the stack", p.Value)
}

// safely makes a panic of f an error. The work is done in goroutines of this package, where no caller could recover: an object
// that a library trips over would end the agent, and with it every other unit's.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}
