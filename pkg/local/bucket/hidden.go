package bucket

import (
	"fmt"
	"reflect"
	"unsafe"
)

// hidden is the address of the unexported field name of the struct that of points to. versitygw is made to be a
// command: two of its settings (see the callers) are only to be had this way. Its version is pinned, and another one
// that has the field no more, or of another type, is an error at the start.
func hidden[T any](of any, name string) (*T, error) {
	f := reflect.ValueOf(of).Elem().FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return nil, fmt.Errorf("bucket: this version of versitygw has no %s in %T", name, of)
	}
	return (*T)(unsafe.Pointer(f.UnsafeAddr())), nil
}
