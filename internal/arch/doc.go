// Package arch holds the rules of the code as tests: who may import whom, what the pure packages may not do, and how
// long a function may grow. It has no code of its own.
//
// A package that is not in the table of table_test.go fails the test: a new one needs one deliberate line.
package arch
