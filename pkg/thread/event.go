package thread

import "github.com/agentplatform/agentplatform/pkg/publish"

// Updated is the event that tells of t as it has become.
func Updated(tenantID string, t Thread) publish.ThreadUpdate {
	return publish.ThreadUpdate{TenantID: tenantID, ThreadID: t.ID,
		Thread: publish.Thread{ID: t.ID, Status: string(t.Status), Title: t.Title, Metadata: t.Metadata, UpdatedAt: t.UpdatedAt}}
}
