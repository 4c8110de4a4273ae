package routine

// source is the parent of a field, as its own resolver answered it.
type source struct {
	ID string `json:"id"`
}

func ids(sources []source) []string {
	all := make([]string, len(sources))
	for i, s := range sources {
		all[i] = s.ID
	}
	return all
}
