package bucket

import (
	"encoding/json"

	"github.com/versity/versitygw/auth"
)

// accounts knows exactly the two keys of the Config. The embedded root-only service refuses every change of users.
type accounts struct {
	auth.IAMService
	root, reader auth.Account
}

func newAccounts(cfg Config) *accounts {
	root := auth.Account{Access: cfg.RootKey, Secret: cfg.RootSecret, Role: auth.RoleAdmin}
	return &accounts{
		IAMService: auth.NewIAMServiceSingle(root),
		root:       root,
		reader:     auth.Account{Access: cfg.ReaderKey, Secret: cfg.ReaderSecret, Role: auth.RoleUser},
	}
}

func (a *accounts) GetUserAccount(access string) (auth.Account, error) {
	switch access {
	case a.root.Access:
		return a.root, nil
	case a.reader.Access:
		return a.reader, nil
	}
	return auth.Account{}, auth.ErrNoSuchUser
}

// ResolveAccounts returns those of keys that name nobody.
func (a *accounts) ResolveAccounts(keys []string) ([]string, error) {
	missing := []string{}
	for _, k := range keys {
		if _, err := a.GetUserAccount(k); err != nil {
			missing = append(missing, k)
		}
	}
	return missing, nil
}

// statement is one entry of an S3 bucket policy.
type statement struct {
	Sid       string
	Effect    string
	Principal map[string][]string
	Action    []auth.Action
	Resource  string
}

// readerPolicy lets reader list and read one bucket. What it does not name is denied: the reader owns no bucket and
// is in no access list. Root needs no policy.
func readerPolicy(bucket, reader string) ([]byte, error) {
	principal := map[string][]string{"AWS": {reader}}
	arn := auth.ResourceArnPrefix + bucket
	return json.Marshal(map[string]any{
		"Version": "2012-10-17",
		"Statement": []statement{
			{"ReadBucket", "Allow", principal, []auth.Action{
				auth.ListBucketAction, auth.ListBucketVersionsAction, auth.GetBucketLocationAction,
				auth.GetBucketVersioningAction, auth.GetBucketObjectLockConfigurationAction, auth.GetBucketPolicyAction,
			}, arn},
			{"ReadObjects", "Allow", principal, []auth.Action{
				auth.GetObjectAction, auth.GetObjectVersionAction,
				auth.GetObjectAttributesAction, auth.GetObjectVersionAttributesAction,
				auth.GetObjectTaggingAction, auth.GetObjectVersionTaggingAction,
				auth.GetObjectRetentionAction, auth.GetObjectLegalHoldAction,
			}, arn + "/*"},
		},
	})
}
