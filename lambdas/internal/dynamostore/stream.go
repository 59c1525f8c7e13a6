package dynamostore

import (
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// expiring is who DynamoDB says removed an item whose time was over.
const expiring = "dynamodb.amazonaws.com"

// Change is what a record of one of the tables' streams tells. An item of a kind
// that is not announced, or that a newer version may have, is a change of nothing.
// A record that can not be read is a fault of kind Invalid.
func (s *Store) Change(r events.DynamoDBEventRecord) (control.Change, error) {
	c := control.Change{At: r.Change.ApproximateCreationDateTime.UTC(), Expired: r.UserIdentity != nil && r.UserIdentity.PrincipalID == expiring}
	role := s.roleOf(r.EventSourceArn)
	if role == "" {
		return c, fault.New(fault.Invalid, "the stream %.200q is of none of our tables", r.EventSourceArn)
	}
	keys, err := imageOf(r.Change.Keys)
	if err != nil {
		return c, fault.Wrap(fault.Invalid, err, "read the key of a change")
	}
	place := placeIn(role, keys)
	if !place.complete() {
		return c, fault.New(fault.Invalid, "a change has no key of the table %s", role)
	}
	for _, side := range []struct {
		image map[string]events.DynamoDBAttributeValue
		into  *control.Record
	}{{r.Change.OldImage, &c.Old}, {r.Change.NewImage, &c.New}} {
		record := announced(place)
		if len(side.image) == 0 || record == nil {
			continue
		}
		item, err := imageOf(side.image)
		if err == nil {
			err = fill(record, item)
		}
		if err != nil {
			return c, fault.Wrap(fault.Invalid, err, "read a change of %s %s", place.role, place.partition)
		}
		*side.into = record
	}
	return c, nil
}

// roleOf is the role of the table that a stream's ARN names, "" for none of ours.
func (s *Store) roleOf(stream string) string {
	_, rest, _ := strings.Cut(stream, ":table/")
	name, _, _ := strings.Cut(rest, "/")
	for role, table := range s.tables {
		if name != "" && name == table {
			return role
		}
	}
	return ""
}

// imageOf is an image as the rest of this package knows items.
func imageOf(image map[string]events.DynamoDBAttributeValue) (attributes, error) {
	out := attributes{}
	for name, value := range image {
		a, err := attributeOf(value)
		if err != nil {
			return nil, err
		}
		out[name] = a
	}
	return out, nil
}

func attributeOf(v events.DynamoDBAttributeValue) (types.AttributeValue, error) {
	switch v.DataType() {
	case events.DataTypeString:
		return text(v.String()), nil
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}, nil
	case events.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}, nil
	case events.DataTypeNull:
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case events.DataTypeList:
		list := make([]types.AttributeValue, 0, len(v.List()))
		for _, e := range v.List() {
			a, err := attributeOf(e)
			if err != nil {
				return nil, err
			}
			list = append(list, a)
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case events.DataTypeMap:
		m, err := imageOf(v.Map())
		return &types.AttributeValueMemberM{Value: m}, err
	default: // sets and binaries, which records do not have: attributes of a newer version
		return &types.AttributeValueMemberNULL{Value: true}, nil
	}
}
