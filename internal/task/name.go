package task

import (
	"fmt"
	"os"
	"strings"
)

// Name is what a task calls itself; "" where it has ended.
func (*Kernel) Name(tid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", tid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
