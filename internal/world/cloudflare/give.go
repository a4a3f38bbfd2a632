package cloudflare

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// Give makes a token of that name, which may do everything, in a file in dir, and returns the flags with which
// `kurad serve` gets the zone and asks its DNS.
func (e *Emulator) Give(dir, zone, token string) ([]string, error) {
	value := rand.Text()
	e.SetToken(Token{Value: value, Name: token})
	file := filepath.Join(dir, token+".token")
	if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
		return nil, err
	}
	server := e.DNS().Addr()
	return []string{"--zone", zone + ",cloudflare=" + file + ",api=" + e.URL() + ",server=" + server, "--resolver", server}, nil
}
