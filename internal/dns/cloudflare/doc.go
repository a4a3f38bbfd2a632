// Package cloudflare is dns.API by the v4 API of Cloudflare.
package cloudflare
