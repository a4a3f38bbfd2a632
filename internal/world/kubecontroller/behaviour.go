package kubecontroller

import "time"

// Behaviour is how an instance fares; zero: well.
type Behaviour struct {
	// Notice is how long a change of the spec waits for a pass that reads it; 0: as configured.
	// A pass that goes on when it is changed writes what it has read before.
	Notice time.Duration `json:"notice,omitempty"`
	// Silent: no pass looks at it, and nothing is written.
	Silent bool `json:"silent,omitempty"`
	// RollOut is how long one takes; 0: as configured.
	RollOut time.Duration `json:"roll_out,omitempty"`
	// Stuck roll-outs never complete.
	Stuck bool `json:"stuck,omitempty"`
	// Down pods answer 503, whatever the phase says.
	Down bool `json:"down,omitempty"`
	// Image is what observedImage claims, instead of what runs.
	Image string `json:"image,omitempty"`
	// SelfSigned says that no certificate has been issued.
	SelfSigned bool `json:"self_signed,omitempty"`
	// Unrouted hosts get 404.
	Unrouted bool `json:"unrouted,omitempty"`
	// Unpublished hosts are not in DNS. It needs a DNS.
	Unpublished bool `json:"unpublished,omitempty"`
	// Message is what status.message says.
	Message string `json:"message,omitempty"`
}

// Set tells how one instance fares, also one that is not there yet, or with "" and "" all
// that were told nothing of their own.
func (k *Controller) Set(namespace, name string, b Behaviour) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.behaviour[key{namespace, name}] = b
	k.queueAll()
}

// Heal takes back everything that was Set.
func (k *Controller) Heal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.behaviour)
	k.queueAll()
}

// queueAll looks at every instance again; the lock is held.
func (k *Controller) queueAll() {
	for of := range k.objects {
		k.queue.Add(of)
	}
}

// RolledOut is the generation of an instance whose roll-out was completed last, and when; 0:
// none was by this controller.
func (k *Controller) RolledOut(namespace, name string) (generation int64, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.states[key{namespace, name}]; s != nil {
		return s.rolled, s.rolledAt
	}
	return 0, time.Time{}
}

// behaves is how an instance fares; the lock is held.
func (k *Controller) behaves(of key) Behaviour {
	b, told := k.behaviour[of]
	if !told {
		b = k.behaviour[key{}]
	}
	if b.Notice == 0 {
		b.Notice = k.config.Notice
	}
	if b.RollOut == 0 {
		b.RollOut = k.config.RollOut
	}
	return b
}
