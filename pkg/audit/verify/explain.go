package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
)

// explained is how many tenants whose chain is not the anchors' are looked at more closely.
const explained = 50

// step is a head at an anchor.
type step struct {
	cadence uint64
	entry
}

// suspect is a tenant whose rows or event logs do not lead to the anchors' heads.
type suspect struct {
	id         uuid
	rows, logs bool
	anchors    []step // what the anchors say, from the base on
	chain      []step // what the rows make
}

// explain finds, for tenants whose rows or logs are not what the anchors say, where they part, and names the event. It reads the anchors once more.
func (r *run) explain(ctx context.Context, list []numbered, h *history, rows []ended, logs []uuid) error {
	var suspects []*suspect
	of := func(id uuid) *suspect {
		i := slices.IndexFunc(suspects, func(s *suspect) bool { return s.id == id })
		if i < 0 && len(suspects) < explained {
			suspects, i = append(suspects, &suspect{id: id}), len(suspects)
		}
		if i < 0 {
			return &suspect{}
		}
		return suspects[i]
	}
	for _, e := range rows {
		if e.diverged {
			s := of(e.id)
			if s.rows = true; s.id != e.id {
				r.found.add(Finding{Class: HeadMismatch, TenantID: e.id.String(), Detail: "the chain is not what the anchors say; too many are so to look at this one closely"})
			}
		}
	}
	for _, id := range logs {
		s := of(id)
		if s.logs = true; s.id != id {
			r.found.add(Finding{Class: LogMismatch, TenantID: id.String(), Detail: "the event logs are not what the anchors say; too many are so to look at these closely"})
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	if err := r.collect(ctx, list, h, suspects); err != nil {
		return err
	}
	for _, s := range suspects {
		if s.logs {
			if err := r.explainLogs(ctx, h, s); err != nil {
				return err
			}
		}
		if s.rows {
			if err := r.explainRows(ctx, h, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect gathers what the anchors say of the suspects.
func (r *run) collect(ctx context.Context, list []numbered, h *history, suspects []*suspect) error {
	list = slices.DeleteFunc(slices.Clone(list), func(a numbered) bool { return a.n <= h.lo || a.n > h.hi || !h.at(a.n).usable })
	return r.each(ctx, keysOf(list), entire, func(_ context.Context, f fetched) error {
		a, err := anchor.Parse(f.body)
		if err != nil {
			return nil //nolint:nilerr // it was an anchor when it was read first, and that is what was judged
		}
		for _, s := range suspects {
			i, there := slices.BinarySearchFunc(a.Tenants, s.id.String(), func(t anchor.Tenant, id string) int { return bytes.Compare([]byte(t.TenantID), []byte(id)) })
			if !there {
				continue
			}
			last := r.baseOf(h, s.id)
			if n := len(s.anchors); n > 0 {
				last = s.anchors[n-1].entry
			}
			if e := (entry{a.Tenants[i].Length, a.Tenants[i].EventHash, a.Tenants[i].TreeRoot}); e.length > last.length {
				s.anchors = append(s.anchors, step{a.Header.Number, e})
			}
		}
		return nil
	})
}

func (r *run) baseOf(h *history, id uuid) entry {
	if t := h.tenant(id); t != nil {
		return t.base
	}
	return entry{}
}

// explainRows walks the tenant's rows again, and finds the first anchor that they do not lead to.
func (r *run) explainRows(ctx context.Context, h *history, s *suspect) error {
	part := span{only: []resume{r.from(s.id)}}
	w := r.silent().walk(h, nil, part)
	w.heads = func(_ uuid, cadence uint64, e entry) { s.chain = append(s.chain, step{cadence, e}) }
	if err := r.walkSpan(ctx, r.db.leader, w, part); err != nil {
		return err
	}
	common := r.baseOf(h, s.id) // the last head that both agree on
	for i := 0; ; i++ {
		switch told, made := i < len(s.anchors), i < len(s.chain); {
		case !told && !made:
			return nil // they differ in what is told elsewhere: rows that are missing
		case told && made && s.anchors[i] == s.chain[i]:
			common = s.anchors[i].entry
			continue
		case !told:
			f := Finding{Class: HeadMismatch, TenantID: s.id.String(), Position: common.length + 1, Cadence: s.chain[i].cadence,
				Detail: fmt.Sprintf("rows say they were covered by %s, which has none of them", anchor.CadenceID(s.chain[i].cadence))}
			r.found.add(f)
			return nil
		default:
			class, detail := HeadMismatch, fmt.Sprintf("%s has %d events and the head %x", anchor.CadenceID(s.anchors[i].cadence), s.anchors[i].length, s.anchors[i].hash)
			switch {
			case !made:
				detail += "; the rows end before that"
			case s.chain[i].cadence == s.anchors[i].cadence && s.chain[i].length == s.anchors[i].length && s.chain[i].hash == s.anchors[i].hash:
				class, detail = TreeMismatch, fmt.Sprintf("the events up to position %d do not make the side tree of %s", s.anchors[i].length, anchor.CadenceID(s.anchors[i].cadence))
			default:
				detail += fmt.Sprintf("; the rows make %d and %x at %s", s.chain[i].length, s.chain[i].hash, anchor.CadenceID(s.chain[i].cadence))
			}
			r.found.add(Finding{Class: class, TenantID: s.id.String(), Position: common.length + 1, Cadence: s.anchors[i].cadence, Detail: detail})
			return r.firstChanged(ctx, s.id, common, s.anchors[i])
		}
	}
}

var errFound = errors.New("found")

// firstChanged holds the rows after common to the event log of the anchor's cadence, and names the first that differs.
func (r *run) firstChanged(ctx context.Context, id uuid, common entry, to step) error {
	log, err := r.one(ctx, anchor.EventsKey(id.String(), to.cadence), small)
	if err != nil || log == nil {
		return err // that it is missing is a finding of its own
	}
	rows := &keptRows{session: r.db.leader, id: id, atOnce: keptAtOnce}
	position := common.length
	note := func(event, detail string) {
		r.found.add(Finding{Class: EventChanged, TenantID: id.String(), EventID: event, Position: position, Cadence: to.cadence, Detail: detail})
	}
	prev := linkText(common)
	err = r.lines(ctx, *log, func(line []byte) error {
		position++
		row, there, err := rows.at(ctx, position)
		sum := anchor.EventHash(line, prev)
		hash := hex.EncodeToString(sum[:])
		switch {
		case err != nil:
			return err
		case !there:
			note(eventOf(line), "the write-once log has it, the chain has not")
			return errFound
		case row.text != sha256.Sum256(line):
			note(eventOf(line), fmt.Sprintf("the write-once log has this event here, the row has %s with another text", row.event))
			return errFound
		case row.link != linkOf([]byte(hash), []byte(prev)):
			note(eventOf(line), "the text is that of the write-once log, but event_hash or prev_hash is not")
			return errFound
		}
		prev = hash
		return nil
	})
	if errors.Is(err, errFound) || errors.Is(err, errLine) {
		return nil
	}
	if err != nil {
		return err
	}
	row, more, err := rows.at(ctx, position+1)
	if err == nil && more && row.cadence <= to.cadence {
		position++
		note(row.event.String(), "the row says it was covered by this cadence, the write-once log has no such event")
	}
	return err
}

// explainLogs finds the first event log that does not lead from one anchor's head to the next's.
func (r *run) explainLogs(ctx context.Context, h *history, s *suspect) error {
	common := r.baseOf(h, s.id)
	for _, to := range s.anchors {
		f := Finding{TenantID: s.id.String(), Cadence: to.cadence, Key: anchor.EventsKey(s.id.String(), to.cadence)}
		log, err := r.one(ctx, f.Key, small)
		if err != nil {
			return err
		}
		if log == nil {
			f.Class, f.Detail = LogMissing, fmt.Sprintf("%s has %d more events of the tenant than the anchor before, and there is no log of them", anchor.CadenceID(to.cadence), to.length-common.length)
			r.found.add(f)
			return nil
		}
		length, prev := common.length, linkText(common)
		err = r.lines(ctx, *log, func(line []byte) error {
			sum := anchor.EventHash(line, prev)
			length, prev = length+1, hex.EncodeToString(sum[:])
			return nil
		})
		if err != nil && !errors.Is(err, errLine) {
			return err
		}
		if length != to.length || prev != hex.EncodeToString(to.hash[:]) {
			f.Class, f.Detail = LogMismatch, fmt.Sprintf("its events lead to the head %s at position %d, %s has %x at %d", prev, length, anchor.CadenceID(to.cadence), to.hash, to.length)
			r.found.add(f)
			return nil
		}
		common = to.entry
	}
	r.found.add(Finding{Class: LogMismatch, TenantID: s.id.String(), Key: anchor.EventPrefix + s.id.String() + "/", Detail: "there are more event logs than the anchors tell of"})
	return nil
}

// one is the object at key: of its versions the first. Nil: there is none.
func (r *run) one(ctx context.Context, key string, want wanted) (*fetched, error) {
	var found *fetched
	quiet := r.silent()
	for s, err := range quiet.list(ctx, key, "") {
		if err != nil {
			return nil, err
		}
		if s.key == key && s.version != "" {
			found = &fetched{stored: s}
		}
		break
	}
	if found == nil {
		return nil, nil
	}
	err := quiet.get(ctx, found, want)
	if found.gone {
		return nil, err
	}
	return found, err
}

func linkText(e entry) string {
	if e.length == 0 {
		return audit.Genesis
	}
	return hex.EncodeToString(e.hash[:])
}

func eventOf(line []byte) string {
	e, err := audit.ParseEnvelope(line)
	if err != nil {
		return ""
	}
	return e.EventID
}
