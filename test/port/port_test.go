package port_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/mooring-dev/mooring/test/port"
)

// Between two servers the port is nobody's, and nobody answers.
func TestReservation(t *testing.T) {
	r, err := port.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for range 3 {
		if conn, err := net.Dial("tcp", r.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("nobody listens, and the answer is %v, %v", conn, err)
		}
		if l, err := net.Listen("tcp", r.Addr()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("another one has the port: %v, %v", l, err)
		}
		l, err := port.Listen(t.Context(), r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(conn.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}
