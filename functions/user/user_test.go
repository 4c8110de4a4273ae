package user_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/user"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/user"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

// world is a tenant with people.
type world struct {
	*handlertest.Platform
	pgtest.World
}

func newWorld(t *testing.T) world {
	p := handlertest.New(t, "ops@platform.test")
	return world{p, p.DB.World(t, "acme")}
}

// person adds a user past the API, and gives its claims.
func (w world) person(t testing.TB, email string, role tenant.Role) tenant.Claims {
	t.Helper()
	id := ident.New()
	require.NoError(t, w.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into users (tenant_id, id, email, role) values ($1, $2, $3, $4)`, w.TenantID, id, email, role)
		return err
	}))
	return claims(w.World, id, role)
}

func claims(w pgtest.World, id string, role tenant.Role) tenant.Claims {
	return tenant.Claims{"custom:tenant_id": w.TenantID, "custom:user_id": id, "custom:role": string(role), "email": "x@acme.test", "email_verified": true}
}

func id(c tenant.Claims) string { return c["custom:user_id"].(string) }

func (w world) owner() tenant.Claims { return handlertest.Claims(w.World, tenant.Owner) }

func (w world) invite(t testing.TB, by tenant.Claims, email string, role any) (user.User, *fault.Error) {
	t.Helper()
	return handlertest.Call[user.User](t, w.Platform, "invite-user", functions.InviteUser, by, args{"input": args{"email": email, "role": role}})
}

var leavings = map[string]handler.Constructor{"disable-user": functions.DisableUser, "delete-user": functions.DeleteUser}

func (w world) leave(t testing.TB, function string, by tenant.Claims, id string, reason any) (user.User, *fault.Error) {
	t.Helper()
	return handlertest.Call[user.User](t, w.Platform, function, leavings[function], by, args{"id": id, "reason": reason})
}

func TestInviteUser(t *testing.T) {
	w := newWorld(t)
	u, err := w.invite(t, w.owner(), "New.User@Acme.test", nil)
	require.Nil(t, err)
	require.True(t, ident.Valid(u.ID))
	require.Equal(t, user.User{ID: u.ID, Email: "new.user@acme.test", Role: tenant.Member, Status: user.Active, CreatedAt: u.CreatedAt, UpdatedAt: u.CreatedAt}, u)
	require.Equal(t, []string{"invite new.user@acme.test"}, w.Directory().Told())

	recorded := w.Recorded(t)
	require.Len(t, recorded, 2)
	require.Equal(t, audit.UserInvited, recorded[0].Type)
	require.Equal(t, args{"email": u.Email, "role": "member", "invitedBy": w.UserID}, recorded[0].Payload)
	require.Equal(t, audit.UserCreated, recorded[1].Type)
	require.Equal(t, args{"userId": u.ID, "email": u.Email, "role": "member"}, recorded[1].Payload)
	for _, e := range recorded {
		require.Equal(t, []string{w.TenantID, w.UserID, "user", "graphql", "user", u.ID},
			[]string{e.TenantID, e.Actor, string(e.ActorType), string(e.Source), e.ResourceType, e.ResourceID})
	}

	again, err := w.invite(t, w.owner(), "new.user@acme.test", "member")
	require.Nil(t, err)
	require.Equal(t, u, again)
	require.Len(t, w.Recorded(t), 2, "nothing was done")
	_, err = w.invite(t, w.owner(), u.Email, "admin")
	require.Equal(t, fault.Invalid("the user is active already, with the role member"), err)
}

func TestAnInvitationMakesADisabledUserActive(t *testing.T) {
	w := newWorld(t)
	u, err := w.invite(t, w.owner(), "max@acme.test", "member")
	require.Nil(t, err)
	_, err = w.leave(t, "disable-user", w.owner(), u.ID, nil)
	require.Nil(t, err)
	back, err := w.invite(t, w.owner(), "max@acme.test", "admin")
	require.Nil(t, err)
	require.Equal(t, []any{u.ID, tenant.Admin, user.Active}, []any{back.ID, back.Role, back.Status})
	last := w.Recorded(t)[3:]
	require.Len(t, last, 1, "invited, not created")
	require.Equal(t, audit.UserInvited, last[0].Type)
	require.Equal(t, args{"email": "max@acme.test", "role": "admin", "invitedBy": w.UserID}, last[0].Payload)
	require.Equal(t, []string{"invite max@acme.test", "disable max@acme.test", "invite max@acme.test"}, w.Directory().Told())
}

func TestWhoMayInvite(t *testing.T) {
	w := newWorld(t)
	admin, member := w.person(t, "admin@acme.test", tenant.Admin), w.person(t, "member@acme.test", tenant.Member)
	forbidden := func(by tenant.Claims, email string, role any) {
		t.Helper()
		_, err := w.invite(t, by, email, role)
		require.NotNil(t, err)
		require.Equal(t, fault.Forbidden, err.Type)
	}
	forbidden(member, "a@acme.test", nil)
	forbidden(tenant.Claims{"email": "nobody@nowhere.test"}, "a@acme.test", nil)
	forbidden(admin, "a@acme.test", "owner")
	_, err := w.invite(t, admin, "a@acme.test", "admin")
	require.Nil(t, err)

	// An owner that was disabled comes back by an owner only, in whatever role.
	second := w.person(t, "second@acme.test", tenant.Owner)
	_, err = w.leave(t, "disable-user", w.owner(), id(second), nil)
	require.Nil(t, err)
	forbidden(admin, "second@acme.test", "member")
	_, err = w.invite(t, w.owner(), "second@acme.test", "owner")
	require.Nil(t, err)

	// A token outlives its user's role: it cannot be used to come back.
	_, err = w.leave(t, "disable-user", w.owner(), id(admin), nil)
	require.Nil(t, err)
	forbidden(admin, "admin@acme.test", "admin")
	_, err = w.invite(t, w.owner(), "admin@acme.test", "member")
	require.Nil(t, err)
	forbidden(admin, "b@acme.test", nil)
	_, err = w.leave(t, "delete-user", w.owner(), id(admin), nil)
	require.Nil(t, err)
	forbidden(admin, "admin@acme.test", "admin")
}

func TestInvitationsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	globex := w.DB.World(t, "globex")
	long := strings.Repeat("x", 244) + "@acme.test"
	require.Len(t, long, 254)
	for _, email := range []string{"", " ", "max", "max@", "@acme.test", "Max <max@acme.test>", "<max@acme.test>", "max@acme.test ", " max@acme.test", "max@acme.test\n",
		"max@acme.test, eve@acme.test", "max (the one)@acme.test", "ma\x00x@acme.test", "x" + long, "ma x@acme.test"} {
		_, err := w.invite(t, w.owner(), email, nil)
		require.NotNil(t, err, "%q", email)
		require.Equal(t, fault.ValidationError, err.Type, "%q", email)
	}
	for _, email := range []string{long, "o'hara+tag@acme.test", "müller@acme.test"} {
		_, err := w.invite(t, w.owner(), email, nil)
		require.Nil(t, err, "%q", email)
	}
	_, err := w.invite(t, w.owner(), "max@acme.test", "root")
	require.Equal(t, fault.ValidationError, err.Type)

	_, err = w.invite(t, w.owner(), "Owner@Globex.test", nil)
	require.Equal(t, fault.ValidationError, err.Type)
	for _, secret := range []string{"globex", globex.TenantID, globex.UserID} {
		require.NotContains(t, strings.ToLower(err.Message), secret)
	}
}

func TestInvitingOneAddressManyTimesAtOnce(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	got := make([]user.User, 8)
	for i := range got {
		wg.Go(func() {
			u, err := w.invite(t, w.owner(), "max@acme.test", nil)
			if err == nil {
				got[i] = u
			}
		})
	}
	wg.Wait()
	for _, u := range got {
		require.Equal(t, got[0], u)
	}
	require.NotEmpty(t, got[0].ID)
	require.Len(t, w.Recorded(t), 2)
}

func TestLeaving(t *testing.T) {
	for function, c := range map[string]struct {
		recorded audit.Type
		told     string
		status   user.Status
	}{
		"disable-user": {audit.UserDisabled, "disable max@acme.test", user.Disabled},
		"delete-user":  {audit.UserDeleted, "delete max@acme.test", user.Active},
	} {
		t.Run(function, func(t *testing.T) {
			w := newWorld(t)
			admin, max := w.person(t, "admin@acme.test", tenant.Admin), w.person(t, "max@acme.test", tenant.Member)
			refused := func(by tenant.Claims, target string, want fault.Type) {
				t.Helper()
				_, err := w.leave(t, function, by, target, nil)
				require.NotNil(t, err)
				require.Equal(t, want, err.Type, err.Message)
			}
			refused(max, id(admin), fault.Forbidden)
			refused(admin, w.UserID, fault.Forbidden)
			refused(admin, id(admin), fault.ValidationError)
			refused(w.owner(), w.UserID, fault.ValidationError)
			for _, missing := range []string{"", "no id", "max@acme.test", ident.New(), w.DB.World(t, "globex").UserID} {
				refused(admin, missing, fault.NotFound)
			}
			_, err := w.leave(t, function, admin, id(max), strings.Repeat("x", 1025))
			require.Equal(t, fault.ValidationError, err.Type)
			require.Empty(t, w.Recorded(t))
			require.Empty(t, w.Directory().Told())

			u, err := w.leave(t, function, admin, strings.ToUpper(id(max)), "left the company")
			require.Nil(t, err)
			require.Equal(t, []any{id(max), "max@acme.test", c.status}, []any{u.ID, u.Email, u.Status})
			recorded := w.Recorded(t)
			require.Len(t, recorded, 1)
			require.Equal(t, c.recorded, recorded[0].Type)
			require.Equal(t, args{"userId": id(max), "reason": "left the company"}, recorded[0].Payload)
			require.Equal(t, []string{id(admin), id(max)}, []string{recorded[0].Actor, recorded[0].ResourceID})
			require.Equal(t, []string{c.told}, w.Directory().Told())

			again, err := w.leave(t, function, admin, id(max), nil)
			if function == "delete-user" {
				require.Equal(t, fault.Missing("user"), err)
			} else {
				require.Nil(t, err)
				require.Equal(t, u, again)
			}
			require.Len(t, w.Recorded(t), 1, "nothing was done")
		})
	}
}

// A platform operator's account is not a tenant's: its owner cannot bring it in, and can only send it out of the tenant.
func TestAnOperatorsAccountIsNoTenants(t *testing.T) {
	for function := range leavings {
		t.Run(function, func(t *testing.T) {
			w := newWorld(t)
			for _, address := range []string{"ops@platform.test", "OPS@Platform.test"} {
				_, err := w.invite(t, w.owner(), address, nil)
				require.Equal(t, user.ErrTaken, err)
			}
			require.Empty(t, w.Recorded(t))
			require.Empty(t, w.Directory().Told())

			operator := w.owner()
			operator["email"] = "ops@platform.test"
			in, err := w.invite(t, operator, "ops@platform.test", nil)
			require.Nil(t, err)
			_, err = w.leave(t, function, w.owner(), in.ID, nil)
			require.Nil(t, err)
			require.Equal(t, []string{"invite ops@platform.test", "sign out ops@platform.test"}, w.Directory().Told())
		})
	}
}

func TestADeletedUserLeavesWhatItWrote(t *testing.T) {
	w := newWorld(t)
	max := w.person(t, "max@acme.test", tenant.Member)
	_, dbErr := w.DB.Superuser(t).Exec(t.Context(), `insert into client_tokens (tenant_id, user_id, operation, token, input_hash, result)
		values ($1, $2, 'createThread', 't', '', '{}'), ($1, $3, 'createThread', 't', '', '{}')`, w.TenantID, id(max), w.UserID)
	require.NoError(t, dbErr)
	_, err := w.leave(t, "delete-user", w.owner(), id(max), nil)
	require.Nil(t, err)
	var users, tokens int
	require.NoError(t, w.DB.Superuser(t).QueryRow(t.Context(), `select (select count(*) from users), (select count(*) from client_tokens)`).Scan(&users, &tokens))
	require.Equal(t, []int{1, 1}, []int{users, tokens})
	u, err := w.invite(t, w.owner(), "max@acme.test", nil)
	require.Nil(t, err)
	require.NotEqual(t, id(max), u.ID, "another user")
}

// Whoever goes at whom, and however they meet: one active owner stays.
func TestTheLastActiveOwnerStays(t *testing.T) {
	for function := range leavings {
		t.Run(function, func(t *testing.T) {
			w := newWorld(t)
			owners := []tenant.Claims{w.owner()}
			for i := range 3 {
				owners = append(owners, w.person(t, fmt.Sprintf("owner%d@acme.test", i), tenant.Owner))
			}
			var wg sync.WaitGroup
			for _, by := range owners {
				for _, target := range owners {
					wg.Go(func() { _, _ = w.leave(t, function, by, id(target), nil) })
				}
			}
			wg.Wait()
			var left int
			require.NoError(t, w.DB.Superuser(t).QueryRow(t.Context(), `select count(*) from users where role = 'owner' and status = 'active'`).Scan(&left))
			require.Equal(t, 1, left)
			require.Len(t, w.Recorded(t), 3)
		})
	}
}

func TestListUsers(t *testing.T) {
	w := newWorld(t)
	w.DB.World(t, "globex")
	var want []string
	for i := range 5 {
		email := fmt.Sprintf("%c-user@acme.test", "ba_0z"[i])
		w.person(t, email, tenant.Member)
		want = append(want, email)
	}
	want = append(want, "owner@acme.test")
	slices.Sort(want)
	var got []string
	var token *string
	for {
		list, err := handlertest.Call[page.Page[user.User]](t, w.Platform, "list-users", functions.ListUsers, w.owner(), args{"limit": 4, "nextToken": token})
		require.Nil(t, err)
		for _, u := range list.Items {
			got = append(got, u.Email)
		}
		if token = list.NextToken; token == nil {
			break
		}
	}
	require.Equal(t, want, got)
	_, err := handlertest.Call[page.Page[user.User]](t, w.Platform, "list-users", functions.ListUsers, handlertest.Claims(w.World, tenant.Member), args{})
	require.Equal(t, fault.Forbidden, err.Type)
}

// What is not recorded, or what the identity pool refuses, is not done; a retry does it.
func TestAnActIsWholeOrNotDone(t *testing.T) {
	w := newWorld(t)
	max := w.person(t, "max@acme.test", tenant.Member)
	state := func() (s string) {
		require.NoError(t, w.DB.Superuser(t).QueryRow(t.Context(),
			`select coalesce(string_agg(email || ' ' || status, ', ' order by email), '') || ', recorded: ' || (select count(*) from audit_outbox) from users`).Scan(&s))
		return s
	}
	before := state()
	attempts := func(want func(err *fault.Error)) {
		_, err := w.invite(t, w.owner(), "new@acme.test", nil)
		want(err)
		_, err = w.leave(t, "disable-user", w.owner(), id(max), nil)
		want(err)
		_, err = w.leave(t, "delete-user", w.owner(), id(max), nil)
		want(err)
	}
	internal := func(err *fault.Error) {
		t.Helper()
		require.NotNil(t, err)
		require.Equal(t, fault.InternalError, err.Type)
	}
	repair := w.BreakOutbox(t)
	attempts(internal)
	require.Equal(t, before, state())
	require.Empty(t, w.Directory().Told(), "the pool comes last")
	repair()

	w.Directory().Fail = errors.New("the pool is away")
	attempts(internal)
	require.Equal(t, before, state())
	require.Empty(t, w.Invoked())

	w.Directory().Fail = nil
	attempts(func(err *fault.Error) { require.Nil(t, err) })
	require.Equal(t, "new@acme.test active, owner@acme.test active, recorded: 4", state())
}
