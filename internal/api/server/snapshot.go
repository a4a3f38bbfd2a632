package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

// snapshotPace is how long a client may take for a piece of a snapshot.
const snapshotPace = 30 * time.Second

// getSnapshot streams all records. Where that breaks off in the middle so does the
// connection, and the trailer is missing: nobody takes a part for the whole.
func (s *Server) getSnapshot(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
	if _, err := s.Records.Revision(ctx); err != nil {
		return nil, err // while it can still be said as a problem
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		h.SetHeader("Content-Type", api.ContentTypeSnapshot)
		_, w := humago.Unwrap(h)
		info, err := s.Records.Save(h.Context(), pacedWriter{h.BodyWriter(), http.NewResponseController(w)})
		if err != nil {
			s.Logger.Error("a snapshot broke off", "request", requestID(h.Context()), "error", err)
			panic(http.ErrAbortHandler)
		}
		s.Logger.Info("a snapshot was saved", "request", requestID(h.Context()), "revision", info.Revision, "records", info.Records)
	}}, nil
}

// pacedWriter gives each piece its own time: a snapshot may take longer than any other
// answer, but not for ever.
type pacedWriter struct {
	io.Writer
	control *http.ResponseController
}

// Write implements io.Writer.
func (w pacedWriter) Write(b []byte) (int, error) {
	if err := w.control.SetWriteDeadline(time.Now().Add(snapshotPace)); err != nil {
		return 0, err
	}
	return w.Writer.Write(b)
}
