package frame

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// Dial opens a connection whose system calls are the caller's: no other goroutine has to run to wake it. Reads and
// writes block.
func Dial(address string) (fd int, err error) {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	at := &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}
	err = errors.Join(unix.Connect(fd, at), unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
