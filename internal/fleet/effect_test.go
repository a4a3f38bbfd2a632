package fleet

import (
	"strings"
	"testing"
	"time"
)

// Whoever adds an effect says who runs it, for how long at most, and what it does in words.
func TestP19_everyEffectSaysWhoRunsItAndWhatItDoes(t *testing.T) {
	change := DNSChange{Type: "A", Content: "192.0.2.1", Pool: "kura_staging_acme_eu"}
	for _, c := range []struct {
		effect   Effect
		executor Executor
		most     time.Duration
		words    string
	}{
		{Effect{Kind: TaskPull, Image: "cache:v1"}, ExecutorImages, 10 * time.Minute, "pull image cache:v1"},
		{Effect{Kind: TaskCreate, Name: "kura-acme-eu-cache"}, ExecutorEngine, 2 * time.Minute, "create container kura-acme-eu-cache"},
		{Effect{Kind: TaskStop, Service: "cache", ContainerID: "0123456789abcdef", Grace: Duration(time.Minute)}, ExecutorEngine, 90 * time.Second, "stop cache container 0123456789ab"},
		{Effect{Kind: TaskRename, Service: "cache", ContainerID: "01", Name: "new"}, ExecutorEngine, time.Minute, "rename container 01 to new"},
		{Effect{Kind: TaskStart, Service: "cache", ContainerID: "01"}, ExecutorEngine, time.Minute, "start cache container 01"},
		{Effect{Kind: TaskRemove, Service: "cache", ContainerID: "01"}, ExecutorEngine, time.Minute, "remove cache container 01"},
		{Effect{Kind: TaskRemoveVolumes}, ExecutorEngine, time.Minute, "remove the server's volumes"},
		{Effect{Kind: TaskApply, Name: "kura-acme-eu"}, ExecutorCluster, 30 * time.Second, "apply KuraInstance kura-acme-eu"},
		{Effect{Kind: TaskDelete, Name: "kura-acme-eu"}, ExecutorCluster, 30 * time.Second, "delete KuraInstance kura-acme-eu"},
		{Effect{Kind: TaskPublish, Name: "a.kura.test", DNS: change}, ExecutorRecords, time.Minute, "publish a.kura.test as A 192.0.2.1"},
		{Effect{Kind: TaskWithdraw, Name: "a.kura.test"}, ExecutorRecords, time.Minute, "withdraw the records of a.kura.test"},
		{Effect{Kind: TaskJoin, Name: "a.kura.test", DNS: change}, ExecutorBalancers, time.Minute, "add pool kura_staging_acme_eu to the load balancer of a.kura.test"},
		{Effect{Kind: TaskLeave, Name: "a.kura.test", DNS: change}, ExecutorBalancers, time.Minute, "take pool kura_staging_acme_eu out of the load balancer of a.kura.test"},
		{Effect{Kind: "mark"}, "mark", time.Minute, "mark"},
	} {
		if e := c.effect; e.Executor() != c.executor || e.Timeout() != c.most || e.Describe() != c.words {
			t.Errorf("%s: %s for %s: %q, want %s for %s: %q", e.Kind, e.Executor(), e.Timeout(), e.Describe(), c.executor, c.most, c.words)
		}
		if got, want := c.effect.Cancellable(), c.executor == ExecutorImages; got != want {
			t.Errorf("%s may be given up: %v", c.effect.Kind, got)
		}
	}
}

// A step that fails is the same one again by its kind and service, and says nothing new by class and reason.
func TestP21_anAnswerIsNoNewsByItsMessageAlone(t *testing.T) {
	f := &Failing{Kind: TaskPull, Service: "cache", What: "pull image cache:v1", Class: ClassRefused, Reason: ReasonImagePullFailed}
	pull := Task{Effect: Effect{Kind: TaskPull, Service: "cache"}}
	if !f.Same(pull, Outcome{Class: ClassRefused, Reason: ReasonImagePullFailed, Message: "request 7"}) || f.Same(pull, Outcome{Class: ClassTransient, Reason: ReasonImagePullFailed}) {
		t.Error("what is news of one step")
	}
	if f.Of(Task{Effect: Effect{Kind: TaskPull, Service: "proxy"}}) || (*Failing)(nil).Of(pull) {
		t.Error("another step, or none, is taken for it")
	}
	if got := f.String(); got != "pull image cache:v1: ImagePullFailed" {
		t.Errorf("it says %q", got)
	}
	if !ReasonForeignOwner.Of(ConditionDNSOwned) || ReasonQuotaExceeded.Of(ConditionImageConverged) {
		t.Error("the closed set of a condition's reasons")
	}
}

func TestParseFlag_givesEachPartOnce(t *testing.T) {
	var got []string
	set := func(key, value string) error {
		if key == "bad" {
			return Errorf(CodeInvalid, "bad is no part")
		}
		got = append(got, key+"→"+value)
		return nil
	}
	first, err := ParseFlag("kura.test=main,server=192.0.2.53:53,txt-prefix=a=b", set)
	if err != nil || first != "kura.test=main" || strings.Join(got, " ") != "server→192.0.2.53:53 txt-prefix→a=b" {
		t.Errorf("%q, %q, %v", first, got, err)
	}
	for _, flag := range []string{"kura.test,server=1,server=2", "kura.test,bad=1"} {
		if _, err := ParseFlag(flag, set); err == nil {
			t.Errorf("%s is taken", flag)
		}
	}
}
