// Command audit-verifier verifies the audit log against its write-once bucket, and builds and checks proofs of single events. docs/verify.md describes it.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	verified   = 0 // everything that was asked for was checked, and nothing found
	found      = 1 // something was found
	unfinished = 2 // it could not be finished, or was not understood
)

const exitCodes = "Exit codes: 0 everything was verified, 1 something was found, 2 it could not be finished."

// errFound ends a command that has told what it found.
var errFound = errors.New("found")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the command, and gives its exit code.
func run(ctx context.Context, args []string, out, diagnostics io.Writer) int {
	root := command()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(diagnostics)
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return verified
	case errors.Is(err, errFound):
		return found
	case ctx.Err() != nil:
		_ = say(diagnostics, "audit-verifier: stopped before it was finished\n") // there is nobody else to tell
		return unfinished
	default:
		_ = say(diagnostics, "audit-verifier: %s\n", err)
		return unfinished
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "audit-verifier",
		Short: "Verify the audit log, and prove single events",
		Long: `audit-verifier checks the audit log against the write-once bucket that its anchors are in, with
read-only credentials for that bucket and the database, and trusts neither. It also builds proofs
of single events, which anybody can check offline.

` + exitCodes,
		Version:            version(debug.ReadBuildInfo()),
		SilenceUsage:       true,
		SilenceErrors:      true,
		DisableSuggestions: true, // errors are of one line
		CompletionOptions:  cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetVersionTemplate("audit-verifier {{.Version}}\n")
	root.AddCommand(verifyCommand(), proveCommand(), checkCommand(), exportCommand())
	return root
}

// version is the module's version, or the commit that it was built from.
func version(info *debug.BuildInfo, known bool) string {
	if !known {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel " + s.Value[:12]
		}
	}
	return "devel"
}
