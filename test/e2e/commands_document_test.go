package e2e

import (
	"fmt"
	"regexp"
	"strings"
)

// A block of a document that readers may copy and run. In this project's documents
//
//	```sh        holds commands that must succeed, one after the other;
//	```console   holds `$ command` lines, each followed by what it prints; … stands for anything, alone on a line for any lines;
//
// and both are run by TestCommands, unless the line before the fence is <!-- not run: reason -->, or <!-- needs: account, docker, sam --> with what
// is not on every machine: then what the commands name is looked at (see look), and the test's log lists them. A command goes on in the next line
// behind a backslash. All documents share a shell, README.md's blocks first, which starts at the root of the tree: variables and functions stay.
// 127.0.0.1:8787 and :8788 are the running platform's ports, wherever it really listens. `make run` as the last line of a block starts it,
// for all documents; `make test` and `make test-long` are not run again, for they run this.
type block struct {
	line  int    // of the fence
	skip  string // why it is not run
	needs []string
	steps []step
}

// step is what is run at once.
type step struct {
	line    int
	command string
	want    string // what it prints, with …
	checks  bool   // whether want counts
}

var (
	fence  = regexp.MustCompile("^( *)(```+)([A-Za-z-]*) *$")
	notRun = regexp.MustCompile(`^<!-- not run: *(.*?) *-->$`)
	needs  = regexp.MustCompile(`^<!-- needs: *(.*?) *-->$`)
	// things are what commands may need that is not on every machine: an AWS account, a Docker engine, the AWS SAM CLI.
	things = map[string]bool{"account": true, "docker": true, "sam": true}
	// shells are the languages that would look runnable to readers and are not sh or console.
	shells = map[string]bool{"bash": true, "shell": true, "zsh": true, "shell-session": true, "shellsession": true, "terminal": true, "bat": true}
)

// parseDocument takes a document's blocks out of it.
func parseDocument(text string) (blocks []block, err error) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		open := fence.FindStringSubmatch(lines[i])
		if open == nil {
			for what, marker := range map[string]*regexp.Regexp{"not run": notRun, "needs": needs} {
				if marker.MatchString(strings.TrimSpace(lines[i])) && (i+1 == len(lines) || !fence.MatchString(lines[i+1])) {
					return nil, fmt.Errorf("line %d: `%s` is not before a block", i+1, what)
				}
			}
			continue
		}
		b := block{line: i + 1}
		if i > 0 {
			if m := notRun.FindStringSubmatch(strings.TrimSpace(lines[i-1])); m != nil {
				if b.skip = m[1]; b.skip == "" {
					return nil, fmt.Errorf("line %d: `not run` without a reason", i)
				}
			}
			if m := needs.FindStringSubmatch(strings.TrimSpace(lines[i-1])); m != nil {
				for _, thing := range strings.Split(m[1], ",") {
					if thing = strings.TrimSpace(thing); !things[thing] {
						return nil, fmt.Errorf("line %d: needs %q: it is account, docker or sam, comma-separated", i, thing)
					}
					b.needs = append(b.needs, thing)
				}
			}
		}
		var body []string
		for i++; ; i++ {
			if i == len(lines) {
				return nil, fmt.Errorf("line %d: the block has no end", b.line)
			}
			if end := fence.FindStringSubmatch(lines[i]); end != nil && end[2] == open[2] && end[3] == "" {
				break
			}
			body = append(body, strings.TrimPrefix(lines[i], open[1]))
		}
		switch language := open[3]; {
		case shells[language]:
			return nil, fmt.Errorf("line %d: write sh or console for %s, so that it is run", b.line, language)
		case language == "sh":
			b.steps = commands(body, b.line+1)
		case language == "console":
			if b.steps, err = session(body, b.line+1); err != nil {
				return nil, err
			}
		default:
			continue
		}
		if b.skip == "" && len(b.steps) == 0 {
			return nil, fmt.Errorf("line %d: an empty block", b.line)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// platformCommand is a line that starts the platform and does not end.
var platformCommand = regexp.MustCompile(`^(?:[A-Z_]+=\S* +)*(?:make run|go run \./cmd/local)$`)

// testCommand runs the tests, these among them.
var testCommand = regexp.MustCompile(`^make test(?:-long)?$`)

// commands are a sh block's: one step, but for a last line that starts the platform.
func commands(lines []string, at int) (steps []step) {
	last := len(lines) - 1
	for last >= 0 && strings.TrimSpace(lines[last]) == "" {
		last--
	}
	if last < 0 {
		return nil
	}
	server := platformCommand.MatchString(strings.TrimSpace(lines[last]))
	if !server {
		last++
	}
	if text := strings.Join(lines[:last], "\n"); strings.TrimSpace(text) != "" {
		steps = append(steps, step{line: at, command: text})
	}
	if server {
		steps = append(steps, step{line: at + last, command: strings.TrimSpace(lines[last])})
	}
	return steps
}

// session are a console block's.
func session(lines []string, at int) (steps []step, err error) {
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "$ ")
		switch {
		case ok:
			s := step{line: at + i, command: command}
			for strings.HasSuffix(lines[i], `\`) && i+1 < len(lines) {
				i++
				s.command += "\n" + lines[i]
			}
			steps = append(steps, s)
		case len(steps) > 0:
			s := &steps[len(steps)-1]
			s.want += lines[i] + "\n"
			s.checks = s.checks || strings.TrimSpace(lines[i]) != ""
		case strings.TrimSpace(lines[i]) != "":
			return nil, fmt.Errorf("line %d: a console block begins with `$ command`", at+i)
		}
	}
	return steps, nil
}

// matches says whether text is what want shows.
func matches(want, text string) bool {
	var pattern strings.Builder
	for i, line := range strings.Split(tidy(want), "\n") {
		if strings.TrimSpace(line) == "…" {
			if i > 0 {
				pattern.WriteString(`(\n`)
			} else {
				pattern.WriteString(`(`)
			}
			pattern.WriteString(`(?s:.*))?`)
			continue
		}
		if i > 0 {
			pattern.WriteString(`\n?`)
		}
		pattern.WriteString(`(?m:^)`)
		for j, part := range strings.Split(line, "…") {
			if j > 0 {
				pattern.WriteString(`[^\n]*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`(?m:$)`)
	}
	return regexp.MustCompile(`\A` + pattern.String() + `\z`).MatchString(tidy(text))
}

// tidy drops what nobody sees: spaces at line ends, empty lines at both ends.
func tidy(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
