package dynamostore

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/schema"
)

// Leases implements control.Store by a scan of the whole leases table, page by
// page. An item of a kind that this code does not know is passed over.
func (s *Store) Leases(ctx context.Context) (*control.LeaseScan, error) {
	scan := &control.LeaseScan{}
	in := &dynamodb.ScanInput{TableName: s.table(schema.Leases), ConsistentRead: aws.Bool(true)}
	for {
		out, err := s.client.Scan(ctx, in)
		if err != nil {
			return nil, wrap(err, "scan leases")
		}
		for _, item := range out.Items {
			if err := s.scanned(item, scan); err != nil {
				return nil, err
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			break
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
	slices.SortFunc(scan.Leases, func(a, b control.Lease) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(scan.Probes, func(a, b control.Probe) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(scan.Brakes, func(a, b control.Brake) int { return cmp.Compare(a.Zone, b.Zone) })
	return scan, nil
}

func (s *Store) scanned(item attributes, into *control.LeaseScan) error {
	r := leaseRecord(placeIn(schema.Leases, item).partition)
	if r == nil {
		return nil
	}
	if err := s.fillLive(r, item); err != nil {
		return err
	}
	if *r.Revision() == 0 {
		return nil
	}
	switch r := r.(type) {
	case *control.Lease:
		into.Leases = append(into.Leases, *r)
	case *control.Probe:
		into.Probes = append(into.Probes, *r)
	case *control.Brake:
		into.Brakes = append(into.Brakes, *r)
	case *control.Guard:
		into.Guard = *r
	}
	return nil
}
