// Package sum adds.
package sum

// Sum adds.
func Sum(a, b int) int {
	return a + b
}
