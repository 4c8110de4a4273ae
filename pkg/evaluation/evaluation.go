// Package evaluation rates what agents answer: the turns of every day by their agent's evaluators, and evaluations, which give an agent a list of
// cases and compare the runs.
//
// What holds:
//
//   - A turn is rated off its critical path and once: the scores are written while the turn waits for them, by whoever comes first. A turn whose
//     rating was lost is found within a day (lookup_unscored_turns).
//   - A run holds what it began with, and its rows are its progress: a case has one thread and one turn at the most, opened in the transaction that
//     says so, and its result is written while the case is running, once. Whoever works on a run may die at any line; another goes on from the rows.
//   - A run works on at most its concurrency of cases at a time. The agent's rate limits and budgets hold for cases as for everybody: at a rate
//     limit a case waits, a budget that does not cover it fails it with that reason.
//   - A run ends: after a day, what is left fails.
package evaluation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Eval is the channel of the threads that cases are given to an agent in.
const Eval thread.Channel = "EVAL"

// The limits of evaluations.
const (
	MaxCases       = 1000
	MaxConcurrency = 10
	maxInput       = 32 << 10 // bytes of a case's input, and of what it expects
	maxMetadata    = 4 << 10
	caseTime       = time.Hour      // that a case's turn may take, queue included
	runTime        = 24 * time.Hour // that a run may take
)

// The defaults of what an evaluation leaves out.
const (
	DefaultConcurrency   = 5
	DefaultPassThreshold = 0.5
)

// Evaluation is a list of cases, who is asked, and how the answers are rated, as the API shows it.
type Evaluation struct {
	ID            string           `json:"id"`
	Name          string           `json:"name"`
	AgentID       string           `json:"agentId"`
	Evaluators    []evaluator.Spec `json:"evaluators"`
	Concurrency   int              `json:"concurrency"`
	PassThreshold float64          `json:"passThreshold"` // a case passes if every score is this or more
	CaseCount     int              `json:"caseCount"`
	Version       int              `json:"version"` // one more with each change
	CreatedAt     ident.Time       `json:"createdAt"`
	UpdatedAt     ident.Time       `json:"updatedAt"`
}

// Case is one thing to ask.
type Case struct {
	Number   int     `json:"number"` // in the evaluation, from 1
	Input    string  `json:"input"`
	Expected *string `json:"expected"`
	Metadata *string `json:"metadata"` // a JSON object, as text

	key string
}

// Fields are what a caller says of an evaluation.
type Fields struct {
	Name          text.Patch[string]           `json:"name,omitzero"`
	AgentID       text.Patch[string]           `json:"agentId,omitzero"`
	Cases         text.Patch[[]Case]           `json:"cases,omitzero"`
	Evaluators    text.Patch[[]evaluator.Spec] `json:"evaluators,omitzero"`
	Concurrency   text.Patch[int]              `json:"concurrency,omitzero"`
	PassThreshold text.Patch[float64]          `json:"passThreshold,omitzero"`
}

// apply changes e by the given fields and checks what they say. Null is the default, where there is one.
func (f Fields) apply(e *Evaluation) error {
	for name, missing := range map[string]bool{"name": f.Name.Set && f.Name.Value == nil, "agentId": f.AgentID.Set && f.AgentID.Value == nil,
		"cases": f.Cases.Set && f.Cases.Value == nil, "evaluators": f.Evaluators.Set && f.Evaluators.Value == nil} {
		if missing {
			return fault.Invalid("%s must not be null", name)
		}
	}
	if f.Name.Set {
		e.Name = *f.Name.Value
	}
	if f.AgentID.Set {
		e.AgentID = *f.AgentID.Value
	}
	if f.Concurrency.Set {
		e.Concurrency = DefaultConcurrency
		if f.Concurrency.Value != nil {
			e.Concurrency = *f.Concurrency.Value
		}
	}
	if f.PassThreshold.Set {
		e.PassThreshold = DefaultPassThreshold
		if f.PassThreshold.Value != nil {
			e.PassThreshold = *f.PassThreshold.Value
		}
	}
	if f.Evaluators.Set {
		list, err := grade.Check(*f.Evaluators.Value)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return fault.Invalid("evaluators must not be empty")
		}
		e.Evaluators = list
	}
	switch {
	case e.Concurrency < 1 || e.Concurrency > MaxConcurrency:
		return fault.Invalid("concurrency must be from 1 to %d", MaxConcurrency)
	case !(e.PassThreshold > 0 && e.PassThreshold <= 1):
		return fault.Invalid("passThreshold must be more than 0 and at most 1")
	}
	return text.Check("name", e.Name, 1, 200)
}

// checkCases refuses cases that e cannot have, and completes them: their numbers and keys.
func (e Evaluation) checkCases(cases []Case) error {
	if len(cases) == 0 || len(cases) > MaxCases {
		return fault.Invalid("cases must hold 1 to %d entries", MaxCases)
	}
	seen := map[string]int{}
	for i := range cases {
		c := &cases[i]
		c.Number = i + 1
		if err := c.check(e.Evaluators); err != nil {
			return fault.Invalid("case %d: %s", c.Number, fault.From(err).Message)
		}
		if c.Metadata != nil {
			compact := text.CompactJSON(*c.Metadata)
			c.Metadata = &compact
		}
		sum := sha256.Sum256([]byte(c.Input))
		c.key = hex.EncodeToString(sum[:16])
		seen[c.key]++
		c.key += fmt.Sprintf("-%d", seen[c.key]) // the same input again
	}
	return nil
}

func (c Case) check(list []evaluator.Spec) error {
	if err := text.Check("input", c.Input, 1, maxInput); err != nil {
		return err
	}
	if err := text.CheckOptional("expected", c.Expected, maxInput); err != nil {
		return err
	}
	for _, s := range list {
		if s.Expects() && c.Expected == nil {
			return fault.Invalid("expected is required: evaluator %q compares the answer with it", s.Name)
		}
	}
	if c.Metadata == nil {
		return nil
	}
	if err := text.Check("metadata", *c.Metadata, 1, maxMetadata); err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(*c.Metadata), &object) != nil || object == nil {
		return fault.Invalid("metadata must be a JSON object")
	}
	return text.CheckJSON("metadata", *c.Metadata)
}
