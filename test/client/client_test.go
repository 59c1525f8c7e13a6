//go:build clients

package client

import "testing"

// One stack for all of them, as an installation has it.
func TestStockClients(t *testing.T) {
	s := up(t)
	sub := func(name string, f func(*testing.T, *stack)) {
		t.Run(name, func(t *testing.T) { f(t, s) })
	}
	sub("five clients call every core operation", testCore)
	sub("an answer that is lost makes no second task", testLostAnswer)
	sub("a definition is shown as it was registered", testEcho)
	sub("who asks for clusters by no name is answered", testProbe)
	sub("Airflow's operator runs a task to its end", testAirflow)
	sub("each block of docs/clients.md does what it says", testDocs)
	sub("ecs-deploy deploys, scales, runs and rolls back", testECSDeploy)
}
