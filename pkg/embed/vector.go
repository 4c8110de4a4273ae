package embed

import "math"

// Unit is numbers as a vector of length 1, if they have a direction: not if one is infinite or no number, or if all are 0. It is the same on every
// machine: each product is rounded before it is added, where a processor would do both at once and round one time only.
func Unit(numbers []float64) (vector []float32, ok bool) {
	var largest float64
	for _, x := range numbers {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, false
		}
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 {
		return nil, false
	}
	var squares float64
	for _, x := range numbers { // by the largest, so that no square is infinite, and not all are 0
		x /= largest
		squares += float64(x * x)
	}
	length := math.Sqrt(squares)
	vector = make([]float32, len(numbers))
	for i, x := range numbers {
		vector[i] = float32(x / largest / length)
	}
	return vector, true
}
