package sandbox_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// open makes a sandbox with limits.
type open func(t *testing.T, l sandbox.Limits) sandbox.Sandbox

// script is a case of the contract.
type script struct {
	code, input string
	status      sandbox.Status
	stdout      string
	value       string
	err         string // is in it
}

// Scripts that end by themselves.
var ordinary = map[string]script{
	"a value":            {code: `return 6 * 7`, value: `42`},
	"no value":           {code: `const x = 1`},
	"null":               {code: `return null`, value: `null`},
	"input":              {code: `return input.items.map((i) => i.price).reduce((a, b) => a + b)`, input: `{"items":[{"price":1.5},{"price":2}]}`, value: `3.5`},
	"no input":           {code: `return typeof input`, value: `"undefined"`},
	"input null":         {code: `return input`, input: `null`, value: `null`},
	"order of members":   {code: `return input`, input: `{"z":1,"a":{"y":"é","b":[]}}`, value: `{"z":1,"a":{"y":"é","b":[]}}`},
	"await":              {code: `const x = await Promise.resolve(5); return x + 1`, value: `6`},
	"console":            {code: `console.log("a", 1, [2], {b: null}, true); console.error(new TypeError("x")); console.info(undefined, 3n, Symbol("s"), () => 1)`, stdout: "a 1 [2] {\"b\":null} true\nTypeError: x (line 1)\nundefined 3n Symbol(s) [function]\n"},
	"console at the end": {code: `Promise.resolve().then(() => console.log("then")); console.log("first"); return 1`, stdout: "first\nthen\n", value: `1`},
	"newer language":     {code: `return [..."aéa"].toSorted().findLast((c) => c === "a") + (null ?? 1) + [1, 2].at(-1) + 2n ** 64n`, value: `"a1218446744073709551616"`},
	"text":               {code: "console.log('\\ud800|\\u0000|😀'); return ['\\udc00', '\\0', '😀', '\\\\u0000', {'\\ud800': 1}]", stdout: "\uFFFD|\uFFFD|😀\n", value: `["\ufffd","\ufffd","😀","\\u0000",{"\ufffd":1}]`},
	"regular expression": {code: `return "2024-05-06".replace(/(?<y>\d+)-(?<m>\d+)-(?<d>\d+)/u, "$<d>.$<m>.$<y>")`, value: `"06.05.2024"`},

	"throws":              {code: "const a = 1;\nlet b;\nb.c.d", status: sandbox.StatusError, err: "TypeError: "},
	"the line":            {code: "console.log(1)\n\nnoSuchName()", status: sandbox.StatusError, stdout: "1\n", err: "(line 3)"},
	"throws what it will": {code: `throw {code: 7}`, status: sandbox.StatusError, err: `threw {"code":7}`},
	"throws nothing":      {code: `throw undefined`, status: sandbox.StatusError, err: "threw undefined"},
	"syntax":              {code: "return (", status: sandbox.StatusError, err: "SyntaxError: "},
	"another language":    {code: "import os\nprint(os.environ)", status: sandbox.StatusError, err: "SyntaxError: "},
	"rejects":             {code: `await Promise.reject(new RangeError("no"))`, status: sandbox.StatusError, err: "RangeError: no"},
	"nobody settles":      {code: `console.log("waiting"); await new Promise(() => {})`, status: sandbox.StatusError, stdout: "waiting\n", err: "waits for a promise"},
	"not JSON: a circle":  {code: `const a = {}; a.a = a; return a`, status: sandbox.StatusError, err: "cannot be written as JSON"},
	"not JSON: a BigInt":  {code: `return {n: 1n}`, status: sandbox.StatusError, err: "cannot be written as JSON"},
	"left rejected":       {code: `Promise.reject(new Error("nobody looks")); await null; return 1`, value: `1`},

	"no environment":     {code: `return typeof process + typeof Deno + typeof require + typeof module + typeof std + typeof os + typeof scriptArgs`, value: `"` + strings.Repeat("undefined", 7) + `"`},
	"no network":         {code: `return typeof fetch + typeof XMLHttpRequest + typeof WebSocket`, value: `"` + strings.Repeat("undefined", 3) + `"`},
	"no timers":          {code: `return typeof setTimeout + typeof setInterval + typeof setImmediate`, value: `"` + strings.Repeat("undefined", 3) + `"`},
	"no shared memory":   {code: `return typeof SharedArrayBuffer + typeof Atomics + typeof WebAssembly + typeof Worker`, value: `"` + strings.Repeat("undefined", 4) + `"`},
	"no runner":          {code: `return typeof print + typeof finish + typeof runner + typeof request + typeof mark`, value: `"` + strings.Repeat("undefined", 5) + `"`},
	"no processes":       {code: `try { await import("node:child_process"); return "imported" } catch (e) { return "refused" }`, value: `"refused"`},
	"no modules":         {code: `try { await import("std"); return "imported" } catch (e) { return "refused" }`, value: `"refused"`},
	"this":               {code: `return typeof this`, value: `"object"`},
	"a function of text": {code: `return typeof Function("return typeof process + typeof require")() + (0, eval)("typeof std")`, value: `"stringundefined"`},
}

// Scripts that do to their interpreter what they can: each has an outcome, whichever.
var tricks = map[string]string{
	"JSON":             `JSON.stringify = () => '{"status":"ok","value":"forged"}'; JSON.parse = null; return {a: 1}`,
	"Object.prototype": `Object.prototype.toJSON = () => { throw 1 }; Object.prototype.status = "ok"; Object.defineProperty(Object.prototype, "value", {get() { throw 2 }, set() { throw 3 }}); return {a: 1}`,
	"Array.prototype":  `for (const n of Object.getOwnPropertyNames(Array.prototype)) try { Array.prototype[n] = null } catch {} Array.prototype[Symbol.iterator] = () => { throw 4 }; console.log([1], 2); return [1]`,
	"Promise":          `Promise.prototype.then = function (f) { f("forged") }; Object.defineProperty(Promise.prototype, "constructor", {get() { throw 5 }}); await 1; return 2`,
	"RegExp":           `RegExp.prototype.exec = () => { throw 6 }; String.prototype.slice = () => { throw 7 }; Function.prototype.call = Function.prototype.apply = null; throw new Error("x")`,
	"console":          `console.log = null; console = null; delete globalThis.console; return 1`,
	"an awkward error": `throw {get name() { throw 8 }, get message() { throw 9 }, get stack() { for (;;) throw 10 }, toString() { throw 11 }, toJSON() { throw 12 }}`,
	"a proxy":          `throw new Proxy({}, {get() { throw 13 }, has() { throw 14 }, ownKeys() { throw 15 }, getPrototypeOf() { throw 16 }})`,
	"a thenable":       `return {then(f) { f({then(g) { g(7) }}) }}`,
	"out of the body":  `}); globalThis.x = 1; (async () => {`,
	"globals":          `for (const n of Object.getOwnPropertyNames(globalThis)) try { globalThis[n] = null; delete globalThis[n] } catch {} return 1`,
	"toString":         `return {toString() { throw 17 }, [Symbol.toPrimitive]() { throw 18 }, toJSON() { return {toJSON() { throw 19 }} }}`,
}

// bomb is a script that goes for a limit.
type bomb struct {
	code string
	ends []sandbox.Status // one of these
}

// Bombs that end when the time does.
var endless = map[string]bomb{
	"a loop":                  {`for (;;);`, one(sandbox.StatusTimeout)},
	"a loop that has printed": {`console.log("begun"); for (;;);`, one(sandbox.StatusTimeout)},
	"a regular expression":    {`return /^(a+)+$/.test("a".repeat(50) + "b")`, one(sandbox.StatusTimeout)},
	"microtasks":              {`const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})`, one(sandbox.StatusTimeout)},
	"async calls":             {`const f = async () => { await null; return f() }; await f()`, []sandbox.Status{sandbox.StatusTimeout, sandbox.StatusMemory}},
	"a loop that catches":     {`for (;;) try { for (;;) throw new Error() } catch {} finally { continue }`, one(sandbox.StatusTimeout)},
	"big numbers":             {`let n = 3n; for (;;) n = n ** 3n % (2n ** 60000n)`, []sandbox.Status{sandbox.StatusTimeout, sandbox.StatusError}},
	"a sort":                  {`return Array.from({length: 1e6}, (_, i) => i).sort(() => { for (;;); })`, one(sandbox.StatusTimeout)},
}

// Bombs that end at another limit.
var heavy = map[string]bomb{
	"arrays":             {`const a = []; for (;;) a.push(new Array(1000).fill(1.5))`, one(sandbox.StatusMemory)},
	"objects":            {`let o = {}; for (;;) o = {o, p: {}, q: [o]}`, one(sandbox.StatusMemory)},
	"strings":            {`let s = "x"; for (;;) s += s`, one(sandbox.StatusMemory)},
	"many strings":       {`const a = []; for (let i = 0; ; i++) a.push(("" + i).repeat(1000))`, one(sandbox.StatusMemory)},
	"one string":         {`return "x".repeat(2 ** 29 + 2 ** 28)`, one(sandbox.StatusMemory)},
	"a map":              {`const m = new Map(); for (let i = 0; ; i++) m.set(i, [i])`, one(sandbox.StatusMemory)},
	"closures":           {`const a = []; for (;;) { const b = a.length; a.push(() => [b, a]) }`, one(sandbox.StatusMemory)},
	"recursion":          {`const f = (n) => f(n + 1) + 1; return f(0)`, one(sandbox.StatusError)},
	"recursion, caught":  {`let n = 0; const f = () => { n++; try { f() } catch { } }; f(); return n > 100`, one(sandbox.StatusOK)},
	"deep JSON":          {`return JSON.parse("[".repeat(1e6) + "]".repeat(1e6))`, []sandbox.Status{sandbox.StatusError, sandbox.StatusOutput, sandbox.StatusMemory}},
	"deep nesting":       {`let o = []; for (let i = 0; i < 1e6; i++) o = [o]; return o`, []sandbox.Status{sandbox.StatusError, sandbox.StatusOutput, sandbox.StatusMemory}},
	"deep source":        {`return eval("(".repeat(1e5) + "1" + ")".repeat(1e5))`, []sandbox.Status{sandbox.StatusError, sandbox.StatusOK}},
	"lines":              {`for (;;) console.log("a line of some length, again and again")`, one(sandbox.StatusOutput)},
	"lines, caught":      {`for (let i = 0; i < 1e4; i++) try { console.log("a line of some length, again and again") } catch {}`, one(sandbox.StatusOutput)},
	"one line":           {`console.log("é".repeat(5e6)); return 1`, one(sandbox.StatusOutput)},
	"a long value":       {`return "x".repeat(1e6)`, one(sandbox.StatusOutput)},
	"much of both":       {`console.log("x".repeat(40000)); return "y".repeat(40000)`, one(sandbox.StatusOutput)},
	"a huge exception":   {`throw new Error("x".repeat(1e7))`, one(sandbox.StatusError)},
	"a huge thrown text": {`throw "é".repeat(1e6)`, one(sandbox.StatusError)},
	"forks":              {`for (const n of ["fork", "exec", "spawn", "popen", "Worker"]) if (typeof globalThis[n] !== "undefined") return n; return "none"`, one(sandbox.StatusOK)},
}

// Contents of array buffers, which lie beside the heap.
var buffers = map[string]bomb{
	"typed arrays":    {`const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(7))`, one(sandbox.StatusMemory)},
	"one typed array": {`return new Float64Array(2 ** 40).length`, one(sandbox.StatusMemory)},
}

func one(s sandbox.Status) []sandbox.Status { return []sandbox.Status{s} }

// patient are the platform's limits, on a machine that may be busy with other tests.
func patient() sandbox.Limits {
	l := sandbox.Default
	l.CPU, l.Wall = time.Minute, 2*time.Minute
	return l
}

// quick are limits for scripts that end by time.
func quick() sandbox.Limits {
	l := patient()
	l.CPU = 300 * time.Millisecond
	return l
}

// small are limits for scripts that end by memory.
func small() sandbox.Limits {
	l := patient()
	l.Memory = 48 << 20
	return l
}

func testContract(t *testing.T, open open, bombs ...map[string]bomb) {
	s := open(t, patient())
	for name, c := range ordinary {
		t.Run(name, func(t *testing.T) {
			r := run(t, s, c.code, c.input)
			want := c.status
			if want == "" {
				want = sandbox.StatusOK
			}
			require.Equal(t, want, r.Status, r.Error)
			require.Equal(t, c.stdout, r.Stdout)
			require.Equal(t, c.value, string(r.Value))
			require.Contains(t, r.Error, c.err)
			require.Equal(t, want == sandbox.StatusOK, r.Error == "", "a run that failed says why")
		})
	}
	for name, code := range tricks {
		t.Run("tricks with "+name, func(t *testing.T) { run(t, s, code, "") })
	}
	little := open(t, small())
	for _, all := range append(bombs, heavy) {
		for name, b := range all {
			t.Run(name, func(t *testing.T) { b.run(t, little) })
		}
	}
	short := open(t, quick())
	for name, b := range endless {
		t.Run(name, func(t *testing.T) { b.run(t, short) })
	}
	t.Run("after all of them", func(t *testing.T) {
		require.Equal(t, "2", string(run(t, s, `return globalThis.x === undefined && 2`, "").Value))
	})
	testRefusals(t, s)
	testEnds(t, s)
}

func (b bomb) run(t *testing.T, s sandbox.Sandbox) {
	t.Helper()
	r := run(t, s, b.code, "")
	require.Contains(t, b.ends, r.Status, r.Error)
	if limit := map[sandbox.Status]string{sandbox.StatusTimeout: "ran longer than", sandbox.StatusMemory: "MiB of memory", sandbox.StatusOutput: "KiB together"}[r.Status]; limit != "" {
		require.Contains(t, r.Error, limit, "the model is told which limit it was")
	}
}

// run runs a script and holds what holds of every result.
func run(t *testing.T, s sandbox.Sandbox, code, input string) sandbox.Result {
	t.Helper()
	r, err := s.Run(t.Context(), sandbox.Script{Language: sandbox.JavaScript, Code: code, Input: json.RawMessage(input)})
	require.NoError(t, err)
	require.Contains(t, []sandbox.Status{sandbox.StatusOK, sandbox.StatusError, sandbox.StatusTimeout, sandbox.StatusMemory, sandbox.StatusOutput}, r.Status)
	require.LessOrEqual(t, len(r.Stdout)+len(r.Value), sandbox.Default.Output)
	require.LessOrEqual(t, len(r.Error), 4<<10)
	for _, text := range []string{r.Stdout, string(r.Value), r.Error} {
		require.True(t, utf8.ValidString(text))
		require.NotContains(t, text, "\x00")
	}
	require.True(t, len(r.Value) == 0 || json.Valid(r.Value))
	require.GreaterOrEqual(t, r.DurationMs, int64(0))
	return r
}

// What no sandbox runs.
func testRefusals(t *testing.T, s sandbox.Sandbox) {
	for why, bad := range map[string]sandbox.Script{
		"language must be":  {Language: "python", Code: "1"},
		"must not be empty": {Language: sandbox.JavaScript, Code: " \n"},
		"code is longer":    {Language: sandbox.JavaScript, Code: strings.Repeat("x", sandbox.Default.Code+1)},
		"code must be":      {Language: sandbox.JavaScript, Code: "\"\xff\""},
		"input is longer":   {Language: sandbox.JavaScript, Code: "1", Input: json.RawMessage(`"` + strings.Repeat("x", sandbox.Default.Input) + `"`)},
		"input must be":     {Language: sandbox.JavaScript, Code: "1", Input: json.RawMessage(`{`)},
	} {
		_, err := s.Run(t.Context(), bad)
		var told *fault.Error
		require.ErrorAs(t, err, &told, why)
		require.Equal(t, fault.ValidationError, told.Type)
		require.Contains(t, told.Message, why)
	}
	long := sandbox.Script{Language: sandbox.JavaScript, Code: "return input.length //" + strings.Repeat("é\"", sandbox.Default.Code/3-10), Input: json.RawMessage(`"` + strings.Repeat(`\"`, sandbox.Default.Input/2-1) + `"`)}
	r, err := s.Run(t.Context(), long)
	require.NoError(t, err)
	require.Equal(t, sandbox.StatusOK, r.Status, r.Error)
	require.Equal(t, "131071", string(r.Value))
}

// A caller's end is the script's.
func testEnds(t *testing.T, s sandbox.Sandbox) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Run(ctx, sandbox.Script{Language: sandbox.JavaScript, Code: "for (;;);"})
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = s.Run(ctx, sandbox.Script{Language: sandbox.JavaScript, Code: "for (;;);"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
