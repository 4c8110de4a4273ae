package tamper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/export"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// files are what whoever holds an exported file can do.
var files = []class{
	{33, "an exported CSV edited, or its manifest", usual, func(x *trial) want {
		file, manifest := x.export()
		_, found, err := verify.CheckExport(bytes.NewReader(file), manifest, x.keys(x))
		require.NoError(x, err)
		require.Empty(x, found, "as it was exported")
		switch x.random.IntN(4) {
		case 0: // a row taken out
			lines := bytes.SplitAfter(file, []byte("\r\n"))
			at := 1 + x.random.IntN(len(lines)-2)
			file = bytes.Join(append(lines[:at:at], lines[at+1:]...), nil)
		case 1: // a byte changed
			file[x.random.IntN(len(file))] ^= 1 << x.random.IntN(8)
		case 2: // something added
			file = fmt.Appendf(file, "%s\r\n", ident.New())
		default: // the manifest made to fit
			at := x.random.IntN(len(file))
			file[at] ^= 1
			var told anchor.Manifest
			told, err = anchor.OpenManifest(manifest, x.keys(x))
			require.NoError(x, err)
			sum := []byte(anchor.SHA256(file))
			manifest = bytes.Replace(manifest, fmt.Appendf(nil, "%x", told.SHA256), sum, 1)
		}
		_, found, err = verify.CheckExport(bytes.NewReader(file), manifest, x.keys(x))
		require.NoError(x, err)
		return want{classes: []verify.Class{verify.ExportMismatch}, found: found}
	}},
}

// export is what an operator gets who asks for all events: the file and its manifest.
func (x *trial) export() (file, manifest []byte) {
	x.Helper()
	ctx, bucket := x.Context(), x.as(root, x.exports)
	filter, err := export.ParseFilter(nil, ident.Now())
	require.NoError(x, err)
	var job export.Job
	require.NoError(x, x.db.App.InTenant(ctx, x.tenants[0], func(tx pgx.Tx) (err error) {
		job, err = export.Create(ctx, tx, x.tenants[0], "operator@example.test", export.CSV, filter)
		return err
	}))
	runner := &export.Runner{DB: x.db.App, Reader: x.db.Open(x, x.db.ReaderURL), Bucket: bucket, Sign: x.signer,
		Again: func(context.Context, string) error { return errors.New("once is enough") }}
	require.NoError(x, runner.Run(ctx, job.ID))
	read := func(b *object.Bucket, key string) []byte {
		text, err := b.Get(ctx, key, 1<<20)
		require.NoError(x, err)
		return text
	}
	key := export.Key(job.ID, export.CSV)
	return read(bucket, key), read(bucket, anchor.ManifestKey(key))
}
