package main

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// say writes text for people, and nothing else in this command does (a test sees to it). Keys, texts and errors come from a bucket and a database that are not
// trusted: on a terminal, an escape sequence in one of them could write over the verdict. So every argument that is text is made plain; only the format is not.
func say(out io.Writer, format string, args ...any) error {
	safe := make([]any, len(args))
	for i, arg := range args {
		safe[i] = arg
		switch v := arg.(type) {
		case whole:
			safe[i] = printable(string(v))
		case error:
			safe[i] = plain(strings.Join(strings.FieldsFunc(v.Error(), newLine), " ")) // PostgreSQL's driver has errors of several lines
		case fmt.Stringer:
			safe[i] = plain(v.String())
		default:
			if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
				safe[i] = plain(v.String())
			} else if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
				safe[i] = plain(string(v.Bytes()))
			}
		}
	}
	_, err := fmt.Fprintf(out, format, safe...)
	return err
}

func newLine(r rune) bool { return r == '\n' || r == '\t' }

// whole is text that is not cut, however long.
type whole string

// longest is how many bytes of a text are shown.
const longest = 2000

// plain is a text as a terminal may have it: quoted if any of it is not printable, and cut if it is long.
func plain(s string) string {
	if len(s) <= longest {
		return printable(s)
	}
	cut := longest
	for cut > longest-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return printable(s[:cut]) + "…"
}

func printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !strconv.IsGraphic(r) }) < 0 {
		return s
	}
	return strconv.QuoteToGraphic(s)
}
