// Package pack is what a skill pack is: a folder with a file SKILL.md, in the open Agent Skills form, as it is checked, hashed, stored and told to an agent.
//
// The form is the specification of https://agentskills.io/specification (its text: github.com/agentskills/agentskills, docs/specification.mdx; what it leaves
// open is as in its reference library, skills-ref). SKILL.md is a front matter in YAML between two lines of ---, and a Markdown body of any form:
//
//	name           required; 1 to 64 of a-z, 0-9 and -; no - at an end, no two in a row; the folder's name
//	description    required; 1 to 1024 characters: what the skill does, and when to use it
//	license        optional; a name, or a file of the pack
//	compatibility  optional; 1 to 500 characters
//	metadata       optional; a map from text to text
//	allowed-tools  optional; names of tools between spaces, or a list of them
//
// Other fields there are none. An agent is told names and descriptions (Summary); it asks for a body, and for the further files, when it needs them.
//
// Sizes are in bytes; where characters are said, Unicode's are meant. What a user may set right is a fault.ValidationError, a file that is not there a NotFound.
// A stored pack that is not what it was when it was stored is neither: it is nobody's mistake, and an InternalError.
//
// Invariants:
//   - A pack is its files: paths and contents. Its hash is the SHA-256, in lower-case hex, over one line for each file, sorted by path, byte by byte:
//     the path (UTF-8 in NFC, from the folder, with /), a NUL, the lower-case hex of the content's SHA-256, a newline. Times, modes, empty folders,
//     order and compression are no part of it: the same files have the same hash, whatever made the zip.
//   - Write makes the same bytes of the same files, with every release: nothing is compressed, and nothing is of a time or a machine.
//   - Open takes an archive only if its files are those of the hash that it is given, and reads the list of them only. What it then reads is checked against
//     that list, so that whoever changes an archive changes nothing that an agent is given.
package pack
