//go:build long

package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
	"github.com/agentplatform/agentplatform/schema"
)

// zips is a folder with a zip for each function, as small as can be: what is in them is not run here.
func zips(t *testing.T) string {
	t.Helper()
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	dir := t.TempDir()
	for _, row := range rows.Rows {
		var buffer bytes.Buffer
		archive := zip.NewWriter(&buffer)
		file, err := archive.Create("bootstrap")
		require.NoError(t, err)
		_, err = file.Write([]byte(row.Name))
		require.NoError(t, err)
		require.NoError(t, archive.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, row.Name+".zip"), buffer.Bytes(), 0o600))
	}
	return dir
}

// All tiers are deployed and destroyed. A migration that fails stops the deployment before any other function is there, and says why; once that is mended,
// the same deployment goes on.
func TestADeploymentFromNothingToNothing(t *testing.T) {
	ctx := t.Context()
	r, err := begin(ctx, t.Output(), config{root: "../..", dist: zips(t), plugins: os.Getenv("TF_PLUGIN_DIR")})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.end()) }()
	for _, tier := range r.tiers[:3] {
		require.NoError(t, r.deploy(ctx, tier))
	}
	app := r.tiers[3]

	inDatabase := r.world.server.URL(embedded.Superuser, password, database)
	require.NoError(t, r.world.sql(ctx, inDatabase, `create table tenants (made_by text)`))
	err = r.deploy(ctx, app)
	require.ErrorContains(t, err, "aws_lambda_invocation.before[\"migrate\"]")
	require.Contains(t, strings.Join(strings.Fields(err.Error()), " "), `relation \"tenants\" already exists`)
	t.Log(err)
	names, err := r.aws.Functions(ctx, region)
	require.NoError(t, err)
	require.Equal(t, []string{prefix + "-migrate"}, names, "no other function is there")

	require.NoError(t, r.world.sql(ctx, inDatabase, `drop table tenants`))
	require.NoError(t, r.deploy(ctx, app))
	names, err = r.aws.Functions(ctx, region)
	require.NoError(t, err)
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	require.Len(t, names, len(rows.Rows))
	r.figures()
	require.NoError(t, r.outputs(ctx))
	require.NoError(t, r.again(ctx))
	t.Log(limits())
	require.NoError(t, r.destroy(ctx))
	names, err = r.aws.Functions(ctx, region)
	require.NoError(t, err)
	require.Empty(t, names)
}
