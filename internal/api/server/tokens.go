package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/declare"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Tokens makes, checks and ends bearer tokens. A token reads
// kura_<id>_<32 random bytes in base32>; of the secret only a hash is stored, a fast one,
// for there is nothing in it to guess.
type Tokens struct {
	records *store.Records
	now     func() time.Time
}

const (
	tokenPrefix     = "kura"
	secretBytes     = 32
	idBytes         = 5 // 8 characters
	maxTokens       = 1000
	maxTokenName    = 100
	maxTokenLife    = 10 * 365 * 24 * time.Hour
	keepEndedTokens = 30 * 24 * time.Hour // in lists, for the audit
	// TokenFile is the name of the file in the data directory that holds the first token.
	TokenFile = "token"
)

// NewTokens returns the tokens of an environment.
func NewTokens(records *store.Records, now func() time.Time) *Tokens {
	if now == nil {
		now = time.Now
	}
	return &Tokens{records: records, now: now}
}

// base32Text is base32 in lower case, without padding: no underscore, nothing to escape.
func base32Text(b []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

func hashOf(secret string) string {
	h := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(h[:])
}

// parse returns of a bearer the id, and the hash of the secret.
func parse(bearer string) (id, hash string, ok bool) {
	parts := strings.Split(bearer, "_")
	if len(parts) != 3 || parts[0] != tokenPrefix || !isID(parts[1]) {
		return "", "", false
	}
	return parts[1], hashOf(parts[2]), true
}

func sameHash(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Authenticate returns the token that a bearer is, unless it is unknown, revoked or
// expired.
func (t *Tokens) Authenticate(ctx context.Context, bearer string) (fleet.Token, error) {
	unknown := fleet.Errorf(fleet.CodeUnauthorized, "this kurad does not know the token; is it one of this environment, and complete? (kurad token list shows those there are)")
	id, hash, ok := parse(bearer)
	if !ok {
		return fleet.Token{}, unknown
	}
	stored, err := t.records.Token(ctx, id)
	switch {
	case err != nil && fleet.CodeOf(err) != fleet.CodeNotFound:
		return fleet.Token{}, err
	case err != nil || !sameHash(hash, stored.Value.Hash):
		return fleet.Token{}, unknown
	}
	// Only who holds the secret learns more than that.
	return stored.Value, t.ended(stored.Value)
}

// ended says why a token is not valid any more; nil: it is.
func (t *Tokens) ended(token fleet.Token) error {
	switch {
	case token.RevokedAt != nil:
		return fleet.Errorf(fleet.CodeUnauthorized, "token %q was revoked at %s; use another one (kurad token create)", token.Name, token.RevokedAt.Format(time.RFC3339))
	case token.ExpiresAt != nil && !t.now().Before(*token.ExpiresAt):
		return fleet.Errorf(fleet.CodeUnauthorized, "token %q expired at %s; use another one (kurad token create)", token.Name, token.ExpiresAt.Format(time.RFC3339))
	}
	return nil
}

// valid reports whether a bearer is a token of the view that is neither revoked nor
// expired. It asks no store.
func (t *Tokens) valid(view *store.View, bearer string) bool {
	id, hash, ok := parse(bearer)
	token, known := view.Token(id)
	return ok && known && sameHash(hash, token.Hash) && t.ended(token) == nil
}

func isID(s string) bool {
	return len(s) == base32.StdEncoding.WithPadding(base32.NoPadding).EncodedLen(idBytes) &&
		!strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') })
}

// Create makes a token and returns it with its secret, which is shown this once.
func (t *Tokens) Create(ctx context.Context, by string, r api.TokenRequest) (api.TokenInfo, api.Secret, error) {
	if err := checkTokenRequest(r); err != nil {
		return api.TokenInfo{}, api.Secret{}, err
	}
	if err := t.makeRoom(ctx); err != nil {
		return api.TokenInfo{}, api.Secret{}, err
	}
	token, bearer := t.generate(by, r)
	if err := t.store(ctx, token); err != nil {
		return api.TokenInfo{}, api.Secret{}, err
	}
	return info(token), bearer, nil
}

func checkTokenRequest(r api.TokenRequest) error {
	var v fleet.Invalid
	switch {
	case strings.TrimSpace(r.Name) == "":
		v.Add("/name", "is required; say what the token is for, such as \"terraform\"")
	case len(r.Name) > maxTokenName || strings.ContainsFunc(r.Name, unicode.IsControl):
		v.Add("/name", "must be %d characters of plain text at most", maxTokenName)
	}
	if !r.Scope.Covers(fleet.ScopeRead) {
		v.Add("/scope", "%q is no scope; use read, write or admin", r.Scope)
	}
	switch {
	case r.AccountPrefix == "":
	case !prefixFormat.MatchString(r.AccountPrefix):
		v.Add("/account_prefix", "%q begins no account id; use lower-case letters, digits and hyphens, such as \"team-a-\", 63 at most", r.AccountPrefix)
	case r.Scope == fleet.ScopeAdmin:
		v.Add("/account_prefix", "a token of scope admin cannot be limited: it could make one that is not; use scope read or write")
	}
	if d := r.ExpiresIn.Std(); d < 0 || d > maxTokenLife {
		v.Add("/expires_in", "must be between 0 (until it is revoked) and %s, such as \"24h\"", fleet.Duration(maxTokenLife))
	}
	return v.Err("the token")
}

func (t *Tokens) generate(by string, r api.TokenRequest) (fleet.Token, api.Secret) {
	b := make([]byte, idBytes+secretBytes)
	_, _ = rand.Read(b) // never fails
	id, secret := base32Text(b[:idBytes]), base32Text(b[idBytes:])
	now := t.now().UTC().Truncate(time.Second)
	token := fleet.Token{ID: id, Name: r.Name, Scope: r.Scope, AccountPrefix: r.AccountPrefix, Hash: hashOf(secret), CreatedAt: now, CreatedBy: by}
	if r.ExpiresIn > 0 {
		at := now.Add(r.ExpiresIn.Std())
		token.ExpiresAt = &at
	}
	return token, api.NewSecret(tokenPrefix + "_" + id + "_" + secret)
}

func (t *Tokens) store(ctx context.Context, token fleet.Token) error {
	tx := t.records.Begin()
	tx.PutToken(store.Versioned[fleet.Token]{}, token)
	_, err := tx.Commit(ctx)
	return err
}

// makeRoom forgets tokens that ended long ago, and refuses a token too many.
func (t *Tokens) makeRoom(ctx context.Context) error {
	all, err := t.records.Tokens(ctx, store.PageOptions{})
	if err != nil || len(all.Items) < maxTokens {
		return err
	}
	tx, room := t.records.Begin(), 0
	for _, token := range all.Items {
		if ended := endOf(token.Value); room < kv.MaxOps && !ended.IsZero() && ended.Before(t.now().Add(-keepEndedTokens)) {
			tx.DeleteToken(token)
			room++
		}
	}
	if room == 0 {
		return fleet.Errorf(fleet.CodeConflict, "there are %d tokens, the most that are kept; revoke those that nobody uses, they are forgotten 30 days later", maxTokens)
	}
	if _, err := tx.Commit(ctx); err != nil && !kv.IsConflict(err) {
		return err
	}
	return nil
}

// endOf returns when a token was revoked or expires; zero: never.
func endOf(t fleet.Token) time.Time {
	switch {
	case t.RevokedAt != nil:
		return *t.RevokedAt
	case t.ExpiresAt != nil:
		return *t.ExpiresAt
	}
	return time.Time{}
}

// List returns all tokens, the newest first.
func (t *Tokens) List(ctx context.Context) ([]api.TokenInfo, error) {
	all, err := t.records.Tokens(ctx, store.PageOptions{})
	if err != nil {
		return nil, err
	}
	infos := make([]api.TokenInfo, 0, len(all.Items))
	for _, token := range all.Items {
		infos = append(infos, info(token.Value))
	}
	slices.SortFunc(infos, func(a, b api.TokenInfo) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return infos, nil
}

// Revoke ends a token; one that is revoked already stays so.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	return declare.Retry(func() error {
		if !isID(id) {
			return fleet.Errorf(fleet.CodeNotFound, "token %q does not exist; kurad token list shows those there are", id)
		}
		stored, err := t.records.Token(ctx, id)
		if err != nil || stored.Value.RevokedAt != nil {
			return err
		}
		next, now := stored.Value, t.now().UTC().Truncate(time.Second)
		next.RevokedAt = &now
		tx := t.records.Begin()
		tx.PutToken(stored, next)
		_, err = tx.Commit(ctx)
		return err
	})
}

func info(t fleet.Token) api.TokenInfo {
	return api.TokenInfo{ID: t.ID, Name: t.Name, Scope: t.Scope, AccountPrefix: t.AccountPrefix, CreatedAt: t.CreatedAt, CreatedBy: t.CreatedBy, ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt}
}

// prefixFormat is what the beginning of an account id looks like.
var prefixFormat = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Bootstrap writes an admin token to <dataDir>/token where the store has none yet, and
// returns the file's path; made is false where there was nothing to do: of several kurads
// that start at once on one new store one makes the token. The file comes
// first: a crash in between leaves a file that the next start replaces, never a token
// that nobody knows.
func (t *Tokens) Bootstrap(ctx context.Context, dataDir string) (path string, made bool, err error) {
	path = filepath.Join(dataDir, TokenFile)
	all, err := t.records.Tokens(ctx, store.PageOptions{Limit: 1})
	if err != nil || len(all.Items)+len(all.Problems) > 0 {
		return path, false, err
	}
	token, bearer := t.generate("first start", api.TokenRequest{Name: "bootstrap", Scope: fleet.ScopeAdmin})
	if err := writeFile(path, 0o600, bearer.Reveal()+"\n"); err != nil {
		return path, false, fmt.Errorf("write the first token: %w", err)
	}
	tx := t.records.Begin()
	tx.RequireNoTokens()
	tx.PutToken(store.Versioned[fleet.Token]{}, token)
	_, err = tx.Commit(ctx)
	if kv.IsConflict(err) { // another kurad of this store was first: its token is the valid one
		return path, false, os.Remove(path)
	}
	if err != nil {
		return path, false, fmt.Errorf("store the first token: %w", err)
	}
	return path, true, nil
}

// Recover writes another admin token to <dataDir>/token, for whoever may write there but
// has lost every token that could make one. Say is told of the token before it is valid.
func (t *Tokens) Recover(ctx context.Context, dataDir string, say func(fleet.Token) error) (path string, err error) {
	path = filepath.Join(dataDir, TokenFile)
	token, bearer := t.generate("kurad token recover", api.TokenRequest{Name: "recovered", Scope: fleet.ScopeAdmin})
	if err := say(token); err != nil {
		return path, err
	}
	if err := writeFile(path, 0o600, bearer.Reveal()+"\n"); err != nil {
		return path, fmt.Errorf("write the token: %w", err)
	}
	return path, t.store(ctx, token)
}

// writeFile replaces a file as a whole and durably.
func writeFile(path string, mode os.FileMode, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, werr := f.WriteString(text)
	if err := errors.Join(werr, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// Without this the store could remember, after a crash, a token whose file is lost.
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
