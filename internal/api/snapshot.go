package api

import (
	"context"
	"fmt"
	"io"
	"mime"
)

// ContentTypeSnapshot is that of a snapshot: lines of JSON.
const ContentTypeSnapshot = "application/x-ndjson"

// SaveSnapshot writes a snapshot of all that the daemon has stored to w. One that has
// broken off in the middle may look like an answer: store.Verify tells. It takes as long
// as it takes; ctx bounds it.
func (c *Client) SaveSnapshot(ctx context.Context, w io.Writer) error {
	k := get("save a snapshot", "snapshot")
	req, err := c.request(ctx, k)
	if err != nil {
		return err
	}
	unhurried := *c.patient.HTTPClient
	unhurried.Timeout = 0
	resp, err := unhurried.Do(req.Request)
	if err != nil {
		return c.noAnswer(ctx, k.what, err)
	}
	defer resp.Body.Close()
	if mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != 200 || mt != ContentTypeSnapshot {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return c.noAnswer(ctx, k.what, err)
		}
		return c.problem(k.what, resp, body)
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("%s: %w", k.what, err)
	}
	return nil
}
