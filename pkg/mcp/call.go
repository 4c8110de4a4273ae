package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentplatform/agentplatform/pkg/text"
)

// MaxText is how much of a result is taken, in bytes as it stands in JSON.
const MaxText = 60 << 10

// Result is what a tool answered: its texts, and in place of what is no text a note. It is data from outside.
type Result struct {
	Text   string
	Failed bool // the tool says that it failed; Text says why
}

// Call calls a tool with the arguments, a JSON object, for as long as ctx lasts.
func (s *Session) Call(ctx context.Context, name string, arguments json.RawMessage) (Result, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	var answer *mcp.CallToolResult
	err := s.during(ctx, 0, func(ctx context.Context) (err error) {
		answer, err = s.client.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
		return err
	})
	if err != nil {
		return Result{}, err
	}
	if len(answer.InputRequests) > 0 {
		return Result{}, &Error{Kind: Refused, Reason: "the tool asks for more input while it runs, which is not supported"}
	}
	return Result{Text: render(answer), Failed: answer.IsError}, nil
}

// render joins a result's parts. What is structured is said in text too, unless there is no other content.
func render(answer *mcp.CallToolResult) string {
	var parts []string
	for _, c := range answer.Content {
		parts = append(parts, part(c))
	}
	if len(parts) == 0 && answer.StructuredContent != nil {
		if b, err := json.Marshal(answer.StructuredContent); err == nil {
			parts = append(parts, string(b))
		}
	}
	whole := strings.ToValidUTF8(strings.Join(parts, "\n"), "\ufffd")
	shown, cut := text.Cut(whole, MaxText)
	if cut {
		shown += fmt.Sprintf("\n(cut: the first %d of %d bytes)", len(shown), len(whole))
	}
	return shown
}

func part(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("(an image, %s, %d bytes: not shown)", cut(visible(c.MIMEType), 100), len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("(a sound, %s, %d bytes: not shown)", cut(visible(c.MIMEType), 100), len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("(a link to the resource %s, %s)", cut(visible(c.URI), 2000), cut(visible(c.Name), 200))
	case *mcp.EmbeddedResource:
		switch {
		case c.Resource == nil:
		case c.Resource.Text != "":
			return fmt.Sprintf("(the resource %s)\n%s", cut(visible(c.Resource.URI), 2000), c.Resource.Text)
		default:
			return fmt.Sprintf("(the resource %s, %s, %d bytes: not shown)", cut(visible(c.Resource.URI), 2000), cut(visible(c.Resource.MIMEType), 100), len(c.Resource.Blob))
		}
	}
	return "(content of a kind that is not shown)"
}
