// Package world is Mooring in small but whole, for the demo and for the end-to-end tests: a control plane (test/kube), a Git
// server (test/gitserver), the mooring binary as it is shipped, agents that run it, and a shell in which mooring,
// kubectl and git work as they do for a user.
//
// Everything lies in one temporary folder, listens on loopback only, and goes with Close: processes are ended by handle, and
// die with this process also when it is killed. Functions return errors and take no testing.TB, so that a program
// can use them as well as a test. Whoever waits gives a context with a deadline; the error says what was waited for
// and what was there instead.
package world
