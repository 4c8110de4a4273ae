// Package deployment answers what a deployment itself calls, and waits for: before the other functions are changed, or once they are there. An error
// stops the deployment, so it is a sentence for whoever deploys.
package deployment
