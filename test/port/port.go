// Package port keeps loopback ports for servers that are stopped and started again under the same address, as tests do to see what happens meanwhile.
package port

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reservation keeps a loopback port, from before the first start of its server until it is released. It is a socket that is bound with SO_REUSEPORT and never listens: the
// kernel gives its port to nobody who asks for a free one, refuses connections as long as nobody listens, and lets servers of the same user bind it that set the option
// as well. To ask for a free port and to close it again would be a race with all others on the machine, whose connections take ports from the same range.
type Reservation struct {
	Port int
	fd   int
}

// Reserve a port.
func Reserve() (*Reservation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	r := &Reservation{fd: fd}
	if err := r.bind(); err != nil {
		r.Release()
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return r, nil
}

func (r *Reservation) bind() error {
	if err := unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(r.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	bound, err := unix.Getsockname(r.fd)
	if err != nil {
		return err
	}
	r.Port = bound.(*unix.SockaddrInet4).Port
	return nil
}

// Release gives the port back.
func (r *Reservation) Release() { _ = unix.Close(r.fd) }

// Addr is host:port.
func (r *Reservation) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)) }

// Listen listens at an address, which may be reserved.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		if err != nil {
			return err
		}
		return failed
	}}
	return config.Listen(ctx, "tcp", addr)
}
