package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Event is what a line is about.
type Event string

// Events.
const (
	EventCall      Event = "call"      // of the API
	EventDNS       Event = "dns"       // a call changed one host of a DNS zone; the line says how
	EventCommand   Event = "command"   // of the command line, without the API
	EventRecovered Event = "recovered" // a crash had cut the line before off
	EventBroken    Event = "broken"    // the log could not be gone on with, or somebody cut it off; the line says why
	EventLost      Event = "lost"      // so many lines could not be kept
	EventTampered  Event = "tampered"  // lines that the store knows of are gone, or others
	EventRefused   Event = "refused"   // so many calls of an address were refused, and no failed login of it followed that says so
)

// Entry is what a line says happened. Secrets are cut out by who makes it.
type Entry struct {
	Time      time.Time `json:"time"`
	Event     Event     `json:"event"`
	RequestID string    `json:"request_id,omitempty"`
	TokenID   string    `json:"token_id,omitempty"`
	TokenName string    `json:"token_name,omitempty"`
	Scope     string    `json:"scope,omitempty"`
	// AccountPrefix is what the token is limited to.
	AccountPrefix string `json:"account_prefix,omitempty"`
	Source        string `json:"source,omitempty"` // address and port of the client; of refused calls the address, of IPv6 the /64
	Method        string `json:"method,omitempty"`
	Path          string `json:"path,omitempty"`
	DryRun        bool   `json:"dry_run"`
	Status        int    `json:"status,omitempty"` // of the answer
	Code          string `json:"code,omitempty"`   // of the problem that was answered
	Reason        string `json:"reason,omitempty"` // of a denial, or what an event other than a call is about
	// Unwritten counts the calls of the same token, or from the same address, that were denied
	// since the line before and have none of their own.
	Unwritten int `json:"unwritten,omitempty"`
}

// maxText bounds, in bytes, each text of an entry that a client chooses.
const maxText = 1024

func (e *Entry) truncate() {
	for _, s := range []*string{&e.Method, &e.Path, &e.Reason, &e.TokenName} {
		if len(*s) > maxText {
			*s = (*s)[:maxText] + "…"
		}
	}
}

// Line is an Entry in its place in the chain.
type Line struct {
	Seq uint64 `json:"seq"` // from 1, without gaps
	Entry
	Prev string `json:"prev"` // hash of the line before; empty in the very first
	Hash string `json:"hash,omitempty"`
}

const hashField = `,"hash":"`

// encode returns the line as it is written, with its hash and its end.
func (l Line) encode() (text []byte, hash string, err error) {
	l.Hash = ""
	text, err = json.Marshal(l)
	if err != nil {
		return nil, "", err
	}
	hash = hashOf(text)
	text = append(text[:len(text)-1], hashField+hash+"\"}\n"...)
	return text, hash, nil
}

func hashOf(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

var errNoLine = errors.New("it is no line of an audit log")

// parse reads a line, without its end, and checks its own hash. What it checks are the
// bytes as they are: a field that a later version adds changes nothing.
func parse(text []byte) (Line, error) {
	var l Line
	tail := len(hashField) + sha256.Size*2 + len(`"}`)
	if len(text) <= tail || !bytes.HasPrefix(text[len(text)-tail:], []byte(hashField)) || json.Unmarshal(text, &l) != nil || l.Seq == 0 {
		return l, errNoLine
	}
	plain := append(bytes.Clone(text[:len(text)-tail]), '}')
	if hashOf(plain) != l.Hash {
		return l, fmt.Errorf("line %d of the chain was changed after it was written: its hash is not that of its text", l.Seq)
	}
	return l, nil
}
