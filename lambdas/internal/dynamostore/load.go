package dynamostore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

const (
	batchKeys   = 100 // a BatchGetItem takes at most
	batchesOnce = 4   // batches in flight
	batchTries  = 8   // for keys that DynamoDB left out
)

// Load implements control.Store: one GetItem, or BatchGetItems of 100 keys.
func (s *Store) Load(ctx context.Context, records ...control.Record) error {
	var places []place
	seen := map[place]bool{}
	for _, r := range records {
		p := placeOf(r)
		if !p.complete() {
			return fault.New(fault.Invalid, "load %s %q: its key is empty or too long", r.Kind(), r.Key())
		}
		if !seen[p] {
			seen[p] = true
			places = append(places, p)
		}
	}
	items, err := s.read(ctx, places)
	if err != nil {
		return wrap(err, "load %d records", len(places))
	}
	for _, r := range records {
		if err := s.fillLive(r, items[placeOf(r)]); err != nil {
			return err
		}
	}
	return nil
}

// fillLive fills r from its item, or empties it where there is none or its time
// is over.
func (s *Store) fillLive(r control.Record, item attributes) error {
	if item == nil {
		control.Blank(r)
		return nil
	}
	if err := fill(r, item); err != nil {
		return err
	}
	if !s.live(r) {
		control.Blank(r)
	}
	return nil
}

func (s *Store) read(ctx context.Context, places []place) (map[place]attributes, error) {
	if len(places) == 1 {
		p := places[0]
		out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: s.table(p.role), Key: p.key(), ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return nil, err
		}
		return map[place]attributes{p: out.Item}, nil
	}
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		items = map[place]attributes{}
		errs  []error
		slots = make(chan struct{}, batchesOnce)
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for chunk := range slices.Chunk(places, batchKeys) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := s.batch(ctx, chunk, func(p place, item attributes) {
				mu.Lock()
				defer mu.Unlock()
				items[p] = item
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
				cancel()
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return nil, errs[0] // the others are most likely cancelled by it
	}
	return items, nil
}

var errUnprocessed = errors.New("DynamoDB keeps leaving keys out")

// batch reads at most 100 places, again and again where DynamoDB leaves some out.
func (s *Store) batch(ctx context.Context, places []place, found func(place, attributes)) error {
	ask := map[string]types.KeysAndAttributes{}
	for _, p := range places {
		table := s.tables[p.role]
		k := ask[table]
		k.ConsistentRead = aws.Bool(true)
		k.Keys = append(k.Keys, p.key())
		ask[table] = k
	}
	for try := 1; ; try++ {
		out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: ask})
		if err != nil {
			return err
		}
		for role, table := range s.tables {
			for _, item := range out.Responses[table] {
				found(placeIn(role, item), item)
			}
		}
		if len(out.UnprocessedKeys) == 0 {
			return nil
		}
		if try == batchTries {
			return errUnprocessed
		}
		ask = out.UnprocessedKeys
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}
