package poll

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock waits until no other process has the file locked, which is made where there is none, and locks it. The kernel lets go of it when the holder dies. waiting, unless
// it is nil, is called each time that somebody else still has it.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = Until(ctx, "nobody else has locked "+path, func() error {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return Final(err)
		}
		if err != nil && waiting != nil {
			waiting()
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}
