package kubecontroller

import "time"

// Behaviour is how an instance fares; zero: well.
type Behaviour struct {
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

// behaves is how an instance fares; the lock is held.
func (k *Controller) behaves(of key) Behaviour {
	b, told := k.behaviour[of]
	if !told {
		b = k.behaviour[key{}]
	}
	if b.RollOut == 0 {
		b.RollOut = k.config.RollOut
	}
	return b
}
