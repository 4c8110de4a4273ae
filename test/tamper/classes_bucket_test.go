package tamper_test

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// buckets are what the bucket's administrator can do, alone or together with the database's.
var buckets = []class{
	{15, "retention of an object shortened", usual, func(x *trial) want {
		key := x.object()
		x.attribute(x, key, "object-retention", func(v map[string]any) {
			v["RetainUntilDate"] = x.clock.read().Add(time.Duration(x.between(1, 300)) * 24 * time.Hour)
		})
		return want{classes: []verify.Class{verify.Retention}, key: key, alone: true}
	}},
	{21, "an anchored event edited, and all anchors since written anew as newer versions, with the right key", usual, func(x *trial) want {
		p := x.lie()
		f := x.forge(x, x.administrator, x.signer)
		f.overAPI()
		w := of(p, verify.ObjectReplaced)
		w.key = anchor.Key(uint64(x.last))
		return w
	}},
	{22, "an anchored event edited, and all objects since hidden by delete markers", usual, func(x *trial) want {
		p := x.lie()
		from := uint64(x.chains[p.tenant][p.i].Cadence)
		for key := range x.objects(x) {
			if n, ok := anchor.ParseKey(key); ok && n < from {
				continue
			}
			_, err := x.api.DeleteObject(x.Context(), &s3.DeleteObjectInput{Bucket: aws.String(x.bucket), Key: aws.String(key)})
			require.NoError(x, err)
		}
		return want{classes: []verify.Class{verify.ObjectHidden}, key: anchor.Key(from)}
	}},
	{23, "an anchor taken away", usual, func(x *trial) want {
		n := uint64(x.between(1, int(x.last)))
		x.removeFile(x, anchor.Key(n))
		if n == uint64(x.last) {
			return want{classes: []verify.Class{verify.AnchorMissing, verify.AnchorDatabase}, cadence: n}
		}
		return want{classes: []verify.Class{verify.AnchorMissing}, cadence: n}
	}},
	{24, "no anchors for two cadences and more", usual, func(x *trial) want {
		return want{classes: []verify.Class{verify.AnchorLate}, with: x.later(time.Duration(x.between(3, 10)) * interval)}
	}},
	{25, "lock of an object in GOVERNANCE mode, with a long date", usual, func(x *trial) want {
		key := x.object()
		x.attribute(x, key, "object-retention", func(v map[string]any) {
			v["Mode"], v["RetainUntilDate"] = "GOVERNANCE", x.clock.read().Add(10*retention)
		})
		return want{classes: []verify.Class{verify.LockMode}, key: key, alone: true}
	}},
	{26, "an anchored event edited, and the bucket written anew below its versions and locks, with another key", usual, func(x *trial) want {
		x.lie()
		x.forge(x, x.administrator, x.stranger()).intoFolder()
		return want{classes: []verify.Class{verify.AnchorSignature}, key: anchor.Key(uint64(x.last))}
	}},
	{0, "an event log edited below its versions and locks", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		key := anchor.EventsKey(p.tenant, uint64(rows[p.i].Cadence))
		text := string(x.objects(x)[key])
		x.replaceFile(x, key, []byte(strings.Replace(text, rows[p.i].Text, x.edited(rows[p.i]).Text, 1)))
		w := of(p, verify.LogMismatch)
		w.key = key
		return w
	}},
	{0, "an event log or a beacon taken away", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		key, class := anchor.EventsKey(p.tenant, uint64(rows[p.i].Cadence)), verify.LogMissing
		w := of(p, class)
		if x.one(2) {
			beacons := 0
			for key := range x.objects(x) {
				if _, ok := anchor.ParseBeaconKey(key); ok {
					beacons++
				}
			}
			key, w = anchor.BeaconKey(uint64(x.between(1, beacons))), want{classes: []verify.Class{verify.BeaconMissing}}
		}
		x.removeFile(x, key)
		return w
	}},
	{0, "the last anchor taken away with its event logs, and the database made to fit", usual, func(x *trial) want {
		x.removeFile(x, anchor.Key(uint64(x.last)))
		for key := range x.objects(x) {
			if strings.HasSuffix(key, anchor.CadenceID(uint64(x.last))+".ndjson") {
				x.removeFile(x, key)
			}
		}
		x.exec("delete from audit_anchors where number = $1", x.last)
		x.exec("update audit_events set cadence = $1 where cadence > $1", x.last)
		x.exec("update audit_ledger set open_cadence = $1", x.last)
		tenants := where(x.chains, func([]row) bool { return true })
		x.cover(nil, tenants...)
		return want{classes: []verify.Class{verify.AnchorMissing, verify.BeaconMismatch, verify.CadenceOrder, verify.BeaconInvalid}}
	}},
}

// lie edits an anchored event, computes the chain anew, and makes the rest of the database fit.
func (x *trial) lie() place {
	x.Helper()
	p, rows := x.anywhere(x.under)
	rows[p.i] = x.edited(rows[p.i])
	x.rewrite(p.tenant, rows, p.i)
	return p
}

// stranger is a key that nobody knows.
func (x *trial) stranger() sign.Signer {
	x.Helper()
	signer, err := sign.File(x.TempDir() + "/key.pem")
	require.NoError(x, err)
	return signer
}
