package tool

// Offer is what one turn is offered beside the registry, such as the tools of its tenant's servers. Close it when the turn has ended.
type Offer interface {
	Tools() []Tool // by name
	Close()
}
