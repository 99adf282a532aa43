package runq

import (
	"errors"
	"time"
	"unsafe"
)

// overlap reads a group's row of a CPU whose core has another thread, and how long the CPU's current turn has had
// another group beside it so far: the programs add that when the turn ends, which may take seconds. It is not whole
// where a thread of the core was switched meanwhile.
func (p *Probe) overlap(row int, slot Slot,
	now, end time.Duration) (c kernelCell, beside [Classes]time.Duration, whole bool, err error) {
	other := int(p.siblings[row]) - 1
	ours, err1 := p.side(row)
	theirs, err2 := p.side(other)
	c, err3 := p.cell(row, slot, end)
	there, err4 := p.cell(other, slot, end)
	oursAfter, err5 := p.side(row)
	theirsAfter, err6 := p.side(other)
	if err = errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return c, beside, false, err
	}
	beside = lasting(ours, theirs, there, slot, now)
	return c, beside, ours.Turn == oursAfter.Turn && theirs.Turn == theirsAfter.Turn, nil
}

// lasting is what the turn that a CPU is in adds, if it is the group's.
func lasting(ours, theirs kernelSide, there kernelCell, slot Slot, now time.Duration) (beside [Classes]time.Duration) {
	face := ours.Faces[ours.Turn&1]
	if face.Begun == 0 || Slot(face.Slot) != slot {
		return beside
	}
	length := max(int64(now)-int64(face.Begun), 0)
	for class, d := range foreign(theirs, there, face.Slot, face.Class, uint64(now)) {
		beside[class] = time.Duration(max(min(d-int64(ours.Foreign[class]), length), -length))
	}
	return beside
}

func (p *Probe) side(cpu int) (kernelSide, error) {
	var s kernelSide
	return s, copyOut(p.sides, &s, int64(cpu)*int64(unsafe.Sizeof(s)))
}

// foreign is that of bpf/runq.bpf.c: how long a CPU has run other groups than one up to now, by class.
func foreign(s kernelSide, own kernelCell, slot, class uint32, now uint64) (sums [Classes]int64) {
	f := s.Faces[s.Turn&1]
	ran, lasts := own.Ran, uint64(0)
	if f.Slot == slot {
		ran = f.Ran
	} else if f.Begun != 0 && Slot(f.Slot) != idle && now > f.Begun {
		lasts = now - f.Begun
	}
	for i := range sums {
		sums[i] = int64(f.Busy[i])
	}
	sums[class] -= int64(ran)
	sums[f.Class] += int64(lasts)
	return sums
}
