// Package cloudflare is a Cloudflare of its own, for tests, the demo and benchmarks: the v4 API for zones, DNS
// records, load balancers and pools, and the DNS server that answers what they say.
//
//	cf, err := cloudflare.New(cloudflare.Options{
//		Zones:  []cloudflare.Zone{{Name: "kura.test"}},
//		Tokens: []cloudflare.Token{{Value: "secret", Name: "kurad-staging"}},
//	})
//	cf.URL()        // http://127.0.0.1:40001/client/v4, for option.WithBaseURL and CLOUDFLARE_BASE_URL
//	cf.DNS().Addr() // 127.0.0.1:40002, by UDP and TCP
//
// What there is: SeedExternalDNS and Seed put records there as somebody else would have, Edit and Delete change them by
// hand; Records, Table and History tell what there is and which token did what; Counters how often the API was
// called. SetToken and Revoke change who may do what, SetLimit the budget, Break and Heal what goes wrong,
// SetPropagation how late DNS is, SetPlaces where clients are, Configure what is paid for a zone; all of it while it
// runs. cf.DNS().SetFault breaks the DNS server. Another process does the same by Control; worldd cloudflare is an
// emulator with one.
//
// Where a behaviour was read is said at its place, as reference/dns-practice.md names it. Where Cloudflare is not known
// to help, the emulator does not: a batch that fails does not say which of its operations was wrong, a refusal does not
// say whether a zone exists, a page is cut from what is there when it is asked for, propagation takes each name its
// own time. Where it does not know a field it leaves it out, as Cloudflare does.
//
// With Options.Socketless nothing listens: Client calls the API and DNS().Exchange asks in the process, also in a
// synctest bubble, where an hour of outage costs nothing.
//
// All of its state is behind one lock, under which nothing is waited for. Time is Options.Now, and no goroutine waits
// for it: budgets and propagation are computed when somebody asks.
package cloudflare
