package readiness

// Remove forgets key.
func (w *Watcher[K, Q, A]) Remove(key K) { w.Set(key, nil, false) }
