package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/schema"
)

// founding is the last migration that no release was made before.
const founding = 3

// While a release is deployed, and after it is rolled back, the previous release's code runs on its schema. So a migration adds; what it takes
// away, the previous release has stopped using, and the file says so: `-- breaks the release before last only: <reason>`. A trigger, a unique
// index or a wider domain refuses nothing that the previous release writes, and the line before it says so: `-- refuses nothing: <reason>`.
func TestAMigrationIsCompatibleWithThePreviousRelease(t *testing.T) {
	files, err := read(schema.SQL)
	require.NoError(t, err)
	for _, m := range files[founding:] {
		require.Empty(t, breaks(m.text), m.name)
	}
}

var excused = regexp.MustCompile(`(?m)^-- breaks the release before last only: \S.{9,}`)

// never is what no migration may hold: it would end, or needs to be outside, the transaction that makes a file one whole.
var never = regexp.MustCompile(`^(begin|commit|rollback|start transaction|abort|end|savepoint|release|prepare|vacuum|alter system|create database|create tablespace)\b|\bconcurrently\b`)

// anyObject are the rules for whole statements, actions those for what an alter table does.
var (
	anyObject = []*regexp.Regexp{
		regexp.MustCompile(`\bdrop (table|view|materialized view|function|procedure|routine|aggregate|type|domain|schema|sequence|policy|role|owned|extension|operator|cast|foreign table)\b`),
		regexp.MustCompile(`^alter .*\brename\b`),
		regexp.MustCompile(`^alter .*\bset schema\b`),
		regexp.MustCompile(`^alter domain .*\b(set not null|add|drop default)\b`),
		regexp.MustCompile(`^alter policy\b`),
		regexp.MustCompile(`^truncate\b`),
	}
	actions = []*regexp.Regexp{
		regexp.MustCompile(`^alter (column )?\S+ (set data )?type\b`),
		regexp.MustCompile(`^alter (column )?\S+ (drop default|drop expression|drop identity)\b`),
		regexp.MustCompile(`^add (constraint \S+ )?(check|unique|primary key|foreign key|exclude)\b`),
		regexp.MustCompile(`^(enable|force) row level security`),
		regexp.MustCompile(`^(attach|detach) partition|^inherit|^no inherit`),
	}
	dropsColumn = regexp.MustCompile(`^drop (column )?(if exists )?(\S+)`)
	setsNotNull = regexp.MustCompile(`^alter (?:column )?(\S+) set not null`)
	addsColumn  = regexp.MustCompile(`^add (?:column )?(?:if not exists )?\S+ .*\b(not null|primary key)\b`)
	hasValue    = regexp.MustCompile(`\bdefault\b|\bgenerated\b`)
	altersTable = regexp.MustCompile(`^alter table (?:if exists )?(?:only )?(?:public\.)?(\S+) (.*)`)
	uniqueIndex = regexp.MustCompile(`^create unique index (?:if not exists )?\S+ on (?:only )?(?:public\.)?(\w+)`)
	createsRule = regexp.MustCompile(`^create (?:or replace )?(?:constraint )?(?:trigger|rule) .* on (?:public\.)?(\w+)`)
	creates     = regexp.MustCompile(`^create (?:or replace )?(?:table|function|procedure|view|domain|type|sequence) (?:if not exists )?(?:public\.)?(\w+)`)
	harmless    = regexp.MustCompile(`(?m)^-- refuses nothing: \S.{9,}\n(.*)$`)
	revokes     = regexp.MustCompile(`^revoke (.*) on (.*) from (.*)`)
	objectNames = regexp.MustCompile(`^(?:table|function|procedure|domain|type|sequence)?\s*(.*)`)
)

// breaks names the statements of a file that the previous release's code might not survive, and those that no file may hold.
func breaks(text string) (found []string) {
	made := map[string]bool{}
	granted := map[string]bool{}
	defaulted := regexp.MustCompile(`alter (?:column )?(\S+) set default`)
	var kind []string // how statements begin that refuse nothing
	for _, h := range harmless.FindAllStringSubmatch(text, -1) {
		first, _, _ := strings.Cut(h[1], ";")
		kind = append(kind, normal(first))
	}
	refusesNothing := func(s string) bool {
		return slices.ContainsFunc(kind, func(first string) bool { return strings.HasPrefix(s, first) })
	}
	all := statements(text)
	plain := make([]string, len(all))
	for i, s := range all {
		plain[i] = normal(s.text)
	}
	for i, s := range plain {
		complain := func(why string) { found = append(found, fmt.Sprintf("line %d: %s: %.80s", all[i].line, why, s)) }
		if never.MatchString(s) {
			found = append(found, fmt.Sprintf("line %d: a file is one transaction: %.80s", all[i].line, s))
			continue
		}
		if excused.MatchString(text) {
			continue
		}
		if c := creates.FindStringSubmatch(s); c != nil && !strings.Contains(s, " or replace ") {
			made[c[1]] = true
		}
		if g, ok := strings.CutPrefix(s, "grant "); ok {
			granted[strings.Replace(g, " to ", " from ", 1)] = true
		}
		for _, rule := range anyObject {
			if rule.MatchString(s) && !(strings.HasPrefix(s, "alter domain ") && refusesNothing(s)) {
				complain("is of the previous release too")
			}
		}
		if table := altersTable.FindStringSubmatch(s); table != nil && !made[table[1]] {
			defaults := map[string]bool{}
			for _, d := range defaulted.FindAllStringSubmatch(s, -1) {
				defaults[d[1]] = true
			}
			for _, action := range split(table[2]) {
				dropped, nulls := dropsColumn.FindStringSubmatch(action), setsNotNull.FindStringSubmatch(action)
				switch {
				case dropped != nil && (dropped[1] != "" || dropped[3] != "constraint"):
					complain("drops a column")
				case nulls != nil && !defaults[nulls[1]]:
					complain("the previous release may write null")
				case addsColumn.MatchString(action) && !hasValue.MatchString(action):
					complain("the previous release writes no value")
				case slices.ContainsFunc(actions, func(rule *regexp.Regexp) bool { return rule.MatchString(action) }):
					complain("changes what the previous release reads or may write")
				}
			}
		}
		for _, rule := range []*regexp.Regexp{uniqueIndex, createsRule} {
			if on := rule.FindStringSubmatch(s); on != nil && !made[on[1]] && !refusesNothing(s) {
				complain("the previous release may write what this refuses")
			}
		}
		if r := revokes.FindStringSubmatch(s); r != nil {
			own := granted[strings.TrimPrefix(s, "revoke ")]
			if !own {
				own = true
				for _, name := range split(objectNames.FindStringSubmatch(r[2])[1]) {
					name, _, _ = strings.Cut(name, "(")
					own = own && made[strings.TrimSpace(name)]
				}
			}
			if !own {
				complain("the previous release may need this right")
			}
		} else if strings.HasPrefix(s, "revoke ") {
			complain("the previous release may need this right")
		}
	}
	return found
}

var (
	literals = regexp.MustCompile(`(?s)e?'(?:[^']|'')*'`)
	bodies   = regexp.MustCompile(`(?s)\$(\w*)\$.*\$\w*\$`)
	spaces   = regexp.MustCompile(`\s+`)
)

// normal is a statement in lower case and one line, without what it quotes; of do, which is run at once, nothing is left out.
func normal(s string) string {
	s = strings.ToLower(s)
	if !strings.HasPrefix(s, "do ") && !strings.HasPrefix(s, "do$") {
		s = literals.ReplaceAllString(bodies.ReplaceAllString(s, "''"), "''")
	}
	return strings.TrimSpace(spaces.ReplaceAllString(s, " "))
}

// split cuts at the commas that are in no parentheses.
func split(list string) (parts []string) {
	depth, from := 0, 0
	for i, r := range list {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			parts, from = append(parts, strings.TrimSpace(list[from:i])), i+1
		}
	}
	return append(parts, strings.TrimSpace(list[from:]))
}

func TestWhatBreaksThePreviousRelease(t *testing.T) {
	for _, bad := range []string{
		"drop table threads",
		"DROP  TABLE\n if exists threads",
		"drop function lookup_user(text)",
		"drop policy tenant on threads",
		"do $$ begin execute 'drop table threads'; end $$",
		"alter table threads drop column title",
		"alter table threads drop title",
		"alter table threads add column a int, drop column title",
		"alter table threads rename to topics",
		"alter table threads rename column title to name",
		"alter table threads rename constraint a to b",
		"alter type t rename value 'a' to 'b'",
		"alter table threads alter column title type varchar(10)",
		"alter table only public.threads alter title set data type varchar(10)",
		"alter table threads alter column title set not null",
		"alter table threads alter column title drop default",
		"alter table threads add column a int not null",
		"alter table threads add a numeric(3, 1) not null, add b int",
		"alter table threads add constraint c check (title <> '')",
		"alter table threads add unique (title)",
		"alter table threads enable row level security",
		"alter table threads set schema other",
		"create unique index i on threads (title)",
		"create trigger t before insert on threads for each row execute function f()",
		"-- refuses nothing: it only counts them\ncreate trigger t before insert on threads for each row execute function f(); create trigger u before insert on threads for each row execute function f()",
		"alter domain user_role add constraint c check (value <> 'x')",
		"revoke select on threads from agentplatform_app",
		"revoke agentplatform_lookup from agentplatform_app",
		"create table a (v int); revoke select on a, threads from agentplatform_app",
		"truncate threads",
		"commit; select 1",
		"create index concurrently i on threads (title)",
		"-- breaks the release before last only: no release reads it\nvacuum",
		"-- breaks the release before last only:\ndrop table threads",
	} {
		require.Len(t, breaks(bad), 1, bad)
	}
	for _, good := range []string{
		"create table a (v int not null, check (v > 0)); alter table a add column w int not null; alter table a alter column v type bigint",
		"create table a (v int); create unique index i on a (v); create trigger t before insert on a for each row execute function f()",
		"create table a (v int); revoke all on a from public",
		"create function f(a int, b text) returns int language sql return a; create function g() returns int language sql return 1; revoke execute on function f(int, text), g() from public",
		"grant create on schema public to agentplatform_lookup; create function f() returns int language sql return 1; revoke create on schema public from agentplatform_lookup",
		"alter table threads add column a int, add column b int not null default 1, add c text",
		"alter table threads add column a bigint not null generated always as identity",
		"alter table threads alter column title drop not null, alter column n set default 1, drop constraint c",
		"alter table threads alter column title set default '', alter column title set not null",
		"alter domain user_role drop constraint c",
		"create function f() returns void language plpgsql as $$ begin drop table x; truncate y; commit; end $$",
		"insert into a values ('drop table b'); -- drop table c",
		"drop index i; create index i on threads (title)",
		"-- refuses nothing: it only counts them\ncreate trigger t after insert on threads for each row execute function f()",
		"-- refuses nothing: it allows more than before\nalter domain user_role add constraint c check (value <> 'x')",
		"-- refuses nothing: nobody writes such rows\ncreate unique index i on threads (title) where status = 'new'",
		"grant select on threads to agentplatform_reader",
		"-- breaks the release before last only: nobody has read the column since 00007\nalter table threads drop column title",
	} {
		require.Empty(t, breaks(good), good)
	}
}
