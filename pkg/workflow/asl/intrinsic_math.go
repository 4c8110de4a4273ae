package asl

import (
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

func mathAdd(_ *evaluation, arguments []any) (any, error) {
	var sum int64
	for i := range arguments {
		n, err := aNumber(arguments, i)
		if err != nil {
			return nil, err
		}
		if n < math.MinInt32 || n > math.MaxInt32 {
			return nil, fmt.Errorf("argument %d is not within %d and %d", i+1, math.MinInt32, math.MaxInt32)
		}
		sum += n
	}
	return Number(sum), nil
}

// mathRandom is from its first argument up to, but not, its second. The same seed gives the same number.
func mathRandom(_ *evaluation, arguments []any) (any, error) {
	var n [3]int64
	for i := range arguments {
		var err error
		if n[i], err = aNumber(arguments, i); err != nil {
			return nil, err
		}
	}
	from, to := n[0], n[1]
	if from > to {
		return nil, errors.New("argument 1 is greater than argument 2")
	}
	if from == to {
		return Number(from), nil
	}
	width := uint64(to) - uint64(from) // of all int64, too
	draw := rand.Uint64N
	if len(arguments) == 3 {
		draw = rand.New(rand.NewPCG(uint64(n[2]), 0)).Uint64N
	}
	return Number(int64(uint64(from) + draw(width))), nil
}

// uuid is a random one, version 4.
func uuid(*evaluation, []any) (any, error) {
	var b [16]byte
	_, _ = cryptorand.Read(b[:]) // which never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
