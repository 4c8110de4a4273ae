package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const maxSlow = 10 * time.Second

// Kinds of scripted failure.
const (
	failThrottle   = "throttle"
	failValidation = "validation"
	failStream     = "stream"
	failCut        = "cut"
)

// fail is a scripted failure; times 0 = always.
type fail struct {
	kind  string
	times int
}

// script is what the slash lines of a text ask for.
type script struct {
	says  []string
	tools []toolUse // without ids
	slow  time.Duration
	fail  fail
	help  bool
	wrong string // what is wrong with a slash line, for the user
	rest  string // the text without its slash lines
}

// parse reads the slash lines of text. A line with a slash that is no command stays text.
func parse(text string) script {
	var s script
	var rest []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		word, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
		argument = strings.TrimSpace(argument)
		var err error
		switch word {
		case "/say":
			err = s.say(argument)
		case "/tool":
			err = s.tool(argument)
		case "/slow":
			err = s.pause(argument)
		case "/fail":
			err = s.failure(argument)
		case "/help":
			s.help = true
		default:
			rest = append(rest, line)
		}
		if err != nil && s.wrong == "" {
			s.wrong = fmt.Sprintf("I did not understand “%s”: %v.", quote(line), err)
		}
	}
	s.rest = strings.TrimSpace(strings.Join(rest, "\n"))
	return s
}

func (s *script) say(argument string) error {
	text := strings.ReplaceAll(argument, `\n`, "\n")
	if strings.TrimSpace(text) == "" {
		return errors.New("want /say and a text")
	}
	s.says = append(s.says, text)
	return nil
}

func (s *script) tool(argument string) error {
	name, input, _ := strings.Cut(argument, " ")
	input = strings.TrimSpace(input)
	if !toolName.MatchString(name) {
		return errors.New("want /tool NAME {json}, the name of letters, digits, _ and -")
	}
	if input == "" {
		input = "{}"
	}
	if !json.Valid([]byte(input)) || !isObject(json.RawMessage(input)) {
		return errors.New("the input of a tool is a JSON object")
	}
	s.tools = append(s.tools, toolUse{Name: name, Input: json.RawMessage(input)})
	return nil
}

func (s *script) pause(argument string) error {
	ms, err := strconv.Atoi(argument)
	if err != nil || ms < 0 {
		return errors.New("want /slow and a number of milliseconds")
	}
	s.slow = maxSlow
	if ms < int(maxSlow/time.Millisecond) {
		s.slow = time.Duration(ms) * time.Millisecond
	}
	return nil
}

func (s *script) failure(argument string) error {
	words := strings.Fields(argument)
	f := fail{}
	if len(words) == 2 {
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 1 {
			return errors.New("the number of failures is at least 1")
		}
		f.times = n
	}
	if len(words) == 1 || len(words) == 2 {
		switch words[0] {
		case failThrottle, failValidation, failStream, failCut:
			f.kind = words[0]
			s.fail = f
			return nil
		}
	}
	return errors.New("want /fail throttle, validation, stream or cut, and a number of failures or none")
}
