// Package schema holds the contracts that code and infrastructure share, embedded: SDL, manifest, migrations, prices.
package schema

import "embed"

// SDL is the GraphQL schema as deployed.
//
//go:embed graphql/schema.graphql
var SDL string

// Prelude declares what AppSync adds to the SDL by itself.
//
//go:embed graphql/prelude.graphql
var Prelude string

// Routes is the manifest of functions; package manifest reads it.
//
//go:embed routes.json
var Routes []byte

// OpenAPI is the contract of the REST API, an OpenAPI 3.1 document: every `http` row of the manifest but the HTTP GraphQL one.
//
//go:embed openapi.yaml
var OpenAPI []byte

// SQL holds the forward-only migrations, in the folder sql.
//
//go:embed sql/*.sql
var SQL embed.FS

// Workflows holds the state machines, in the folder workflow, in Amazon States Language: auto_thread.asl.json is the workflow auto-thread. A
// placeholder ${open-auto-thread} stands for the ARN of that function.
//
//go:embed workflow/*.asl.json
var Workflows embed.FS

// Prices is the price table of the models; package model reads it.
//
//go:embed prices.json
var Prices []byte
