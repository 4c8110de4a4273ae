package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs every *.txt script of this folder against the shared platform, all at the same time. README.md explains the commands.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	testscript.Run(t, testscript.Params{
		Dir:                 ".",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			s := &script{t: t, platform: p, users: map[string]*user{}, watches: map[string]*watch{}}
			e.Values[scriptKey{}] = s
			e.Defer(s.end)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"as": scripted(1, (*script).as), "graphql": scripted(1, (*script).graphql), "keep": scripted(2, (*script).keep),
			"open": scripted(1, (*script).open), "send": scripted(2, (*script).send), "ended": scripted(2, (*script).ended),
			"messages": scripted(1, (*script).messages), "watch": scripted(2, (*script).watch), "watch-agent": scripted(2, (*script).watchAgent),
			"await": scripted(2, (*script).await), "events": scripted(1, (*script).events), "streamed": scripted(2, (*script).streamed),
			"curl": scripted(2, (*script).curl), "until": scripted(2, (*script).until), "sign": scripted(2, (*script).sign),
		},
	})
}

type scriptKey struct{}

// script is a running script: who speaks, what was answered last, what is watched.
type script struct {
	t        testing.TB
	platform *platform
	users    map[string]*user
	user     *user
	last     answer
	watches  map[string]*watch
}

// watch is a subscription and how far the script has followed it.
type watch struct {
	*subscription
	from int
}

func (s *script) end() {
	for _, w := range s.watches {
		w.close()
	}
}

// scripted makes a command of a method: it gets at least so many arguments, and its error fails the script, or is what `!` waits for. A
// failure that `!` waited for is on the script's stderr.
func scripted(arguments int, run func(*script, *testscript.TestScript, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, negated bool, args []string) {
		if len(args) < arguments {
			ts.Fatalf("want %d arguments or more", arguments)
		}
		s := ts.Value(scriptKey{}).(*script)
		err := run(s, ts, args)
		switch {
		case err != nil && negated:
			fmt.Fprintln(ts.Stderr(), err)
		case err != nil:
			ts.Fatalf("%v", err)
		case negated:
			ts.Fatalf("this was expected to fail")
		}
	}
}

// as NAME: NAME speaks from here on. Who speaks for the first time signs in.
func (s *script) as(_ *testscript.TestScript, args []string) error {
	name := args[0]
	if s.users[name] == nil {
		s.users[name] = s.platform.as(s.t, name)
	}
	s.user = s.users[name]
	return nil
}

// ask sends a query and prints its data; errors come back as "STATUS TYPE message", a line each.
func (s *script) ask(ts *testscript.TestScript, query string, v vars) error {
	a, err := s.user.ask(query, v)
	if err != nil {
		return err
	}
	s.last = a
	if len(a.Errors) > 0 {
		var lines []string
		for _, e := range a.Errors {
			lines = append(lines, fmt.Sprintf("%d %s %s", a.Status, e.ErrorType, e.Message))
		}
		return fmt.Errorf("%s", strings.Join(lines, "\n"))
	}
	fmt.Fprintf(ts.Stdout(), "%s\n", a.Data)
	return nil
}

// graphql QUERY [name=text] [name=@file] [name:=json] …
func (s *script) graphql(ts *testscript.TestScript, args []string) error {
	v, rest, err := variables(args[1:])
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("want name=text or name:=json, have %q", rest)
	}
	for name, value := range v {
		if file, is := value.(string); is && strings.HasPrefix(file, "@") {
			v[name] = ts.ReadFile(file[1:])
		}
	}
	return s.ask(ts, args[0], v)
}

// until REGEXP QUERY [name=text] [name:=json] …: asks until the data matches.
func (s *script) until(ts *testscript.TestScript, args []string) error {
	matches, err := regexp.Compile(args[0])
	if err != nil {
		return err
	}
	v, rest, err := variables(args[2:])
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("want name=text or name:=json, have %q", rest)
	}
	err = until(func() (bool, error) {
		a, err := s.user.ask(args[1], v)
		s.last = a
		return matches.Match(a.Data), err
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, s.last.Raw)
	}
	fmt.Fprintf(ts.Stdout(), "%s\n", s.last.Data)
	return nil
}

var assignment = regexp.MustCompile(`(?s)^([A-Za-z]+)(:?=)(.*)$`)

// variables takes name=text and name:=json out of args.
func variables(args []string) (v vars, rest []string, err error) {
	v = vars{}
	for _, arg := range args {
		m := assignment.FindStringSubmatch(arg)
		switch {
		case m == nil:
			rest = append(rest, arg)
		case m[2] == "=":
			v[m[1]] = m[3]
		case !json.Valid([]byte(m[3])):
			return nil, nil, fmt.Errorf("%s is not JSON", m[3])
		default:
			v[m[1]] = json.RawMessage(m[3])
		}
	}
	return v, rest, nil
}

// curl METHOD PATH [BODY] [Header: value] …: asks the REST API with the real curl, and prints the answer, headers and all. A refusal comes back
// as "STATUS TYPE detail".
func (s *script) curl(ts *testscript.TestScript, args []string) error {
	a, err := s.user.curl(s.t, args[0], args[1], args[2:]...)
	if err != nil {
		return err
	}
	s.last = answer{Status: a.status, Data: a.body, Raw: a.raw}
	if a.status >= 400 {
		return errors.New(a.problem())
	}
	fmt.Fprintln(ts.Stdout(), a.raw)
	return nil
}

// sign SECRET BODY: $at and $signature are what a sender of a generic integration says of BODY.
func (s *script) sign(ts *testscript.TestScript, args []string) error {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	ts.Setenv("at", at)
	ts.Setenv("signature", "sha256="+mac(args[0], at+"."+args[1]))
	return nil
}

// keep NAME PATH: $NAME is a member of the last answer.
func (s *script) keep(ts *testscript.TestScript, args []string) error {
	value := s.last.get(args[1])
	if value == "" {
		return fmt.Errorf("the last answer has no %s: %s", args[1], s.last.Raw)
	}
	ts.Setenv(args[0], value)
	return nil
}

// open NAME [field=text] …: opens a thread, $NAME is its id.
func (s *script) open(ts *testscript.TestScript, args []string) error {
	input, rest, err := variables(args[1:])
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("want field=text, have %q", rest)
	}
	if err := s.ask(ts, `mutation ($input: CreateThreadInput!) { createThread(input: $input) { id prefix status channel title } }`, vars{"input": input}); err != nil {
		return err
	}
	return s.keep(ts, []string{args[0], "createThread.id"})
}

// send THREAD LINE … [onBusy=…] [clientToken=…]: $turn is the id of the turn that will answer, $message the message's.
func (s *script) send(ts *testscript.TestScript, args []string) error {
	input, lines := vars{"threadId": args[0]}, []string{}
	for _, arg := range args[1:] {
		if name, value, ok := strings.Cut(arg, "="); ok && (name == "onBusy" || name == "clientToken") {
			input[name] = value
		} else {
			lines = append(lines, arg)
		}
	}
	input["body"] = strings.Join(lines, "\n")
	if err := s.ask(ts, sendDocument, vars{"input": input}); err != nil {
		return err
	}
	ts.Setenv("turn", s.last.get("sendMessage.turnId"))
	ts.Setenv("message", s.last.get("sendMessage.id"))
	return nil
}

// ended TURN STATUS: waits for the end of a turn, which must be this one, and prints its record.
func (s *script) ended(ts *testscript.TestScript, args []string) error {
	got, record, err := s.user.awaitTurn(args[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(ts.Stdout(), "%s\n", record)
	s.last = answer{Data: record}
	if got.Status != args[1] {
		return fmt.Errorf("the turn ended %s: %s", got.Status, record)
	}
	return nil
}

// messages THREAD: prints the thread, "role: text", a message a line.
func (s *script) messages(ts *testscript.TestScript, args []string) error {
	list := s.user.messages(s.t, args[0])
	for _, m := range list {
		fmt.Fprintf(ts.Stdout(), "%s: %s\n", m.Role, strings.ReplaceAll(m.Body, "\n", `\n`))
	}
	return nil
}

// watch NAME THREAD: follows a thread's events from here on.
func (s *script) watch(_ *testscript.TestScript, args []string) error {
	return s.follow(args[0], watchDocument, args[1])
}

// watchAgent NAME AGENT: follows an agent's activity from here on.
func (s *script) watchAgent(_ *testscript.TestScript, args []string) error {
	return s.follow(args[0], watchAgentDocument, args[1])
}

func (s *script) follow(name, document, id string) error {
	subscription, err := s.user.subscribe(s.t, document, id)
	if err == nil {
		s.watches[name] = &watch{subscription: subscription}
	}
	return err
}

func (s *script) watched(name string) (*watch, error) {
	if w := s.watches[name]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("nothing is watched as %s", name)
}

// await NAME REGEXP: waits for an event whose line matches, behind the one awaited before.
func (s *script) await(ts *testscript.TestScript, args []string) error {
	w, err := s.watched(args[0])
	if err != nil {
		return err
	}
	line, err := regexp.Compile(args[1])
	if err != nil {
		return err
	}
	at, err := w.subscription.await(w.from, func(e event) bool { return line.MatchString(e.String()) })
	if err != nil {
		return err
	}
	w.from = at + 1
	fmt.Fprintln(ts.Stdout(), w.seen()[at])
	return nil
}

// events NAME: prints all events so far, one a line.
func (s *script) events(ts *testscript.TestScript, args []string) error {
	w, err := s.watched(args[0])
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, e := range w.seen() {
		fmt.Fprintln(&out, e)
	}
	_, err = out.WriteTo(ts.Stdout())
	return err
}

// streamed NAME TURN: the turn's reply arrived in chunks that make up its text; prints them, one a line, quoted.
func (s *script) streamed(ts *testscript.TestScript, args []string) error {
	w, err := s.watched(args[0])
	if err != nil {
		return err
	}
	_, chunks, err := w.subscription.streamed(args[1])
	for _, c := range chunks {
		fmt.Fprintf(ts.Stdout(), "%q\n", c)
	}
	return err
}
