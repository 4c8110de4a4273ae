package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// again plans every tier once more: a deployment that is repeated changes nothing, but for what moto does not give back as it was told.
func (r *rehearsal) again(ctx context.Context) error {
	drifts, unknown := map[string]bool{}, []string{}
	for _, t := range r.tiers {
		if _, err := r.run(ctx, t.name, "plan", "-input=false", "-out=again.plan"); err != nil {
			return err
		}
		text, err := r.run(ctx, t.name, "show", "-json", "again.plan")
		if err != nil {
			return err
		}
		var plan struct {
			Changes []change `json:"resource_changes"`
		}
		if err := json.Unmarshal([]byte(text), &plan); err != nil {
			return err
		}
		for _, c := range plan.Changes {
			if slices.Equal(c.Change.Actions, []string{"no-op"}) {
				continue
			}
			for _, attribute := range c.attributes() {
				name := c.Type + "." + attribute
				if _, ok := forgets[name]; ok && slices.Equal(c.Change.Actions, []string{"update"}) {
					drifts[name] = true
					continue
				}
				unknown = append(unknown, fmt.Sprintf("%s: %s %s", c.Address, strings.Join(c.Change.Actions, " and "), attribute))
			}
		}
	}
	fmt.Fprintln(r.out, "\nA second plan would change only what moto gives back otherwise than it was told:")
	for _, name := range slices.Sorted(maps.Keys(drifts)) {
		fmt.Fprintf(r.out, "  %s: %s\n", name, forgets[name])
	}
	if len(unknown) > 0 {
		return fmt.Errorf("a second plan changes what a first one made:\n  %s", strings.Join(unknown, "\n  "))
	}
	return nil
}

type change struct {
	Address, Type string
	Change        struct {
		Actions       []string
		Before, After map[string]any
		Unknown       map[string]any `json:"after_unknown"`
	}
}

// attributes are those that change and are not merely made anew of others.
func (c change) attributes() (names []string) {
	for name, after := range c.Change.After {
		if !reflect.DeepEqual(c.Change.Before[name], after) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		for name := range c.Change.Unknown {
			if _, ok := c.Change.After[name]; !ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// forgets is what moto gives back otherwise than it was told, by type and attribute.
var forgets = map[string]string{
	"aws_cloudfront_distribution.default_cache_behavior":       "forwards what a cache policy leaves out",
	"aws_cloudfront_distribution.origin":                       "forgets who signs the reads of an origin",
	"aws_cloudfront_distribution.viewer_certificate":           "has CloudFront's own certificate besides",
	"aws_cognito_user_pool.user_pool_tier":                     "forgets it",
	"aws_lambda_function.logging_config":                       "forgets it",
	"aws_rds_cluster.scaling_configuration":                    "tells of the first Serverless's, where there is none",
	"aws_rds_cluster_instance.performance_insights_enabled":    "forgets it",
	"aws_rds_cluster_instance.performance_insights_kms_key_id": "forgets it",
	"aws_vpc_security_group_egress_rule.description":           "forgets it",
	"aws_vpc_security_group_ingress_rule.description":          "forgets it",
}
