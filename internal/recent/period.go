// Package recent keeps what containers did in each of their periods, for the last minutes.
//
// # Problem
//
// A page shows strips of 100 ms, and whoever opens it asks what was a moment ago. A thousand containers have nine
// million periods in 15 minutes. The process that keeps them runs beside the containers, and takes memory from them.
//
// # Approach
//
// The latest periods of a container are kept as they are, and each 192 as a block (code.go), in which times are rounded
// to 64 us. A period of a container that is throttled in one of five takes about 2.5 bytes. All those of a container
// that has had none for a minute are a block, too: where jobs come and go, most containers are gone. What is older than
// Keep goes, and so do the oldest blocks of all when the sum is above the bound.
//
// # Known limits
//
// A container that sleeps has no periods, so that its gap is not to be told from a time in which nothing was recorded:
// the caller says since when there is no gap.
package recent

import (
	"errors"
	"math"
	"time"
)

// Period is one period of a control group with a limit.
type Period struct {
	End       int64 // Unix time in ms
	Used      int32 // us of CPU time
	Quota     int32 // us, in force as it ended
	Burst     int32 // us, in force as it ended; UnknownBurst: not known
	Lost      int32 // us of wall time that the group was throttled
	Throttles uint16
	Refills   uint16
}

// UnknownBurst is the burst of a period of which nobody has read it: the kernel's records of periods do not have it.
const UnknownBurst = -1

// Us is a time in microseconds, as much as a Period can hold.
func Us(d time.Duration) int32 { return int32(min(max(d.Microseconds(), 0), math.MaxInt32)) }

// ErrDamaged says that bytes are not what Encode has made.
var ErrDamaged = errors.New("damaged periods")

// maxEncoded bounds how many periods one list has.
const maxEncoded = 1 << 20
