// Command function is a small function for the host's tests: its event says what it does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type event struct {
	Do   string
	Text string
	N    int
}

func main() {
	slog.SetDefault(slog.New(lambdacontext.NewLogHandler()))
	switch os.Getenv("START") {
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot start: no reason")
		os.Exit(3)
	case "report":
		r, err := http.Post("http://"+os.Getenv("AWS_LAMBDA_RUNTIME_API")+"/2018-06-01/runtime/init/error", "application/json",
			strings.NewReader(`{"errorType":"Function.NoSetting","errorMessage":"a setting is missing"}`))
		if err == nil {
			r.Body.Close()
		}
		os.Exit(1)
	case "never":
		select {}
	}
	lambda.Start(run)
}

func run(ctx context.Context, e event) (any, error) {
	switch e.Do {
	case "exit":
		os.Exit(e.N)
	case "panic":
		panic("of " + e.Text)
	case "fail":
		return nil, errors.New(e.Text)
	case "hang":
		select {}
	case "large":
		return strings.Repeat("x", e.N), nil
	case "log":
		slog.WarnContext(ctx, e.Text, "n", e.N)
		fmt.Println("plain " + e.Text)
	case "file": // tells that it has begun, waits until a file is there, then removes it
		if err := os.WriteFile(e.Text+".begun", nil, 0o600); err != nil {
			return nil, err
		}
		for {
			if err := os.Remove(e.Text); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
	case "environment":
		return os.Environ(), nil
	}
	deadline, _ := ctx.Deadline()
	lc, _ := lambdacontext.FromContext(ctx)
	return json.RawMessage(fmt.Sprintf(`{"pid":%d,"text":%q,"left":%q,"arn":%q,"request":%q,"trace":%q}`, os.Getpid(), e.Text, time.Until(deadline), lc.InvokedFunctionArn,
		lc.AwsRequestID, os.Getenv("_X_AMZN_TRACE_ID"))), nil
}
