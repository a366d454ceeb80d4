package child

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"
)

// readyTimeout is generous: a busy machine starts a server slowly.
const readyTimeout = time.Minute

// Serve starts an HTTP server on a free loopback port and returns once it is ready, together with host:port. It is ready when the URL answers 200, or 401 where it wants to
// know who asks. The log is name.log in the folder dir.
func Serve(ctx context.Context, name, dir, ready string, client *http.Client, command func(address string) *exec.Cmd) (*Process, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", fmt.Errorf("start %s: %w", name, err)
	}
	process, err := Start(name, filepath.Join(dir, name+".log"), command(address))
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errors.New("it is not ready in time"))
	defer cancel()
	err = process.Await(ctx, "it is ready", func() error { return answers(ctx, client, fmt.Sprintf(ready, address)) })
	if err != nil {
		process.Kill()
		return process, "", fmt.Errorf("start %s: %w", name, err)
	}
	return process, address, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func answers(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}
