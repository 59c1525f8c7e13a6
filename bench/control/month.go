package main

import (
	"fmt"
	"io"
)

// Prices of AWS in us-east-1 as its public lists have had them since November 2024,
// in dollars for one. Look them up before you rest a decision on them.
const (
	priceRead      = 0.125 / 1e6 // DynamoDB on demand: a read request unit
	priceWrite     = 0.625 / 1e6 // a write request unit
	priceSQS       = 0.40 / 1e6  // a request of a standard queue
	priceFIFO      = 0.50 / 1e6  // of a FIFO queue
	priceInvoke    = 0.20 / 1e6  // a call of a Lambda function
	priceGBSecond  = 0.0000133334
	minutesAMonth  = 30 * 24 * 60
	pollsAMinute   = 3     // long polls of 20 s
	pollers        = 5     // of Lambda for each idle queue
	standardQueues = 3     // that functions are behind: reports, heartbeats, services
	functionGB     = 0.5   // memory of statechange and reaper
	callSeconds    = 0.005 // of one call of DynamoDB, which a function waits for
)

// cost is one thing that is paid for each month.
type cost struct {
	what  string
	count float64
	price float64
}

func (c cost) dollars() float64 { return c.count * c.price }

func sum(costs []cost) (all float64) {
	for _, c := range costs {
		all += c.dollars()
	}
	return all
}

func lineOf(lines []line, what string) line {
	for _, l := range lines {
		if l.What == what {
			return l
		}
	}
	panic("bench-control: nothing was measured of: " + what)
}

// instanceMonth is what one more idle instance costs: it polls, beats once a minute,
// and has its lease looked at. batch is how many beats a function takes at once.
func instanceMonth(few, many result, batch float64) []cost {
	beat, tenth := lineOf(many.Lines, lineBeat), lineOf(many.Lines, lineTenth)
	const m = minutesAMonth
	return []cost{
		{"polls of the command queue", m * pollsAMinute, priceSQS},
		{"heartbeats sent", m, priceSQS},
		{"heartbeats received and deleted by Lambda, in batches", 2 * m / batch, priceSQS},
		{"calls of statechange", m / batch, priceInvoke},
		{"its seconds of computing, half a GB each", m * callSeconds * (0.9*beat.Requests + 0.1*tenth.Requests), functionGB * priceGBSecond},
		{"write units: the lease, and each tenth beat", m * (0.9*beat.Write + 0.1*tenth.Write), priceWrite},
		{"read units of each tenth beat", m * (0.9*beat.Read + 0.1*tenth.Read), priceRead},
		{"messages sent by each tenth beat", m * (0.9*beat.Sends + 0.1*tenth.Sends), priceSQS},
		{"its share of the reaper's scan, read units", m * leaseUnits(few, many), priceRead},
	}
}

// installationMonth is what is paid whatever the number of instances: who waits is
// waited for, and the reaper runs each minute.
func installationMonth(few, many result) []cost {
	reaper, probe := lineOf(few.Lines, lineReaper), lineOf(few.Lines, lineProbe)
	const m = minutesAMonth
	return []cost{
		{"polls of Lambda on three standard queues", m * pollsAMinute * pollers * standardQueues, priceSQS},
		{"polls of Lambda on the FIFO queue", m * pollsAMinute * pollers, priceFIFO},
		{"runs of the reaper and takings in of its probe", 2 * m, priceInvoke},
		{"their seconds of computing, half a GB each", m * callSeconds * (reaper.Requests + reaper.Sends + probe.Requests), functionGB * priceGBSecond},
		{"their messages", m * (reaper.Sends + 2), priceSQS},
		{"their write units", m * (reaper.Write + probe.Write), priceWrite},
		{"their read units, less the scan of leases", m * (reaper.Read + probe.Read - float64(few.Instances)*leaseUnits(few, many)), priceRead},
	}
}

// leaseUnits are the read units that one more lease adds to a run of the reaper.
func leaseUnits(few, many result) float64 {
	return (lineOf(many.Lines, lineReaper).Read - lineOf(few.Lines, lineReaper).Read) / float64(many.Instances-few.Instances)
}

func printMonth(out io.Writer, results []result) {
	few, many := results[0], results[1]
	for _, part := range []struct {
		title string
		costs []cost
	}{
		{"an instance (of many: ten beats a call)", instanceMonth(few, many, 10)},
		{"an instance alone (each beat is a call)", instanceMonth(few, many, 1)},
		{"an installation, beside its instances", installationMonth(few, many)},
	} {
		fmt.Fprintf(out, "\n%s: $%.3f a month\n", part.title, sum(part.costs))
		table(out, func(w io.Writer) {
			for _, c := range part.costs {
				fmt.Fprintf(w, "$%.4f\t%.0f\t× $%.4f a million\t\t%s\n", c.dollars(), c.count, c.price*1e6, c.what)
			}
		})
	}
}
