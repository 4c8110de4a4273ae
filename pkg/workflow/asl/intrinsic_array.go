package asl

import (
	"errors"
	"fmt"
)

// maxRange is how many values States.ArrayRange returns at most.
const maxRange = 1000

func array(_ *evaluation, arguments []any) (any, error) { return arguments, nil }

// anArray is an argument that has to be one.
func anArray(arguments []any, i int) ([]any, error) {
	list, is := arguments[i].([]any)
	if !is {
		return nil, fmt.Errorf("argument %d is %s, not an array", i+1, kindOf(arguments[i]))
	}
	return list, nil
}

// aNumber is an argument that has to be one, rounded to an integer.
func aNumber(arguments []any, i int) (int64, error) {
	n, is := rounded(arguments[i])
	if !is {
		return 0, fmt.Errorf("argument %d is %s, not an integer within range", i+1, kindOf(arguments[i]))
	}
	return n, nil
}

func aString(arguments []any, i int) (string, error) {
	s, is := arguments[i].(string)
	if !is {
		return "", fmt.Errorf("argument %d is %s, not a string", i+1, kindOf(arguments[i]))
	}
	return s, nil
}

func arrayContains(e *evaluation, arguments []any) (any, error) {
	list, err := anArray(arguments, 0)
	if err != nil {
		return nil, err
	}
	return e.among(list, arguments[1]), nil
}

func arrayGetItem(_ *evaluation, arguments []any) (any, error) {
	list, err := anArray(arguments, 0)
	if err != nil {
		return nil, err
	}
	i, err := aNumber(arguments, 1)
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= int64(len(list)) {
		return nil, fmt.Errorf("index %d is not in an array of %d", i, len(list))
	}
	return list[i], nil
}

func arrayLength(_ *evaluation, arguments []any) (any, error) {
	list, err := anArray(arguments, 0)
	return Number(len(list)), err
}

func arrayPartition(e *evaluation, arguments []any) (any, error) {
	list, err := anArray(arguments, 0)
	if err != nil {
		return nil, err
	}
	size, err := aNumber(arguments, 1)
	if err != nil {
		return nil, err
	}
	if size < 1 {
		return nil, errors.New("argument 2, the size of a chunk, is not 1 or more")
	}
	chunks := []any{}
	for len(list) > 0 && e.spend(1) {
		n := min(size, int64(len(list)))
		chunks, list = append(chunks, list[:n:n]), list[n:]
	}
	return chunks, nil
}

func arrayRange(_ *evaluation, arguments []any) (any, error) {
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = aNumber(arguments, i); err != nil {
			return nil, err
		}
	}
	first, last, step := n[0], n[1], n[2]
	if step == 0 {
		return nil, errors.New("argument 3, the step, is 0")
	}
	if step > 0 && (last-first)/step >= maxRange || step < 0 && (first-last)/-step >= maxRange {
		return nil, fmt.Errorf("more than %d values", maxRange)
	}
	list := []any{}
	for ; step > 0 && first <= last || step < 0 && first >= last; first += step {
		list = append(list, Number(first))
	}
	return list, nil
}

func arrayUnique(e *evaluation, arguments []any) (any, error) {
	list, err := anArray(arguments, 0)
	if err != nil {
		return nil, err
	}
	seen, unique := make(map[string]bool, len(list)), []any{}
	for _, item := range list {
		key := string(e.key(nil, item))
		if e.failed != nil {
			break
		}
		if !seen[key] {
			seen[key] = true
			unique = append(unique, item)
		}
	}
	return unique, nil
}
