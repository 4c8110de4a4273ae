// Package gateway answers GraphQL requests over (SDL, manifest, function table), and holds the HTTP forms around it: the POST body,
// the REST route matcher, and the rendering of errors. The deployed HTTP GraphQL function and local mode both use it.
//
// What holds:
//   - graphql-js is the authority. For any request that both accept, the answer is the one graphql-js gives with synchronous
//     resolvers: same data, same errors in the same order, same locations and paths. The tests run both.
//   - A field with a manifest row (`graphql Type.field`) is answered by that row's function; every other field is the property of
//     its parent with the same name. The functions of a query run in parallel, the root fields of a mutation one after the other.
//     A row with batch answers all parents at one place of the request in one call.
//   - A function's answer is raw JSON, read once into a flat list of nodes (internal/tape) and copied to the response from there. It
//     is never decoded into maps.
//   - Work happens in two passes. The first calls functions, level by level, and stores their answers; the second walks the plan in
//     document order, writes the response and raises errors. Only the second is visible, so parallel calls never change an answer.
//   - Every limit is checked before a function is called, except the size of the answer and the number of calls, which depend on data.
//   - A caller is told what a fault.Error says, and what is wrong with the request. Everything else is
//     "internal error (request <id>)", with its cause in the log under the same id.
//
// A request that fails before execution (syntax, validation, variables) has no data member; once execution began there is one,
// null when an error reached the root. Every error has all four members message, errorType, locations and path; the last two are
// empty lists where they do not apply.
package gateway
