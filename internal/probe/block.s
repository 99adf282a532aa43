// Its presence lets a function be declared without a body (block.go).
