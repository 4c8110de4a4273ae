package offline

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// refusal is an error in AWS's shape: the type in a header, the message in the body.
type refusal struct {
	status  int
	kind    string
	message string
}

func invalid(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, "ValidationException", fmt.Sprintf(format, args...)}
}

func (f refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", f.kind)
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": f.message})
}
