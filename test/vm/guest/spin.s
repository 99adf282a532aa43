# plimsoll-spin: takes a whole CPU, as the shell's "while :; do :; done" does. In most guests time is counted in instructions: the
# emulator takes a quarter of a second to run a second's worth of that loop, and next to nothing for as many of these.
	.globl _start
_start:
	.rept 200
	nop
	.endr
	jmp _start
