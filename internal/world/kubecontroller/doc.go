// Package kubecontroller stands for the KuraInstance controller and for what comes with it
// in a cluster: pods, Ingress, certificates and DNS. It watches the instances of a real API
// server, writes their status and answers /up for their hosts, as the controller does:
//
//   - observedImage is a latch: it moves to spec.image only when the roll-out is complete,
//     and is kept otherwise, phase Pending. What pods do not see starts no roll-out.
//   - lastReconciledAt is rewritten every 30 s, whether or not anything has changed.
//   - phase says nothing about routing: a Behaviour makes it Ready while nothing answers.
//   - A host is answered for while spec names it, as public host or as alias, by a pod that
//     is ready: the one of before while a roll-out goes on. Others get 404, and a
//     certificate that nobody signed.
//   - A version that ends in -lost is one that nobody built: its roll-out never completes.
//
// One goroutine watches, a few write; roll-outs wait in one queue. A thousand instances
// cost two writes each. Program ../controllerd runs it by itself.
package kubecontroller
