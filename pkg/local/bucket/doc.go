// Package bucket is object storage on one machine: a real S3 server (versitygw, embedded) over a directory.
//
// What holds:
//   - Object lock, versions, conditional writes, presigned URLs and their expiry are enforced by the server, for the
//     root key too: a COMPLIANCE lock can be neither shortened nor deleted through the API before its time.
//   - The reader key lists and reads objects, versions and retention of every configured bucket and changes nothing.
//     Keys live in the Config only, never in the directory; the caller keeps them between starts.
//   - Everything else is in Config.Dir and survives the process: objects/ (current versions), versions/ (older
//     ones, delete markers) and meta/ (attributes as plain files, so no filesystem needs extended attributes).
//   - Writes are not fsynced: they survive the death of the process, not of the machine. A PUT that dies half-way may
//     leave the object without its retention; whoever writes locked objects repeats the PUT and checks what is there.
//
// The backend names objects relative to the process's working directory. Start therefore changes it to
// <Dir>/objects and Stop changes it back: while a Server runs, the rest of the process uses absolute paths, gives
// child processes their own working directory, and does not call os.Chdir. For the same reason a process runs one
// Server at a time, and Start refuses a second.
//
// Differences from S3: a key cannot be both an object and a prefix of another ("a" and "a/b"), and there are no
// lifecycle rules.
package bucket
