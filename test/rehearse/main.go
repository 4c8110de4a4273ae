// Command rehearse deploys all tiers of infra/ to a stand-in for AWS on this machine, as infra/README.md says it is done, and destroys them again: state in a
// bucket behind a lock table, outputs handed on from tier to tier, the first deployment's functions run as they are. It prints figures, what the deployment
// would change if it were repeated, and what the stand-in cannot show. It needs terraform and moto's server on the PATH, and PostgreSQL; nothing is
// written into the checkout but what `make build` makes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	dist := flag.String("dist", "dist", "`folder` of the functions' zips; those that are missing or older than the code are made")
	plugins := flag.String("plugin-dir", "", "`folder` of unpacked providers; default: one that is found, else they are fetched")
	keep := flag.Bool("keep", false, "when all is there, wait for Ctrl-C before it is destroyed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rehearse(ctx, os.Stdout, *dist, *plugins, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rehearse:", err)
		os.Exit(1)
	}
}

// rehearse is the whole of it, from the root of the checkout.
func rehearse(ctx context.Context, out io.Writer, dist, plugins string, keep bool) (err error) {
	began := time.Now()
	dist, err = filepath.Abs(dist)
	if err != nil {
		return err
	}
	if err := pack(ctx, out, ".", dist); err != nil {
		return err
	}
	r, err := begin(ctx, out, config{root: ".", dist: dist, plugins: plugins})
	if err != nil {
		return err
	}
	defer func() {
		if end := r.end(); err == nil {
			err = end
		}
	}()
	err = r.show(ctx)
	if keep {
		fmt.Fprintf(out, "\nUntil Ctrl-C all stays as it is: AWS_ENDPOINT_URL=%s, working copies in %s\n", r.aws.URL, r.dir)
		if err != nil {
			fmt.Fprintf(out, "It failed: %v\n", err)
		}
		<-ctx.Done()
	}
	if err != nil {
		return err
	}
	// Also after Ctrl-C: what was deployed is destroyed.
	if err := r.destroy(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nrehearsed in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// show deploys all tiers and prints what there is to see.
func (r *rehearsal) show(ctx context.Context) error {
	for _, tier := range r.tiers {
		if err := r.deploy(ctx, tier); err != nil {
			return err
		}
	}
	r.figures()
	if err := r.outputs(ctx); err != nil {
		return err
	}
	if err := r.again(ctx); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "\n%s", limits())
	return nil
}
