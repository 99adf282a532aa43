// Package inspect reads from /proc what package parallelism has to know of the processes of a container.
//
// # Problem
//
// All of it belongs to tenants: a process chooses its name, its arguments, what its executable contains, and even where
// its arguments are in memory. Reading must end soon, take little memory, and touch nothing but regular files of
// executables.
//
// # Approach
//
// Every file of /proc is read up to a bound, and what does not fit counts as not known. An executable is opened by its
// link in /proc, whose text is not followed as a path. It is opened without access first (O_PATH), which runs no code
// of a file system. It is read only if it is a regular file on a file system of this machine: one in user space or on a
// network answers when it pleases. Then debug/buildinfo reads it, an ELF file only, through a reader that ends after a
// number of bytes. Of the environment only parallelism.Variables are kept.
//
// The reading of a container ends with the context: the processes that were not reached are counted as not read.
//
// # Known limits
//
// A process can make a read of its own arguments wait, by memory that another process serves (userfaultfd, FUSE): the
// reading goroutine is then left behind, and ends with this program. A process number may be given to another process
// while it is read. To read another user's environment and executable takes CAP_SYS_PTRACE;
// without it they are not known.
package inspect
