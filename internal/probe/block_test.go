package probe

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestBlocker(t *testing.T) {
	file, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(file)
	b, err := newBlocker(file)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	wait := func(until time.Time) time.Duration {
		t.Helper()
		begin := time.Now()
		if err := b.wait(until); err != nil {
			t.Error(err)
		}
		return time.Since(begin)
	}
	wait(time.Now().Add(-time.Hour)) // or it would never return
	for until := time.Now().Add(30 * time.Millisecond); time.Now().Before(until); {
		wait(until) // a signal of the runtime may end it sooner
	}
	for _, wake := range []func() error{
		func() error { _, err := unix.Write(file, []byte{1, 0, 0, 0, 0, 0, 0, 0}); return err },
		b.wake,
	} {
		began := make(chan struct{})
		go func() {
			<-began
			time.Sleep(10 * time.Millisecond)
			if err := wake(); err != nil {
				t.Error(err)
			}
		}()
		close(began)
		wait(time.Time{})
		if took := wait(time.Now().Add(time.Minute)); took > 10*time.Second { // what is not read stays readable
			t.Errorf("it slept for %v although there was something", took)
		}
		unix.Read(file, make([]byte, 8))
	}
}
