// Package routine holds routines: what a tenant wants done, in the steps and branches of a definition in Amazon States Language, and their runs.
//
// A task of a definition is one of the platform's verbs (Verbs), Resource "platform:<verb>". Compile makes the state machine that a workflow engine
// runs out of it, in which each of them is a call of the function begin-step, which is given a task token and answers it whenever the work is done.
// What holds:
//
//   - A definition is checked when it is saved: whoever starts a routine starts one that the language and the verbs allow. Its author names no other
//     resource, and the tenant is a constant of the machine: nothing that a run is given or makes changes whose it is.
//   - A version never changes, and is a machine of its own in the engine. A run goes on with the version that it began with.
//   - A run's row is there before the engine is asked, and its id is the run's name there: whoever dies in between leaves a row, and the next to come,
//     the sweep at the latest, starts it, once.
//   - How a run ended is written once, from what the engine says, in the transaction that also tells whoever waits for it.
//   - A run that nobody told the end of is found: the sweep asks the engine, less often the longer it goes on (lookup_due_routine_runs).
package routine

import (
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// The limits of routines.
const (
	MaxRoutines    = 100                 // of a tenant
	MaxDefinition  = 256 << 10           // bytes of a definition, without the white space between its tokens
	MaxRuns        = 50                  // of a tenant that go on at a time
	MaxDepth       = 5                   // of runs that start runs: the first is 1
	MaxVersions    = 100                 // that a routine keeps: the newest
	RunAge         = 90 * 24 * time.Hour // how long a run is kept from its end: as long as the engine has its history
	maxName        = 200
	maxDescription = 2000
)

// Routine is a named definition with its versions, as the API shows it.
type Routine struct {
	ID             string     `json:"id"`
	Name           string     `json:"name"` // unique in the tenant
	Description    *string    `json:"description"`
	CurrentVersion int        `json:"currentVersion"` // what starts
	Version        int        `json:"version"`        // which one Definition is of
	Definition     *string    `json:"definition"`     // as text; nil in lists
	CreatedBy      string     `json:"createdBy"`      // a user
	CreatedAt      ident.Time `json:"createdAt"`
	UpdatedAt      ident.Time `json:"updatedAt"`
}

// VersionStatus is whether a version can run.
type VersionStatus string

const (
	Waiting VersionStatus = "waiting" // the engine has not been given it yet; the next start gives it
	Ready   VersionStatus = "ready"
	Refused VersionStatus = "refused" // the engine would not have it
	Gone    VersionStatus = "gone"    // it was superseded, and no run of it goes on
)

// Version is one definition that a routine has had.
type Version struct {
	Version   int           `json:"version"` // of the routine, from 1
	Status    VersionStatus `json:"status"`
	Refusal   *string       `json:"refusal"`   // of a refused one: why
	CreatedBy string        `json:"createdBy"` // a user
	CreatedAt ident.Time    `json:"createdAt"`
}

// Fields are what a caller says of a routine.
type Fields struct {
	Name        text.Patch[string] `json:"name,omitzero"`
	Description text.Patch[string] `json:"description,omitzero"`
	Definition  text.Patch[string] `json:"definition,omitzero"` // Amazon States Language, as text
}

// apply changes r by the given fields and checks what they say, but for the definition.
func (f Fields) apply(r *Routine) error {
	if f.Name.Set && f.Name.Value == nil || f.Definition.Set && f.Definition.Value == nil {
		return fault.Invalid("name and definition must not be null")
	}
	if f.Name.Set {
		r.Name = *f.Name.Value
	}
	f.Description.Apply(&r.Description)
	if f.Definition.Set {
		r.Definition = new(text.CompactJSON(*f.Definition.Value))
	}
	if err := text.Check("name", r.Name, 1, maxName); err != nil {
		return err
	}
	return text.CheckOptional("description", r.Description, maxDescription)
}
