// Package wire puts a question to a DNS server, and takes no answer for it but its own.
package wire

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	tries      = 3           // a datagram can be lost
	tryTimeout = time.Second // of one question
)

// Ask puts one question to a server, host:port: by UDP, again where the answer is lost, and by TCP
// where it is cut short.
func Ask(ctx context.Context, server string, question *dns.Msg) (answer *dns.Msg, err error) {
	for range tries {
		question.Id = dns.Id()
		answer, err = exchange(ctx, "udp", server, question)
		if err == nil && answer.Truncated {
			answer, err = exchange(ctx, "tcp", server, question)
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return answer, err
}

// exchange sends the question and waits for its answer. The client of the dns
// package is not used because it does not end when ctx does.
func exchange(ctx context.Context, network, server string, question *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	defer EndWith(ctx, raw)()
	conn := &dns.Conn{Conn: raw}
	if opt := question.IsEdns0(); opt != nil {
		conn.UDPSize = opt.UDPSize()
	}
	if err := conn.WriteMsg(question); err != nil {
		return nil, err
	}
	for {
		answer, err := conn.ReadMsg()
		if err != nil && answer == nil {
			return nil, err
		}
		// A datagram that is not ours, or no DNS at all, is no reason to stop waiting.
		if err == nil && answer.Response && answer.Id == question.Id &&
			len(answer.Question) == 1 && strings.EqualFold(answer.Question[0].Name, question.Question[0].Name) &&
			answer.Question[0].Qtype == question.Question[0].Qtype {
			return answer, nil
		}
	}
}

// EndWith makes reads and writes of conn fail once ctx is done. The returned function undoes
// it.
func EndWith(ctx context.Context, conn net.Conn) (undo func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}
